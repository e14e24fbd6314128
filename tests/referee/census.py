"""Who is where: kinds of pods by node, and which kinds a selector or a term of pod affinity means."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from kerf.model.kubernetes.objects import LabelSelector, Pod, PodAffinityTerm
from kerf.model.snapshot import Snapshot
from tests.referee.kinds import Kind, Kinds
from tests.referee.places import Place
from tests.referee.selecting import matches


@dataclass(slots=True)
class Group:
    """Pods of one kind on one node: those that stay (of DaemonSets also those to come), that come, and that leave.

    Of these, those that are `lasting` are there yet when a planned node is. Those that are `possible` run on some of
    the types that the node may become: they keep others from this node, and are no company.
    """

    kind: Kind
    place: Place
    staying: int = 0
    coming: int = 0
    leaving: int = 0
    lasting: int = 0
    possible: int = 0
    #: One of them, a coming one if there is any.
    name: str = ""

    @property
    def count(self) -> int:
        return self.staying + self.coming

    def beside(self, other: Place) -> int:
        """Those that somebody who comes to another place finds there."""
        there = self.count + (self.lasting if other.planned else self.leaving)
        return there + (self.possible if other is self.place else 0)


class Census:
    """All groups of pods."""

    def __init__(self, snapshot: Snapshot, kinds: Kinds, places: list[Place]) -> None:
        self.snapshot, self.places = snapshot, places
        self.by_kind: dict[Kind, list[Group]] = {}
        for place in places:
            here: dict[Kind, Group] = {}
            for pod in (*place.possible, *place.awaited, *place.leaving, *place.waiting, *place.staying, *place.coming):
                kind = kinds.of(pod)
                group = here.setdefault(kind, Group(kind, place))
                group.name = pod.key
            for pod in place.leaving:
                here[kinds.of(pod)].leaving += 1
                here[kinds.of(pod)].lasting += _outlasts(pod, snapshot.now)
            for pod in place.waiting:
                here[kinds.of(pod)].lasting += 1
            for pod in (*place.staying, *place.awaited):
                here[kinds.of(pod)].staying += 1
            for pod in place.possible:
                here[kinds.of(pod)].possible += 1
            for pod in place.coming:
                here[kinds.of(pod)].coming += 1
            for kind, group in here.items():
                self.by_kind.setdefault(kind, []).append(group)
        self._meant: dict[tuple[str, bytes], list[Kind]] = {}

    def coming(self) -> Iterator[tuple[Kind, list[Group]]]:
        """The kinds that come, and where."""
        for kind, groups in self.by_kind.items():
            new = [group for group in groups if group.coming]
            if new:
                yield kind, new

    def selected(self, namespace: str, selector: LabelSelector | None, own: Mapping[str, str]) -> list[Kind]:
        """The kinds of a namespace that a spread's selector and these labels mean."""

        def is_meant(pod: Pod) -> bool:
            found = pod.metadata.labels
            same = pod.metadata.namespace == namespace and all(found.get(k) == v for k, v in own.items())
            if not own and selector is not None and not (selector.match_labels or selector.match_expressions):
                return False  # an empty selector counts no pod
            return same and matches(selector, found)

        return self._kinds((namespace, msgspec.json.encode((selector, own))), is_meant)

    def in_reach(self, owner: Pod, term: PodAffinityTerm) -> list[Kind]:
        """The kinds that a pod's term means."""
        spaces = self._namespaces(owner, term)

        def is_meant(pod: Pod) -> bool:
            return spaces(pod.metadata.namespace) and matches(term.label_selector, pod.metadata.labels)

        return self._kinds((owner.metadata.namespace, msgspec.json.encode(("term", term))), is_meant)

    def _namespaces(self, owner: Pod, term: PodAffinityTerm) -> Callable[[str], bool]:
        """The list and what the selector means; without both the pod's own. An empty selector means all."""
        selector = term.namespace_selector
        if selector is None:
            listed = set(term.namespaces or (owner.metadata.namespace,))
            return listed.__contains__
        listed = set(term.namespaces)
        known = self.snapshot.namespaces
        listed |= {name for name, one in known.items() if matches(selector, one.metadata.labels)}
        return (lambda _: True) if selector == LabelSelector() else listed.__contains__

    def _kinds(self, key: tuple[str, bytes], is_meant: Callable[[Pod], bool]) -> list[Kind]:
        if key not in self._meant:
            self._meant[key] = [kind for kind in self.by_kind if is_meant(kind.pod)]
        return self._meant[key]


def _outlasts(pod: Pod, now: datetime) -> bool:
    """Whether a pod that leaves is there yet in a minute; one that should have gone a minute ago may never go."""
    end = pod.metadata.deletion_timestamp
    return end is not None and not timedelta(minutes=-1) <= end - now <= timedelta(minutes=1)
