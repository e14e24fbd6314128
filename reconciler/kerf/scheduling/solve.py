"""The scheduler: a snapshot and pods in, placements, new nodes and refusals out. Pure and deterministic.

Two halves: `assign` finds each pod an existing node or pins the domains of a new one; `pack` makes nodes for the
latter, by price. When packing fails for some (limits, say), what was learned bounds the next round's assignment, so
that spreads stay exact; rounds end because each takes something away.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from datetime import timedelta
from functools import partial

from kerf.model.kubernetes.objects import Pod
from kerf.model.kubernetes.pods import virtual
from kerf.model.snapshot import Snapshot
from kerf.scheduling.answers.solution import NewNode, PodRefusal, Solution
from kerf.scheduling.context import Ground, survey
from kerf.scheduling.devices.ledger import devices_of
from kerf.scheduling.devices.refused import device_refusals
from kerf.scheduling.improving.bound import least_price
from kerf.scheduling.nodes.table import ExistingNodes
from kerf.scheduling.nodes.volume_usage import attaching
from kerf.scheduling.offerings.nodepools import NodeClaimTemplate
from kerf.scheduling.offerings.reservations import machines_left
from kerf.scheduling.packing.effort import Effort
from kerf.scheduling.packing.new_nodes import new_nodes
from kerf.scheduling.packing.plan_order import after_company
from kerf.scheduling.packing.planned_domains import foresee
from kerf.scheduling.placing.as_kube_scheduler import KubeSchedulerOrder
from kerf.scheduling.placing.classes import classes_of
from kerf.scheduling.placing.pending_zones import effective_zones
from kerf.scheduling.pods.volumes import volume_demands
from kerf.scheduling.refusals.explain import Outcome, left_for_later, no_place, not_readable
from kerf.scheduling.strategies import StrategySearch
from kerf.scheduling.topology.solve_counts import Topology
from kerf.scheduling.work import Turns, Work
from kerf_api import labels
from kerf_api.requirements import EMPTY, Requirements

__all__ = ["Ground", "NewNode", "PodRefusal", "Solution", "solve", "survey"]

#: Seats for pods that the search for a cheaper answer looks for: in a second, and at most for each pod, or for few.
_SEATS_A_SECOND, _SEATS_A_POD, _SEATS_FOR_FEW = 2000, 40, 800


def solve(
    snapshot: Snapshot,
    pods: Sequence[Pod],
    *,
    exclude: frozenset[str] = frozenset(),
    gone: Sequence[Pod] = (),
    respect_consolidate_after: bool = False,
    open_new: bool = True,
    scattered: type[KubeSchedulerOrder] | None = None,
    improve: timedelta = timedelta(),
    ground: Ground | None = None,
    reasons: bool = True,
    accounts: int = 0,
    work: Work | None = None,
    first: Set[str] | None = None,
) -> Solution:
    """Where these pods would go.

    `exclude` are keys of `snapshot.state_nodes` that are no targets. Pods that are bound somewhere are moved: they
    take no room and count nowhere until they are placed; `gone` ones never do. `scattered` leaves the choice of nodes
    to the kube-scheduler.
    `improve` is work for a cheaper answer, in steps that take about so long: the same pods get the same answer.
    `ground` (from `survey`) spares repeated work on a snapshot. For pods without a place each pool says why, unless no
    `reasons` are wanted; so many classes of them get a full account.
    Pods for which no `work` is left are refused with the code WorkBudget. The pods with the UIDs in `first` are the
    first of their namespace to get work; by default those that the latest pass has left over.
    """
    shared = ground if ground is not None else survey(snapshot)
    work = work if work is not None else Work()
    templates, problems = shared.templates(exclude, work), shared.problems
    asked = dict(sorted({pod.key: pod for pod in pods}.items()))
    ignored = snapshot.settings.ignore_dra_requests
    devices = None if ignored else devices_of(snapshot, asked.values(), exclude)
    claiming = device_refusals(asked.values()) if ignored else devices.refusals() if devices is not None else {}
    volumes, broken = _volumes(snapshot, [pod for key, pod in asked.items() if key not in claiming])
    broken |= shared.sole_users.refusals(pod for key, pod in asked.items() if key not in claiming and key not in broken)
    volumes |= devices.demands(volumes) if devices is not None else {}
    found = shared.spread.given(pod for key, pod in asked.items() if key not in claiming and key not in broken)
    away = [*(pod for pod in found if pod.spec.node_name), *gone]
    places = shared.places_for(away, exclude)
    topology = Topology(
        shared.tallies,
        found,
        frozenset(pod.key for pod in away),
        _node_names(snapshot, exclude),
        [target for target in places.targets if target.key not in exclude],
        work,
    )
    promises = {n.pod_uid: n.target for n in snapshot.nominations if not n.over}
    turns = Turns(
        snapshot.left_over if first is None else first,
        partial(places.settled, promises),
        snapshot.had_turn if first is None else frozenset(),
    )
    classes, malformed, waiting = classes_of(
        found,
        volumes=volumes,
        attaching=attaching(snapshot, found, places.attached),
        settled=_settled(snapshot, found) if respect_consolidate_after else frozenset(),
        claiming=devices.claims if devices is not None else (),
        topology=topology,
        respect_preferences=snapshot.settings.preference_policy != "Ignore",
        soft_taints=any(t.effect == "PreferNoSchedule" for template in templates for t in template.taints),
        work=work,
        turns=turns,
    )
    foresee(topology.groups.values(), classes, templates)
    waves = tuple([cls for cls in classes if virtual(cls.sample) is late] for late in (False, True))
    places, kept = places.kept_for(waiting, promises) if waiting else (places, {})
    waiting = [pod for pod in waiting if pod.key not in kept]
    effort = min(int(improve.total_seconds() * _SEATS_A_SECOND), max(_SEATS_A_POD * len(found), _SEATS_FOR_FEW))
    reserved = machines_left(snapshot, (template.table.reservations for template in templates))
    search = StrategySearch(
        shared.columns,
        topology,
        templates,
        places,
        waves,
        promises,
        open_new,
        scattered,
        Effort(effort),
        snapshot.settings.max_instance_types,
        reserved,
        devices,
        work,
        turns,
    )
    round_ = search.run()
    taken = frozenset(id_ for id_ in reserved if not round_.ledger.left(id_))
    outcome = Outcome(snapshot, round_.assignment, templates, problems, open_new, reasons, accounts, taken)
    nodes, left, order = new_nodes(round_.packed), no_place(outcome), round_.assignment.order
    topology.reset()  # zones are for people, as things stand before anything is planned
    zones = effective_zones(waves[0], topology.groups.values(), _zones(templates, places))
    if devices is not None:
        nodes, left = devices.equipped(nodes), devices.explained(left)
        order = devices.ordered(order, round_.assignment.placed)
    return Solution(
        placed=dict(sorted((round_.assignment.placed | kept).items())),
        new_nodes=nodes,
        unplaced={**claiming, **not_readable(broken | malformed), **left_for_later(waiting), **left},
        pool_problems=problems,
        order=(*kept, *after_company(order, nodes, round_.packed, classes, topology.groups.values())),
        zones=zones,
        bound=least_price(templates, round_.packed, effort),
        devices=devices.granted(round_.assignment.placed) if devices is not None else (),
    )


def _zones(templates: Sequence[NodeClaimTemplate], places: ExistingNodes) -> frozenset[str]:
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
