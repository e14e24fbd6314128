"""What became of worlds when the real kube-scheduler had bound their pods: against the plan, in nodes and in money.

The plan is the first answer to the pods that waited: the NodeClaims that were made for one of them for which none had
been made before. Its cost is that of the cheapest offering of each claim. One that was made for the same pods once more
is the price of a binding that went otherwise. So is one to which nobody came: it goes, being empty, but it was paid
for, so the cost after binding is that of all nodes that there ever were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, permutations
from typing import Any, Final

from kerf.lifecycle.nodeclaim.expectations import HELD_AT_MOST
from kerf.model.aws.cloud import Region
from kerf.scheduling.answers.nodeclaims import pod_mark
from kerf_api import labels

from .binding_worlds import WORKLOAD, WORLD, BindingWorld

Json = dict[str, Any]
#: The cost after binding, over all worlds, for each dollar of the plan.
MOST: Final = 1.05


@dataclass(frozen=True, slots=True)
class Node:
    """A NodeClaim that has, or had, a node: for whom it was made, who came. Pods are (workload, UID)."""

    name: str
    pool: str
    planned: frozenset[str]
    came: tuple[tuple[str, str], ...]
    cost: int
    stays: bool

    @property
    def own(self) -> int:
        """How many of those it was made for came."""
        return sum(pod_mark(uid) in self.planned for _, uid in self.came)


@dataclass(frozen=True, slots=True)
class Bound:
    """A world after binding. Costs in millionths of a dollar an hour; seconds since the controller's start, and how far
    `apart` the planned nodes joined."""

    world: BindingWorld
    pods: int
    planned_nodes: int
    planned_cost: int
    nodes: tuple[Node, ...]
    forsaken: tuple[str, ...]
    waiting: tuple[str, ...]
    seconds: float
    apart: float

    @property
    def cost(self) -> int:
        return sum(node.cost for node in self.nodes)

    @property
    def ratio(self) -> float:
        return self.cost / self.planned_cost if self.planned_cost else float("inf")

    @property
    def went(self) -> int:
        """Nodes that are there no more."""
        return sum(not node.stays for node in self.nodes)

    @property
    def elsewhere(self) -> int:
        """Pods on another node than the one that was made for them."""
        return sum(len(node.came) - node.own for node in self.nodes)

    @property
    def late(self) -> bool:
        """Whether nodes joined so far apart that the first of them could not wait for the last."""
        return self.apart > HELD_AT_MOST.total_seconds()

    @property
    def problems(self) -> list[str]:
        found = [] if self.pods == self.world.pods else [f"{self.pods} of {self.world.pods} pods are bound"]
        return [*found, *self.waiting, *self.forsaken]


def bound(
    world: BindingWorld,
    waited: Sequence[Json],
    pods: Sequence[Json],
    claims: Sequence[Json],
    staying: frozenset[str],
    region: Region,
    *,
    since: datetime,
    joined: Mapping[str, datetime] = {},
) -> Bound:
    """What became of a world: `pods` are all of the cluster's, `waited` those that waited when the controller started,
    `claims` all that there ever were, and `staying` the names of those that there are. `joined` says since when there
    are, or were, Nodes, by name."""
    own = [pod for pod in pods if _labels(pod).get(WORLD) == world.name]
    sitting = [pod for pod in own if "nodeName" in pod["spec"]]
    mine = sorted((claim for claim in claims if _labels(claim).get(WORLD) == world.name), key=_age)
    first = list(_first_answer(mine, frozenset(pod_mark(pod["metadata"]["uid"]) for pod in waited)))
    nodes = tuple(_node(claim, sitting, claim["metadata"]["name"] in staying, region) for claim in mine)
    times = [at for pod in sitting if (at := _bound_at(pod)) is not None]
    return Bound(
        world,
        len(sitting),
        len(first),
        sum(cheapest(claim, region) for claim in first),
        nodes,
        tuple(_forsaken(nodes, [*waited, *own])),
        tuple(_waits(pod) for pod in own if "nodeName" not in pod["spec"]),
        max(((at - since).total_seconds() for at in times), default=0.0),
        _apart([joined[name] for claim in first if (name := claim["status"].get("nodeName", "")) in joined]),
    )


def _apart(instants: Sequence[datetime]) -> float:
    return (max(instants) - min(instants)).total_seconds() if instants else 0.0


def table(rows: Sequence[Bound]) -> str:
    """A line per world, and one for all of them."""
    titles = ("world", "pods", "planned", "after binding", "went", "ratio", "elsewhere", "s", "apart")
    plan = sum(row.planned_nodes for row in rows), sum(row.planned_cost for row in rows)
    now = sum(len(row.nodes) for row in rows), sum(row.cost for row in rows)
    pods, went, elsewhere = (sum(part) for part in zip(*((r.pods, r.went, r.elsewhere) for r in rows), strict=True))
    whole = _cells("all", pods, plan, now, went, ratio(rows), elsewhere, *_latest(rows))
    cells = [(titles, "features"), *((_row(row), ", ".join(row.world.features)) for row in rows), (whole, "")]
    return "\n".join("  ".join([*map(str.rjust, line, _WIDTHS), told]).rstrip() for line, told in cells)


_WIDTHS: Final = (5, 4, 18, 18, 4, 5, 9, 3, 5)


def _latest(rows: Sequence[Bound]) -> tuple[float, float]:
    return max(row.seconds for row in rows), max(row.apart for row in rows)


def _row(row: Bound) -> tuple[str, ...]:
    plan, now = (row.planned_nodes, row.planned_cost), (len(row.nodes), row.cost)
    return _cells(row.world.name, row.pods, plan, now, row.went, row.ratio, row.elsewhere, row.seconds, row.apart)


def _cells(
    name: str,
    pods: int,
    plan: tuple[int, int],
    now: tuple[int, int],
    went: int,
    ratio: float,
    elsewhere: int,
    seconds: float,
    apart: float,
) -> tuple[str, ...]:
    costs = (f"{nodes} nodes ${cost / 1e6:.4f}" for nodes, cost in (plan, now))
    return (name, str(pods), *costs, str(went), f"{ratio:.3f}", str(elsewhere), f"{seconds:.0f}", f"{apart:.0f}")


def ratio(rows: Iterable[Bound]) -> float:
    """The cost after binding over the plan's, of all worlds together."""
    found = list(rows)
    return sum(row.cost for row in found) / sum(row.planned_cost for row in found)


# --- claims -------------------------------------------------------------------------------------------------------
def cheapest(claim: Json, region: Region) -> int:
    """What the claim's cheapest offering costs."""
    rows = {row["key"]: row for row in claim["spec"]["requirements"]}
    markets = rows[labels.CAPACITY_TYPE]["values"]
    prices = [
        region.spot[(type_, zone)] if market == labels.SPOT else region.on_demand[type_]
        for type_ in rows[labels.INSTANCE_TYPE]["values"]
        for zone in sorted(region.zones_by_type[type_])
        if _allows(rows.get(labels.ZONE), zone)
        for market in markets
        if market != labels.SPOT or (type_, zone) in region.spot
    ]
    return min(prices)


def _allows(row: Json | None, value: str) -> bool:
    if row is None or row["operator"] == "Exists":
        return True
    return (value in row["values"]) is (row["operator"] == "In")


def _first_answer(claims: Sequence[Json], waited: frozenset[str]) -> Iterable[Json]:
    """Those that were made for at least one of the pods that waited for which none had been made before."""
    left = set(waited)
    for claim in claims:
        marks = _marks(claim)
        if marks & left:
            yield claim
        left -= marks


def _marks(claim: Json) -> frozenset[str]:
    return frozenset(claim["metadata"]["annotations"][labels.PLANNED_PODS].split(","))


def _age(claim: Json) -> tuple[str, str]:
    return claim["metadata"]["creationTimestamp"], claim["metadata"]["name"]


def _node(claim: Json, sitting: Sequence[Json], stays: bool, region: Region) -> Node:
    name, own = claim["status"].get("nodeName", ""), _labels(claim)
    type_, zone, market = own[labels.INSTANCE_TYPE], own[labels.ZONE], own[labels.CAPACITY_TYPE]
    cost = region.spot[(type_, zone)] if market == labels.SPOT else region.on_demand[type_]
    came = tuple((_workload(pod), pod["metadata"]["uid"]) for pod in sitting if pod["spec"]["nodeName"] == name)
    return Node(claim["metadata"]["name"], own[labels.NODEPOOL], _marks(claim), came, cost, stays)


def _forsaken(nodes: Sequence[Node], pods: Sequence[Json]) -> Iterable[str]:
    """Nodes that stay and have neither a pod that they were made for nor one of the same workload, in words.

    Those of one NodePool that took each other's pods are none: each set of pods that was planned for is together on a
    node of its pool, and there is no node too many.
    """
    of_mark = {pod_mark(pod["metadata"]["uid"]): _workload(pod) for pod in pods}
    wanted = {node.name: Counter(of_mark[mark] for mark in node.planned if mark in of_mark) for node in nodes}
    came = {node.name: {workload for workload, _ in node.came} for node in nodes}
    strangers = [node for node in nodes if node.stays and not came[node.name] & wanted[node.name].keys()]
    for _, group in groupby(sorted(strangers, key=lambda node: node.pool), key=lambda node: node.pool):
        names = [node.name for node in group]
        if any(
            all(came[one] & wanted[two].keys() for one, two in zip(names, other, strict=True))
            for other in permutations(names)
        ):
            continue
        for name in names:
            yield f"node {name}, made for {_listed(wanted[name])}, has {_listed(came[name])}"


def _listed(workloads: Iterable[str]) -> str:
    return " and ".join(sorted(workloads)) or "nobody"


# --- pods ---------------------------------------------------------------------------------------------------------
def _labels(thing: Json) -> dict[str, str]:
    found: dict[str, str] = thing["metadata"].get("labels", {})
    return found


def _workload(pod: Json) -> str:
    return f"{pod['metadata']['namespace']}/{_labels(pod)[WORKLOAD]}"


def _waits(pod: Json) -> str:
    """What the kube-scheduler says of a pod that has no node, and which one it keeps in mind."""
    name, status = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}", pod["status"]
    why = [one.get("message", "") for one in status.get("conditions", []) if one["type"] == "PodScheduled"]
    return f"pod {name} waits for {status.get('nominatedNodeName', 'any node')}: {' '.join(why)}"


def _bound_at(pod: Json) -> datetime | None:
    for one in pod["status"].get("conditions", []):
        if one["type"] == "PodScheduled" and one["status"] == "True":
            return datetime.fromisoformat(one["lastTransitionTime"])
    return None
