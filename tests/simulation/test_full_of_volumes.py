"""A node attaches no more volumes than its driver says: further pods get another node, and consolidation knows it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kerf.model import kinds
from kerf.sandbox.weather import Weather
from kerf.sandbox.world import World
from tests.simulation.stage import Play
from tests.worlds import node_class, node_pool

DISKS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "gp3"},
    "provisioner": "ebs.csi.aws.com",
    "volumeBindingMode": "WaitForFirstConsumer",
    "allowedTopologies": [
        {"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": ["us-west-2a"]}]}
    ],
}
EAGER = {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "30s", "budgets": [{"nodes": "100%"}]}
ON_DEMAND = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}


class Store(Play):
    """A StatefulSet whose pods have a volume each, on nodes that can attach two; all in one zone."""

    def __init__(self, replicas: int, most: int = 2) -> None:
        world = World(seed=3, types=("m5.large", "m5.xlarge"), weather=Weather(attachable_volumes=most))
        for manifest in (node_class(), node_pool("general", {"also": [ON_DEMAND], "disruption": EAGER}), DISKS):
            world.apply(manifest)
        super().__init__(world)
        self.live(seconds=20)
        world.apply(self._stateful_set(replicas))

    def _stateful_set(self, replicas: int) -> dict[str, Any]:
        requests = {"cpu": "100m", "memory": "128Mi"}
        pod = {"containers": [{"name": "main", "image": "main", "resources": {"requests": requests}}]}
        claim = {"metadata": {"name": "data"}, "spec": {"storageClassName": "gp3", "accessModes": ["ReadWriteOnce"]}}
        spec = {
            "serviceName": "store",
            "replicas": replicas,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": "store"}},
            "volumeClaimTemplates": [claim],
            "template": {"metadata": {"labels": {"app": "store"}}, "spec": pod},
        }
        return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "store"}, "spec": spec}

    def scale(self, replicas: int) -> None:
        kind = self.world.server.kinds["StatefulSet"]
        self.world.server.patch(kind, "default", "store", {"spec": {"replicas": replicas}})

    def per_node(self) -> list[int]:
        """How many running pods each node has, sorted."""
        pods = [record.value for record in self.world.server.records(kinds.POD)]
        running = Counter(pod.spec.node_name for pod in pods if pod.status.phase == "Running")
        return sorted(running[node["metadata"]["name"]] for node in self.world.objects("Node"))

    def launches(self) -> int:
        return len(self.world.ec2.instances)


def test_the_third_volume_gets_another_node_and_stays_there() -> None:
    """Nobody knows what a node can attach before it has joined: three are planned on one, and one has to go on.

    Consolidation would like one node for all three, and knows better.
    """
    story = Store(replicas=3)
    story.live(minutes=5)
    assert story.per_node() == [1, 2]
    launches = story.launches()
    story.live(minutes=20)
    assert (story.per_node(), story.launches()) == ([1, 2], launches)


def test_a_node_goes_once_another_can_attach_its_volumes() -> None:
    story = Store(replicas=3)
    story.live(minutes=5)
    story.scale(2)
    story.live(minutes=10)
    assert story.per_node() == [2]


def test_a_pod_that_comes_later_is_not_sent_to_a_full_node() -> None:
    story = Store(replicas=2)
    story.live(minutes=5)
    assert story.per_node() == [2]
    story.scale(3)
    story.live(minutes=5)
    assert story.per_node() == [1, 2]
    told = [event["message"] for event in story.world.objects("Event") if event["reason"] == "Nominated"]
    claims = [claim["metadata"]["name"] for claim in story.world.objects("NodeClaim")]
    assert sorted(sum(f"nodeclaim/{name}" in words for words in told) for name in claims) == [1, 2]
