"""Required pod affinity and anti-affinity, from the side of the pod that has it and from that of the pods it means."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kerf.model.kubernetes.objects import PodAffinityTerm
from tests.referee.answers import Violation
from tests.referee.census import Census, Group
from tests.referee.kinds import Kind


def problems(census: Census) -> Iterator[Violation]:
    found = list(_affinity(census))
    yield from found or _circles(census)
    apart: dict[tuple[str, bytes], dict[str, list[Group]]] = {}
    for kind, groups in census.by_kind.items():
        for term in kind.far:
            yield from _far(census, kind, groups, term, apart)


# --- affinity ---------------------------------------------------------------------------------------------------
def _affinity(census: Census) -> Iterator[Violation]:
    for kind, groups in census.coming():
        for term in kind.near:
            both = {planned: _domains_with_company(census, kind, term, planned) for planned in (False, True)}
            for group in groups:
                welcome = both[group.place.planned]
                here, key = group.place.domain(term.topology_key), term.topology_key
                if here is None:
                    words = f"{group.name} wants company by {key}, but {group.place.name} has no one value of it"
                    yield Violation("affinity", words)
                elif here not in welcome:
                    yield Violation("affinity", f"{group.name} has no company in {here}")


def _domains_with_company(census: Census, kind: Kind, term: PodAffinityTerm, planned: bool) -> set[str | None]:
    """Where a pod finds a pod that all its required terms select; on a node that is `planned`, when that is there.

    A pod that all its own terms select may be the first of its kind: one such domain can be founded, and only when none
    of those selected is in a domain of any of the terms yet (a node without the label is in none).
    """
    meant = _meant(census, kind)
    groups = [(g.place.domain(term.topology_key), g) for other in meant for g in census.by_kind[other]]
    groups = [(domain, g) for domain, g in groups if g.count or _stays(g, planned)]
    if kind not in meant:
        return {domain for domain, _ in groups}
    anchors = {domain for domain, g in groups if _stays(g, planned) or term not in g.kind.near}
    founded = {domain for domain, g in groups if g.coming and term in g.kind.near} - anchors
    there = [g for _, g in groups if _stays(g, planned)]
    settled = any(g.place.domain(t.topology_key) is not None for t in kind.near for g in there)
    return anchors | (founded if not settled and len(founded) == 1 else set())


def _stays(group: Group, planned: bool) -> bool:
    """Whether some of it is there already, and there yet when a planned node is."""
    return group.staying + (group.lasting if planned else group.leaving) > 0


def _meant(census: Census, kind: Kind) -> list[Kind]:
    """The kinds of pods that every required affinity term of a pod selects."""
    reached = [census.in_reach(kind.pod, term) for term in kind.near]
    return [other for other in reached[0] if all(other in each for each in reached[1:])]


def _circles(census: Census) -> Iterator[Violation]:
    """Pods that wait for each other: no order of binding gives each of them its company in time."""
    waiting = {id(g): g for kind, groups in census.coming() for g in groups if _waits_for(census, kind)}
    moved = True
    while moved and waiting:
        ready = [key for key, g in waiting.items() if all(_has_come(census, g, t, waiting) for t in g.kind.near)]
        moved = bool(ready)
        for key in ready:
            del waiting[key]
    for group in waiting.values():
        yield Violation("affinity", f"{group.name} and its company on {group.place.name} wait for each other")


def _waits_for(census: Census, kind: Kind) -> bool:
    return bool(kind.near) and kind not in _meant(census, kind)


def _has_come(census: Census, group: Group, term: PodAffinityTerm, waiting: dict[int, Group]) -> bool:
    meant, here = _meant(census, group.kind), group.place.domain(term.topology_key)
    if group.kind in meant:
        return True
    others = (g for other in meant for g in census.by_kind[other])
    return any(
        (_stays(g, group.place.planned) or (g.count > 0 and id(g) not in waiting))
        and g.place.domain(term.topology_key) == here
        for g in others
    )


# --- anti-affinity ----------------------------------------------------------------------------------------------
def _far(
    census: Census,
    kind: Kind,
    groups: list[Group],
    term: PodAffinityTerm,
    known: dict[tuple[str, bytes], dict[str, list[Group]]],
) -> Iterator[Violation]:
    """Where a node's domain is open, every domain that it may have counts. Of those that are too near one is named."""
    look = (kind.pod.metadata.namespace, msgspec.json.encode(term))
    if look not in known:
        known[look] = _by_domain(census, kind, term)
    shunned = known[look]
    for group in groups:
        here = group.place.domains(term.topology_key)
        near = (other for domain in sorted(here) for other in shunned.get(domain, ()))
        other = next((one for one in near if _newly_together(group, one)), None)
        if other is not None:
            shared = sorted(here & other.place.domains(term.topology_key))
            whom = "its like" if other is group else other.name
            yield Violation("anti-affinity", f"{group.name} and {whom} are both in {shared}")


def _by_domain(census: Census, kind: Kind, term: PodAffinityTerm) -> dict[str, list[Group]]:
    found: dict[str, list[Group]] = {}
    for other in census.in_reach(kind.pod, term):
        for group in census.by_kind[other]:
            for domain in group.place.domains(term.topology_key):
                found.setdefault(domain, []).append(group)
    return found


def _newly_together(one: Group, two: Group) -> bool:
    """Whether there are two pods, one of each, of which at least one comes."""
    if one is two:
        return one.coming > 0 and one.count + one.leaving > 1
    return (one.coming > 0 and two.beside(one.place) > 0) or (two.coming > 0 and one.beside(two.place) > 0)
