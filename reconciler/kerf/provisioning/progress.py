"""No node is made for pods whose earlier nodes did not help, but for a few attempts.

The first node that does not help is followed by one more, and then by one a day; earlier only when something changes
that may help. While a node of theirs awaits its verdict the pods get no other. They are still placed on nodes that
exist.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

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
from kerf.provisioning.late import Solver, beside_late, real_first
from kerf.scheduling.facts.joining import limits_of
from kerf.scheduling.mismatch.evidence import Verdict, verdicts
from kerf.scheduling.mismatch.inputs import inputs_of
from kerf.scheduling.mismatch.watching import Watched, watched
from kerf.scheduling.placing.pod_shapes import PodShapes
from kerf.scheduling.solve import NewNode, PodRefusal, Solution
from kerf_api import labels
from kerf_api.texts import counted
from kerf_api.v1.nodeclaim import NodeClaim

#: By UID of pods, the expectations that are over.
Ended = Mapping[str, tuple[Nomination, ...]]


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
        chosen = min(members, key=real_first).key if due and not flying else ""
        for pod in members:
            if pod.key != chosen:
                refusals[pod.key] = _awaits(flying) if flying else _refused(record, due)
    return refusals


def with_progress(turn: Turn, snapshot: Snapshot, pods: Sequence[Pod], solved: Solver) -> Solution:
    """The solution for these pods in which those that are held have no new node, and none is like a late one. Further
    attempts are marked, and nodes for pods that were not bound where they were expected."""
    held, ended = holds(turn, snapshot, pods), over(snapshot)
    records = merged(snapshot.node_pools.values(), snapshot.now)
    shapes = _recorded_shapes(snapshot, pods, records)
    attempts = {key: records[shape] for key, shape in shapes.items() if key not in held}
    asked = _avoiding(snapshot, _elsewhere(snapshot, pods, ended), attempts, solved)
    solution = beside_late(snapshot, limits_of(turn), asked, partial(_on_existing_nodes, held, solved))
    if not shapes and not ended:
        return solution
    known = PodShapes(snapshot)
    unbound = {pod.key: known.of(pod) for pod in pods if pod.metadata.uid in ended}
    nodes = tuple(
        replace(node, probes=_of_pods(node, shapes), alternative_for=_of_pods(node, unbound))
        for node in solution.new_nodes
    )
    return replace(solution, new_nodes=nodes)


def _on_existing_nodes(
    held: Mapping[str, PodRefusal],
    solved: Solver,
    pods: Sequence[Pod],
    without: Problems = NO_PROBLEMS,
    /,
    *,
    roughly: bool = False,
) -> Solution:
    """A solution, unless it is made roughly, in which pods that are held have no new node: those that need one are
    refused."""
    if roughly or not held:
        return solved(pods, without, roughly=roughly)
    left = pods
    for _ in range(_ROUNDS):
        found = _on_new_nodes(solved(left, without, roughly=True), held)
        if not found:
            break
        left = [pod for pod in left if pod.key not in found]
    solution = solved(left, without)
    for kept in (solution.placed.keys(), frozenset[str]()):  # the search for a cheaper answer may move them there
        if not _on_new_nodes(solution, held):
            break
        left = [pod for pod in left if pod.key not in held or pod.key in kept]
        solution = solved(left, without)
    there = {pod.key for pod in left}
    refused = {pod.key: held[pod.key] for pod in pods if pod.key not in there}
    return replace(solution, unplaced={**solution.unplaced, **refused}) if refused else solution


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
