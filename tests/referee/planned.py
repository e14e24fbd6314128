"""Planned nodes: are they from a NodePool that takes part, of types that can be had and have room, at their price?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from kerf.model.aws.instance_type import InstanceType
from kerf.model.kubernetes.objects import Pod
from kerf.model.snapshot import Snapshot
from kerf_api.requirements import Requirements
from kerf_api.resources import Resources, total
from kerf_api.v1.nodepool import NodePool
from tests.referee.answers import Answer, PlannedNode, Violation
from tests.referee.daemons import Daemons
from tests.referee.needs import HostPort, requests
from tests.referee.overlays import overlaid
from tests.referee.places import Labels, Place, launchable, offers, outcomes_of


@dataclass(frozen=True, slots=True)
class Shape:
    """What nodes of one pool, one set of requirements and one list of types have in common.

    `rooms` are by type, less what daemon sets take; `prices` by type, that of the cheapest offering.
    """

    outcomes: tuple[Labels, ...]
    rooms: Mapping[str, Resources]
    prices: Mapping[str, int]
    daemon_ports: frozenset[HostPort]
    problems: tuple[Violation, ...]


class Planned:
    """The planned nodes of one answer."""

    def __init__(self, snapshot: Snapshot, daemons: Daemons, by_key: Mapping[str, Pod]) -> None:
        self._snapshot, self._daemons, self._by_key = snapshot, daemons, by_key
        self._shapes: dict[Any, Shape] = {}
        #: Whether what a node asks for may decide where it can be launched.
        self._apart = any(o.capacity for types in snapshot.catalogues.values() for t in types for o in t.offerings)

    def place(self, node: PlannedNode, number: int) -> Place:
        pool = self._snapshot.node_pools.get(node.pool)
        shape = self._shape(node)
        taints = pool.spec.template.spec.taints if pool is not None else ()
        coming = [self._by_key[key] for key in node.pods]
        name, ports = f"new node {number}", shape.daemon_ports
        surely, perhaps = self._daemons.pods_to_come(taints, shape.outcomes)
        own = Place(name, shape.outcomes, taints, daemon_ports=ports, coming=coming, planned=True)
        own.awaited, own.possible = surely, perhaps
        return own

    def problems(self, node: PlannedNode) -> Iterator[Violation]:
        """What is wrong with a planned node by itself."""
        shape = self._shape(node)
        yield from shape.problems
        needs = total(requests(self._by_key[key]) for key in node.pods)
        for name, room in shape.rooms.items():
            for resource, amount in needs.items():
                if amount > room[resource]:
                    yield Violation("capacity", f"{name} has too little {resource} for a new node of {node.pool}")
        prices = [shape.prices[name] for name in node.instance_types if name in shape.prices]
        if any(a > b for a, b in pairwise(prices)):
            yield Violation("price", f"types of a new node of {node.pool} are not in order of price")
        if prices and node.price != prices[0]:
            yield Violation("price", f"a new node of {node.pool} says that it costs {node.price}, not {prices[0]}")
        if not all(node.requests[r] >= amount for r, amount in needs.items()):
            yield Violation("requests", f"a new node of {node.pool} requests less than its pods")

    def _shape(self, node: PlannedNode) -> Shape:
        key = (node.pool, node.requirements, node.instance_types, node.requests if self._apart else None)
        if key not in self._shapes:
            pool = self._snapshot.node_pools.get(node.pool)
            self._shapes[key] = _nowhere(node) if pool is None else _shape(self._snapshot, self._daemons, pool, node)
        return self._shapes[key]


def _nowhere(node: PlannedNode) -> Shape:
    return Shape((), {}, {}, frozenset(), (Violation("pool", f"there is no NodePool {node.pool}"),))


def types_of(snapshot: Snapshot, pool: NodePool) -> dict[str, InstanceType]:
    """The types that a NodePool can use, by name."""
    return {t.name: t for t in overlaid(snapshot, pool)}


def stands_aside(pool: NodePool) -> str:
    """Why no nodes are planned from a NodePool; empty when they may be."""
    if pool.static:
        return "is static"
    if pool.metadata.deleting:
        return "is being deleted"
    ready = any(c.type == "Ready" and c.status == "True" for c in pool.status.conditions)
    return "" if ready else "is not ready"


def _shape(snapshot: Snapshot, daemons: Daemons, pool: NodePool, node: PlannedNode) -> Shape:
    known, own = types_of(snapshot, pool), pool.template_labels()
    taints = pool.spec.template.spec.taints
    problems = list(_pool_problems(snapshot, pool, node))
    outcomes: list[Labels] = []
    rooms: dict[str, Resources] = {}
    prices: dict[str, int] = {}
    ports: list[frozenset[HostPort]] = []
    for name in node.instance_types:
        if name not in known:
            problems.append(Violation("types", f"{name} is no type of {node.pool}"))
            continue
        for apart, one in launchable(known[name], node.requests).items():
            become = outcomes_of(snapshot, node.requirements, own, one, pool.requirements())
            if become:
                share = daemons.most(taints, become)
                outcomes += become
                rooms[apart] = one.allocatable - share.requests
                cheapest = min(o.price for o in offers(snapshot, node.requirements, one))
                prices[name] = min(cheapest, prices.get(name, cheapest))
                ports.append(share.ports)
        if name not in prices:
            problems.append(Violation("offering", f"{name} has no offering for a new node of {node.pool}"))
    problems += _min_values(snapshot, pool, node, known)
    return Shape(tuple(outcomes), rooms, prices, frozenset().union(*ports), (*problems,))


def _pool_problems(snapshot: Snapshot, pool: NodePool, node: PlannedNode) -> Iterator[Violation]:
    why = stands_aside(pool)
    if why:
        yield Violation("pool", f"a new node is planned from {pool.name}, which {why}")
    if not 0 < len(node.instance_types) <= snapshot.settings.max_instance_types:
        yield Violation("types", f"a new node of {node.pool} lists {len(node.instance_types)} types")
    wanted = pool.requirements()
    for key, row in (node.requirements & wanted).items():
        if key in wanted and replace(row, min_values=None) != replace(node.requirements.allowed(key), min_values=None):
            yield Violation("requirements", f"a new node of {node.pool} leaves open what the pool wants of {key}")


def _min_values(
    snapshot: Snapshot, pool: NodePool, node: PlannedNode, known: Mapping[str, InstanceType]
) -> Iterator[Violation]:
    if snapshot.settings.min_values_policy != "Strict":
        return
    for key, row in pool.requirements().items():
        if row.min_values is not None:
            listed = (known[name].requirements.get(key) for name in node.instance_types if name in known)
            values = {v for r in listed if r is not None and not r.complement for v in r.values}
            if len(values) < row.min_values:
                words = f"a new node of {node.pool} has {len(values)} values of {key}, not {row.min_values}"
                yield Violation("min-values", words)


# --- limits -----------------------------------------------------------------------------------------------------
def limits(snapshot: Snapshot, answer: Answer, exclude: frozenset[str]) -> Iterator[Violation]:
    """NodePools that would exceed a limit if every new node became the largest that it may."""
    for name, pool in snapshot.node_pools.items():
        new = [node for node in answer.new_nodes if node.pool == name]
        bounds = pool.limits if new else None
        if bounds is None:
            continue
        known = types_of(snapshot, pool)
        used = [_largest([known[t].capacity for t in node.instance_types if t in known]) for node in new]
        for key, state in snapshot.state_nodes.items():
            if state.pool_name == name and key not in exclude and not state.deleting:
                used.append(state.capacity or _largest(_may_become(state.claim, known)))
        for resource, limit in bounds.items():
            amount = len(used) if resource == "nodes" else sum(one[resource] for one in used)
            if amount > limit:
                yield Violation("limits", f"nodepool {name} would use {amount} {resource} of {limit}")


def _may_become(claim: Any, known: Mapping[str, InstanceType]) -> list[Resources]:
    wanted = claim.requirements() if claim is not None else Requirements()
    return [t.capacity for t in known.values() if wanted.conflict(t.requirements) is None]


def _largest(bags: list[Resources]) -> Resources:
    found = Resources()
    for bag in bags:
        found = found.maximum(bag)
    return found
