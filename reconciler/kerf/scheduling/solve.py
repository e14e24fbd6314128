"""The scheduler: a snapshot and pods in, placements, new nodes and refusals out. Pure and deterministic.

Two halves: `assign` finds each pod an existing node or pins the domains of a new one; `pack` makes nodes for the
latter, by price. When packing fails for some (limits, say), what was learned bounds the next round's assignment, so
that spreads stay exact; rounds end because each takes something away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Final

from kerf.model.kubernetes.objects import Pod
from kerf.model.kubernetes.pods import virtual
from kerf.model.snapshot import Snapshot
from kerf.pods.sole_users import InUse
from kerf.pods.volumes import volume_demands
from kerf.scheduling.answers.solution import NewNode, PodRefusal, Solution
from kerf.scheduling.context import SolveContext, context_of
from kerf.scheduling.devices.ledger import DeviceLedger, devices_of
from kerf.scheduling.devices.refused import device_refusals
from kerf.scheduling.improving.bound import least_price
from kerf.scheduling.improving.certain import worth
from kerf.scheduling.nodes.table import ExistingNodes
from kerf.scheduling.nodes.volume_usage import attaching
from kerf.scheduling.offerings.nodepools import NodeClaimTemplate
from kerf.scheduling.offerings.reservations import machines_left
from kerf.scheduling.packing.effort import Effort
from kerf.scheduling.packing.new_nodes import new_nodes
from kerf.scheduling.packing.plan_order import after_company
from kerf.scheduling.packing.planned_domains import foresee
from kerf.scheduling.placing.as_kube_scheduler import KubeSchedulerOrder
from kerf.scheduling.placing.classes import PodClass, PodFacts, classes_of
from kerf.scheduling.placing.pending_zones import effective_zones
from kerf.scheduling.refusals.explain import Outcome, left_for_later, no_place, not_readable
from kerf.scheduling.strategies import Round, StrategySearch
from kerf.scheduling.topology.solve_counts import Topology
from kerf.scheduling.work import WORK_BUDGET, Turns, Work
from kerf_api import labels
from kerf_api.requirements import EMPTY, Requirements

__all__ = ["NewNode", "PodRefusal", "Solution", "SolveContext", "SolveOptions", "context_of", "solve"]

#: Seats for pods that the search for a cheaper answer looks for: in a second, and at most for each pod, or for few.
_SEATS_A_SECOND, _SEATS_A_POD, _SEATS_FOR_FEW = 2000, 40, 800
#: So many pods that share a claim for one pod may be without a place before one that has one is found.
_MOST_USERS: Final = 4
#: A solve before all pods are there is one of so many.
_OF_MANY = 10


@dataclass(frozen=True, slots=True)
class SolveOptions:
    """How a solve goes about its pods.

    `exclude` are keys of `snapshot.state_nodes` that are no targets; `gone` are pods that take no room and count
    nowhere any more. `scattered` leaves the choice of nodes to the kube-scheduler.
    `improve` is work for a cheaper answer, in steps that take about so long: the same pods get the same answer.
    For pods without a place each pool says why, unless no `reasons` are wanted; so many classes of them get a full
    account. The pods with the UIDs in `first` are the first of their namespace to get work; by default those that the
    latest pass has left over. `early`: more pods are to come, and some nodes may be ordered before (`NewNode.value`).
    """

    exclude: frozenset[str] = frozenset()
    gone: Sequence[Pod] = ()
    respect_consolidate_after: bool = False
    open_new: bool = True
    scattered: type[KubeSchedulerOrder] | None = None
    improve: timedelta = timedelta()
    reasons: bool = True
    accounts: int = 0
    first: Set[str] | None = None
    early: bool = False

    def effort(self, pods: int) -> int:
        """How many seats a search for a cheaper answer looks for."""
        return min(int(self.improve.total_seconds() * _SEATS_A_SECOND), max(_SEATS_A_POD * pods, _SEATS_FOR_FEW))

    def search(self, pods: int) -> int:
        """The same for this solve: one of many, before all pods are there, gets a part of it."""
        return self.effort(pods) // _OF_MANY if self.early else self.effort(pods)


def solve(
    snapshot: Snapshot,
    pods: Sequence[Pod],
    options: SolveOptions = SolveOptions(),
    *,
    context: SolveContext | None = None,
    work: Work | None = None,
) -> Solution:
    """Where these pods would be placed.

    Pods that are bound somewhere are moved: they take no room and count nowhere until they are placed. `context` (from
    `context_of`) spares repeated work on a snapshot. Pods for which no `work` is left are refused with the code
    WorkBudget.
    """
    shared = context if context is not None else context_of(snapshot)
    work = work if work is not None else Work()
    idle: dict[str, PodRefusal] = {}
    asked, solution = _solved(snapshot, pods, options, shared, work)
    for _ in range(_MOST_USERS):
        found = _idle_users(asked, solution)
        if not found or work.worn:
            break
        pods = [pod for pod in pods if pod.key not in found]
        asked, again = _solved(snapshot, pods, options, shared, work)
        if _left_over(again) - _left_over(solution):  # no pod loses its place because of another one's claim
            break
        idle, solution = idle | found, again
    return replace(solution, unplaced={**solution.unplaced, **idle}) if idle else solution


def _left_over(solution: Solution) -> frozenset[str]:
    """The pods for which no work was left, by key."""
    return frozenset(key for key, refusal in solution.unplaced.items() if refusal.code == WORK_BUDGET)


def _idle_users(asked: _Asked, solution: Solution) -> dict[str, PodRefusal]:
    """The pods that have a claim for one pod before others and no place, with the reason.

    The kube-scheduler knows no order of such pods: the claim is for the first that has a place.
    """
    pending = {pod.key for pod in asked.found if not pod.spec.node_name}
    users = {error.user for error in asked.broken.values() if isinstance(error, InUse)} & pending
    refused = {user: solution.unplaced[user] for user in sorted(users) if user in solution.unplaced}
    return {user: refusal for user, refusal in refused.items() if refusal.code != WORK_BUDGET}


def _solved(
    snapshot: Snapshot, pods: Sequence[Pod], options: SolveOptions, shared: SolveContext, work: Work
) -> tuple[_Asked, Solution]:
    templates = shared.templates(options.exclude, work)
    asked = _asked(snapshot, pods, shared, options.exclude)
    queue = _queue(snapshot, asked, shared, templates, work, options)
    search = _search(snapshot, asked, shared, queue, templates, work, options)
    done = search.run()
    taken = frozenset(id_ for id_ in search.reserved if not done.ledger.left(id_))
    wanted = options.open_new, options.reasons, options.accounts
    outcome = Outcome(snapshot, done.assignment, templates, shared.problems, *wanted, taken)
    effort = options.effort(len(asked.found))
    if options.early:  # what pods are worth is worked out for each node, and needs no bound of the whole beside it
        return asked, _valued(_solution(asked, queue, done, outcome, 0), queue, done, templates, effort)
    return asked, _solution(asked, queue, done, outcome, effort)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The pods that are `found` to make sense, in the order of their keys, with what their volumes and devices demand;
    and those that are refused before anything is tried: by what they claim, or because of an error."""

    found: Sequence[Pod]
    volumes: Mapping[str, tuple[Requirements, ...]]
    devices: DeviceLedger | None
    claiming: Mapping[str, PodRefusal]
    broken: dict[str, Exception]


def _asked(snapshot: Snapshot, pods: Sequence[Pod], shared: SolveContext, exclude: frozenset[str]) -> _Asked:
    asked = dict(sorted({pod.key: pod for pod in pods}.items()))
    ignored = snapshot.settings.ignore_dra_requests
    devices = None if ignored else devices_of(snapshot, asked.values(), exclude)
    claiming = device_refusals(asked.values()) if ignored else devices.refusals() if devices is not None else {}
    readable = _without(asked, claiming)
    volumes, broken = _volumes(snapshot, readable.values())
    broken |= shared.sole_users.refusals(_without(readable, broken).values())
    volumes |= devices.demands(volumes) if devices is not None else {}
    found = shared.spread.given(_without(readable, broken).values())
    return _Asked(found, volumes, devices, claiming, broken)


def _without(asked: Mapping[str, Pod], refused: Mapping[str, object]) -> Mapping[str, Pod]:
    """The pods by key, those that are refused aside; mostly none is."""
    return {key: pod for key, pod in asked.items() if key not in refused} if refused else asked


@dataclass(frozen=True, slots=True)
class _Queue:
    """The classes of the pods in their order, those of virtual pods in a wave of its own, and what they are placed on.

    `kept` are pods that stay where the latest pass sent them, for their constraints are not read in this one; of those
    that are `waiting` nothing is known.
    """

    topology: Topology
    places: ExistingNodes
    classes: Sequence[PodClass]
    waves: Sequence[Sequence[PodClass]]
    promises: Mapping[str, str]
    turns: Turns
    malformed: dict[str, Exception]
    waiting: Sequence[Pod]
    kept: dict[str, str]


def _queue(
    snapshot: Snapshot,
    asked: _Asked,
    shared: SolveContext,
    templates: Sequence[NodeClaimTemplate],
    work: Work,
    options: SolveOptions,
) -> _Queue:
    found, devices, exclude = asked.found, asked.devices, options.exclude
    away = [*(pod for pod in found if pod.spec.node_name), *options.gone]
    places = shared.places_for(away, exclude)
    targets = [target for target in places.targets if target.key not in exclude]
    gone, names = frozenset(pod.key for pod in away), _node_names(snapshot, exclude)
    topology = Topology(shared.tallies, found, gone, names, targets, work)
    promises = snapshot.promises
    turns = _turns(snapshot, options.first, partial(places.settled, promises))
    facts = PodFacts(
        asked.volumes,
        attaching(snapshot, found, places.attached),
        _settled(snapshot, found) if options.respect_consolidate_after else frozenset(),
        devices.claims if devices is not None else (),
    )
    classes, malformed, waiting = classes_of(
        found,
        facts,
        topology=topology,
        respect_preferences=snapshot.settings.preference_policy != "Ignore",
        soft_taints=any(t.effect == "PreferNoSchedule" for template in templates for t in template.taints),
        work=work,
        turns=turns,
    )
    foresee(topology.groups.values(), classes, templates)
    late = {cls.number for cls in classes if virtual(cls.sample)}
    waves = tuple([cls for cls in classes if (cls.number in late) is wave] for wave in (False, True))
    places, kept = places.kept_for(waiting, promises) if waiting else (places, {})
    waiting = [pod for pod in waiting if pod.key not in kept]
    return _Queue(topology, places, classes, waves, promises, turns, malformed, waiting, kept)


def _turns(snapshot: Snapshot, first: Set[str] | None, settled: Callable[[Pod], bool]) -> Turns:
    """Whose turn comes first; by default that of who was left over, before who had one while others waited."""
    if first is not None:
        return Turns(first, settled, frozenset())
    return Turns(snapshot.left_over, settled, snapshot.had_turn)


def _search(
    snapshot: Snapshot,
    asked: _Asked,
    shared: SolveContext,
    queue: _Queue,
    templates: Sequence[NodeClaimTemplate],
    work: Work,
    options: SolveOptions,
) -> StrategySearch:
    return StrategySearch(
        shared.columns,
        queue.topology,
        templates,
        queue.places,
        queue.waves,
        queue.promises,
        options.open_new,
        options.scattered,
        Effort(options.search(len(asked.found))),
        snapshot.settings.max_instance_types,
        machines_left(snapshot, (template.table.reservations for template in templates)),
        asked.devices,
        work,
        queue.turns,
    )


def _solution(asked: _Asked, queue: _Queue, done: Round, outcome: Outcome, effort: int) -> Solution:
    groups, devices, assignment = queue.topology.groups.values(), asked.devices, done.assignment
    nodes, left, order = new_nodes(done.packed), no_place(outcome), assignment.order
    queue.topology.reset()  # zones are for people, as things stand before anything is planned
    zones = effective_zones(queue.waves[0], groups, _zones(outcome.templates, queue.places))
    if devices is not None:
        nodes, left = devices.equipped(nodes), devices.explained(left)
        order = devices.ordered(order, assignment.placed)
    refused = {**asked.claiming, **not_readable(asked.broken | queue.malformed), **left_for_later(queue.waiting)}
    return Solution(
        placed=dict(sorted((assignment.placed | queue.kept).items())),
        new_nodes=nodes,
        unplaced={**refused, **left},
        pool_problems=outcome.problems,
        order=(*queue.kept, *after_company(order, nodes, done.packed, queue.classes, groups)),
        zones=zones,
        bound=least_price(outcome.templates, done.packed, effort),
        devices=devices.granted(assignment.placed) if devices is not None else (),
    )


def _valued(
    solution: Solution, queue: _Queue, done: Round, templates: Sequence[NodeClaimTemplate], effort: int
) -> Solution:
    """The solution with what the pods of its nodes are worth; nodes and packed nodes are in one order."""
    found = worth(templates, done.packed, queue.classes, queue.topology.groups.values(), effort)
    nodes = zip(solution.new_nodes, found, strict=True)
    return replace(solution, new_nodes=tuple(replace(node, value=value) for node, value in nodes))


def _zones(templates: Sequence[NodeClaimTemplate], places: ExistingNodes) -> frozenset[str]:
    """All zones that nodes have, or can have."""
    there = {zone for domains in places.domains(labels.ZONE)[0] for zone in domains if zone is not None}
    return frozenset(there.union(*(template.domains(labels.ZONE) for template in templates)))


def _volumes(
    snapshot: Snapshot, pods: Iterable[Pod]
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
