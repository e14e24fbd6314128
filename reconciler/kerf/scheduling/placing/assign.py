"""First half of a solve: each pod gets a place on an existing node, or a domain for a new one, or neither.

Pods go class by class, in order of size; a pod that waits for another (affinity) is tried again as long as others make
progress. A pod that is to be placed on a new node gets every topology label pinned to one value (see `opening`), so
that counters are exact and the second half only has to pack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from kerf.model.kubernetes.objects import Pod
from kerf.pods.host_ports import HeldPorts
from kerf.pods.topology_constraints import ANTI, KeepsAway, TopologyConstraint
from kerf.scheduling.answers.nodeclaims import pod_mark
from kerf.scheduling.devices.ledger import DeviceLedger
from kerf.scheduling.nodes.table import ExistingNodes
from kerf.scheduling.nodes.volume_usage import VolumeSlots
from kerf.scheduling.offerings.instance_types import Bools, Columns, Ints
from kerf.scheduling.offerings.nodepools import NodeClaimTemplate
from kerf.scheduling.placing.affinity_seed import AffinitySeed, Company
from kerf.scheduling.placing.classes import PodClass, Relaxation
from kerf.scheduling.placing.domains import Opening
from kerf.scheduling.placing.host_counts import HostCounts
from kerf.scheduling.placing.strategy import PLAIN, Pins, Strategy
from kerf.scheduling.placing.ways import ItemKey, PodGroup
from kerf.scheduling.topology import admits
from kerf.scheduling.topology.admits import Bounds
from kerf.scheduling.topology.node_filters import NodeFilters
from kerf.scheduling.work import Work
from kerf_api import labels

#: Pods of one class, in their order.
Batch = tuple[PodClass, Sequence[Pod]]
#: Steps for a class, whatever its constraints.
_A_CLASS: Final = 4
#: So many targets are held against a group in one step; the group itself takes as long as so many of them.
_TARGETS_A_STEP: Final = 2048
_A_GROUP: Final = 256


@dataclass(frozen=True, slots=True, eq=False)
class Supply:
    """What pods can be placed on: the nodes there are, the NodePools in their turn, and devices if there are any."""

    columns: Columns
    places: ExistingNodes
    templates: Sequence[NodeClaimTemplate]
    devices: DeviceLedger | None = None


class Assignment:
    """The state of the first half. `caps` limits how many pods an item may have (learned from a failed packing).

    `given_up` counts the relaxations that pods on existing nodes came down.
    """

    def __init__(
        self,
        supply: Supply,
        caps: Mapping[ItemKey, int],
        *,
        open_new: bool,
        strategy: Strategy = PLAIN,
        work: Work | None = None,
    ) -> None:
        self.work = work if work is not None else Work()
        places, devices = supply.places, supply.devices
        self.columns, self.places, self.targets = supply.columns, places, places.targets
        self.free = places.free.copy()
        self.slots = VolumeSlots(places.attached, len(places.targets))
        self.ports: dict[int, HeldPorts] = {}
        self.placed: dict[str, str] = {}
        self.left: dict[str, tuple[PodClass, Pod]] = {}
        #: The numbers of classes for which no steps were left.
        self.cut: set[int] = set()
        self._devices, self._filters = devices, NodeFilters()
        self.given_up = 0
        self._anew = strategy.anew
        self.opening = Opening(
            supply.templates, caps, dict(strategy.domains), devices, shut=not open_new, work=self.work
        )
        self._followers = AffinitySeed((), {}, self.opening)
        self._static: dict[tuple[int, int], Bools] = {}
        self._needs: Mapping[int, Ints] = {}
        self._on_hosts = HostCounts(places)

    @property
    def order(self) -> list[str]:
        """The keys of the pods that have a place, in the order in which they got it."""
        return self.opening.order

    @property
    def items(self) -> Mapping[ItemKey, PodGroup]:
        """The pods that are to be placed on new nodes."""
        return self.opening.items

    def hopeful(self, cls: PodClass) -> bool:
        """Whether some node, there or new, would do for a pod of the class if the others were nowhere."""
        need = self.columns.vector(cls.requests)
        there = (self.places.free >= need).all(axis=1)
        return not self.columns.unknown(cls.requests) and any(
            self.opening.routes(cls, n, need) or (self._suiting(cls, n) & there).any() for n in cls.possible
        )

    def domains(self, cls: PodClass) -> list[Pins]:
        """The domains that new nodes for pods of the class can have, as far as work is left to list them."""
        need = self.columns.vector(cls.requests)
        about = cls.counted or cls.daemon_spreads
        asked = (n for n in cls.possible if about or cls.relaxations[n].constraints)
        found = (pins for n in asked if not self.work.worn for pins in self.opening.routes(cls, n, need) if pins)
        return list(dict.fromkeys(found))

    # --- the queue ----------------------------------------------------------------------------------------------
    def run(self, classes: Sequence[PodClass], promises: Mapping[str, str]) -> None:
        """Place all that can be placed. `promises`: where the latest pass sent pods (UID to target), in its order.

        What an earlier call placed stays: those classes come first.
        """
        requests = {id(cls.requests): cls.requests for cls in classes}
        vectors = {key: self.columns.vector(asked) for key, asked in requests.items()}
        strange = {key for key, asked in requests.items() if self.columns.unknown(asked)}
        needs = self._needs = {**self._needs, **{cls.number: vectors[id(cls.requests)] for cls in classes}}
        unknown = {cls.number for cls in classes if id(cls.requests) in strange}
        queue: list[Batch] = [(cls, cls.members) for cls in classes]
        if promises or self.places.marked:
            queue = self._recall(queue, needs, promises)
        self.opening.ways.expect(classes, needs, sum(len(pods) for _, pods in queue))
        self._followers = AffinitySeed(classes, needs, self.opening)
        company = Company([cls for cls, _ in queue])
        while queue:
            waiting: list[Batch] = []
            progress = False
            for turn, (cls, pods) in enumerate(queue):
                self.opening.put_off = bool(self.targets) and company.comes_later(cls, turn)
                progress = progress or self.opening.put_off
                done = 0 if cls.number in unknown else self._place_all(cls, pods, needs[cls.number])
                progress = progress or done > 0
                if done < len(pods):
                    waiting.append((cls, pods[done:]))
                    if self.work.spent and cls.number not in unknown:
                        self.cut.add(cls.number)
            if self.work.spent or not progress or not any(cls.waits for cls, _ in waiting):
                self.left |= {pod.key: (cls, pod) for cls, pods in waiting for pod in pods}
                return
            queue, company = waiting, Company(())

    def _place_all(self, cls: PodClass, pods: Sequence[Pod], need: Ints) -> int:
        """Place pods of one class until one has no place or no steps are left; how many have one (the first ones)."""
        done, work = 0, self.work
        if work.total > work.end:
            return 0
        work.total += _A_CLASS
        if not (cls.counted or cls.ports or cls.claiming or any(one.constraints for one in cls.relaxations)):
            for number, relaxation in enumerate(cls.relaxations):
                if relaxation.demand.possible and done < len(pods):
                    done += self._fill(cls, number, pods[done:], need)
                    done += self._open(cls, number, pods[done:], need)
        elif len(cls.relaxations) == 1 and cls.relaxations[0].demand.possible:
            crowded = not self.targets or not self.roomy(cls, 0, need).any()
            done = self._open(cls, 0, pods, need) if crowded else 0
        while done < len(pods) and work.total <= work.end and self._place(cls, pods[done], need):
            done += 1
        return done

    def _place(self, cls: PodClass, pod: Pod, need: Ints) -> bool:
        for number, relaxation in enumerate(cls.relaxations):
            if relaxation.demand.possible and (
                self._seat(cls, number, pod, need) or self._open(cls, number, (pod,), need)
            ):
                return True
        return self.place_without_nodes(cls, pod, need)

    def place_without_nodes(self, cls: PodClass, pod: Pod, need: Ints) -> bool:
        """Put the pod on an existing node as if no node could be made for its class."""
        return self.opening.without_nodes(cls, lambda: any(self._seat(cls, n, pod, need) for n in cls.possible))

    def _seat(self, cls: PodClass, number: int, pod: Pod, need: Ints) -> bool:
        """Put the pod on an existing node at one relaxation."""
        place = self._existing(cls, number, need)
        if place is not None:
            self._put(cls, cls.relaxations[number], pod, need, place)
        return place is not None

    def _open(self, cls: PodClass, number: int, pods: Sequence[Pod], need: Ints) -> int:
        """Plan these pods on new nodes; how many (the first ones)."""
        if self._devices is not None and cls.claiming and self._devices.settled_here(cls.sample):
            return 0
        done = self.opening.plan(cls, number, pods, need) if len(pods) else 0
        if self._devices is not None and cls.claiming and done:
            self._devices.look_ahead(cls.sample)
        return done

    def _recall(self, queue: list[Batch], needs: Mapping[int, Ints], promises: Mapping[str, str]) -> list[Batch]:
        """Seat pods where the latest pass sent them, in its order, or on nodes that were made for them; the rest.

        In the same order everything is allowed that was allowed then, so a pass over the same world changes nothing.
        """
        ranks = {uid: rank for rank, uid in enumerate(promises)}
        homes: dict[str, dict[int, bool]] = {}
        entries = [(cls, pod) for cls, pods in queue for pod in pods]
        for _, pod in entries:
            uid = pod.metadata.uid
            marked = self.places.marked.get(pod_mark(uid), ()) if self.places.marked else ()
            promised = self.places.at.get(promises.get(uid, ""))
            homes[pod.key] = {p: p in marked for p in (promised, *marked) if p is not None}
        waiting = [entry for entry in entries if homes[entry[1].key]]
        waiting.sort(key=lambda entry: ranks.get(entry[1].metadata.uid, len(ranks)))
        while waiting:
            still = [(c, pod) for c, pod in waiting if not self._reseat(c, pod, needs[c.number], homes[pod.key])]
            if len(still) == len(waiting):
                break
            waiting = [entry for entry in still if entry[0].waits]
        rest = ((cls, [pod for pod in pods if pod.key not in self.placed]) for cls, pods in queue)
        return [(cls, pods) for cls, pods in rest if pods]

    def _reseat(self, cls: PodClass, pod: Pod, need: Ints, homes: Mapping[int, bool]) -> bool:
        """Put the pod on one of the homes (True: made for it) at the first relaxation that allows it."""
        for number, relaxation in enumerate(cls.relaxations):
            for place, planned in homes.items():
                suits = relaxation.demand.possible and self._suiting(cls, number)[place] and self._attaches(cls)[place]
                suits = suits and bool((self.free[place] >= need).all())
                if suits and self._allowed(cls, relaxation, place, planned=planned):
                    self._put(cls, relaxation, pod, need, place)
                    return True
        return False

    def _fill(self, cls: PodClass, number: int, pods: Sequence[Pod], need: Ints) -> int:
        """Put pods that ask for nothing of others where there is room, place by place; how many (the first ones)."""
        self.work.charge(2 + len(self.targets) // 256)
        places = np.flatnonzero(self.roomy(cls, number, need))
        if not len(places) or cls.number in self._anew:
            return 0
        most, wanted = self.slots.most(cls.attaching)[places], need > 0
        if wanted.any():
            most = np.minimum(most, (self.free[np.ix_(places, wanted)] // need[wanted]).min(axis=1))
        done = 0
        for place, room in zip(places.tolist(), most.tolist(), strict=True):
            for pod in pods[done : done + room]:
                self._put(cls, cls.relaxations[number], pod, need, place)
            done = min(done + room, len(pods))
            if done == len(pods):
                break
        return done

    def _existing(self, cls: PodClass, number: int, need: Ints) -> int | None:
        """The first place that suits, has room and is admitted by ports and topology."""
        if not self.targets or cls.number in self._anew:
            return None
        relaxation = cls.relaxations[number]
        groups = 1 + len(relaxation.constraints) + len(cls.counted)
        self.work.charge(2 + groups * (_A_GROUP + len(self.targets)) // _TARGETS_A_STEP)
        good = self._suiting(cls, number)
        if not good.any():
            return None
        good = good & (self.free >= need).all(axis=1) & self._attaches(cls)
        if good.any() and (relaxation.constraints or cls.counted):
            good &= self._admitted(cls, relaxation)
            good = self._followers.leave(cls, number, good, self.targets, self.free)
        roomy = np.flatnonzero(good)
        if not cls.ports and not cls.claiming:
            return int(roomy[0]) if len(roomy) else None
        free = (int(p) for p in roomy if not self.held_ports(int(p)).clash(cls.ports))
        return next((place for place in free if self._equipped(cls, place)), None)

    def _admitted(self, cls: PodClass, relaxation: Relaxation) -> Bools:
        """Where topology admits one more pod of the class: `_allowed` of all places at once."""
        good = np.ones(len(self.targets), dtype=np.bool_)
        for _, admitting in self.company(cls, relaxation):
            good &= admitting
        return good

    def company(self, cls: PodClass, relaxation: Relaxation) -> Iterator[tuple[KeepsAway, Bools]]:
        """The class's own topology constraints, then those of others that keep it away, with where each admits it."""
        bounds = self._bounds(cls, relaxation)
        for constraint in relaxation.constraints:
            if constraint.key == labels.HOSTNAME:
                yield constraint, bounds[constraint].admitting(self._on_hosts.counts(constraint.group))
            else:
                yield constraint, self._by_domain(constraint.key, partial(admits.opens, constraint, bounds[constraint]))
        for group in cls.keep_away:
            if group.owners:
                if group.key == labels.HOSTNAME:
                    yield group, self._on_hosts.owners(group) == 0
                else:
                    yield group, self._by_domain(group.key, partial(admits.clear, group))

    def _bounds(self, cls: PodClass, relaxation: Relaxation) -> dict[TopologyConstraint, Bounds]:
        """The counts at which each of the relaxation's constraints admits one more pod now."""
        return self.opening.limits(cls, cls.relaxations.index(relaxation), self._needs[cls.number])

    def _by_domain(self, key: str, holds: Callable[[tuple[str | None, ...]], bool]) -> Bools:
        values, codes = self.places.domains(key)
        return np.array([holds(value) for value in values], dtype=np.bool_)[codes]

    def roomy(self, cls: PodClass, number: int, need: Ints) -> Bools:
        """Targets that suit the relaxation and have the room for one more pod."""
        good: Bools = self._suiting(cls, number) & (self.free >= need).all(axis=1)
        return good

    def _attaches(self, cls: PodClass) -> Bools:
        """Targets that can attach the volumes of one more pod of the class."""
        return self.slots.most(cls.attaching) > 0

    def _suiting(self, cls: PodClass, number: int) -> Bools:
        """Targets whose labels and taints suit the relaxation."""
        key = (cls.number, number)
        if key not in self._static:
            good = self.places.suiting(cls.relaxations[number].demand, cls.volumes)
            self._static[key] = good & ~self.places.settling if cls.settled else good
        return self._static[key]

    def held_ports(self, place: int) -> HeldPorts:
        """The host ports that are taken there."""
        held = self.ports.get(place) or HeldPorts(self.targets[place].ports)
        return self.ports.setdefault(place, held)

    def _equipped(self, cls: PodClass, place: int) -> bool:
        """Whether the devices are there that the class's pod claims."""
        return (
            self._devices is None or not cls.claiming or self._devices.on(cls.sample, self.targets[place]) is not None
        )

    def _allowed(self, cls: PodClass, relaxation: Relaxation, place: int, *, planned: bool = False) -> bool:
        """Whether ports, topology and devices admit one more pod of the class here.

        A node that was `planned` for the pod was right for it when all pods of that plan are in place, so what depends
        on their order is not asked again.
        """
        target = self.targets[place]
        if cls.ports and self.held_ports(place).clash(cls.ports):
            return False
        asked = [constraint for constraint in relaxation.constraints if not planned or constraint.group.kind == ANTI]
        bounds = {b: admits.current(b) for b in asked} if planned else self._bounds(cls, relaxation) if asked else {}
        for constraint in asked:
            if not admits.opens(constraint, bounds[constraint], target.domains(constraint.key)):
                return False
        over_hosts, others = self._on_hosts.parted(cls.counted)
        if not self._on_hosts.clear(over_hosts, place):
            return False
        inverse = (group for group in others if group.kind == ANTI and group.owners)
        clear = all(admits.clear(group, target.domains(group.key)) for group in inverse)
        return clear and self._equipped(cls, place)

    def _put(self, cls: PodClass, relaxation: Relaxation, pod: Pod, need: Ints, place: int) -> None:
        target = self.targets[place]
        self.placed[pod.key] = target.key
        self.order.append(pod.key)
        self.given_up += cls.relaxations.index(relaxation)
        self.free[place] -= need
        self.slots.add(cls.attaching, place)
        if cls.ports:
            self.held_ports(place).take(cls.ports)
        cls.bind(relaxation)
        if self._devices is not None and cls.claiming:
            self._devices.place(pod, target)
        over_hosts, others = self._on_hosts.parted(cls.counted)
        self._on_hosts.count(over_hosts, place)
        for group, found in self._filters.counting(others, target):
            _count(group.count, found)
            self._on_hosts.follow(group, place)
        for constraint in relaxation.constraints:
            if constraint.group.kind == ANTI and constraint.required:
                _count(constraint.group.own, target.domains(constraint.key))
                self._on_hosts.follow_owner(constraint.group, place)


def _count(add: Callable[[str, int], None], domains: Sequence[str | None]) -> None:
    for domain in domains:
        if domain is not None:
            add(domain, 1)
