"""All targets of a snapshot side by side: their room as a matrix, their volumes, and which of them suit a demand.

A solve closes those that it leaves out and counts again those that pods move from; the rest is shared by all solves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from kerf.model.kubernetes.objects import Pod, Toleration
from kerf.pods.requirements import Demand, tolerates_all
from kerf.pods.volumes import Attachment
from kerf.scheduling.answers.nodeclaims import pod_mark
from kerf.scheduling.nodes.existing import ExistingNode
from kerf.scheduling.nodes.volume_usage import Attached
from kerf.scheduling.offerings.instance_types import Bools, Columns, Ints
from kerf_api.requirements import Requirement, Requirements
from kerf_api.v1.meta import Taint

#: The kube-scheduler refuses a node with `spec.unschedulable` to pods that do not tolerate this taint, even while the
#: node does not have it yet.
CORDON: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
T = TypeVar("T")
#: The distinct values that targets have of something, and each target's place in them.
Coded = tuple[list[T], NDArray[np.intp]]


@dataclass(slots=True, eq=False)
class _Known:
    """What has been worked out about the labels and taints of the targets."""

    rows: dict[str, Coded[Requirement | None]] = field(default_factory=dict)
    serving: dict[Requirement, Bools] = field(default_factory=dict)
    domains: dict[str, Coded[tuple[str | None, ...]]] = field(default_factory=dict)
    tolerating: dict[tuple[Toleration, ...], Bools] = field(default_factory=dict)
    hosts: tuple[Mapping[str, int], NDArray[np.intp]] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ExistingNodes:
    """`free` is [targets, columns]; `open` [targets] says which may be used; `at` and `at_node` give the places of a
    target's key and of its Node's name.

    `cordoned` [targets] are those that take only pods that tolerate CORDON. `marked` are the places that were made for
    a pod, by its mark.
    """

    targets: Sequence[ExistingNode]
    free: Ints
    open: Bools
    settling: Bools
    cordoned: Bools
    attached: Attached
    at: Mapping[str, int]
    at_node: Mapping[str, int]
    marked: Mapping[str, tuple[int, ...]]
    _known: _Known = field(default_factory=_Known)

    @classmethod
    def of(cls, targets: Sequence[ExistingNode], columns: Columns) -> ExistingNodes:
        marked: dict[str, tuple[int, ...]] = {}
        for place, target in enumerate(targets):
            for mark in sorted(target.marks):
                marked[mark] = (*marked.get(mark, ()), place)
        return cls(
            targets,
            np.array([t.free for t in targets], dtype=np.int64).reshape(len(targets), len(columns.names)),
            np.ones(len(targets), dtype=np.bool_),
            np.array([t.settling for t in targets], dtype=np.bool_),
            np.array([t.cordoned for t in targets], dtype=np.bool_),
            Attached.of(targets),
            {target.key: place for place, target in enumerate(targets)},
            {target.state.node.name: place for place, target in enumerate(targets) if target.state.node is not None},
            marked,
        )

    def settled(self, promises: Mapping[str, str], pod: Pod) -> bool:
        """Whether a node was made for the pod, or it was promised a place (by UID)."""
        return bool(self._homes(pod, promises))

    def _homes(self, pod: Pod, promises: Mapping[str, str]) -> list[int]:
        uid = pod.metadata.uid
        promised = self.at.get(promises.get(uid, ""))
        found = [*((promised,) if promised is not None else ()), *self.marked.get(pod_mark(uid), ())]
        return [place for place in found if self.open[place] and self._reachable(place, pod.spec.tolerations)]

    def _reachable(self, place: int, tolerations: tuple[Toleration, ...]) -> bool:
        return not self.cordoned[place] or tolerates_all(tolerations, (CORDON,))

    def kept_for(self, pods: Iterable[Pod], promises: Mapping[str, str]) -> tuple[ExistingNodes, dict[str, str]]:
        """The same without the places of these pods; and the target of each that has one, by the pod's key."""
        open_, kept = self.open.copy(), dict[str, str]()
        for pod in pods:
            homes = self._homes(pod, promises)
            open_[homes] = False
            if homes:
                kept[pod.key] = self.targets[homes[0]].key
        return replace(self, open=open_), kept

    def without(self, exclude: Iterable[str], anew: Iterable[ExistingNode]) -> ExistingNodes:
        """The same with some keys closed, and some targets as they are now; these have the same labels and taints."""
        targets, free, open_ = list(self.targets), self.free.copy(), self.open.copy()
        vacated: dict[int, frozenset[Attachment]] = {}
        for key in exclude:
            if key in self.at:
                open_[self.at[key]] = False
                vacated[self.at[key]] = targets[self.at[key]].attached
        for target in anew:
            place = self.at[target.key]
            vacated[place] = targets[place].attached - target.attached
            targets[place], free[place] = target, target.free
        return replace(self, targets=targets, free=free, open=open_, attached=self.attached.without(vacated))

    def domains(self, key: str) -> Coded[tuple[str | None, ...]]:
        """The distinct sets of values that targets may have of a label, and each target's place in them."""
        if key not in self._known.domains:
            self._known.domains[key] = _codes(self.targets, lambda target: target.domains(key))
        return self._known.domains[key]

    def hosts(self) -> tuple[Mapping[str, int], NDArray[np.intp]]:
        """A number for each distinct hostname, and that of each target."""
        if self._known.hosts is None:
            hosts, places = _codes(self.targets, lambda target: target.hostname)
            self._known.hosts = {host: number for number, host in enumerate(hosts)}, places
        return self._known.hosts

    def suiting(self, demand: Demand, volumes: Iterable[Requirements]) -> Bools:
        """Which open targets have the labels and the taints for a demand, and for one of the volumes' alternatives."""
        good = self.open & self.tolerating(demand.tolerations) & self._serving(demand.requirements)
        return good & self.attaching(volumes)

    def tolerating(self, tolerations: tuple[Toleration, ...]) -> Bools:
        """Which targets have no taint but those that are tolerated; a cordon counts as one."""
        known = self._known.tolerating.get(tolerations)
        if known is None:
            codes = _codes(self.targets, lambda target: target.taints)
            known = _spread(codes, lambda taints: tolerates_all(tolerations, taints)) & self.uncordoned(tolerations)
            self._known.tolerating[tolerations] = known
        return known

    def uncordoned(self, tolerations: tuple[Toleration, ...]) -> Bools:
        """Which targets are not cordoned; all of them when that is tolerated."""
        return np.logical_or(~self.cordoned, tolerates_all(tolerations, (CORDON,)))

    def attaching(self, volumes: Iterable[Requirements]) -> Bools:
        """Which targets have the labels for one of the volumes' alternatives."""
        attached = np.zeros(len(self.targets), dtype=np.bool_)
        for volume in volumes:
            attached |= self._serving(volume)
        return attached

    def _serving(self, wanted: Requirements) -> Bools:
        good = np.ones(len(self.targets), dtype=np.bool_)
        for row in wanted.values():
            good &= self.serving(row)
        return good

    def serving(self, row: Requirement) -> Bools:
        """Which targets have a label as it is wanted."""
        known = self._known.serving.get(row)
        if known is None:
            if row.key not in self._known.rows:
                self._known.rows[row.key] = _codes(self.targets, lambda target: target.possible.get(row.key))
            known = _spread(self._known.rows[row.key], lambda own: serves(own, row))
            self._known.serving[row] = known
        return known


def serves(own: Requirement | None, row: Requirement) -> bool:
    """Whether every value that a target may have of a label satisfies what is wanted; none means: no such label."""
    if own is None or not (own.complement or own.values):
        return row.accepts_absence
    return not own.complement and all(row.has(value) for value in own.values)


def _codes(targets: Sequence[ExistingNode], read: Callable[[ExistingNode], T]) -> Coded[T]:
    known: dict[T, int] = {}
    places = [known.setdefault(read(target), len(known)) for target in targets]
    return list(known), np.array(places, dtype=np.intp)


def _spread(coded: Coded[T], holds: Callable[[T], bool]) -> Bools:
    """A yes or no for each distinct value, as one for each target."""
    values, places = coded
    return np.array([holds(value) for value in values], dtype=np.bool_)[places]
