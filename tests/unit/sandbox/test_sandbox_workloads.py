"""Workload controllers and budgets."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.model import kinds
from kerf.model.kinds import Ref
from kerf.ports import AlreadyExists
from kerf.sandbox.api import api_server
from kerf.sandbox.nodes.kubelets import NOT_READY
from kerf.sandbox.world import World

from .sandbox_world import deployment, node, places, pods, wait


def world_of(*names: str) -> World:
    world = World()
    for name in names:
        world.apply(node(name))
    wait(world, 10)
    return world


def daemon_set(**spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [{"name": "main"}], **spec}}
    body = {"selector": {"matchLabels": {"app": "agent"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"}, "spec": body}


def stateful_set(replicas: int) -> dict[str, Any]:
    manifest = deployment("db", replicas)
    return {**manifest, "kind": "StatefulSet"}


def budget(**spec: Any) -> dict[str, Any]:
    body = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}, "spec": body}


def test_lost_pod_is_replaced() -> None:
    world = world_of("one")
    world.apply(deployment("web", 2))
    wait(world, 5)
    lost = sorted(places(world))[0]
    world.delete("Pod", lost)
    wait(world, 5)
    assert len(places(world)) == 2
    assert lost not in places(world)


def test_scale_down_takes_pending_pods_first_and_then_the_newest() -> None:
    world = world_of("one")
    world.apply(deployment("web", 2, cpu="1500m"))
    wait(world, 5)
    old = set(places(world))
    world.scale("default", "web", 4)
    wait(world, 5)
    assert sorted(places(world).values()) == ["", "", "one", "one"]
    world.scale("default", "web", 2)
    wait(world, 5)
    assert set(places(world)) == old


def test_new_template_rolls_over() -> None:
    world = world_of("one", "two")
    world.apply(deployment("web", 3))
    wait(world, 5)
    world.apply(deployment("web", 3, cpu="600m"))
    wait(world, 10)
    requests = {one.spec.containers[0].resources.requests["cpu"] for one in pods(world)}
    assert (len(pods(world)), requests) == (3, {"600m"})


def test_deleting_the_deployment_takes_everything() -> None:
    world = world_of("one")
    world.apply(deployment("web", 3))
    wait(world, 5)
    world.delete("Deployment", "web")
    wait(world, 10)
    assert (world.objects("ReplicaSet"), world.objects("Pod")) == ([], [])


def test_daemons_run_on_every_node_that_accepts_them() -> None:
    world = world_of("one")
    world.apply(node("tainted", taints=[{"key": "team", "effect": "NoSchedule"}]))
    world.apply(daemon_set())
    wait(world, 10)
    assert list(places(world).values()) == ["one"]
    world.apply(node("cordoned", unschedulable=True))
    wait(world, 10)
    assert sorted(places(world).values()) == ["cordoned", "one"]
    world.kube.patch(Ref("Node", "", "one"), {"spec": {"taints": [{"key": "team", "effect": "NoSchedule"}]}})
    wait(world, 10)
    assert sorted(places(world).values()) == ["cordoned", "one"]


def test_stateful_set_starts_in_order_and_keeps_names() -> None:
    world = world_of("one")
    world.apply(stateful_set(3))
    world.step()
    assert set(places(world)) == {"db-0"}
    wait(world, 20)
    assert set(places(world)) == {"db-0", "db-1", "db-2"}
    before = world.kube.get(Ref("Pod", "default", "db-1")).metadata.uid
    world.delete("Pod", "db-1")
    wait(world, 20)
    assert world.kube.get(Ref("Pod", "default", "db-1")).metadata.uid != before


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ({"maxUnavailable": 1}, 1),
        ({"maxUnavailable": 0}, 0),
        ({"maxUnavailable": "30%"}, 2),
        ({"minAvailable": 2}, 3),
        ({"minAvailable": "50%"}, 2),
        ({"minAvailable": "100%"}, 0),
        ({"minAvailable": 7}, 0),
    ],
)
def test_budgets_count_like_kubernetes(spec: dict[str, Any], allowed: int) -> None:
    world = world_of("one")
    world.apply(deployment("web", 5))
    world.apply(budget(**spec))
    wait(world, 10)
    assert world.kube.get(Ref("PodDisruptionBudget", "default", "web")).status.disruptions_allowed == allowed


def test_unhealthy_pod_counts_against_the_budget() -> None:
    world = world_of("one")
    world.apply(deployment("web", 3))
    world.apply(budget(maxUnavailable=1))
    wait(world, 10)
    sick = Ref.of(kinds.POD, pods(world)[0])
    world.kube.patch(sick, {"metadata": {"annotations": {NOT_READY: "true"}}})
    wait(world, 1)
    status = world.kube.get(Ref("PodDisruptionBudget", "default", "web")).status
    assert (status.disruptions_allowed, status.current_healthy) == (0, 2)
    world.kube.evict(sick)
    assert world.kube.get(sick).metadata.deleting


def test_a_generated_name_that_is_taken_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 10,000 pods of a Deployment some draw the same name."""
    draws = iter(["first", "first", "second", *["second"] * 8])
    monkeypatch.setattr(api_server, "suffix", lambda *_: next(draws))
    world = World()
    bare = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "web-"}, "spec": {"containers": []}}
    names = [world.server.create(kinds.POD, bare).manifest["metadata"]["name"] for _ in range(2)]
    assert names == ["web-first", "web-second"]
    with pytest.raises(AlreadyExists):
        world.server.create(kinds.POD, bare)
    assert next(draws, None) is None
