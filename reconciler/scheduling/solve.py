"""The scheduler: a snapshot and pods in, placements, new nodes and refusals out. Pure and deterministic.

Two halves: `assign` finds each pod an existing node or pins the domains of a new one; `pack` makes nodes for the
latter, by price. When packing fails for some (limits, say), what was learned bounds the next round's assignment, so
that spreads stay exact; rounds end because each takes something away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from api import labels
from api.requirements import EMPTY, Requirements
from reconciler.model.objects import Pod
from reconciler.model.pods import virtual
from reconciler.model.snapshot import Snapshot
from reconciler.scheduling.assign import Assignment
from reconciler.scheduling.attachments import attaching
from reconciler.scheduling.bound import least_price
from reconciler.scheduling.classes import PodClass, classes_of
from reconciler.scheduling.closing import Packed
from reconciler.scheduling.devices.ledger import DeviceLedger, devices_of
from reconciler.scheduling.devices.refused import device_refusals
from reconciler.scheduling.explain import Outcome, no_place, not_readable
from reconciler.scheduling.groups import Group
from reconciler.scheduling.opening import Item, ItemKey
from reconciler.scheduling.pack import pack
from reconciler.scheduling.places import Places
from reconciler.scheduling.planned import new_nodes
from reconciler.scheduling.reservations import BOUGHT, Ledger, machines_left
from reconciler.scheduling.reserving import on_reservations
from reconciler.scheduling.scatter import Scattered
from reconciler.scheduling.solution import NewNode, PodRefusal, Solution
from reconciler.scheduling.template import Template
from reconciler.scheduling.topology import Topology
from reconciler.scheduling.types import Columns
from reconciler.scheduling.volumes import volume_demands
from reconciler.scheduling.world import Ground, survey
from reconciler.scheduling.zones import effective_zones

__all__ = ["Ground", "NewNode", "PodRefusal", "Solution", "solve", "survey"]

#: Rounds that learn exact bounds; after these, items that fail are given up whole; at last all new nodes are.
_EXACT_ROUNDS, _ROUNDS = 6, 16
#: Seats for pods that the search for a cheaper answer looks for: in a second, and for each pod at most.
_SEATS_A_SECOND, _SEATS_A_POD = 3000, 40


def solve(
    snapshot: Snapshot,
    pods: Sequence[Pod],
    *,
    exclude: frozenset[str] = frozenset(),
    respect_consolidate_after: bool = False,
    open_new: bool = True,
    scattered: type[Scattered] | None = None,
    improve: timedelta = timedelta(),
    ground: Ground | None = None,
    reasons: bool = True,
    accounts: int = 0,
) -> Solution:
    """Where these pods would go.

    `exclude` are keys of `snapshot.state_nodes` that are no targets. Pods that are bound somewhere are moved: they
    take no room and count nowhere until they are placed. `scattered` leaves the choice of nodes to the kube-scheduler.
    `improve` is work for a cheaper answer, in steps that take about so long: the same pods get the same answer.
    `ground` (from `survey`) spares repeated work on a snapshot. For pods without a place each pool says why, unless no
    `reasons` are wanted; so many classes of them get a full account.
    """
    shared = ground if ground is not None else survey(snapshot)
    templates, problems = shared.templates(exclude), shared.problems
    asked = dict(sorted({pod.key: pod for pod in pods}.items()))
    ignored = snapshot.settings.ignore_dra_requests
    devices = None if ignored else devices_of(snapshot, asked.values(), exclude)
    claiming = device_refusals(asked.values()) if ignored else devices.refusals() if devices is not None else {}
    volumes, broken = _volumes(snapshot, [pod for key, pod in asked.items() if key not in claiming])
    volumes |= devices.demands(volumes) if devices is not None else {}
    found = shared.spread.given(pod for key, pod in asked.items() if key not in claiming and key not in broken)
    bound = [pod for pod in found if pod.spec.node_name]
    places = shared.places_for(bound, exclude)
    topology = Topology(
        shared.tallies, templates, found, frozenset(pod.key for pod in bound), _node_names(snapshot, exclude)
    )
    classes, malformed = classes_of(
        found,
        volumes=volumes,
        attaching=attaching(snapshot, found, places.attached),
        settled=_settled(snapshot, found) if respect_consolidate_after else frozenset(),
        claiming=devices.claims if devices is not None else (),
        topology=topology,
        respect_preferences=snapshot.settings.preference_policy != "Ignore",
        soft_taints=any(t.effect == "PreferNoSchedule" for template in templates for t in template.taints),
    )
    waves = tuple([cls for cls in classes if virtual(cls.sample) is late] for late in (False, True))
    zones = effective_zones(waves[0], topology.groups.values(), _zones(templates, places))
    promises = {n.pod_uid: n.target for n in snapshot.nominations}
    effort = min(int(improve.total_seconds() * _SEATS_A_SECOND), _SEATS_A_POD * len(found))
    reserved = machines_left(snapshot, (template.table.reservations for template in templates))
    search = _Search(
        shared.columns, topology, templates, places, waves, promises, open_new, scattered, effort, reserved, devices
    )
    round_ = search.run(snapshot.settings.max_instance_types)
    taken = frozenset(id_ for id_ in reserved if not round_.ledger.left(id_))
    outcome = Outcome(snapshot, round_.assignment, templates, problems, open_new, reasons, accounts, taken)
    nodes, left, order = new_nodes(round_.packed), no_place(outcome), round_.assignment.order
    if devices is not None:
        nodes, left = devices.equipped(nodes), devices.explained(left)
        order = devices.ordered(order, round_.assignment.placed)
    return Solution(
        placed=dict(sorted(round_.assignment.placed.items())),
        new_nodes=nodes,
        unplaced={**claiming, **not_readable(broken | malformed), **left},
        pool_problems=problems,
        order=tuple(order),
        zones=zones,
        bound=least_price(templates, round_.packed, effort),
        devices=devices.granted(round_.assignment.placed) if devices is not None else (),
    )


@dataclass(slots=True, eq=False)
class _Round:
    """One assignment with its packing; `left` are pods of each item for which no node could be had, the `ledger` has
    what is left of reservations."""

    assignment: Assignment
    ledger: Ledger
    packed: list[Packed] = field(default_factory=list)
    left: dict[Item, int] = field(default_factory=dict)

    @property
    def failed(self) -> list[Item]:
        return [item for item, number in self.left.items() if number]


@dataclass(slots=True, eq=False)
class _Search:
    """Rounds of assigning and packing until everything assigned is packed; the first may look for a cheaper answer.

    Virtual pods are the second wave. `reserved` is how many machines each capacity reservation has for us.
    """

    columns: Columns
    topology: Topology
    templates: Sequence[Template]
    places: Places
    waves: Sequence[Sequence[PodClass]]
    promises: Mapping[str, str]
    open_new: bool
    scattered: type[Scattered] | None
    effort: int
    reserved: Mapping[str, int]
    devices: DeviceLedger | None

    def run(self, most_types: int) -> _Round:
        caps: dict[ItemKey, int] = {}
        for number in range(_ROUNDS):
            done = self._round(caps, most_types, self.open_new, 0 if number else self.effort)
            if not done.failed:
                return done
            for item in done.failed:
                exact = number < _EXACT_ROUNDS
                caps[item.key] = len(item.pods) - done.left[item] if exact else 0
        return self._round(caps, most_types, False, 0)

    def _round(self, caps: dict[ItemKey, int], most_types: int, open_new: bool, effort: int) -> _Round:
        self.topology.reset()
        for template in self.templates:
            template.reset()
        if self.devices is not None:
            self.devices.reset()
        kind = self.scattered or Assignment
        assignment = kind(self.columns, self.places, self.templates, caps, open_new=open_new, devices=self.devices)
        for classes in self.waves:
            assignment.run(classes, self.promises)
        ledger = Ledger(self.reserved)
        done = _Round(assignment, ledger, left={item: len(item.pods) for item in assignment.items.values()})
        seated: set[Group] = set()
        for template in self.templates:
            if done.failed and self.reserved:
                others = [item for item in done.left if not item.cls.claiming]  # these are seated device by device
                done.packed += on_reservations(template, others, done.left, seated, most_types, ledger)
            if done.failed:
                within = BOUGHT if self.reserved else EMPTY
                items = list(done.left)
                done.packed += pack(template, items, done.left, seated, most_types, effort, within, self.devices)
        return done


def _zones(templates: Sequence[Template], places: Places) -> frozenset[str]:
    """All zones that nodes have, or can have."""
    there = {zone for domains in places.domains(labels.ZONE)[0] for zone in domains if zone is not None}
    return frozenset(there.union(*(template.domains(labels.ZONE) for template in templates)))


def _volumes(
    snapshot: Snapshot, pods: Sequence[Pod]
) -> tuple[dict[str, tuple[Requirements, ...]], dict[str, Exception]]:
    """What the pods' volumes demand, by pod, and the pods whose volumes cannot be had with the reason."""
    demands: dict[str, tuple[Requirements, ...]] = {}
    broken: dict[str, Exception] = {}
    for pod in pods:
        if pod.spec.volumes:
            try:
                found = volume_demands(snapshot, pod)
            except Exception as error:
                broken[pod.key] = error
                continue
            if found != (EMPTY,):
                demands[pod.key] = found
    return demands, broken


def _settled(snapshot: Snapshot, pods: Sequence[Pod]) -> frozenset[str]:
    """Pods that run on a node which stays unless they are moved."""
    names = {pod.spec.node_name for pod in pods}
    going = {s.name for s in snapshot.state_nodes.values() if s.name in names and s.deleting}
    return frozenset(pod.key for pod in pods if pod.status.phase != "Pending" and pod.spec.node_name not in going)


def _node_names(snapshot: Snapshot, exclude: frozenset[str]) -> frozenset[str]:
    """The names of the Nodes behind some keys; their labels are no domains where no pod runs."""
    states = (snapshot.state_nodes.get(key) for key in exclude)
    return frozenset(state.node.name for state in states if state is not None and state.node is not None)
