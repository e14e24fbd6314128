"""A node in the making: the pods put on it so far, the remaining types of the NodePool, and the pods that may join."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kerf.pods.host_ports import HeldPorts
from kerf.pods.topology_constraints import AFFINITY, ANTI, SPREAD, TopologyConstraint, TopologyGroup
from kerf.scheduling.offerings.instance_types import Ints
from kerf.scheduling.offerings.nodepools import NodeClaimTemplate, asks_of
from kerf.scheduling.placing.daemon_company import beside_daemons
from kerf.scheduling.placing.ways import PodGroup
from kerf.scheduling.topology.admits import MANY, apart, bounds
from kerf_api import labels
from kerf_api.requirements import Requirements

Steps = tuple[tuple[int, int], ...]


@dataclass(slots=True, eq=False)
class PoolDemand:
    """An item within one pool: `left` pods, each `worth` the least price of the share of a node that it needs.

    `served` are the pool's requirements narrowed to the item, `lane` their number; `steps` the columns it needs
    anything of, with amounts. By hostname: `hosts` are its constraints, `counted` the groups that count its pods,
    `owned` those whose owners keep others away, `limits` see `host_limits`.
    """

    item: PodGroup
    served: Requirements
    lane: int
    left: int
    worth: int
    steps: Steps
    hosts: tuple[TopologyConstraint, ...]
    counted: tuple[TopologyGroup, ...]
    owned: tuple[TopologyGroup, ...]
    limits: tuple[tuple[TopologyGroup, int], ...]

    @classmethod
    def of(
        cls,
        item: PodGroup,
        served: Requirements,
        lane: int,
        left: int,
        worth: int,
        steps: Steps,
        hosts: tuple[TopologyConstraint, ...],
    ) -> PoolDemand:
        return cls(
            item,
            served,
            lane,
            left,
            worth,
            steps,
            hosts,
            tuple([group for group in item.cls.counted if group.key == labels.HOSTNAME]) if item.cls.counted else (),
            tuple([one.group for one in hosts if one.group.kind == ANTI and one.required]) if hosts else (),
            host_limits(item, hosts) if hosts else (),
        )

    @property
    def together(self) -> int:
        """How many of the pods may be on one node."""
        most = 1 if self.item.cls.ports else MANY
        return min([most, *map(apart, self.hosts)])

    def apart(self, number: int) -> dict[Hashable, int]:
        """How many nodes so many of the pods need at least, by the group, or the host port, that keeps them apart."""
        found: dict[Hashable, int] = dict.fromkeys(self.item.cls.ports, number)
        for constraint in self.hosts:
            if 0 < (each := apart(constraint)) < MANY:
                found[constraint.group] = -(-number // each)
        return found


@dataclass(slots=True, eq=False)
class Bin:
    """`content` are (item, number of its pods); `counts` and `owners` are the hostname groups' counters here, `limits`
    the most that `counts` may be before a turn of the plan."""

    template: NodeClaimTemplate
    requirements: Requirements
    used: Ints
    content: list[tuple[PodGroup, int]] = field(default_factory=list)
    counts: dict[TopologyGroup, int] = field(default_factory=dict)
    owners: dict[TopologyGroup, int] = field(default_factory=dict)
    limits: dict[TopologyGroup, tuple[int, int]] = field(default_factory=dict)
    ports: HeldPorts = field(default_factory=HeldPorts)

    @classmethod
    def filled(
        cls, template: NodeClaimTemplate, requirements: Requirements, content: Sequence[tuple[PodGroup, int]]
    ) -> Bin:
        """A node with these pods, of which it is known that they may be together there."""
        made = cls(template, requirements, np.zeros_like(content[0][0].need))
        for item, number in content:
            made.add(item, number, requirements)
        return made

    def copy(self) -> Bin:
        return Bin(
            self.template,
            self.requirements,
            self.used.copy(),
            list(self.content),
            dict(self.counts),
            dict(self.owners),
            dict(self.limits),
            self.ports.copy(),
        )

    def most(self, item: PodGroup, *, with_company: bool = False) -> int:
        """How many pods of an item the others here and hostname constraints admit, room aside.

        `with_company`: whom the item has affinity to is taken care of.
        """
        most, hosts = MANY, self._hosts(item)
        if hosts is None:
            return 0
        for constraint in hosts:
            if with_company and constraint.group.kind == AFFINITY:
                continue
            most = min(most, bounds(constraint).more(self.counts.get(constraint.group, 0)))
        if any(self.owners.get(group, 0) for group in item.cls.keep_away if group.key == labels.HOSTNAME):
            return 0
        for group in item.cls.counted:
            limit, until = self.limits.get(group, (MANY, 0))
            if until > item.first:
                most = min(most, max(limit - self.counts.get(group, 0), 0))
        if item.cls.ports:
            most = 0 if self.ports.clash(item.cls.ports) else min(most, 1)
        return most

    def _hosts(self, item: PodGroup) -> tuple[TopologyConstraint, ...] | None:
        """The hostname constraints of an item beside the DaemonSet pods here; None where these keep its pods away."""
        if not item.cls.beside_daemons:
            return item.relaxation.hosts
        served = self.template.serve(item.requirements)
        beside = beside_daemons(self.template, served, item.cls, item.relaxation) if served is not None else None
        return beside.hosts if beside is not None else None

    def add(self, item: PodGroup, number: int, requirements: Requirements) -> None:
        """Put pods of an item here; `requirements` are the bin's and the item's together."""
        self.requirements = requirements
        self.used = self.used + item.need * number
        self.content.append((item, number))
        self.ports.take(item.cls.ports)
        for group in item.cls.counted:
            if group.key == labels.HOSTNAME:
                self.counts[group] = self.counts.get(group, 0) + number
        for constraint in item.relaxation.hosts:
            if constraint.group.kind == ANTI and constraint.required:
                self.owners[constraint.group] = self.owners.get(constraint.group, 0) + number
        if any(constraint.group.kind == SPREAD for constraint in item.relaxation.hosts):
            for group, most in host_limits(item, self._hosts(item) or ()):
                limit, until = self.limits.get(group, (MANY, 0))
                self.limits[group] = min(limit, most), max(until, item.last)

    def types(self) -> NDArray[np.intp]:
        """Places of the types that hold everything here, cheapest first, within limits and clear of daemons' ports.

        None when they are too few for minValues.
        """
        shape = self.template.shape(self.requirements)
        good = shape.holding(self.used)
        for mask in (self.template.within_limits(), self.template.free_of_ports(self.ports)):
            if mask is not None:
                good &= mask[shape.types]
        types, strict = shape.types[good], self.template.min_values and self.template.strict_min_values
        return types[:0] if strict and self.template.shortfall(types) else types


def host_limits(item: PodGroup, hosts: Iterable[TopologyConstraint]) -> tuple[tuple[TopologyGroup, int], ...]:
    """The most pods that each hard spread over hostnames may count on a node when a pod of the item is bound there."""
    spreads = [constraint for constraint in hosts if constraint.group.kind == SPREAD]
    hard = {constraint.group for constraint in item.cls.relaxations[-1].spreads} if spreads else ()
    return tuple((constraint.group, constraint.max_skew) for constraint in spreads if constraint.group in hard)


def steps_of(need: Ints) -> Steps:
    """The columns of which there is any need, with the amounts."""
    return tuple((int(column), int(need[column])) for column in np.flatnonzero(need))


def goes_first(stock: PoolDemand) -> bool:
    """Whether the stock is seated one pod after the other, before anything else is packed."""
    return stock.item.cls.claiming or needs_company(stock.hosts)


def needs_company(hosts: Iterable[TopologyConstraint]) -> bool:
    """Whether hostname constraints ask for other pods on the same host."""
    return any(constraint.group.kind == AFFINITY for constraint in hosts)


def stocks_of(
    template: NodeClaimTemplate, items: Sequence[PodGroup], left: Mapping[PodGroup, int], within: Requirements
) -> list[PoolDemand]:
    """Items that the pool can serve within these requirements."""
    lanes: dict[Requirements, list[PodGroup]] = {}
    for item in items:
        if left[item] and item.relaxation.demand.tolerates(template.taints):
            served = template.serve(item.requirements)
            if served is None or (item.unpinned and any(template.open_domains(key, served) for key in item.unpinned)):
                continue
            if within:
                served = template.join(served, within)
            if served is not None:
                lanes.setdefault(served, []).append(item)
    found: list[PoolDemand] = []
    steps: dict[int, Steps] = {}  # equal pods share one vector
    for lane, (served, there) in enumerate(lanes.items()):
        template.reckon(served, asks_of(item.need for item in there if not item.cls.ports))
        for item in there:
            worth = template.unit_cost(served, item.need, item.cls.ports)
            beside = beside_daemons(template, served, item.cls, item.relaxation) if worth is not None else None
            if worth is not None and beside is not None:
                taken = steps.get(id(item.need))
                if taken is None:
                    taken = steps[id(item.need)] = steps_of(item.need)
                found.append(PoolDemand.of(item, served, lane, left[item], max(worth, 1), taken, beside.hosts))
    return found
