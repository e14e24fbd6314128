"""What came nearest to a place: of the types that the last rule took, the one that lacks least, and what it lacks.

Each rule has its own measure: of requirements it is the one that, dropped, would leave most types; of resources the
type that lacks fewest of them and then the least share; of limits the least raise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from kerf.scheduling.answers import explanation
from kerf.scheduling.offerings.instance_types import NO_PRICE, Bools, Ints
from kerf.scheduling.pods.topology_constraints import Bond
from kerf.scheduling.refusals.filters import Funnel
from kerf.scheduling.topology import admits
from kerf_api import labels, quantity
from kerf_api.requirements import Requirement
from kerf_api.resources import Resources

_MIB, _GIB = 1 << 20, 1 << 30
#: Who asks for so many times what there is does not want to ask for less.
FAR_FROM_IT = 4
#: So many domains of a topology label are listed.
_MOST_DOMAINS = 6


def nearest(funnel: Funnel) -> str:
    """The nearest miss of a funnel that left nothing, in words; empty when there is nothing to say."""
    made = _MADE.get(funnel.rule)
    return explanation.cut(made(funnel)) if made is not None else ""


def rank(funnel: Funnel) -> int:
    """The higher the nearer: pools in which one thing seems to be in the way, then others; then by how far it came."""
    far = explanation.RULES.index(funnel.rule)
    return far + len(explanation.RULES) if _close(funnel) else far


def _close(funnel: Funnel) -> bool:
    """Whether little more than what it ended at seems to be in the way."""
    if funnel.rule == explanation.TAINTS:
        return funnel.passes_behind_taints()
    if funnel.rule in (explanation.REQUIREMENTS, explanation.VOLUMES):
        return bool(without_each(funnel))
    if funnel.rule == explanation.RESOURCES:
        within = funnel.room[_before_resources(funnel).any(axis=1)]
        return bool((within * FAR_FROM_IT >= funnel.need).all(axis=1).any()) and not _unknown(funnel)
    return True


def _unknown(funnel: Funnel) -> list[str]:
    return funnel.columns.unknown(funnel.cls.requests)


def _of_taints(funnel: Funnel) -> str:
    taints = [str(t) for t in funnel.template.taints if not funnel.cls.rungs[-1].demand.tolerates((t,))]
    return f"it would have to tolerate {' and '.join(taints)}" if len(taints) > 1 else ""


# --- requirements -----------------------------------------------------------------------------------------------
def without_each(funnel: Funnel) -> dict[str, int]:
    """How many types with room would be left if a label were not asked for, by its key; those with any, most first."""
    wanted = funnel.wanted & funnel.volume
    found: dict[str, int] = {}
    for key in sorted(wanted):
        served = funnel.template.serve(wanted.without(key))
        if served is not None:
            shape = funnel.template.shape(served)
            found[key] = int(shape.holding(funnel.need).sum())
    return {key: found[key] for key in sorted(found, key=lambda k: (-found[k], k)) if found[key]}


def _of_requirements(funnel: Funnel) -> str:
    found = without_each(funnel)
    if not found:
        return "no single label, not asked for, would leave an instance type"
    key, count = next(iter(found.items()))
    return f"without {key}, {_number(count, 'instance type')} would do"


def _of_volumes(funnel: Funnel) -> str:
    """Volumes do not move: what they ask for, and who does not allow it."""
    key = funnel.about
    own, asked = funnel.template.requirements.get(key), funnel.wanted.get(key)
    volume = funnel.volume[key]
    if own is not None and not own.intersects(volume):
        return f"its volumes ask for {_allowed(volume)}, the nodepool for {_allowed(own)}"
    if asked is not None and not asked.intersects(volume):
        return f"its volumes ask for {_allowed(volume)}, its own labels for {_allowed(asked)}"
    return f"its volumes ask for {_allowed(volume)}"


def _allowed(row: Requirement) -> str:
    return _listed(sorted(value or '""' for value in row.values)) if row.values and not row.complement else str(row)


def _of_offerings(funnel: Funnel) -> str:
    """What is out of stock or shifted away comes back; what has no price or no subnet does not."""
    table = funnel.template.table
    gone = funnel.before & table.sold_out
    reached = {table.markets[int(i)][0] for i in np.flatnonzero(funnel.before.any(axis=0))}
    if away := sorted(reached & table.shifted):
        return f"ARC zonal shift: nothing is launched in {', '.join(away)} for now"
    if not gone.any():
        markets = sorted({table.markets[int(i)][:2] for i in np.flatnonzero(funnel.before.any(axis=0))})
        places = ", ".join(f"{kind} in {zone}" for zone, kind in markets[:_MOST_DOMAINS])
        return f"no subnet or no price for {places}" if places else ""
    row, market = (int(i[0]) for i in np.nonzero(gone))
    zone, kind = table.markets[market][:2]
    return f"{_number(int(gone.sum()), 'offering')} out of stock for now, such as {table.names[row]} {kind} in {zone}"


# --- resources --------------------------------------------------------------------------------------------------
def _of_resources(funnel: Funnel) -> str:
    if _unknown(funnel):
        return ""
    within = np.flatnonzero(_before_resources(funnel).any(axis=1))
    least = least_lack(funnel.room[within], funnel.need, funnel.columns.names)
    return "" if least is None else f"{funnel.template.table.names[int(within[least[0]])]} lacks {least[1]}"


def _before_resources(funnel: Funnel) -> Bools:
    """The offerings that labels leave, resources not asked."""
    table = funnel.template.table
    return np.asarray(table.listed & (table.price < NO_PRICE) & funnel.reach(funnel.requirements))


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
def _of_limits(funnel: Funnel) -> str:
    template = funnel.template
    remaining, limits = template.remaining or {}, template.limits or Resources()
    good = np.flatnonzero(_within_room(funnel))
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


def _within_room(funnel: Funnel) -> Bools:
    """The types that labels, offerings and resources leave."""
    enough = (funnel.room >= funnel.need).all(axis=1)
    return np.asarray(_before_resources(funnel).any(axis=1) & enough)


def _of_ports(funnel: Funnel) -> str:
    return "host port " + ", ".join(f"{port}/{protocol}" for _, port, protocol in funnel.cls.ports[:_MOST_DOMAINS])


def _of_min_values(funnel: Funnel) -> str:
    missing = funnel.template.shortfall(np.flatnonzero(funnel.before.any(axis=1)))
    rows = [f"{key} has {count} of {funnel.template.min_values[key]}" for key, count in sorted(missing.items())]
    return " and ".join(rows[:3])


# --- topology ---------------------------------------------------------------------------------------------------
def _of_topology(funnel: Funnel) -> str:
    bond = funnel.bond
    if bond is None or bond.key == labels.HOSTNAME:
        return ""
    reached = funnel.template.domains(bond.key)
    allowed = open_to(bond, funnel)
    if not allowed:
        return ""
    beyond = sorted(allowed - reached)
    if beyond:
        return f"it may go to {_listed(beyond)}, where the nodepool makes no nodes"
    return f"it may go to {_listed(sorted(allowed))}, where no instance type is left"


def open_to(bond: Bond, funnel: Funnel) -> set[str]:
    """The domains known anywhere to which a topology constraint would admit one more pod."""
    domains = funnel.cls.domains_of(bond)
    known = set(bond.group.counts) | set(bond.group.standing()) | funnel.template.domains(bond.key)
    if bond.key == labels.ZONE:
        known |= {market[0] for market in funnel.template.table.markets}
    return {domain for domain in known if domain[:1] != "\0" and admits.allows(bond, domain, domains)}


def _listed(domains: list[str]) -> str:
    more = f" and {len(domains) - _MOST_DOMAINS} others" if len(domains) > _MOST_DOMAINS else ""
    return ", ".join(domains[:_MOST_DOMAINS]) + more


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


_MADE: Final[Mapping[str, Callable[[Funnel], str]]] = {
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
