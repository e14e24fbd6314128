"""Where pods that wait can be placed, in terms of zones: to one, to several, or nowhere. For people, not for decisions.

As things stand before anything is planned: a pod's own demands, its volumes, and whom it wants near, far or spread
out, given where pods run now. Source: scheduling reference §9.5.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kerf.pods.topology_constraints import ANTI, TopologyConstraint, TopologyGroup
from kerf.scheduling.placing.classes import PodClass, Relaxation
from kerf.scheduling.topology import admits
from kerf_api import labels
from kerf_api.requirements import EMPTY, Requirement, Requirements

FLEXIBLE, NOWHERE = "flexible", "none"
_NO_DEMANDS = (EMPTY,)
_Zones = frozenset[str]


def effective_zones(classes: Iterable[PodClass], groups: Iterable[TopologyGroup], zones: _Zones) -> dict[str, int]:
    """How many pending pods of the classes can be placed in one zone only, by its name, how many to several, how many
    to none.

    `groups` are all of the solve; `zones` all that nodes have, or can have.
    """
    inverse = frozenset(g for g in groups if g.kind == ANTI and g.key == labels.ZONE and g.owners)
    view, found = _View(zones, inverse), dict[str, int]()
    for cls in classes:
        waiting = sum(pod.status.phase == "Pending" for pod in cls.members)
        if waiting:
            name = view.name(cls)
            found[name] = found.get(name, 0) + waiting
    return dict(sorted(found.items()))


@dataclass(slots=True)
class _View:
    """`inverse` are groups whose owners keep others out of their zones.

    `allowed` remembers what a constraint leaves, `names` what relaxations leave: many classes differ in size only.
    """

    zones: _Zones
    inverse: frozenset[TopologyGroup]
    allowed: dict[object, _Zones] = field(default_factory=dict)
    names: dict[object, str] = field(default_factory=dict)

    def name(self, cls: PodClass) -> str:
        """What any of its relaxations leaves, the class can have."""
        key = (cls.relaxations, cls.volumes, cls.counted if self.inverse else ())
        known = self.names.get(key)
        if known is None:
            known = self.names[key] = self._name(cls)
        return known

    def _name(self, cls: PodClass) -> str:
        found: set[str] = set()
        for relaxation in cls.relaxations:
            left = self._left(cls, relaxation)
            if left is None:
                return FLEXIBLE
            found |= left
        return FLEXIBLE if len(found) > 1 else next(iter(found), NOWHERE)

    def _left(self, cls: PodClass, relaxation: Relaxation) -> _Zones | None:
        """The zones that a relaxation leaves; None when nothing takes any away, however few there are."""
        if not relaxation.demand.possible:
            return frozenset()
        named = [self._of(row) for row in (relaxation.demand.strict.get(labels.ZONE),) if row is not None]
        if cls.volumes != _NO_DEMANDS and (mounted := _of_volumes(cls.volumes)) is not None:
            named.append(mounted)
        bound = [
            self._allowed(constraint, cls) for constraint in relaxation.constraints if constraint.key == labels.ZONE
        ]
        if self.inverse:
            bound += [self.zones - group.owners.keys() for group in self.inverse.intersection(cls.counted)]
        if not named and all(part == self.zones for part in bound):
            return None
        return frozenset.intersection(*(named or [self.zones]), *bound)

    def _of(self, row: Requirement) -> _Zones:
        return frozenset(filter(row.has, self.zones)) if row.complement else frozenset(row.values)

    def _allowed(self, constraint: TopologyConstraint, cls: PodClass) -> _Zones:
        domains = frozenset(cls.domains_of(constraint))
        key = (constraint.group, constraint.self_match, constraint.max_skew, constraint.min_domains, domains)
        known = self.allowed.get(key)
        if known is None:
            known = self.allowed[key] = frozenset(
                zone for zone in self.zones if admits.allows(constraint, zone, domains)
            )
        return known


def _of_volumes(alternatives: Iterable[Requirements]) -> _Zones | None:
    """The zones in which the volumes can be, by any alternative; None when one of them names none."""
    rows = [alternative.get(labels.ZONE) for alternative in alternatives]
    if any(row is None or row.complement for row in rows):
        return None
    return frozenset(value for row in rows if row is not None for value in row.values)
