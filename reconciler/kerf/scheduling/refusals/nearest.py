"""What came nearest to a place: of the types that the last rule took, the one that lacks least, and what it lacks.

Each rule has its own measure: of requirements it is the one that, dropped, would leave most types; of resources the
type that lacks fewest of them and then the least share; of limits the least raise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from kerf.pods.topology_constraints import TopologyConstraint
from kerf.scheduling.answers import explanation
from kerf.scheduling.offerings.instance_types import NO_PRICE, Bools, Ints
from kerf.scheduling.offerings.stock import out_of_stock
from kerf.scheduling.refusals.filters import Filters
from kerf.scheduling.topology import admits
from kerf_api import labels, quantity
from kerf_api.requirements import Requirement
from kerf_api.resources import Resources
from kerf_api.texts import counted

_MIB, _GIB = 1 << 20, 1 << 30
#: Who asks for so many times what there is does not want to ask for less.
FAR_FROM_IT = 4
#: The labels that the images of pods depend on.
OF_IMAGES: Final = ("kubernetes.io/arch", "kubernetes.io/os")
#: So many domains of a topology label are listed.
_MOST_DOMAINS = 6


def nearest(filters: Filters) -> str:
    """The nearest miss of filters that left nothing, in words; empty when there is nothing to say."""
    made = _MADE.get(filters.rule)
    return explanation.cut(made(filters)) if made is not None else ""


def rank(filters: Filters) -> int:
    """The higher the nearer: NodePools with one apparent blocker, then others; then by how far it came, and those last
    whose nodes cannot run the pod's images."""
    far = explanation.RULES.index(filters.rule)
    if filters.rule == explanation.REQUIREMENTS and filters.about in OF_IMAGES:
        far = -1
    return far + len(explanation.RULES) if close(filters) else far


def turned_off(filters: Filters) -> bool:
    """Whether a limit of 0 keeps the pool from making any node."""
    limits = filters.template.limits
    return filters.rule == explanation.LIMITS and limits is not None and not limits[filters.about]


def close(filters: Filters) -> bool:
    """Whether its last step seems to be almost the only blocker."""
    unknown = _unknown(filters)
    if unknown and (filters.rule != explanation.RESOURCES or len(unknown) > 1):
        return False
    if filters.rule == explanation.TAINTS:
        return filters.passes_behind_taints()
    if filters.rule in (explanation.REQUIREMENTS, explanation.VOLUMES):
        return bool(without_each(filters))
    if filters.rule == explanation.RESOURCES:
        within = filters.room[_before_resources(filters).any(axis=1)]
        return bool((within * FAR_FROM_IT >= filters.need).all(axis=1).any())
    return True


def about(filters: Filters) -> str:
    """The label, the resource or the taint that an edit would be about; of labels the one whose edit leaves most."""
    if filters.rule in (explanation.REQUIREMENTS, explanation.VOLUMES):
        return next(iter(without_each(filters)), filters.about)
    return filters.about


def crowded(filters: Filters) -> bool:
    """Whether a type would have enough resources if nodes had no DaemonSet pods."""
    if filters.rule != explanation.RESOURCES or _unknown(filters):
        return False
    whole = (filters.template.table.allocatable >= filters.need).all(axis=1)
    return bool((_before_resources(filters).any(axis=1) & whole).any())


def _unknown(filters: Filters) -> list[str]:
    return filters.columns.unknown(filters.cls.requests)


def _of_taints(filters: Filters) -> str:
    taints = [str(t) for t in filters.template.taints if not filters.cls.relaxations[-1].demand.tolerates((t,))]
    return f"it would have to tolerate {' and '.join(taints)}" if len(taints) > 1 else ""


# --- requirements -----------------------------------------------------------------------------------------------
def without_each(filters: Filters) -> dict[str, int]:
    """How many types with room would be left if a label were not asked for, by its key; those with any, most first."""
    wanted = filters.wanted & filters.volume
    found: dict[str, int] = {}
    for key in sorted(wanted):
        served = filters.template.serve(wanted.without(key))
        if served is not None:
            shape = filters.template.shape(served)
            found[key] = int(shape.holding(filters.need).sum())
    return {key: found[key] for key in sorted(found, key=lambda k: (-found[k], k)) if found[key]}


def _of_requirements(filters: Filters) -> str:
    found = without_each(filters)
    if not found:
        return "even if one requirement is removed, no instance type matches"
    key, count = next(iter(found.items()))
    text = f"without {key}, {counted(count, 'instance type')} would do"
    known = sorted(filters.template.domains(key)) if key not in filters.template.requirements else []
    return f"{text}; its nodes have {_listed(known)}" if 0 < len(known) <= _MOST_DOMAINS else text


def _of_volumes(filters: Filters) -> str:
    """Volumes do not move: what they ask for, and who does not allow it."""
    key = filters.about
    own, asked = filters.template.requirements.get(key), filters.wanted.get(key)
    volume = filters.volume[key]
    if own is not None and not own.intersects(volume):
        return f"its volumes ask for {_allowed(volume)}, the nodepool for {_allowed(own)}"
    if asked is not None and not asked.intersects(volume):
        return f"its volumes ask for {_allowed(volume)}, its own labels for {_allowed(asked)}"
    return f"its volumes ask for {_allowed(volume)}"


def _allowed(row: Requirement) -> str:
    return _listed(sorted(value or '""' for value in row.values)) if row.values and not row.complement else str(row)


def _of_offerings(filters: Filters) -> str:
    """What is out of stock or shifted away comes back; what has no price or no subnet does not."""
    table = filters.template.table
    reached = {table.markets[int(i)][0] for i in np.flatnonzero(filters.before.any(axis=0))}
    if away := sorted(reached & table.shifted):
        return f"ARC zonal shift: nothing is launched in {', '.join(away)} for now"
    gone = out_of_stock(table, filters.before)
    if not gone:
        markets = sorted({table.markets[int(i)][:2] for i in np.flatnonzero(filters.before.any(axis=0))})
        places = ", ".join(f"{kind} in {zone}" for zone, kind in markets[:_MOST_DOMAINS])
        return f"no subnet or no price for {places}" if places else ""
    return gone


# --- resources --------------------------------------------------------------------------------------------------
def _of_resources(filters: Filters) -> str:
    if _unknown(filters):
        return ""
    within = np.flatnonzero(_before_resources(filters).any(axis=1))
    least = least_lack(filters.room[within], filters.need, filters.columns.names)
    lacks = "" if least is None else f"{filters.template.table.names[int(within[least[0]])]} lacks {least[1]}"
    return "; ".join(text for text in (_out_of_stock(filters), lacks) if text)


def _out_of_stock(filters: Filters) -> str:
    """The offerings out of stock that would have the resources."""
    table = filters.template.table
    large: Bools = np.asarray((filters.room >= filters.need).all(axis=1))
    return out_of_stock(table, table.listed & filters.reach(filters.requirements) & large[:, None])


def _before_resources(filters: Filters) -> Bools:
    """The offerings that labels leave, resources not asked."""
    table = filters.template.table
    return np.asarray(table.listed & (table.price < NO_PRICE) & filters.reach(filters.requirements))


def least_lack(rooms: Ints, need: Ints, names: tuple[str, ...]) -> tuple[int, str] | None:
    """Of the rooms [n, columns] that lack something, the one that lacks fewest resources and then the least share, and
    what it lacks."""
    lacks = np.maximum(need - rooms, 0)
    numbers, shares = (lacks > 0).sum(axis=1), (lacks / np.maximum(need, 1)).sum(axis=1)
    lacking = np.flatnonzero(numbers)
    if not len(lacking):
        return None
    place = int(lacking[np.lexsort((shares[lacking], numbers[lacking]))[0]])
    missing = [f"{_about(names[c], int(lacks[place, c]))} of {names[c]}" for c in np.flatnonzero(lacks[place])]
    return place, " and ".join(missing[:3])


def _about(resource: str, value: int) -> str:
    """An amount that a person can read, rounded up: to tenths of a core or of a GiB, or when it is little to a MiB."""
    if resource == "cpu":
        return f"{value}m" if value < 1000 else _tenths(-(-value // 100))
    if resource not in ("memory", "ephemeral-storage"):
        return quantity.text(resource, value)
    return f"{-(-value // _MIB)}Mi" if value < _GIB else f"{_tenths(-(-value * 10 // _GIB))}Gi"


def _tenths(number: int) -> str:
    return f"{number // 10}.{number % 10}" if number % 10 else str(number // 10)


# --- limits, ports, minValues -----------------------------------------------------------------------------------
def _of_limits(filters: Filters) -> str:
    template = filters.template
    remaining, limits = template.remaining or {}, template.limits or Resources()
    good = np.flatnonzero(_within_room(filters))
    if not len(good):
        return ""
    names = tuple(sorted(remaining))
    sizes = np.array([template.table.capacity(name)[good] for name in names], dtype=np.int64).T
    left = np.array([remaining[name] for name in names], dtype=np.int64)
    over = np.maximum(sizes - left, 0)
    place = int(np.lexsort((over.sum(axis=1), (over > 0).sum(axis=1)))[0])
    wanted = {name: limits[name] + int(over[place, c]) for c, name in enumerate(names) if over[place, c]}
    rows = [
        f"limits.{name} {quantity.text(name, value)}, now {quantity.text(name, limits[name])} with "
        f"{quantity.text(name, limits[name] - remaining[name])} in use or planned"
        for name, value in wanted.items()
    ]
    return f"{template.table.names[int(good[place])]} would need {' and '.join(rows)}"


def _within_room(filters: Filters) -> Bools:
    """The types that labels, offerings and resources leave."""
    enough = (filters.room >= filters.need).all(axis=1)
    return np.asarray(_before_resources(filters).any(axis=1) & enough)


def _of_ports(filters: Filters) -> str:
    return "host port " + ", ".join(f"{port}/{protocol}" for _, port, protocol in filters.cls.ports[:_MOST_DOMAINS])


def _of_min_values(filters: Filters) -> str:
    missing = filters.template.shortfall(np.flatnonzero(filters.before.any(axis=1)))
    rows = [f"{key} has {count} of {filters.template.min_values[key]}" for key, count in sorted(missing.items())]
    return " and ".join(rows[:3])


# --- topology ---------------------------------------------------------------------------------------------------
def _of_topology(filters: Filters) -> str:
    constraint = filters.constraint
    if constraint is None or constraint.key == labels.HOSTNAME:
        return ""
    reached = filters.template.domains(constraint.key)
    allowed = open_to(constraint, filters)
    if not allowed:
        return ""
    beyond = sorted(allowed - reached)
    if beyond:
        return f"it may run in {_listed(beyond)}, where the nodepool makes no nodes"
    return f"it may run in {_listed(sorted(allowed))}, where no instance type is left"


def open_to(constraint: TopologyConstraint, filters: Filters) -> set[str]:
    """The domains known anywhere to which a topology constraint would admit one more pod."""
    domains = filters.cls.domains_of(constraint)
    known = set(constraint.group.counts) | set(constraint.group.standing()) | filters.template.domains(constraint.key)
    if constraint.key == labels.ZONE:
        known |= {market[0] for market in filters.template.table.markets}
    return {domain for domain in known if domain[:1] != "\0" and admits.allows(constraint, domain, domains)}


def _listed(domains: list[str]) -> str:
    more = f" and {counted(len(domains) - _MOST_DOMAINS, 'other')}" if len(domains) > _MOST_DOMAINS else ""
    return ", ".join(domains[:_MOST_DOMAINS]) + more


_MADE: Final[Mapping[str, Callable[[Filters], str]]] = {
    explanation.TAINTS: _of_taints,
    explanation.REQUIREMENTS: _of_requirements,
    explanation.VOLUMES: _of_volumes,
    explanation.OFFERINGS: _of_offerings,
    explanation.RESOURCES: _of_resources,
    explanation.LIMITS: _of_limits,
    explanation.HOST_PORTS: _of_ports,
    explanation.MIN_VALUES: _of_min_values,
    explanation.TOPOLOGY: _of_topology,
}
