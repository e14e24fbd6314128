"""First half of a solve: each pod gets a place on an existing node, or a domain for a new one, or neither.

Pods go in order of size; a pod that waits for another (affinity) is tried again as long as others make progress. A pod
that is to go on a new node gets every topology label pinned to one value here, so that counters are exact and the
second half only has to pack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from api import labels
from api.requirements import IN, Requirements, requirement
from reconciler.model.objects import Pod
from reconciler.scheduling.claims import pod_mark
from reconciler.scheduling.classes import PodClass, Rung
from reconciler.scheduling.groups import AFFINITY, ANTI, SPREAD, Group
from reconciler.scheduling.places import Places
from reconciler.scheduling.ports import HostPort, clash
from reconciler.scheduling.template import Template
from reconciler.scheduling.types import Bools, Columns, Ints

#: More combinations of domains than this are not looked at for one pod.
_MOST_COMBINATIONS = 64
Pins = tuple[tuple[str, str], ...]
#: What pods on new nodes are grouped by: class, rung, volume alternative, pinned labels.
ItemKey = tuple[int, int, int, Pins]
Entry = tuple[PodClass, Pod]


@dataclass(slots=True, eq=False)
class Item:
    """Equal pods that are to go on new nodes. `requirements`: the rung's, the volumes' and the pins together."""

    key: ItemKey
    cls: PodClass
    rung: Rung
    requirements: Requirements
    pins: Pins
    need: Ints
    pods: list[Pod] = field(default_factory=list)


class Assignment:
    """The state of the first half. `caps` limits how many pods an item may have (learned from a failed packing)."""

    def __init__(
        self,
        columns: Columns,
        places: Places,
        templates: Sequence[Template],
        caps: Mapping[ItemKey, int],
        *,
        open_new: bool,
    ) -> None:
        self.columns, self.places, self.templates, self.caps = columns, places, templates, caps
        self.open_new = open_new
        self.targets = places.targets
        self.free = places.free.copy()
        self.ports: dict[int, tuple[HostPort, ...]] = {}
        self.placed: dict[str, str] = {}
        self.order: list[str] = []
        self.items: dict[ItemKey, Item] = {}
        self.left: dict[str, tuple[PodClass, Pod]] = {}
        self._static: dict[tuple[int, int], Bools] = {}
        self._options: dict[tuple[int, int, int], list[tuple[Template, Requirements]]] = {}
        self._fits: dict[tuple[int, Requirements, int], int | None] = {}

    # --- the queue ----------------------------------------------------------------------------------------------
    def run(self, classes: Sequence[PodClass], promises: Mapping[str, str]) -> None:
        """Place all that can be placed. `promises`: where the latest pass sent pods (UID to target), in its order."""
        needs = {cls.number: self.columns.vector(cls.requests) for cls in classes}
        unknown = {cls.number: self.columns.unknown(cls.requests) for cls in classes}
        queue = [(cls, pod) for cls in classes for pod in cls.members]
        if promises or self.places.marked:
            queue = self._recall(queue, needs, promises)
        while queue:
            waiting: list[Entry] = []
            hopeless: set[int] = set()
            for cls, pod in queue:
                stuck = cls.number in hopeless or bool(unknown[cls.number])
                if stuck or not self._place(cls, pod, needs[cls.number]):
                    waiting.append((cls, pod))
                    hopeless.add(cls.number)
            if len(waiting) == len(queue) or not any(_waits(cls) for cls, _ in waiting):
                self.left = {pod.key: (cls, pod) for cls, pod in waiting}
                return
            queue = waiting

    def _place(self, cls: PodClass, pod: Pod, need: Ints) -> bool:
        for number, rung in enumerate(cls.rungs):
            if not rung.demand.possible:
                continue
            place = self._existing(cls, number, need)
            if place is not None:
                self._put(cls, rung, pod, need, place)
                return True
            if self.open_new and self._new(cls, number, pod, need):
                return True
        return False

    # --- promises -----------------------------------------------------------------------------------------------
    def _recall(self, queue: list[Entry], needs: Mapping[int, Ints], promises: Mapping[str, str]) -> list[Entry]:
        """Seat pods where the latest pass sent them, in its order, or on nodes that were made for them; the rest.

        In the same order everything is allowed that was allowed then, so a pass over the same world changes nothing.
        """
        ranks = {uid: rank for rank, uid in enumerate(promises)}
        homes: dict[str, dict[int, bool]] = {}
        for _, pod in queue:
            uid = pod.metadata.uid
            marked = self.places.marked.get(pod_mark(uid), ()) if self.places.marked else ()
            promised = self.places.at.get(promises.get(uid, ""))
            homes[pod.key] = {p: p in marked for p in (promised, *marked) if p is not None}
        waiting = [entry for entry in queue if homes[entry[1].key]]
        waiting.sort(key=lambda entry: ranks.get(entry[1].metadata.uid, len(ranks)))
        while waiting:
            still = [(c, pod) for c, pod in waiting if not self._reseat(c, pod, needs[c.number], homes[pod.key])]
            if len(still) == len(waiting):
                break
            waiting = [entry for entry in still if _waits(entry[0])]
        return [entry for entry in queue if entry[1].key not in self.placed]

    def _reseat(self, cls: PodClass, pod: Pod, need: Ints, homes: Mapping[int, bool]) -> bool:
        """Put the pod on one of the homes (True: made for it) at the first rung that allows it."""
        for number, rung in enumerate(cls.rungs):
            for place, planned in homes.items():
                suits = rung.demand.possible and self._suiting(cls, number)[place]
                if suits and (self.free[place] >= need).all() and self._allowed(cls, rung, place, planned=planned):
                    self._put(cls, rung, pod, need, place)
                    return True
        return False

    # --- existing nodes -----------------------------------------------------------------------------------------

    def _existing(self, cls: PodClass, number: int, need: Ints) -> int | None:
        rung = cls.rungs[number]
        roomy = np.flatnonzero(self._suiting(cls, number) & (self.free >= need).all(axis=1))
        if not (rung.bonds or cls.counted or cls.ports):
            return int(roomy[0]) if len(roomy) else None
        return next((int(p) for p in roomy if self._allowed(cls, rung, int(p))), None)

    def _suiting(self, cls: PodClass, number: int) -> Bools:
        """Targets whose labels and taints suit the rung."""
        key = (cls.number, number)
        if key not in self._static:
            good = self.places.suiting(cls.rungs[number].demand, cls.volumes)
            self._static[key] = good & ~self.places.settling if cls.settled else good
        return self._static[key]

    def _ports(self, place: int) -> tuple[HostPort, ...]:
        """The host ports that are taken there."""
        return self.ports.get(place, self.targets[place].ports)

    def _allowed(self, cls: PodClass, rung: Rung, place: int, *, planned: bool = False) -> bool:
        """Whether ports and topology admit one more pod of the class here.

        A node that was `planned` for the pod was right for it when all pods of that plan are in place, so what depends
        on their order is not asked again.
        """
        target = self.targets[place]
        if cls.ports and clash(cls.ports, self._ports(place)):
            return False
        for bond in rung.bonds:
            if planned and bond.group.kind != ANTI:
                continue
            domains = target.domains(bond.key)
            if len(domains) > 1 and bond.group.kind != ANTI:
                return False
            if not all(bond.allows(domain, rung.demand.strict) for domain in domains):
                return False
        return all(
            not group.owners.get(domain, 0)
            for group in cls.counted
            if group.kind == ANTI and group.owners
            for domain in target.domains(group.key)
            if domain is not None
        )

    def _put(self, cls: PodClass, rung: Rung, pod: Pod, need: Ints, place: int) -> None:
        target = self.targets[place]
        self.placed[pod.key] = target.key
        self.order.append(pod.key)
        self.free[place] -= need
        if cls.ports:
            self.ports[place] = self._ports(place) + cls.ports
        record(cls, rung, target.domains, lambda g: g.admits_node(target.possible, target.taints))

    # --- new nodes ----------------------------------------------------------------------------------------------
    def _new(self, cls: PodClass, number: int, pod: Pod, need: Ints) -> bool:
        rung = cls.rungs[number]
        if not _starts_on_new_host(rung):
            return False
        for alternative in range(len(cls.volumes)):
            for template, served in self._templates_for(cls, number, alternative):
                pins = self._pins(cls, number, alternative, template, served, need)
                if pins is not None:
                    self._plan(cls, number, alternative, template, pins, pod, need)
                    return True
        return False

    def _templates_for(self, cls: PodClass, number: int, alternative: int) -> list[tuple[Template, Requirements]]:
        """Templates that can serve the rung, with their requirements narrowed to it, heaviest first."""
        key = (cls.number, number, alternative)
        if key not in self._options:
            demand, volume = cls.rungs[number].demand, cls.volumes[alternative]
            found: list[tuple[Template, Requirements]] = []
            for template in self.templates:
                if not demand.tolerates(template.taints) or demand.requirements.conflict(volume) is not None:
                    continue
                served = template.serve(demand.requirements & volume)
                if served is not None:
                    found.append((template, served))
            self._options[key] = found
        return self._options[key]

    def _pins(
        self, cls: PodClass, number: int, alternative: int, template: Template, served: Requirements, need: Ints
    ) -> Pins | None:
        """The best combination of domains for one more pod on a new node; None when there is none."""
        rung = cls.rungs[number]
        chosen: list[tuple[tuple[object, ...], Pins]] = []
        for pins in self._combinations(cls, rung, template, served):
            cap = self.caps.get((cls.number, number, alternative, pins))
            item = self.items.get((cls.number, number, alternative, pins))
            if cap is not None and (len(item.pods) if item is not None else 0) >= cap:
                continue
            cost = self._unit_cost(template, served, pins, cls, need)
            if cost is not None:
                chosen.append(((_crowd(rung, dict(pins)), cost, pins), pins))
        return min(chosen, default=(None, None))[1]

    def _combinations(self, cls: PodClass, rung: Rung, template: Template, served: Requirements) -> Iterator[Pins]:
        keys = {b.key for b in rung.bonds} | {g.key for g in cls.counted}
        lists: list[list[tuple[str, str]]] = []
        for key in sorted(keys - {labels.HOSTNAME}):
            possible = template.open_domains(key, served)
            bonds = [b for b in rung.bonds if b.key == key]
            shunned = [g for g in cls.counted if g.kind == ANTI and g.key == key]
            if not possible:
                if all(b.allows(None, rung.demand.strict) for b in bonds):
                    continue
                return
            good = [
                (key, d)
                for d in possible
                if all(b.allows(d, rung.demand.strict) for b in bonds) and not any(g.owners.get(d, 0) for g in shunned)
            ]
            lists.append(good)
        for count, combination in enumerate(product(*lists)):
            if count >= _MOST_COMBINATIONS:
                return
            yield combination

    def _unit_cost(self, template: Template, served: Requirements, pins: Pins, cls: PodClass, need: Ints) -> int | None:
        """The price of the share of a node that the pod needs, at the cheapest type that holds it."""
        pinned = template.join(served, pin_requirements(pins)) if pins else served
        if pinned is None:
            return None
        key = (id(template), pinned, cls.number)
        if key not in self._fits:
            self._fits[key] = template.unit_cost(pinned, need, cls.ports)
        return self._fits[key]

    def _plan(
        self, cls: PodClass, number: int, alternative: int, template: Template, pins: Pins, pod: Pod, need: Ints
    ) -> None:
        key, rung = (cls.number, number, alternative, pins), cls.rungs[number]
        if key not in self.items:
            wanted = rung.demand.requirements & cls.volumes[alternative] & pin_requirements(pins)
            self.items[key] = Item(key, cls, rung, wanted, pins, need)
        item = self.items[key]
        item.pods.append(pod)
        self.order.append(pod.key)
        known = dict(pins)
        record(
            cls,
            rung,
            lambda label: (known.get(label),),
            lambda g: g.admits_plan(template.requirements & item.requirements, template.taints),
        )


def pin_requirements(pins: Pins) -> Requirements:
    return Requirements(requirement(key, IN, (value,)) for key, value in pins)


def record(
    cls: PodClass, rung: Rung, domains: Callable[[str], tuple[str | None, ...]], admits: Callable[[Group], bool]
) -> None:
    """Count a pod of the class where it goes. A hostname that is not known yet counts as fresh."""
    for group in cls.counted:
        found = domains(group.key)
        if len(found) == 1 and found[0] is None and group.key == labels.HOSTNAME:
            group.fresh += 1
        elif (len(found) == 1 or group.kind == ANTI) and (group.kind != SPREAD or admits(group)):
            for domain in found:
                if domain is not None:
                    group.counts[domain] = group.counts.get(domain, 0) + 1
    for bond in rung.bonds:
        if bond.group.kind == ANTI and bond.required:
            for domain in domains(bond.key):
                if domain is not None:
                    bond.group.owners[domain] = bond.group.owners.get(domain, 0) + 1


def _waits(cls: PodClass) -> bool:
    """Whether another pod's placement can help a pod of this class."""
    return any(bond.group.kind in (AFFINITY, SPREAD) for rung in cls.rungs for bond in rung.bonds)


def _starts_on_new_host(rung: Rung) -> bool:
    """Whether hostname constraints admit a node that is empty now, or pods that are already planned on new ones."""
    return all(bond.begins_host() for bond in rung.bonds if bond.key == labels.HOSTNAME)


def _crowd(rung: Rung, pins: Mapping[str, str]) -> int:
    """How full the chosen domains of spread constraints are."""
    return sum(
        bond.group.counts.get(pins[bond.key], 0)
        for bond in rung.bonds
        if bond.group.kind == SPREAD and bond.key in pins
    )
