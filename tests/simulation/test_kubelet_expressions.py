"""From an expression in the kubelet configuration to nodes that take as many pods; and nothing while one fails."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kerf.model.settings import FeatureGates
from kerf.sandbox.world import World
from tests.simulation.stage import SETTINGS, Play
from tests.worlds import node_class, node_pool

OPEN = replace(SETTINGS, gates=FeatureGates(node_class_cel=True))


def world(**kubelet: Any) -> Play:
    made = World(seed=3, types=("m5.large", "m5.xlarge"))
    _class(made, kubelet)
    made.apply(node_pool("general", {}))
    pod = {"containers": [{"name": "main", "image": "main", "resources": {"requests": {"cpu": "10m"}}}]}
    labels = {"matchLabels": {"app": "web"}}
    spec = {"replicas": 9, "selector": labels, "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod}}
    made.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
    return Play(made, settings=OPEN)


def _class(made: World, kubelet: dict[str, Any]) -> None:
    of = node_class()
    of["spec"]["kubelet"] = kubelet
    made.apply(of)


def nodes(play: Play) -> dict[str, str]:
    """How many pods the nodes of each type take."""
    found = (node["status"]["capacity"]["pods"] for node in play.world.objects("Node"))
    kinds = (node["metadata"]["labels"]["node.kubernetes.io/instance-type"] for node in play.world.objects("Node"))
    return dict(zip(kinds, map(str, found), strict=True))


def test_nodes_take_as_many_pods_as_the_expression_says() -> None:
    play = world(maxPods="vcpus * 3", kubeReserved={"cpu": "max_pods * 10"})
    play.live(minutes=5)
    assert set(nodes(play).items()) <= {("m5.large", "6"), ("m5.xlarge", "12")}
    assert nodes(play)
    assert all(pod["status"]["phase"] == "Running" for pod in play.world.objects("Pod"))


def test_nothing_is_launched_while_an_expression_fails_on_a_type_and_all_is_well_when_it_is_corrected() -> None:
    play = world(maxPods="20 + 10 / (vcpus - 4)")
    play.live(minutes=3)
    (of,) = play.world.objects("EC2NodeClass")
    said = {row["type"]: (row["status"], row["reason"]) for row in of["status"]["conditions"]}
    assert said["ValidationSucceeded"] == ("False", "KubeletExpressionEvaluationFailed")
    assert not nodes(play)
    _class(play.world, {"maxPods": "20 + 10 / (vcpus + 4)"})
    play.live(minutes=5)
    assert nodes(play)
    assert all(pod["status"]["phase"] == "Running" for pod in play.world.objects("Pod"))
