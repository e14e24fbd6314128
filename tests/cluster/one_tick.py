"""Many claims of one tick: workloads of twelve shapes on three NodePools (`one_tick.yaml`), what came of them, and an
AWS that ails meanwhile.

The shapes of a pool differ in the size of the machines that they may have, and one or two of their pods fill a machine,
so that as many nodes are needed as is said here, and no shape can take another's nodes.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

from kerf.kube.client import KubeClient
from tests.worlds import deployment

from .crash_killer import DRY_RUN, mutating
from .fleet import is_true
from .installation import Installation
from .moto_aws import MotoAws
from .moto_aws.settings import ZONES
from .proxy import AWS, Decision, Pass, Request
from .storm import refusal

MANIFEST: Final = Path(__file__).parent / "one_tick.yaml"
POOLS: Final = ("tick-plain", "tick-bottle", "tick-dense")
FAMILIES: Final = ("c6a", "m6a", "r6a")
#: Of each size: the processors that fill a machine of it with one pod, and with two.
FULL: Final = {
    "large": ("1100m", "750m"),
    "xlarge": ("2100m", "1700m"),
    "2xlarge": ("4100m", "3500m"),
    "4xlarge": ("8100m", "7300m"),
}
ZONE: Final = "topology.kubernetes.io/zone"
#: Before each look: with hundreds of nodes, looking costs more than all that is looked at.
LOOK_SECONDS: Final = 0.5
#: Of ten AWS calls three are refused, of ten offerings two are out of stock.
THROTTLED, SOLD_OUT = 0.3, 0.2


@dataclass(frozen=True, slots=True)
class Shape:
    """One workload. So many `pods_a_node` are on each of its nodes."""

    pool: str
    size: str
    pods_a_node: int = 1
    spread: bool = False

    @property
    def name(self) -> str:
        return f"{self.pool}-{self.size}"

    def deployment(self, nodes: int) -> dict[str, Any]:
        """As a manifest whose pods need so many nodes."""
        selector = {"karpenter.sh/nodepool": self.pool, "karpenter.k8s.aws/instance-size": self.size}
        pods: dict[str, Any] = {"nodeSelector": selector, "terminationGracePeriodSeconds": 0}
        if self.spread:
            labels = {"matchLabels": {"app": self.name}}
            hard = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": labels}
            pods["topologySpreadConstraints"] = [hard]
        cpu = FULL[self.size][self.pods_a_node - 1]
        return deployment(self.name, {"replicas": nodes * self.pods_a_node, "cpu": cpu, "memory": "1Gi", **pods})


SHAPES: Final = tuple(
    Shape(pool, size, pods_a_node=2 if size == "2xlarge" else 1, spread=size == "xlarge")
    for pool in POOLS
    for size in FULL
)


def deployments(nodes: int) -> list[dict[str, Any]]:
    """All shapes, with so many nodes each."""
    return [shape.deployment(nodes) for shape in SHAPES]


class Tick:
    """What the API server and EC2 have of all shapes, with so many `nodes` each, asked directly."""

    def __init__(self, kerf: Installation, nodes: int) -> None:
        self._aws, self.claims = kerf.aws, nodes * len(SHAPES)
        self._pods = nodes * sum(shape.pods_a_node for shape in SHAPES)
        self._kube = KubeClient.from_kubeconfig(kerf.control_plane.kubeconfig)
        self._before = {one["id"] for one in kerf.aws.instances()}

    def all_wait(self) -> bool:
        """Whether the kube-scheduler has refused all pods."""
        return sum(map(_refused, self._shaped())) == self._pods

    def launched(self) -> bool:
        """Whether there are as many claims as are needed, and all have their instances."""
        found = self._claims()
        return len(found) == self.claims and all(is_true(claim, "Launched") for claim in found)

    def amiss(self) -> list[str]:
        """What is not yet as it should be: all pods run, and each claim has its node and its one instance."""
        alive = [pod for pod in self._shaped() if "deletionTimestamp" not in pod["metadata"]]
        running = sum(pod["status"].get("phase") == "Running" for pod in alive)
        claims = self._claims()
        named = [claim.get("status", {}).get("providerID", "").rpartition("/")[2] for claim in claims]
        live, wanted = set(self.live()), Counter(named)
        found = [f"pods running: {running} of {self._pods}"] if running != self._pods else []
        found += [f"claims: {len(claims)} instead of {self.claims}"] if len(claims) != self.claims else []
        waiting = sum(not is_true(claim, "Initialized") for claim in claims)
        found += [f"claims without a node that is initialized: {waiting}"] if waiting else []
        found += [f"{many} claims have instance {id_ or '(none)'}" for id_, many in wanted.items() if many > 1]
        found += [f"instance {id_} has no claim" for id_ in sorted(live - wanted.keys())]
        return found + [f"instance {id_} is not there" for id_ in sorted(filter(None, wanted.keys() - live))]

    def amiss_at_end(self) -> list[str]:
        """Claims, nodes and instances that are left."""
        found = [f"claims are left: {left}"] if (left := len(self._claims())) else []
        found += [f"instances are left: {len(live)}"] if (live := self.live()) else []
        nodes = self._items("/api/v1/nodes")
        ours = [one for one in nodes if one["metadata"]["labels"].get("karpenter.sh/nodepool") in POOLS]
        return found + ([f"nodes are left: {len(ours)}"] if ours else [])

    def live(self) -> list[str]:
        """Our instances that cost money."""
        return [one["id"] for one in self.ever() if one["state"] in ("pending", "running")]

    def ever(self) -> list[dict[str, Any]]:
        """All instances since the beginning, whatever became of them."""
        return [one for one in self._aws.instances() if one["id"] not in self._before]

    def _claims(self) -> list[dict[str, Any]]:
        found = self._items("/apis/karpenter.sh/v1/nodeclaims")
        return [one for one in found if one["metadata"]["labels"].get("karpenter.sh/nodepool") in POOLS]

    def _shaped(self) -> list[dict[str, Any]]:
        """The pods of all shapes."""
        pods = self._items("/api/v1/namespaces/default/pods")
        return [pod for pod in pods if pod["metadata"].get("labels", {}).get("app", "").startswith("tick-")]

    def _items(self, path: str) -> list[dict[str, Any]]:
        time.sleep(LOOK_SECONDS)
        items: list[dict[str, Any]] = self._kube.request("GET", path)["items"]
        return items


def _refused(pod: dict[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(one["type"] == "PodScheduled" and one.get("reason") == "Unschedulable" for one in conditions)


# --- what ails AWS ------------------------------------------------------------------------------------------------
class Throttling:
    """A rule for the proxy: of what another rule lets pass, three of ten calls of AWS are refused as too many."""

    def __init__(self, rule: Callable[[Request], Decision], share: float = THROTTLED) -> None:
        self._rule, self._share, self._dice = rule, share, Random(3)
        #: How many calls were asked, and refused, by operation.
        self.asked: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    def __call__(self, request: Request) -> Decision:
        decision = self._rule(request)
        if request.port != AWS or not isinstance(decision, Pass):
            return decision
        self.asked[request.operation] += 1
        if self._dice.random() >= self._share:
            return decision
        self.refused[request.operation] += 1
        return refusal(request, 503, "RequestLimitExceeded")


def sold_out(families: Sequence[str] = FAMILIES, share: float = SOLD_OUT) -> list[tuple[str, str, str, int]]:
    """Types, zones and capacity types that are short, and how many machines are left there: of every other one a few.

    No shape that is spread is without any machine in one of the zones, for its pods could not all have a place then.
    """
    dice = Random(5)
    offerings = [
        (f"{family}.{size}", f"us-west-2{zone}", kind)
        for size in FULL
        for zone in ZONES
        for kind in ("spot", "on-demand")
        for family in families
    ]
    chosen = sorted(dice.sample(offerings, round(len(offerings) * share)))
    return [(*offering, 2 * (number % 2)) for number, offering in enumerate(chosen)]


def sell_out(aws: MotoAws, rows: Iterable[tuple[str, str, str, int]]) -> None:
    for instance_type, zone, capacity_type, left in rows:
        aws.stock_out(instance_type, zone, capacity_type, left=left)


def call_of_aws(request: Request) -> bool:
    """Whether the controller may die at it: any, but the endless polls of the queue and what is only tried."""
    return request.port == AWS and request.operation != "ReceiveMessage" and DRY_RUN not in request.body


def write_to_aws(request: Request) -> bool:
    return call_of_aws(request) and mutating(request)
