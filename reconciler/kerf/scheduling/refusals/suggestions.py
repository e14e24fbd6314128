"""Which single edits may help a class that has no place, likeliest first. Nothing here is sure: `remedies` tries them.

What filters ended at says what to edit: the taint, the label, the resource, the limit. The nearest pools are
asked first. After these come the constraints of the pod itself, one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from kerf.pods.system_taints import is_system
from kerf.pods.topology_constraints import ANTI
from kerf.scheduling.answers import explanation
from kerf.scheduling.answers.edits import (
    AddLabel,
    AddValue,
    DropExpression,
    DropPort,
    DropRow,
    DropSelector,
    DropSpread,
    DropTerm,
    Edit,
    LowerMinValues,
    LowerRequest,
    PodEdit,
    PoolEdit,
    RaiseLimits,
    RemoveTaint,
    Tolerate,
)
from kerf.scheduling.offerings.instance_types import NO_PRICE, Ints
from kerf.scheduling.placing.assign import Assignment
from kerf.scheduling.placing.classes import PodClass
from kerf.scheduling.refusals.filters import Filters
from kerf.scheduling.refusals.nearest import FAR_FROM_IT, OF_IMAGES, open_to, without_each
from kerf.scheduling.refusals.spelling import respelled
from kerf_api import labels
from kerf_api.requirements import DOES_NOT_EXIST, EXISTS, IN, Requirement
from kerf_api.v1.meta import Taint

#: So many of each side are worth a trial; of one requirement so many values.
MOST_EDITS, _MOST_VALUES = 12, 3
#: So many nodes are looked at for a taint that might be tolerated.
_MOST_NODES = 50
_MIB, _GIB = 1 << 20, 1 << 30


def suggested(
    cls: PodClass,
    by_pool: Iterable[Filters],
    assignment: Assignment,
    startup: frozenset[tuple[str, str]] = frozenset(),
) -> tuple[Edit, ...]:
    """Edits of the pod and of pools, each once. `by_pool` are in the order in which their pools are worth an edit,
    `startup` the keys and effects of start-up taints."""
    found: list[Edit] = []
    for filters in by_pool:
        found += [*_of_pod(filters), *_of_pool(filters)]
    found += [*_on_nodes(cls, assignment, startup), *_any(cls)]
    return tuple(_first(sorted(found, key=_drastic)))


def _drastic(edit: Edit) -> bool:
    """Whether it leaves a pod less than half of what it asks for: that comes last."""
    return isinstance(edit, LowerRequest) and edit.after * 2 < edit.before


def _first(edits: Iterable[Edit]) -> Iterator[Edit]:
    """Each once, and not too many of a side."""
    found: list[Edit] = []
    left = {PodEdit: MOST_EDITS, PoolEdit: MOST_EDITS}
    for edit in edits:
        side = PodEdit if isinstance(edit, PodEdit) else PoolEdit
        if left[side] and edit not in found:
            left[side] -= 1
            found.append(edit)
            yield edit


# --- of the pod -------------------------------------------------------------------------------------------------
def _of_pod(filters: Filters) -> Iterator[PodEdit]:
    rule, cls = filters.rule, filters.cls
    if rule == explanation.TAINTS:
        yield from (Tolerate(taint) for taint in _untolerated(filters))
    elif rule in (explanation.REQUIREMENTS, explanation.VOLUMES, explanation.OFFERINGS):
        keys = without_each(filters)
        yield from respelled(filters, keys)
        yield from _dropping(keys)
    elif rule in (explanation.RESOURCES, explanation.LIMITS, explanation.MIN_VALUES):
        yield from _lower(filters)
        yield from _dropping(without_each(filters))
    elif rule == explanation.HOST_PORTS:
        yield from (DropPort(port) for port in cls.ports)
    elif filters.constraint is not None:
        yield from _unbound(cls, filters.constraint.key)


def _untolerated(filters: Filters) -> list[Taint]:
    """The pool's taints that the pod does not tolerate, when nothing else blocks it. None if one of them keeps
    workloads off system nodes: the pool is not for this pod."""
    demand = filters.cls.relaxations[-1].demand
    found = [t for t in filters.template.taints if not demand.tolerates((t,)) and filters.passes_behind_taints()]
    return [] if any(is_system(taint) for taint in found) else found


def _dropping(keys: Iterable[str]) -> Iterator[PodEdit]:
    """Without one label each. Images run on one operating system: elsewhere the pod would start and fail."""
    for key in keys:
        if key == labels.OS:
            continue
        yield DropSelector(key)
        yield DropExpression(key)


def _lower(filters: Filters) -> Iterator[PodEdit]:
    """For each resource: what the largest type has of it among those that have enough of all others."""
    table, need = filters.template.table, filters.need
    reached = (table.listed & (table.price < NO_PRICE) & filters.reach(filters.requirements)).any(axis=1)
    within = filters.template.within_limits()
    allowed = reached if within is None else reached & within
    yield from _lowered(filters.cls, filters.columns.names, filters.room[allowed], need)
    for name in filters.columns.unknown(filters.cls.requests):
        yield LowerRequest(name, filters.cls.requests[name], 0)


def _lowered(cls: PodClass, names: Sequence[str], rooms: Ints, need: Ints) -> Iterator[LowerRequest]:
    for place, name in enumerate(names):
        others = np.delete(rooms >= need, place, axis=1).all(axis=1)
        if name == "pods" or not need[place] or not others.any():
            continue
        most = readable(name, int(rooms[others, place].max()))
        special = name not in ("cpu", "memory", "ephemeral-storage")
        if most < need[place] and (special or most * FAR_FROM_IT >= need[place]):
            yield LowerRequest(name, cls.requests[name], most)


def readable(resource: str, value: int) -> int:
    """Rounded down to what a person would write."""
    if resource == "cpu":
        step = 10 if value < 1000 else 100 if value < 32000 else 1000
    elif resource in ("memory", "ephemeral-storage"):
        step = _MIB if value < 8 * _GIB else _GIB
    else:
        step = 1
    return max(value, 0) // step * step


def _on_nodes(cls: PodClass, assignment: Assignment, startup: frozenset[tuple[str, str]]) -> Iterator[PodEdit]:
    """What would do for a node that exists: one taint more that is tolerated, or less of one resource."""
    demand, columns, places = cls.relaxations[-1].demand, assignment.columns, assignment.places
    if not demand.possible:
        return
    need = columns.vector(cls.requests)
    labelled = places.open & places.attaching(cls.volumes)
    for row in demand.requirements.values():
        labelled = labelled & places.serving(row)
    tolerated = places.tolerating(demand.tolerations)
    roomy = labelled & ~tolerated & (assignment.free >= need).all(axis=1)
    for place in np.flatnonzero(roomy)[:_MOST_NODES]:
        taints = [t for t in places.targets[int(place)].taints if not demand.tolerates((t,))]
        if len(taints) == 1 and not _passing(taints[0]) and (taints[0].key, taints[0].effect) not in startup:
            yield Tolerate(replace(taints[0], time_added=None))
    if (labelled & tolerated).any():
        yield from _lowered(cls, columns.names, assignment.free[labelled & tolerated], need)


def _passing(taint: Taint) -> bool:
    """Whether a taint says something about the moment or keeps workloads off system nodes: nothing to tolerate."""
    return is_system(taint) or labels.is_ephemeral_taint(taint.key, taint.effect)


def _any(cls: PodClass) -> Iterator[PodEdit]:
    """Each constraint of the pod, whichever filter left nothing."""
    relaxation = cls.relaxations[-1]
    yield from _unbound(cls, "")
    yield from _dropping(sorted(relaxation.demand.strict))
    yield from (DropPort(port) for port in cls.ports)


def _unbound(cls: PodClass, key: str) -> Iterator[PodEdit]:
    """Without one topology constraint: those over this label, or (empty) all."""
    demand = cls.relaxations[-1].demand
    for spread in demand.spreads:
        if key in ("", spread.label):
            yield DropSpread(spread.topology_key)
    for away, terms in ((False, demand.affinity), (True, demand.anti_affinity)):
        yield from (DropTerm(away, term) for term in terms if key in ("", term.label))


# --- of the pool ------------------------------------------------------------------------------------------------
def _of_pool(filters: Filters) -> Iterator[Edit]:
    rule, template = filters.rule, filters.template
    if rule == explanation.TAINTS:
        yield from (RemoveTaint(template.name, taint) for taint in _untolerated(filters))
    elif rule in (explanation.REQUIREMENTS, explanation.VOLUMES):
        wanted = (filters.wanted & filters.volume).get(filters.about)
        if wanted is not None:
            yield from _wider(filters, wanted)
    elif rule in (explanation.LIMITS, explanation.TOGETHER) and template.limits is not None:
        yield RaiseLimits(template.name)
    elif rule == explanation.MIN_VALUES:
        missing = template.shortfall(np.flatnonzero(filters.before.any(axis=1)))
        for key, count in sorted(missing.items()):
            yield LowerMinValues(template.name, key, template.min_values[key], count)
    elif (
        filters.constraint is not None
        and filters.constraint.group.kind != ANTI
        and filters.constraint.key != labels.HOSTNAME
    ):
        beyond = sorted(open_to(filters.constraint, filters) - template.domains(filters.constraint.key))
        yield from (AddValue(template.name, filters.constraint.key, domain) for domain in beyond[:_MOST_VALUES])
    if rule in (explanation.RESOURCES, explanation.OFFERINGS, explanation.REQUIREMENTS, explanation.VOLUMES):
        roomy = {key: types for key in _own_keys(filters) if len(types := _types_without(filters, key))}
        for key, types in roomy.items():
            yield from (AddValue(template.name, key, value) for value in _cheapest_values(filters, key, types))
        yield from (DropRow(template.name, key) for key in roomy)


def _wider(filters: Filters, wanted: Requirement) -> Iterator[Edit]:
    """What lets the pool serve a label: a value that it does not allow, or a label that its nodes do not have."""
    key, name = filters.about, filters.template.name
    values = sorted(wanted.values)[:_MOST_VALUES] if not wanted.complement else []
    if key in filters.template.requirements:
        yield from (AddValue(name, key, value) for value in values)
    elif not labels.is_restricted(key) and wanted.operator != DOES_NOT_EXIST:
        value = values[0] if wanted.operator == IN else wanted.any_value() if wanted.operator == EXISTS else None
        if value is not None:
            yield AddLabel(name, key, value)


def _own_keys(filters: Filters) -> list[str]:
    """The labels that the pool asks for in its requirements, those first that the filters ended at, and those last that
    the images of pods depend on."""
    rows = filters.template.pool.spec.template.spec.requirements
    keys = sorted({labels.normalise(entry.key) for entry in rows})
    return sorted(keys, key=lambda key: (key != filters.about, key in OF_IMAGES))


def _types_without(filters: Filters, key: str) -> NDArray[np.intp]:
    """The types with room that the pool would have without one of its requirements."""
    wanted, own = filters.wanted & filters.volume, filters.template.requirements.without(key)
    if not own.compatible(wanted, labels.WELL_KNOWN):
        return np.array([], dtype=np.intp)
    shape = filters.template.shape(own & wanted)
    return shape.types[shape.holding(filters.need)]


def _cheapest_values(filters: Filters, key: str, types: NDArray[np.intp]) -> Iterator[str]:
    """The value of a label that the cheapest of these types has, when the pool's requirement does not allow it."""
    prices = filters.template.table.price[types].min(axis=1)
    values = filters.template.values_at(key, int(types[int(prices.argmin())]))
    if len(values) == 1 and not values <= filters.template.domains(key):
        yield from values
