"""No node is made for pods whose earlier nodes did not help, but for a few attempts.

The first node that does not help is followed by one more, and then by one a day; earlier only when something changes
that may help. While a node of theirs awaits its verdict the pods get no other. They are still placed on nodes that
exist.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Final, Protocol

from kerf.model.claims import probed_by
from kerf.model.instants import rfc3339
from kerf.model.kubernetes.objects import Pod
from kerf.model.kubernetes.pods import must_be_spread
from kerf.model.memory import Turn
from kerf.model.mismatches import Record, merged
from kerf.model.plan import Nomination
from kerf.model.snapshot import Snapshot
from kerf.provisioning.avoiding import Avoided, avoiding
from kerf.provisioning.boundary import NO_PROBLEMS, Problems
from kerf.provisioning.expecting import over
from kerf.scheduling.answers.nodeclaims import pod_mark, uid_of
from kerf.scheduling.facts.joining import NOT_INITIALIZED, NOT_REGISTERED, Limit, Limits, latest_failures, limits_of
from kerf.scheduling.mismatch.evidence import Verdict, verdicts
from kerf.scheduling.mismatch.inputs import inputs_of
from kerf.scheduling.mismatch.watching import Watched, watched
from kerf.scheduling.placing.classes import age
from kerf.scheduling.placing.pod_shapes import PodShapes
from kerf.scheduling.solve import NewNode, PodRefusal, Solution
from kerf_api import labels
from kerf_api.texts import counted
from kerf_api.v1.nodeclaim import NodeClaim

#: By UID of pods, the expectations that are over.
Ended = Mapping[str, tuple[Nomination, ...]]


class Solver(Protocol):
    """Places pods. NodePools that are left out (`without`) make no nodes, for that reason. `roughly`: without a search
    for a cheaper answer, to see which pods need a new node."""

    def __call__(
        self, some: Sequence[Pod], without: Problems = NO_PROBLEMS, /, *, roughly: bool = False
    ) -> Solution: ...


AWAITS_NODE: Final = "AwaitingNode"
NODE_MISMATCH: Final = "NodeMismatch"
#: A further attempt holds up the next one for so long at most before its node is initialized.
JOINS: Final = timedelta(minutes=15)
#: What a further attempt avoids of the latest node, as far as that leaves a place: the most first.
_AVOIDED: Final = (
    (labels.INSTANCE_TYPE, labels.ARCH, labels.ZONE, labels.NODEPOOL),
    (labels.INSTANCE_TYPE, labels.ARCH, labels.ZONE),
    (labels.INSTANCE_TYPE, labels.ARCH),
    (labels.INSTANCE_TYPE, labels.ZONE),
    (labels.INSTANCE_TYPE,),
)
#: Of so many shapes of pods, the oldest, it is judged whether they have a node only by themselves: each is a solve.
_JUDGED: Final = 16
#: A pass is solved so many times at most, roughly, until no pod that may have no new node gets one.
_ROUNDS: Final = 3


def holds(turn: Turn, snapshot: Snapshot, pods: Iterable[Pod]) -> Mapping[str, PodRefusal]:
    """By key, the pods of a pass for which no node is to be made now, and the reason.

    Args:
        turn: the turn of the pass.
        snapshot: its snapshot, or the same as of a later instant.
        pods: all pods of the pass.
    """
    found, _ = watched(turn)
    records = merged(snapshot.node_pools.values(), snapshot.now)
    if not found and not records:
        return {}
    judged = verdicts(turn, found)
    fresh = [one for one in judged if not one.unused and (one.undecided or one.shape not in records)]
    refusals = {one.pod.key: _awaits(one.watched.node.name) for one in fresh}
    if not records:
        return refusals
    busy, inputs = _in_flight(snapshot, found, judged, records), inputs_of(snapshot)
    for shape, members in sorted(_by_shape(snapshot, pods, records).items()):
        record, flying = records[shape], busy.get(shape)
        due = record.next_probe <= snapshot.now or record.inputs != inputs
        chosen = min(members, key=age).key if due and not flying else ""
        for pod in members:
            if pod.key != chosen:
                refusals[pod.key] = _awaits(flying) if flying else _refused(record, due)
    return refusals


def with_progress(turn: Turn, snapshot: Snapshot, pods: Sequence[Pod], solved: Solver) -> Solution:
    """The solution for these pods in which those that are held have no new node. Further attempts are marked, and nodes
    for pods that were not bound where they were expected."""
    held, ended = holds(turn, snapshot, pods), over(snapshot)
    records = merged(snapshot.node_pools.values(), snapshot.now)
    shapes = _recorded_shapes(snapshot, pods, records)
    attempts = {key: records[shape] for key, shape in shapes.items() if key not in held}
    asked = _avoiding(snapshot, _elsewhere(snapshot, pods, ended), attempts, solved)
    left, solution = _on_existing_nodes(held, asked, solved)
    refused = {key: held[key] for key in held.keys() & {pod.key for pod in asked} - {pod.key for pod in left}}
    limits = limits_of(turn)
    solution, barred = _elsewhere_than_late(snapshot, limits, left, solution, solved)
    refused |= barred
    solution = _one_at_a_time(snapshot, limits, solution)
    if not refused and not shapes and not ended:
        return solution
    known = PodShapes(snapshot)
    unbound = {pod.key: known.of(pod) for pod in pods if pod.metadata.uid in ended}
    nodes = tuple(
        replace(node, probes=_of_pods(node, shapes), alternative_for=_of_pods(node, unbound))
        for node in solution.new_nodes
    )
    return replace(solution, new_nodes=nodes, unplaced={**solution.unplaced, **refused})


def _on_existing_nodes(
    held: Mapping[str, PodRefusal], pods: Sequence[Pod], solved: Solver
) -> tuple[Sequence[Pod], Solution]:
    """A solution in which pods that are held have no new node, and its pods: all but the held ones that need one."""
    for _ in range(_ROUNDS if held else 0):
        found = _on_new_nodes(solved(pods, roughly=True), held)
        if not found:
            break
        pods = [pod for pod in pods if pod.key not in found]
    solution = solved(pods)
    if _on_new_nodes(solution, held):  # the search for a cheaper answer has moved them there
        pods = [pod for pod in pods if pod.key not in held or pod.key in solution.placed]
        solution = solved(pods)
    return pods, solution


def _on_new_nodes(solution: Solution, held: Mapping[str, PodRefusal]) -> set[str]:
    return {key for node in solution.new_nodes for key in node.pods if key in held}


def _elsewhere(snapshot: Snapshot, pods: Sequence[Pod], ended: Ended) -> Sequence[Pod]:
    """The pods, those away from their nodes whose expectations are over."""
    if not ended:
        return pods
    names = {uid: frozenset(_hostname(snapshot, one.target) for one in rows) for uid, rows in ended.items()}
    return [avoiding(pod, names.get(pod.metadata.uid, frozenset()), labels.HOSTNAME) for pod in pods]


def _hostname(snapshot: Snapshot, target: str) -> str:
    state = snapshot.state_nodes[target]
    return state.labels.get(labels.HOSTNAME, state.name)


def _elsewhere_than_late(
    snapshot: Snapshot,
    limits: Limits,
    pods: Sequence[Pod],
    solution: Solution,
    solved: Solver,
) -> tuple[Solution, Mapping[str, PodRefusal]]:
    """The solution without nodes like the late ones of their NodePools, and the pods that have no place because of it.

    Judged is each shape by itself: a pod that only shares such a node with others has one of its own. The others get a
    node of another NodePool, if one fits. Of pods that only together require such a node, the oldest has one. Those
    with a hard spread cannot avoid a NodePool, for the reason in `_elsewhere_than`: these NodePools make no nodes at
    all in their stead if more pods have a place by that.
    """
    barred, everyone = dict[str, Limit](), pods
    for _ in range(_ROUNDS):
        found = _barred(snapshot, limits, pods, solution, solved)
        if not found:
            break
        barred |= found
        another = len(snapshot.node_pools) > 1
        pods = [
            avoiding(pod, frozenset({found[pod.key].pool}), labels.NODEPOOL) if pod.key in found else pod
            for pod in pods
            if pod.key not in found or (another and not must_be_spread(pod))
        ]
        solution = solved(pods)
    for _ in range(_ROUNDS):
        company = _company_of_oldest(limits, pods, solution)
        if not company:
            break
        barred |= company
        pods = [pod for pod in pods if pod.key not in company]
        solution = solved(pods)
    unserved = solution.unplaced.keys() | barred.keys() - {pod.key for pod in pods}
    if len(snapshot.node_pools) > 1 and any(pod.key in unserved and must_be_spread(pod) for pod in everyone):
        other = solved(everyone, {limit.pool: _another_first(limit) for limit in barred.values()})
        if other.unplaced.keys() < unserved:
            solution, unserved = other, {*other.unplaced}
    return solution, {key: _another_first(limit) for key, limit in barred.items() if key in unserved}


def _barred(
    snapshot: Snapshot,
    limits: Limits,
    pods: Sequence[Pod],
    solution: Solution,
    solved: Solver,
) -> Mapping[str, Limit]:
    """By key, the pods of new nodes of which none may be made for which the same is true of nodes of their own: those
    of all pods of a shape, by which existing nodes are as full as they will be."""
    keys = {key for node in solution.new_nodes if limits.bars(node) is not None for key in node.pods}
    if not keys:
        return {}
    known = PodShapes(snapshot)
    shapes = dict.fromkeys(known.of(pod) for pod in sorted((pod for pod in pods if pod.key in keys), key=age))
    members: dict[str, list[Pod]] = {shape: [] for shape in islice(shapes, _JUDGED)}
    for pod in pods:
        if (some := members.get(known.of(pod))) is not None:
            some.append(pod)
    alone = (node for some in members.values() for node in solved(some, roughly=True).new_nodes)
    return {key: limit for node in alone if (limit := limits.bars(node)) is not None for key in node.pods}


def _company_of_oldest(limits: Limits, pods: Sequence[Pod], solution: Solution) -> Mapping[str, Limit]:
    """By key, all pods but the oldest of each new node that may not be made. Each of them may have a node of its own,
    and only all together require one like the late ones: the others get theirs later."""
    known, found = {pod.key: pod for pod in pods}, dict[str, Limit]()
    for node in solution.new_nodes:
        if len(node.pods) > 1 and (limit := limits.bars(node)) is not None:
            oldest = min(node.pods, key=lambda key: age(known[key]))
            found |= {key: limit for key in node.pods if key != oldest}
    return found


def _one_at_a_time(snapshot: Snapshot, limits: Limits, solution: Solution) -> Solution:
    """With one new node, or none, of those of each NodePool that are under a limit."""
    groups = dict[str, list[tuple[NewNode, Limit]]]()
    for node in solution.new_nodes:
        if (limit := limits.of(node)) is not None:
            groups.setdefault(node.pool, []).append((node, limit))
    refused = dict[str, PodRefusal]()
    for name, rows in groups.items():
        free = [node for node, limit in rows if limit.left]
        first = _next_attempt(snapshot, name, free) if free else None
        refused |= {key: _another_first(limit) for node, limit in rows if node is not first for key in node.pods}
    if not refused:
        return solution
    kept = tuple(node for node in solution.new_nodes if refused.keys().isdisjoint(node.pods))
    order = tuple(key for key in solution.order if key not in refused)
    unplaced = {**solution.unplaced, **refused}
    return replace(solution, new_nodes=kept, unplaced=unplaced, order=order, bound=None)


def _next_attempt(snapshot: Snapshot, pool_name: str, nodes: Sequence[NewNode]) -> NewNode:
    """The new node of a NodePool that is least like its latest nodes, which have not come up: what keeps these down may
    be a matter of a zone, an architecture or a type. Of equal ones it is another one after each failure."""
    if len(nodes) == 1:
        return nodes[0]
    failed = latest_failures(snapshot, pool_name)
    latest = failed[-1].claim if failed else ""

    def likeness(node: NewNode) -> tuple[int, int, bytes]:
        marks = {pod_mark(uid_of(snapshot, key)) for key in node.pods}
        alike = sum(_may_be_like(node, one.where) for one in failed)
        again = sum(not marks.isdisjoint(one.pods) for one in failed)
        return alike, again, hashlib.sha256(f"{latest} {node.pods[0] if node.pods else ''}".encode()).digest()

    return min(nodes, key=likeness)


def _may_be_like(node: NewNode, where: Mapping[str, str]) -> bool:
    """Whether a new node may come up where another one was."""
    type_ = where.get(labels.INSTANCE_TYPE)
    if type_ is not None and type_ not in node.instance_types:
        return False
    rows = ((key, where[key]) for key in (labels.ZONE, labels.ARCH) if key in where)
    return all(node.requirements.allowed(key).has(value) for key, value in rows)


def _another_first(limit: Limit) -> PodRefusal:
    if limit.joins_fail:
        text = f"the latest nodes of NodePool {limit.pool} have not joined: it makes one, and then waits"
        return PodRefusal(NOT_REGISTERED, text)
    if not limit.alike:
        text = f"a node of NodePool {limit.pool} is not initialized in time: it makes one at a time until one is"
    elif limit.left:
        text = f"such a node of NodePool {limit.pool} is not initialized in time: it makes one more, and then waits"
    else:
        text = f"such nodes of NodePool {limit.pool} are not initialized in time: it makes no further one before one is"
    return PodRefusal(NOT_INITIALIZED, text)


def _recorded_shapes(snapshot: Snapshot, pods: Iterable[Pod], records: Mapping[str, Record]) -> Mapping[str, str]:
    """By key, the shapes of the pods that an earlier node did not help."""
    if not records:
        return {}
    return {pod.key: shape for shape, own in _by_shape(snapshot, pods, records).items() for pod in own}


def _of_pods(node: NewNode, shapes: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(sorted({shapes[key] for key in node.pods if key in shapes} - {""}))


def _avoiding(
    snapshot: Snapshot,
    pods: Sequence[Pod],
    attempts: Mapping[str, Record],
    solved: Solver,
) -> list[Pod]:
    """The pods with what they avoid: further attempts as much as leaves them a place, each by itself."""
    avoided, left = Avoided(snapshot), list[Pod]()
    if not avoided.any and not attempts:
        return list(pods)
    for pod in pods:
        own = avoiding(pod, avoided.by_volumes(pod))
        if (record := attempts.get(pod.key)) is not None:
            tried = _elsewhere_than(record, avoided.by_shortfall(pod), own)
            own = next((one for one in tried if pod.key not in solved([one], roughly=True).unplaced), own)
        left.append(own)
    return left


def _elsewhere_than(record: Record, too_small: Collection[str], pod: Pod) -> Iterator[Pod]:
    """The pod away from types that lack as much as those of the earlier nodes; where size is not the matter, away from
    what may have been: the NodePool, the zone, the architecture or the type of the latest one.

    Not so a pod with a hard spread: the nodes that it avoids would no longer count for the spread in the solver, and do
    for the kube-scheduler.
    """
    if too_small:
        yield avoiding(pod, frozenset(too_small))
        return
    if must_be_spread(pod):
        return
    for keys in _AVOIDED if record.where else ():
        found = pod
        for key in keys:
            found = avoiding(found, frozenset({record.where[key]} if key in record.where else ()), key)
        yield found


def _by_shape(snapshot: Snapshot, pods: Iterable[Pod], records: Mapping[str, Record]) -> Mapping[str, list[Pod]]:
    shapes, members = PodShapes(snapshot), dict[str, list[Pod]]()
    for pod in pods:
        if (shape := shapes.of(pod)) in records:
            members.setdefault(shape, []).append(pod)
    return members


def _in_flight(
    snapshot: Snapshot, found: Mapping[str, Watched], judged: Iterable[Verdict], records: Mapping[str, Record]
) -> Mapping[str, str]:
    """By shape, the name of a further attempt that has no verdict yet."""
    open_ = {(r.watched.claim.name, r.shape) for r in judged if not r.unused or _unused(records, r.shape)}
    flying: dict[str, str] = {}
    for name in sorted(snapshot.node_claims):
        claim = snapshot.node_claims[name]
        for shape in probed_by(claim) & records.keys():
            awaits = _joins(claim, snapshot.now) or _is_open(snapshot, found.get(name), (name, shape) in open_)
            if awaits and not claim.metadata.deleting and not records[shape].counts(claim.metadata.uid):
                flying[shape] = name
    return flying


def _unused(records: Mapping[str, Record], shape: str) -> bool:
    return shape in records and records[shape].unused


def _joins(claim: NodeClaim, now: datetime) -> bool:
    created = claim.metadata.creation_timestamp
    return not claim.is_true("Initialized") and (created is None or now < created + JOINS)


def _is_open(snapshot: Snapshot, one: Watched | None, waits: bool) -> bool:
    """Whether pods wait for the verdict on a node, or for its record."""
    return one is not None and (waits or snapshot.now < one.verdict)


def _awaits(name: str) -> PodRefusal:
    return PodRefusal(AWAITS_NODE, f"{name} was launched for it and may still run it; no other node is made meanwhile")


def _refused(record: Record, due: bool) -> PodRefusal:
    if due:
        return PodRefusal(AWAITS_NODE, "earlier nodes did not help, and another pod of its shape gets the next one")
    nodes = counted(record.nodes, "node")
    latest = f", the latest {record.node} at {rfc3339(record.at)}" if record.node else ""
    differs = f" ({record.differs})" if record.differs else ""
    return PodRefusal(
        NODE_MISMATCH,
        f"{nodes} made for pods of its shape did not help{latest}{differs}; the next one is made at "
        f"{rfc3339(record.next_probe)}, or when its spec, a NodePool, an EC2NodeClass or a DaemonSet changes",
    )
