"""What is left of a NodePool's instance types and offerings after each rule, for one class of pods.

The rules are asked in a fixed order, which is that of the solver: taints, requirements key by key (the pod's, then its
volumes'), offerings, resources column by column beside the daemon sets, limits, host ports, minValues, topology. Host
ports come before minValues, because these count the types that are really left. The first rule that leaves nothing is
the reason why the pool makes no node; its words are those that Karpenter's users know.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from kerf.pods.topology_constraints import ANTI, TopologyConstraint
from kerf.scheduling.answers.explanation import (
    HOST_PORTS,
    LIMITS,
    MIN_VALUES,
    OFFERINGS,
    REQUIREMENTS,
    RESOURCES,
    RULES,
    TAINTS,
    TOGETHER,
    TOPOLOGY,
    VOLUMES,
    Step,
)
from kerf.scheduling.offerings.instance_types import NO_PRICE, Bools, Columns, Ints
from kerf.scheduling.offerings.nodepools import NodeClaimTemplate
from kerf.scheduling.placing.classes import PodClass
from kerf.scheduling.placing.daemon_company import beside_daemons, keeping_away
from kerf.scheduling.topology import admits
from kerf_api import labels
from kerf_api.requirements import IN, Requirement, Requirements, requirement

#: Of a class's volumes no more alternatives than this are looked at.
_MOST_ALTERNATIVES = 8


@dataclass(slots=True, eq=False)
class Filters:
    """The filters of one class in one pool, for one alternative of its volumes; `run` applies them rule by rule.

    `cells` [types, markets] are the offerings that are left, `before` those that were left before the rule that left
    none; `at_first` is how many types and offerings the pool has. `requirements` are the pool's, narrowed by what was
    asked so far. `constraint` is the topology constraint that nothing satisfies, when it was one. With
    `past_taints` these are not asked, to see what would come after them.
    """

    template: NodeClaimTemplate
    columns: Columns
    cls: PodClass
    volume: Requirements
    past_taints: bool = False
    need: Ints = field(init=False)
    room: Ints = field(init=False)
    requirements: Requirements = field(init=False)
    cells: Bools = field(init=False)
    before: Bools = field(init=False)
    at_first: tuple[int, int] = field(init=False)
    constraint: TopologyConstraint | None = None
    behind: bool | None = None
    rule: str = ""
    about: str = ""
    verdict: str = ""

    def __post_init__(self) -> None:
        table = self.template.table
        self.need = self.columns.vector(self.cls.requests)
        self.room = table.allocatable - self.template.overhead
        self.requirements = self.template.requirements
        self.cells = table.listed & self.reach(self.requirements)
        self.before = self.cells
        self.at_first = self.counts()

    @property
    def wanted(self) -> Requirements:
        """What the pod, without its volumes, asks of labels when it has given up all that it merely prefers."""
        return self.cls.relaxations[-1].demand.requirements

    def reach(self, requirements: Requirements) -> Bools:
        """Which [types, markets] these requirements leave."""
        table = self.template.table
        return table.masks(requirements)[:, None] & table.market_mask(requirements)[None, :]

    def counts(self) -> tuple[int, int]:
        """How many types and offerings are left."""
        return int(self.cells.any(axis=1).sum()), int(self.cells.sum())

    def passes_behind_taints(self) -> bool:
        """Whether taints are the only blockers."""
        if self.behind is None:
            other = Filters(self.template, self.columns, self.cls, self.volume, past_taints=True)
            for _ in other.run():
                pass
            self.behind = other.rule == TOGETHER
        return self.behind

    def left(self) -> Bools:
        """The types that are left."""
        return np.asarray(self.cells.any(axis=1))

    # --- going down ---------------------------------------------------------------------------------------------
    def run(self) -> Iterator[Step]:
        """One step per rule that took something or left nothing; after the one that left nothing there is no other.

        When all is passed, the last one says so: the class fits the pool alone, and the other pods block it.
        """
        types, offerings = self.at_first
        for rule, about, kept, verdict in self._rules():
            self.before, self.cells = self.cells, self.cells & kept
            now_types, now_offerings = self.counts()
            if now_offerings < offerings or not now_types:
                lost = types - now_types, offerings - now_offerings
                yield Step(rule, about, now_types, now_offerings, *lost)
            if not now_types:
                self.rule, self.about, self.verdict = rule, about, verdict
                return
            types, offerings = now_types, now_offerings

    def _rules(self) -> Iterator[tuple[str, str, Bools, str]]:
        """Each rule with what it is about, the [types, markets] that it admits, and what it says when none is left."""
        nothing = np.zeros_like(self.cells)
        for taint in () if self.past_taints else self.template.taints:
            if not self.cls.relaxations[-1].demand.tolerates((taint,)):
                yield TAINTS, str(taint), nothing, f"did not tolerate taint {taint}"
        yield from self._asking(REQUIREMENTS, self.wanted, nothing)
        yield from self._asking(VOLUMES, self.volume, nothing)
        text = "no instance type has the required offering"
        yield OFFERINGS, "", self.template.table.price < NO_PRICE, text
        yield from self._resources(nothing)
        yield from self._limits(nothing)
        free = self.template.free_of_ports(self.cls.ports)
        if free is not None:
            text = "daemon sets use its host ports on every instance type"
            yield HOST_PORTS, "", _rows(free), text
        yield from self._min_values(nothing)
        yield from self._topology(nothing)
        yield from self._min_values(nothing)
        yield TOGETHER, "", nothing, self._together()

    def _asking(self, rule: str, wanted: Requirements, nothing: Bools) -> Iterator[tuple[str, str, Bools, str]]:
        for key in sorted(wanted):
            row = wanted[key]
            known = key in self.requirements or key in labels.WELL_KNOWN or row.accepts_absence
            narrowed = self.requirements.allowed(key).intersection(row)
            if not known:
                yield rule, key, nothing, f'incompatible requirements, label "{key}" does not have known values'
            elif self.requirements.conflict(Requirements([row])) is not None:
                yield rule, key, nothing, f"incompatible requirements, key {key}: {self.requirements[key]} and {row}"
            elif Requirements([narrowed]).without_value() is not None:
                yield rule, key, nothing, f"incompatible requirements, no valid label value satisfies {narrowed}"
            if narrowed != self.requirements.get(key):
                self.requirements = self.requirements & [row]
                yield rule, key, self.reach(Requirements([narrowed])), "no instance type met all requirements"

    def _resources(self, nothing: Bools) -> Iterator[tuple[str, str, Bools, str]]:
        for name in self.columns.unknown(self.cls.requests):
            yield RESOURCES, name, nothing, f"no instance type has {name}"
        asked = ", ".join(f"{name} {text}" for name, text in self.cls.requests.texts().items())
        text = f"no instance type has enough resources for {asked} beside its daemon sets"
        enough = self.room >= self.need
        for place, name in enumerate(self.columns.names):
            if self.need[place] or not enough[:, place].all():
                yield RESOURCES, name, _rows(enough[:, place]), text

    def _limits(self, nothing: Bools) -> Iterator[tuple[str, str, Bools, str]]:
        remaining = self.template.remaining
        if remaining is None:
            return
        if remaining.get("nodes", 1) <= 0:
            yield LIMITS, "nodes", nothing, "node limits have been exhausted for nodepool"
        text = "all available instance types exceed limits for nodepool"
        for name in sorted(remaining):
            yield LIMITS, name, _rows(self.template.table.capacity(name) <= remaining[name]), text

    def _min_values(self, nothing: Bools) -> Iterator[tuple[str, str, Bools, str]]:
        missing = self.template.shortfall(np.flatnonzero(self.left())) if self.template.strict_min_values else {}
        if missing:
            text = f"minValues requirement is not met for label(s) (label(s)=[{' '.join(sorted(missing))}])"
            yield MIN_VALUES, min(missing), nothing, text

    # --- topology -----------------------------------------------------------------------------------------------
    def _topology(self, nothing: Bools) -> Iterator[tuple[str, str, Bools, str]]:
        """Constraints of the pod one by one, each narrowing the domains that are left, then those that keep it away."""
        relaxation = self.cls.relaxations[-1]
        away = keeping_away(self.template, self.requirements, self.cls, relaxation)
        if away:
            text = f"anti-affinity separates it from pods of DaemonSet {', '.join(away)} on every node of the nodepool"
            yield TOPOLOGY, labels.HOSTNAME, nothing, text
        beside = beside_daemons(self.template, self.requirements, self.cls, relaxation)
        for constraint in relaxation.constraints:
            self.constraint = constraint
            if beside is not None and constraint in beside.served:
                continue
            domains = self.cls.domains_of(constraint)
            text = constraint.describe(domains)
            if constraint.key == labels.HOSTNAME:
                kept = nothing if not admits.begins_host(constraint) else np.ones_like(nothing)
                yield TOPOLOGY, constraint.key, kept, text
                continue
            possible = self.template.open_domains(constraint.key, self.requirements)
            if possible:
                allowed = [d for d in possible if admits.allows(constraint, d, domains)]
                yield TOPOLOGY, constraint.key, self._within(constraint.key, allowed), text
            elif constraint.group.kind != ANTI:
                yield TOPOLOGY, constraint.key, nothing, text
        self.constraint = None
        for group in self.cls.keep_away:
            if group.key != labels.HOSTNAME and group.owners:
                possible = self.template.open_domains(group.key, self.requirements)
                allowed = [d for d in possible if not group.owners.get(d)]
                if possible:
                    text = f"pods with anti-affinity to it are in every {group.key} of the nodepool"
                    yield TOPOLOGY, group.key, self._within(group.key, allowed), text

    def _within(self, key: str, domains: list[str]) -> Bools:
        """What nodes in these domains leave; from here on nothing else is asked for."""
        row: Requirement = requirement(key, IN, domains)
        if not domains:
            return np.zeros_like(self.cells)
        self.requirements = self.requirements & [row]
        return self.reach(Requirements([row]))

    def _together(self) -> str:
        first = next(iter(self.cls.relaxations[-1].constraints), None)
        if first is None:
            return "no node could be planned within limits"
        return first.describe(self.cls.domains_of(first))


def _rows(types: Bools) -> Bools:
    """Of all markets of these types."""
    return np.asarray(types)[:, None]


def farthest(template: NodeClaimTemplate, columns: Columns, cls: PodClass) -> tuple[Filters, list[Step]]:
    """The filters, with their steps, for the alternative of the class's volumes that comes farthest in the pool."""
    best: tuple[Filters, list[Step]] | None = None
    for volume in cls.volumes[:_MOST_ALTERNATIVES]:
        filters = Filters(template, columns, cls, volume)
        steps = list(filters.run())
        if best is None or RULES.index(filters.rule) > RULES.index(best[0].rule):
            best = filters, steps
    assert best is not None  # a class without volumes has the alternative that asks for nothing
    return best
