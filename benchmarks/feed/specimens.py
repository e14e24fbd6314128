"""One settled node of each sort: the sandbox lives for a while under the real controller, and its objects are taken.

What AWS says of types, images, subnets, groups and profiles comes from the same emulator that the measured controller
asks later, so that nothing has drifted when it looks. The feed stamps thousands of nodes out of these few.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from kerf.aws.cloud import AwsCloud
from kerf.model.aws.cloud import ClassFacts, ClusterFacts, Region
from kerf.model.settings import Settings
from kerf.ports import Ports
from kerf.runtime.controller import Controller
from kerf.runtime.observe import looking
from kerf.sandbox.aws.cloud import SandboxCloud
from kerf.sandbox.aws.machines import Machine
from kerf.sandbox.world import ZONES, World
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from tests import worlds

Json = dict[str, Any]

CLUSTER: Final = "feed"
LIVES: Final = timedelta(minutes=20)
#: Pods of Deployments on each node, beside its daemons, and what each of them asks for in cpu (milli) and memory (MiB).
#: What is left of a node is too little for one more, or consolidation would rightly spread one node over the others.
WORKLOAD_PODS: Final = 17
CPU_MILLIS: Final = 450
MEMORY_MIB: Final = {"general": 1024, "spot": 1024, "memory": 3072, "arm": 1024}
DAEMONS: Final = ("aws-node", "kube-proxy", "log-agent")
#: NodePools: what a requirement on top of size, and the rest of the spec says.
POOLS: Final[Mapping[str, Json]] = {
    "general": {"category": ["m"], "arch": "amd64", "capacity": "on-demand", "budgets": [{"nodes": "10%"}]},
    "spot": {"category": ["m", "c"], "arch": "amd64", "capacity": "spot", "budgets": [{"nodes": "5%"}]},
    "memory": {"category": ["r"], "arch": "amd64", "capacity": "on-demand", "budgets": [{"nodes": "20"}]},
    "arm": {
        "category": ["m"],
        "arch": "arm64",
        "capacity": "on-demand",
        "budgets": [{"nodes": "10%"}, {"nodes": "0", "schedule": "0 0 1 1 *", "duration": "1m"}],
    },
}
#: The label of a pool's nodes that its workloads select.
TIER: Final = "example.com/tier"
_GROUP: Final = "karpenter.k8s.aws"


@dataclass(frozen=True, slots=True)
class Specimen:
    """A node as the API server has it, its claim and its instance."""

    pool: str
    claim: Json
    node: Json
    machine: Machine


@dataclass(frozen=True, slots=True)
class Settled:
    """The specimens, and the objects of which there are few, by kind name."""

    specimens: tuple[Specimen, ...]
    others: Mapping[str, list[Json]]


class _BorrowedFacts(SandboxCloud):
    """Instances are the sandbox's; what selectors match, types and prices are told by another AWS."""

    def __init__(self, world: World, aws: AwsCloud) -> None:
        super().__init__(world.ec2, world.clock, world.faults, CLUSTER)
        self._aws = aws
        self._region: Region | None = None

    def region(self) -> Region:
        if self._region is None:
            self._region = looking.region(self._aws)
        return self._region

    def cluster(self) -> ClusterFacts:
        return self._aws.cluster()

    def resolve(self, node_class: EC2NodeClass, cluster: ClusterFacts) -> ClassFacts:
        facts = self._aws.resolve(node_class, cluster)
        self._ec2.subnets = {subnet.id: subnet for subnet in facts.subnets}
        return facts

    def ensure_instance_profile(self, name: str, role: str, path: str, tags: Mapping[str, str]) -> None:
        self._aws.ensure_instance_profile(name, role, path, tags)


def settle(aws: AwsCloud, role: str) -> Settled:
    """Let the sandbox live up to now; its nodes. Raises RuntimeError when it has not come out as planned."""
    world = World(seed=1, start=datetime.now(UTC) - LIVES, cluster_name=CLUSTER)
    cloud = _BorrowedFacts(world, aws)
    world.ec2.region = cloud.region()
    controller = Controller(
        Ports(kube=world.kube, cloud=cloud, clock=world.clock), settings=Settings(cluster_name=CLUSTER), inline=True
    )
    for manifest in (worlds.node_class(role=role, cluster=CLUSTER), *map(node_pool, POOLS), *map(daemon_set, DAEMONS)):
        world.apply(manifest)
    for pool in POOLS:
        for zone in ZONES:
            world.apply(_filler(pool, zone))
    world.run(controller, LIVES)
    controller.close()
    found = _specimens(world)
    if len(found) != len(POOLS) * len(ZONES):
        raise RuntimeError(f"{len(found)} nodes came out of {len(POOLS)} pools in {len(ZONES)} zones")
    kept = ("NodePool", "EC2NodeClass", "DaemonSet", "Namespace")
    return Settled(found, {kind: world.objects(kind) for kind in kept})


def _specimens(world: World) -> tuple[Specimen, ...]:
    nodes = {node["spec"]["providerID"]: node for node in world.objects("Node")}
    machines = {machine.provider_id: machine for machine in world.ec2.instances.values()}
    found = []
    for claim in world.objects("NodeClaim"):
        provider = claim["status"].get("providerID", "")
        pool = claim["metadata"]["labels"]["karpenter.sh/nodepool"]
        found.append(Specimen(pool, claim, nodes[provider], machines[provider]))
    return tuple(found)


# --- manifests --------------------------------------------------------------------------------------------------------
def node_pool(name: str) -> Json:
    given = POOLS[name]
    rules = {
        f"{_GROUP}/instance-category": given["category"],
        f"{_GROUP}/instance-size": ["2xlarge"],
        "kubernetes.io/arch": [given["arch"]],
        "karpenter.sh/capacity-type": [given["capacity"]],
    }
    disruption = {
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "consolidateAfter": "10m",
        "budgets": given["budgets"],
    }
    requirements = [{"key": key, "operator": "In", "values": values} for key, values in rules.items()]
    rest = {"labels": {TIER: name}, "expireAfter": "720h", "disruption": disruption}
    return worlds.node_pool(name, {"requirements": requirements, **rest})


def daemon_set(name: str) -> Json:
    requests = {"cpu": "50m", "memory": "64Mi"}
    pod = {
        "containers": [{"name": name, "image": f"registry.example/{name}:v1", "resources": {"requests": requests}}],
        "tolerations": [{"operator": "Exists"}],
        "priorityClassName": "system-node-critical",
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
        },
    }


def _filler(pool: str, zone: str) -> Json:
    """A Deployment that fills one node of a pool in a zone."""
    given = {
        "replicas": WORKLOAD_PODS,
        "cpu": f"{CPU_MILLIS}m",
        "memory": f"{MEMORY_MIB[pool]}Mi",
        "nodeSelector": {TIER: pool, "topology.kubernetes.io/zone": zone},
    }
    return worlds.deployment(f"filler-{pool}-{zone}", given)
