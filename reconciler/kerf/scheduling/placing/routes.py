"""The ways to new nodes for pods of equal constraints: which NodePool, and which value each topology label gets there.

Usually every combination of domains is a route. Where these are too many, domains are chosen key by key instead, the
emptiest first, so that no combination is out of reach.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from math import prod
from typing import Final, NamedTuple

from kerf.pods.daemon_overhead import Daemon
from kerf.pods.topology_constraints import AFFINITY, ANTI, SPREAD, TopologyConstraint, TopologyGroup
from kerf.scheduling.offerings.instance_types import Ints
from kerf.scheduling.offerings.nodepools import Ask, NodeClaimTemplate
from kerf.scheduling.placing.classes import PodClass, Relaxation
from kerf.scheduling.placing.daemon_company import BesideDaemons, beside_daemons, far_from_domain, suited
from kerf.scheduling.placing.planned_counting import counting, countings, planned_labels
from kerf.scheduling.placing.strategy import Pins
from kerf.scheduling.topology import admits
from kerf.scheduling.topology.admits import Bounds
from kerf_api import labels
from kerf_api.requirements import IN, Requirements, requirement

#: The most combinations of domains that are all listed, and the most steps of a choice key by key.
_MOST_ROUTES: Final = 1024
_MOST_STEPS: Final = 1024
#: Steps for a route, its constraints aside, and for a domain that is chosen by its key.
_A_ROUTE: Final = 8
_A_DOMAIN: Final = 3
#: Further ones for a node filter of spreads.
_A_FILTER: Final = 2
#: Where nothing else decides, a domain gets pods for so much money (a dollar an hour) before the next one has its turn:
#: few pods share a node, many leave no domain empty that others must use.
TURN: Final = 1_000_000


@dataclass(slots=True, eq=False)
class Spent:
    """The cost of the pods that are planned in the same domains, and for each affinity the number of those whose nodes
    carry the DaemonSet pods that they must be near."""

    amount: int = 0
    founding: dict[TopologyGroup, int] = field(default_factory=dict)

    def until_next_turn(self, cost: int, pods: int) -> int:
        """How many of these pods, which cost so much each, come before another domain has its turn."""
        return min(-(-(TURN - self.amount % TURN) // cost), pods) if cost > 0 else pods

    def beside(self, group: TopologyGroup, number: int) -> tuple[int, int]:
        """Count so many more pods that are near DaemonSet pods; the number before and now."""
        before = self.founding.get(group, 0)
        self.founding[group] = before + number
        return before, before + number


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """Where pods with equal constraints may go, whatever their size.

    `served` are the pool's requirements narrowed to all of it, `hosts` the constraints over hostnames. `gates` are
    constraints with the domain they would get a pod in; the pod is counted in `counts`, `owners` and as `fresh` (on a
    host that has no name yet); spreads of `counts` that may not count the node are `unsure`. On its host the pod
    `follows` pods of other groups. `unpinned` are topology keys without a pin, `arrivals` the pods of DaemonSets that a
    node adds to the domains of spreads. Of each `company` one DaemonSet must have its pods on the node: none of its
    groups may keep them off the domain. `founds` are the affinities that DaemonSet pods satisfy on the node, with its
    domains: no gates are. `costs` are the unit costs in the NodePool under `served` (`NodeClaimTemplate.unit_costs`),
    `spent` is that of all routes into its domains.
    """

    template: NodeClaimTemplate
    alternative: int
    pins: Pins
    requirements: Requirements
    served: Requirements
    hosts: tuple[TopologyConstraint, ...]
    gates: tuple[tuple[TopologyConstraint, str], ...]
    inverse: tuple[tuple[TopologyGroup, str], ...]
    counts: tuple[tuple[TopologyGroup, str], ...]
    unsure: tuple[tuple[TopologyGroup, str], ...]
    owners: tuple[tuple[TopologyGroup, str], ...]
    fresh: tuple[TopologyGroup, ...]
    follows: tuple[TopologyGroup, ...]
    unpinned: tuple[str, ...]
    arrivals: tuple[tuple[TopologyGroup, str, int], ...]
    company: tuple[tuple[tuple[Daemon, tuple[tuple[TopologyGroup, str], ...]], ...], ...]
    founds: tuple[tuple[TopologyGroup, str], ...]
    costs: Mapping[Ask, int | None]
    spent: Spent

    def begins(self) -> bool:
        """Whether constraints over hostnames admit a pod on a new node."""
        return admits.begins_hosts(self.hosts)

    def affords(self, need: Ints) -> bool:
        """Whether the limits of the NodePool leave a node for a pod that needs so much."""
        return self.template.remaining is None or self.template.affords(self.served, need)

    def clear(self) -> bool:
        """Whether no anti-affinity, of its pods or of others, keeps them out of its domains now."""
        own = (
            group.counts.get(domain, 0)
            for group, domain in ((one.group, at) for one, at in self.gates)
            if group.kind == ANTI
        )
        return not any(own) and not self.kept_away()

    def kept_away(self) -> bool:
        """Whether anti-affinity of other pods keeps its pods out of its domains now."""
        return any(group.owners.get(domain, 0) for group, domain in self.inverse)

    def lonely(self) -> bool:
        """Whether anti-affinity keeps DaemonSet pods off the node that its pods must be near."""
        return not all(
            any(not any(group.keeps_off(daemon, domain) for group, domain in far) for daemon, far in some)
            for some in self.company
        )

    def first_arrivals(self) -> list[tuple[TopologyGroup, str, int]]:
        """The pods of DaemonSets that a node adds where no node is planned yet."""
        return [one for one in self.arrivals if one[1] not in one[0].arriving and one[1] not in one[0].reached]

    def crowd(
        self, limits: Mapping[TopologyConstraint, Bounds], domains: Mapping[TopologyGroup, Set[str]]
    ) -> int | None:
        """The pods in its domains that spreads count; None when a constraint forbids one more.

        Args:
            domains: those that each spread is measured over.
        """
        first = self.first_arrivals() if self.arrivals else ()
        if first:
            limits = {**limits, **self._limits_after(first, domains)}
        crowd, admitted = 0, True
        for constraint, domain in self.gates:
            group = constraint.group
            count = group.ahead(domain, self.fresh) if group.following else group.counts.get(domain, 0)
            low, high, _ = limits[constraint]
            if not low <= count <= high and not (group.unsure and _admits_into(constraint, domain, count, domains)):
                admitted = False
                break
            if group.kind == SPREAD:
                crowd += count
        for group, domain, number in first:
            group.count(domain, -number)
        return crowd if admitted else None

    def _limits_after(
        self, first: Iterable[tuple[TopologyGroup, str, int]], domains: Mapping[TopologyGroup, Set[str]]
    ) -> dict[TopologyConstraint, Bounds]:
        """Count the first pods of DaemonSets; the limits of spreads with them."""
        for group, domain, number in first:
            group.count(domain, number)
        measured = (constraint for constraint, _ in self.gates if constraint.group in domains)
        return {constraint: admits.current(constraint, domains[constraint.group]) for constraint in measured}


def routes(
    cls: PodClass,
    relaxation: Relaxation,
    alternative: int,
    template: NodeClaimTemplate,
    served: Requirements,
    spent: Mapping[Pins, Spent],
) -> tuple[list[Route], Wide | None]:
    """A route for each combination of domains that the pool has for the keys of constraints and of groups that count.

    Where these are too many, no route but the choice key by key. `spent` has a value for any domains.
    """
    keys = sorted(topology_keys(cls, relaxation))
    lists: list[tuple[str, list[str]]] = []
    for key in keys:
        possible = template.open_domains(key, served)
        if possible:
            lists.append((key, possible))
        elif any(constraint.key == key and constraint.group.kind != ANTI for constraint in relaxation.constraints):
            return [], None
    pinned = {key for key, _ in lists}
    unpinned = tuple(key for key in keys if key not in pinned)
    wide = Wide(cls, relaxation, alternative, template, served, tuple(lists), unpinned, spent)
    if wide.size > _MOST_ROUTES:
        return [], wide
    filtered = [group for group in cls.counted if group.honors_affinity]
    named = planned_labels(template, served) if filtered else frozenset[str]()
    filters = len({group.filter_name(named) for group in filtered})
    template.work.charge(
        wide.size * (_A_ROUTE + len(relaxation.constraints) + len(cls.counted) // 4 + _A_FILTER * filters)
    )
    every = product(*([(key, domain) for domain in domains] for key, domains in lists))
    return [route for pins in every if (route := wide.route(pins)) is not None], None


def topology_keys(cls: PodClass, relaxation: Relaxation) -> set[str]:
    """The keys of the constraints of a class, and of the groups that count it or its nodes; not hostnames."""
    groups = (
        *(constraint.group for constraint in relaxation.constraints),
        *cls.counted,
        *cls.daemon_spreads,
        *cls.keep_company_away,
    )
    return {group.key for group in groups} - {labels.HOSTNAME}


class Next(NamedTuple):
    """A domain beside those chosen before: what a pod costs there, and the requirements with it."""

    price: int
    domain: str
    joined: Requirements


def _rank(entry: tuple[int, Next]) -> tuple[int, int, str]:
    crowd, one = entry
    return crowd, one.price, one.domain


@dataclass(frozen=True, slots=True, eq=False)
class Wide:
    """Combinations of domains: `lists` has the possible ones of each key, `unpinned` the keys without any."""

    cls: PodClass
    relaxation: Relaxation
    alternative: int
    template: NodeClaimTemplate
    served: Requirements
    lists: tuple[tuple[str, list[str]], ...]
    unpinned: tuple[str, ...]
    spent: Mapping[Pins, Spent]

    @property
    def size(self) -> int:
        """The number of combinations."""
        return prod(len(domains) for _, domains in self.lists)

    def route(self, pins: Pins) -> Route | None:
        """The route into these domains; None when no offering is there, or DaemonSet pods keep the pods away."""
        pinned = self.template.join(self.served, pin_requirements(pins)) if pins else self.served
        if pinned is None:
            return None
        suits = suited(self.template, pinned, self.cls, self.relaxation)
        if suits and far_from_domain(self.template, pinned, self.cls, self.relaxation):
            return None
        narrowed = self.template.join(pinned, suits) if suits else pinned
        beside = beside_daemons(self.template, narrowed, self.cls, self.relaxation) if narrowed is not None else None
        if narrowed is None or beside is None:
            return None
        return _route(self, narrowed, pins, beside, suits)

    def domains(self, cost: Callable[[Requirements], int | None]) -> Iterator[tuple[str, str]]:
        """The keys with the domains in which a node can be made; `cost` is None where none can."""
        for key, domains in self.lists:
            for domain in domains:
                pinned = self.template.join(self.served, pin_requirements(((key, domain),)))
                if pinned is not None and cost(pinned) is not None:
                    yield key, domain

    def best(
        self,
        limits: Mapping[TopologyConstraint, Bounds],
        cost: Callable[[Requirements], int | None],
        closed: Callable[[Pins], bool],
        known: dict[Pins, list[Next]],
    ) -> Route | None:
        """The route that constraints admit now, chosen key by key: the emptiest domain, then the cheapest.

        Where a later key has no domain left, the next domain of the one before is tried, for a limited number of steps.
        `known` keeps the domains of each key beside the domains chosen before it.
        """
        steps = 0

        def descend(pins: Pins, pinned: Requirements) -> Route | None:
            nonlocal steps
            if len(pins) == len(self.lists):
                return None if closed(pins) else self.route(pins)
            if pins not in known:
                known[pins] = list(self._nexts(len(pins), pinned, cost))
            key = self.lists[len(pins)][0]
            self.template.work.charge(len(known[pins]))
            crowds = [(self._crowd(key, one.domain, limits), one) for one in known[pins]]
            for _, one in sorted([(crowd, one) for crowd, one in crowds if crowd is not None], key=_rank):
                steps += 1
                found = descend((*pins, (key, one.domain)), one.joined) if steps < _MOST_STEPS else None
                if found is not None:
                    return found
            return None

        return descend((), self.served)

    def _nexts(self, place: int, pinned: Requirements, cost: Callable[[Requirements], int | None]) -> Iterator[Next]:
        key, domains = self.lists[place]
        self.template.work.charge(_A_DOMAIN * len(domains))
        for domain in domains:
            joined = self.template.join(pinned, pin_requirements(((key, domain),)))
            price = cost(joined) if joined is not None else None
            if joined is not None and price is not None:
                yield Next(price, domain, joined)

    def _crowd(self, key: str, domain: str, limits: Mapping[TopologyConstraint, Bounds]) -> int | None:
        """The pods in the domain that the spreads of this key count; None when a constraint forbids one more."""
        crowd = 0
        for constraint in self.relaxation.constraints:
            if constraint.key == key:
                count = constraint.group.ahead(domain, (g for g in self.cls.counted if g.key == labels.HOSTNAME))
                if not limits[constraint].admits(count):
                    return None
                crowd += count if constraint.group.kind == SPREAD else 0
        inverse = (group for group in self.cls.keep_away if group.key == key)
        return None if any(group.owners.get(domain, 0) for group in inverse) else crowd


def _admits_into(
    constraint: TopologyConstraint, domain: str, count: int, domains: Mapping[TopologyGroup, Set[str]]
) -> bool:
    """Whether a spread that is in doubt about pods admits one more in a domain, as measured against itself too."""
    measured = domains.get(constraint.group)
    return measured is not None and admits.current(constraint, measured, domain).admits(count)


@lru_cache(maxsize=4096)
def pin_requirements(pins: Pins) -> Requirements:
    return Requirements(requirement(key, IN, (value,)) for key, value in pins)


def _route(wide: Wide, served: Requirements, pins: Pins, beside: BesideDaemons, suits: Requirements) -> Route:
    cls, relaxation, template = wide.cls, wide.relaxation, wide.template
    wanted = relaxation.demand.requirements & cls.volumes[wide.alternative] & pin_requirements(pins) & suits
    at = dict(pins)
    pinned = [group for group in cls.counted if group.key in at]
    counts = countings(pinned, template, served)
    near = [one for one in relaxation.others if one.group.kind == AFFINITY and one in beside.served]
    return Route(
        template,
        wide.alternative,
        pins,
        wanted,
        served,
        beside.hosts,
        tuple(
            (constraint, at[constraint.key])
            for constraint in relaxation.constraints
            if constraint.key in at and constraint not in beside.served
        ),
        tuple((group, at[group.key]) for group in pinned if group.kind == ANTI),
        tuple((group, at[group.key]) for group, found in counts if found.nodes),
        tuple((group, at[group.key]) for group, found in counts if not found.certain),
        tuple(
            (b.group, at[b.key]) for b in relaxation.constraints if b.group.kind == ANTI and b.required and b.key in at
        ),
        tuple([group for group in cls.counted if group.key == labels.HOSTNAME]),
        tuple(
            constraint.group
            for constraint in beside.hosts
            if constraint.group.kind == AFFINITY and not constraint.self_match
        ),
        wide.unpinned,
        tuple(
            (group, at[group.key], arriving(group, template, served)) for group in cls.daemon_spreads if group.key in at
        ),
        tuple(tuple((daemon, _far(cls, daemon, at)) for daemon in some) for some in beside.company),
        tuple([(one.group, at[one.key]) for one in near if one.key in at]),
        template.unit_costs(served),
        wide.spent[pins],
    )


def _far(cls: PodClass, daemon: Daemon, at: Mapping[str, str]) -> tuple[tuple[TopologyGroup, str], ...]:
    """The groups that may keep pods of the DaemonSet off the domains of a node."""
    far = (group for group in cls.keep_company_away if group.key in at and group.keeps_away(daemon))
    return tuple((group, at[group.key]) for group in far)


def expect_daemons(relaxation: Relaxation, found: Iterable[Route]) -> None:
    """Have the spreads of a relaxation expect the pods of DaemonSets that come with a node on any of these routes."""
    own = {constraint.group for constraint in relaxation.spreads}
    for group, domain, number in (one for route in found for one in route.arrivals):
        if group in own:
            group.expect(domain, number)


def arriving(group: TopologyGroup, template: NodeClaimTemplate, served: Requirements) -> int:
    """The pods of DaemonSets on a planned node that a spread counts."""
    if not counting(group, template, served).nodes:
        return 0
    return sum(template.carries(daemon, served)[1] for daemon in group.daemons)
