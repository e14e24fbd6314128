"""Evidence that a node is other than planned: Kerf made it for a pod, and the pod cannot run there.

A node is watched from the time it joins until its pods are bound. The verdict comes when the node is initialized and
the kube-scheduler has had time to try the pods since the node last changed, or later while a taint keeps them off that
the NodePool does not declare: such a taint may go. It is no evidence that other pods took the capacity, that pods of
the same shape run on the node or on a newer one, or that the node is cordoned, not ready, disrupted or deleted. Where
nothing but that keeps a pod off, the node is unused: this bounds how fast more nodes follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Final

from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Node, Pod
from kerf.model.kubernetes.selectors import selector_of
from kerf.model.memory import Step, Turn
from kerf.model.snapshot import Snapshot
from kerf.pods.buffer_pods import RESOLUTIONS, Resolution, virtual_pods
from kerf.pods.host_ports import clash, host_ports
from kerf.scheduling.answers.nodeclaims import pod_mark
from kerf.scheduling.offerings.learned import foreign_taints
from kerf.scheduling.placing.pod_parts import has_terms
from kerf.scheduling.placing.pod_shapes import PodShapes
from kerf_api import labels
from kerf_api.resources import Resources, total
from kerf_api.v1.meta import Taint
from kerf_api.v1.nodeclaim import NodeClaim

#: Time for the kube-scheduler to bind the pods of a node that is initialized.
SETTLES: Final = timedelta(minutes=1)
#: Time for a taint to go that the NodePool does not declare.
TAINT_GOES: Final = timedelta(minutes=4, seconds=50)
#: A node is kept for so long after its verdict: the verdict has to be recorded.
RECORDED: Final = timedelta(seconds=10)
#: A node is no longer watched this long after its initialization, or after its registration if it is not initialized.
WATCHED: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Watched:
    """A node that joined a short while ago, and that lacks pods it was made for or has a taint that removes them.

    `missing` are their marks; `probes` the shapes of pods of which an earlier node did not help, or that the kubelet
    rejected; `foreign` the taints that the NodePool does not declare; `evicts` says whether one of these removes pods;
    `hindrance` what keeps pods off that is no difference from the plan; `verdict` the instant from which missing pods
    are evidence.
    """

    claim: NodeClaim
    node: Node
    initialized: bool
    missing: frozenset[str]
    probes: frozenset[str]
    foreign: tuple[Taint, ...]
    evicts: bool
    hindrance: str
    verdict: datetime


@dataclass(frozen=True, slots=True)
class Verdict:
    """A pod waits although its node is there; `undecided` until the instant of the verdict.

    `unused` says what keeps the pod off when it is no evidence that the node is other than planned.
    """

    watched: Watched
    pod: Pod
    shape: str
    undecided: bool
    unused: str = ""


def watched(turn: Turn) -> tuple[Mapping[str, Watched], datetime | None]:
    """The watched nodes by the names of their NodeClaims, and the instant at which that may change by itself."""
    asked = turn.all(WATCH, turn.noted)
    return asked.spoken, asked.due


def verdicts(turn: Turn, found: Mapping[str, Watched]) -> Sequence[Verdict]:
    """The pods that wait although a watched node was made for them, in order of the nodes and pods."""
    asked = (*waiting_pods(turn.snapshot), *virtual_pods(turn)) if found else ()
    if not asked:
        return ()
    snapshot, shapes = turn.snapshot, PodShapes(turn.snapshot)
    marks = {mark for one in found.values() for mark in one.missing}
    promises = snapshot.promises
    waiting, promised = dict[str, Pod](), dict[str, list[Pod]]()
    for pod in asked:
        mark, target = pod_mark(pod.metadata.uid), promises.get(pod.metadata.uid, "")
        if mark in marks:
            waiting[mark] = pod
        if target in found:
            promised.setdefault(target, []).append(pod)
    probed = {shape for one in found.values() for shape in one.probes}
    of_shape = _by_shape(snapshot, shapes, probed) if probed else {}
    hosts = cache(lambda: newest_hosts(turn))
    return tuple(
        verdict
        for name in sorted(found)
        for verdict in _judged(
            snapshot,
            found[name],
            shapes,
            hosts,
            _made_for(found[name], waiting, of_shape),
            promised.get(name, ()),
        )
    )


def displaced(turn: Turn, since: datetime) -> bool:
    """Whether a pod waits that is expected nowhere else, while other pods took its capacity on the nodes that were made
    for it: all of them are initialized, one of them since then."""
    snapshot = turn.snapshot
    opened = {name: one for name, one in watched(turn)[0].items() if one.initialized and not one.hindrance}
    fresh = {name for name, one in opened.items() if (at := true_since(one.claim, "Initialized")) and at >= since}
    if not fresh:
        return False
    waiting = {pod.metadata.uid: pod for pod in snapshot.pods.pending.values()}
    promises, promised = snapshot.promises, dict[str, list[Pod]]()
    for uid, target in promises.items():
        if uid in waiting:
            promised.setdefault(target, []).append(waiting[uid])
    lost = dict[str, list[str]]()
    for name, one in opened.items():
        for mark in one.missing:
            lost.setdefault(mark, []).append(name)
    here = cache(lambda name: _Capacity.of(snapshot, opened[name], promised.get(name, ())))
    for uid, pod in waiting.items():
        names = lost.get(pod_mark(uid), [])
        target = promises.get(uid, "")
        if fresh.isdisjoint(names) or (target in snapshot.state_nodes and target not in names):
            continue
        if all((capacity := here(name)) is not None and capacity.taken(pod) for name in names):
            return True
    return False


def waiting_pods(snapshot: Snapshot) -> Iterator[Pod]:
    """Pods that the kube-scheduler has refused and that are not bound, nominated ones included."""
    yield from snapshot.pods.pending.values()
    for expected in snapshot.pods.nominated.values():
        yield from (pod for pod in expected.values() if pods.active(pod) and _is_refused(pod))


def kept_until(turn: Turn, claim_name: str) -> datetime | None:
    """The instant until which a node is kept because pods that it was made for may still run there; else None."""
    one = turn.one(WATCH, turn.noted, claim_name)
    if one is None or turn.snapshot.now >= one.verdict + RECORDED:
        return None
    waiting, shapes = (*waiting_pods(turn.noted), *_of_buffers(turn)), PodShapes(turn.noted)
    waits = any(
        pod_mark(pod.metadata.uid) in one.missing or (one.probes and shapes.of(pod) in one.probes) for pod in waiting
    )
    return one.verdict + RECORDED if waits else None


def _of_buffers(turn: Turn) -> Iterator[Pod]:
    if turn.snapshot.settings.gates.capacity_buffer:
        for key in turn.noted.capacity_buffers:
            found: Resolution | None = turn.one(RESOLUTIONS, turn.noted, key)
            yield from found.pods if found is not None else ()


def newest_hosts(turn: Turn) -> Mapping[str, datetime]:
    """By shape, the creation of the newest NodeClaim whose Node a pod of the shape is bound to."""
    snapshot, found = turn.snapshot, dict[str, datetime]()
    for claim in snapshot.node_claims.values():
        created = claim.metadata.creation_timestamp
        if created is None:
            continue
        for node in snapshot.nodes_by_provider.get(claim.status.provider_id, ()):
            for shape in turn.one(SHAPES, turn.noted, node.name):
                found[shape] = max(found.get(shape, created), created)
    return found


def planned_pods(claim: NodeClaim) -> frozenset[str]:
    """The marks of the pods that a NodeClaim was made for."""
    return marks_of(claim, labels.PLANNED_PODS)


def probed_by(claim: NodeClaim) -> frozenset[str]:
    """The shapes that a NodeClaim is a further attempt for."""
    return marks_of(claim, labels.PROBES)


def marks_of(claim: NodeClaim, annotation: str) -> frozenset[str]:
    """The parts of an annotation with commas."""
    return frozenset(claim.metadata.annotations.get(annotation, "").split(",")) - {""}


# --- one node ---------------------------------------------------------------------------------------------------
def _watch(snapshot: Snapshot, name: str) -> tuple[Watched | None, datetime | None]:
    claim = snapshot.node_claims[name]
    initialized, node = true_since(claim, "Initialized"), node_of(snapshot, claim)
    begun = initialized or true_since(claim, "Registered") or (node.metadata.creation_timestamp if node else None)
    if not claim.managed or claim.metadata.deleting or begun is None or begun + WATCHED <= snapshot.now:
        return None, None
    planned = planned_pods(claim)
    there = snapshot.pods.on(node.name) if node is not None else ()
    missing = planned - {pod_mark(pod.metadata.uid) for pod in there if not pods.rejected(pod)}
    foreign = foreign_taints(claim, node) if node is not None else ()
    evicts = any(taint.effect == "NoExecute" for taint in foreign)
    if node is None or not (missing or evicts):
        return None, begun + WATCHED
    hindered = hindrance(claim, node)
    if initialized is None:
        verdict = begun + WATCHED
    elif hindered:
        verdict = initialized
    else:
        verdict = _verdict(begun, snapshot.node_changed_at.get(node.name), foreign)
    until = min(instant for instant in (verdict, verdict + RECORDED, begun + WATCHED) if instant > snapshot.now)
    joined, shapes = initialized is not None, probed_by(claim) | _rejected(snapshot, there)
    return Watched(claim, node, joined, missing, shapes, foreign, evicts, hindered, verdict), until


def _rejected(snapshot: Snapshot, there: Iterable[Pod]) -> frozenset[str]:
    """The shapes of pods that the kubelet did not run: others follow in their place."""
    found = [pod for pod in there if pods.rejected(pod)]
    known = PodShapes(snapshot)
    return frozenset(map(known.of, found)) - {""} if found else frozenset()


def _verdict(since: datetime, changed: datetime | None, foreign: Sequence[Taint]) -> datetime:
    """For an initialized node; each change gives the kube-scheduler time again, within bounds."""
    if foreign:
        return since + TAINT_GOES
    settled = since + SETTLES if changed is None else max(since, changed) + SETTLES
    return min(settled, since + TAINT_GOES + SETTLES)


def true_since(claim: NodeClaim, type_: str) -> datetime | None:
    """Since when a condition is True; None when it is not."""
    found = claim.condition(type_)
    return found.last_transition_time if found is not None and found.status == "True" else None


def node_of(snapshot: Snapshot, claim: NodeClaim) -> Node | None:
    """The claim's Node; None without one, or while there are several."""
    found = snapshot.nodes_by_provider.get(claim.status.provider_id, ())
    return found[0] if len(found) == 1 else None


def hindrance(claim: NodeClaim, node: Node) -> str:
    """What keeps pods off a Node and is no difference from the plan; empty when nothing does."""
    if node.metadata.deleting:
        return "it is being deleted"
    if labels.COMMAND in claim.metadata.annotations or any(t.key == labels.DISRUPTED_TAINT for t in node.spec.taints):
        return "it is being disrupted"
    if node.spec.unschedulable:
        return "it is cordoned"
    return "it is not ready" if claim.is_true("Initialized") and not node.ready else ""


# --- its pods ---------------------------------------------------------------------------------------------------
def _by_shape(snapshot: Snapshot, shapes: PodShapes, wanted: set[str]) -> Mapping[str, Sequence[Pod]]:
    found: dict[str, list[Pod]] = {}
    for pod in waiting_pods(snapshot):
        if (shape := shapes.of(pod)) in wanted:
            found.setdefault(shape, []).append(pod)
    return found


def _made_for(one: Watched, waiting: Mapping[str, Pod], of_shape: Mapping[str, Sequence[Pod]]) -> Sequence[Pod]:
    """The waiting pods that a node was made for; of a further attempt also pods that came in their place."""
    own = {pod.key: pod for mark in one.missing if (pod := waiting.get(mark)) is not None}
    own |= {pod.key: pod for shape in one.probes for pod in of_shape.get(shape, ())}
    return [own[key] for key in sorted(own)]


def _judged(
    snapshot: Snapshot,
    one: Watched,
    shapes: PodShapes,
    hosts: Callable[[], Mapping[str, datetime]],
    found: Sequence[Pod],
    promised: Sequence[Pod],
) -> Iterator[Verdict]:
    """`found` are the waiting pods that the node was made for, `promised` those that are expected there."""
    created = one.claim.metadata.creation_timestamp
    if not found or created is None:
        return
    capacity = _Capacity.of(snapshot, one, promised)
    if capacity is None:  # nothing follows from amounts that are not readable
        return
    for pod in found:
        unused = one.hindrance or ("other pods use its capacity" if capacity.taken(pod) else "")
        if pods.virtual(pod) and not one.hindrance and (unused or _fits(pod, one, capacity.running)):
            continue  # others may use what a buffer keeps
        shape = shapes.of(pod)
        if shape and not (shape in hosts() and hosts()[shape] >= created):
            undecided = not one.initialized or (not unused and snapshot.now < one.verdict)
            yield Verdict(one, pod, shape, undecided, unused)


def _strangers(snapshot: Snapshot, one: Watched, promised: Sequence[Pod]) -> Sequence[Pod]:
    """Pods on the node, expected or `promised` there, that it was not made for; daemon pods aside."""
    planned = planned_pods(one.claim)
    return [
        pod
        for pod in (*snapshot.pods.on(one.node.name), *snapshot.pods.expected_on(one.node.name), *promised)
        if not pods.terminal(pod)
        and not pods.of_daemon_set(pod)
        and not pods.of_node(pod)
        and pod_mark(pod.metadata.uid) not in planned
    ]


@dataclass(frozen=True, slots=True)
class _Capacity:
    """The capacity of a watched node as planned, `expected`, what the pods there take of it, and those of them that it
    was not made for; some of these are `ruling`: they may keep others away."""

    expected: Resources
    running: Resources
    strangers: Sequence[Pod]
    ruling: Sequence[Pod]

    @classmethod
    def of(cls, snapshot: Snapshot, one: Watched, promised: Sequence[Pod]) -> _Capacity | None:
        """`promised` are pods that are expected there. None when amounts are not readable."""
        strangers = _strangers(snapshot, one, promised)
        there = [pod for pod in snapshot.pods.on(one.node.name) if not pods.terminal(pod)]
        there += [pod for pod in strangers if pod.spec.node_name != one.node.name]
        try:
            running = total(pods.requests(pod) for pod in there)
            expected = Resources.parse(one.claim.status.allocatable)
        except ValueError:
            return None
        return cls(expected, running, strangers, [pod for pod in strangers if _rules(pod)])

    def taken(self, pod: Pod) -> bool:
        """Whether other pods took the capacity: as planned, the node does not hold this pod beside them."""
        if not self.strangers:
            return False
        try:
            if not (self.running + pods.requests(pod)).fits(self.expected):
                return True
        except ValueError:
            return True
        ports = host_ports(pod)
        others = self.strangers if _rules(pod) else self.ruling
        return any(clash(ports, host_ports(other)) or _apart(pod, other) or _apart(other, pod) for other in others)


def _rules(pod: Pod) -> bool:
    """Whether a pod may keep others away, by host ports or by constraints about them."""
    return has_terms(pod) or bool(host_ports(pod))


def _fits(pod: Pod, one: Watched, running: Resources) -> bool:
    """Whether a node as it is has the capacity for a pod of a CapacityBuffer, which the kube-scheduler never tries."""
    node = one.node
    tolerated = all(pods.tolerates(pod, taint) for taint in one.foreign)
    selected = all(node.metadata.labels.get(key) == value for key, value in pod.spec.node_selector.items())
    try:
        return tolerated and selected and (running + pods.requests(pod)).fits(Resources.parse(node.status.allocatable))
    except ValueError:
        return True


def _apart(pod: Pod, other: Pod) -> bool:
    """Whether rules of a pod about other pods may keep it from the node of this one."""
    affinity = pod.spec.affinity
    away = affinity.pod_anti_affinity.required if affinity is not None and affinity.pod_anti_affinity else ()
    spread = [c for c in pod.spec.topology_spread_constraints if c.when_unsatisfiable == "DoNotSchedule"]
    selectors = [*(term.label_selector for term in away), *(one.label_selector for one in spread)]
    return any(selector_of(one, pod.metadata.labels, ()).matches(other.metadata.labels) for one in selectors)


def _is_refused(pod: Pod) -> bool:
    return any(c.type == "PodScheduled" and c.reason == "Unschedulable" for c in pod.status.conditions)


def _shapes(snapshot: Snapshot, name: str) -> tuple[frozenset[str], None]:
    """The shapes of the pods that a Node's kubelet runs, or is about to, daemon pods aside."""
    known = PodShapes(snapshot)
    there = (pod for pod in snapshot.pods.on(name) if pods.active(pod) and not pods.of_daemon_set(pod))
    return frozenset(known.of(pod) for pod in there if pods.admitted(pod)), None


WATCH: Step[Snapshot, Watched] = Step(
    "watched nodes",
    "node_claims",
    _watch,  # type: ignore[arg-type]
    speaks=lambda found: found is not None,
)
SHAPES: Step[Snapshot, frozenset[str]] = Step("shapes on nodes", "nodes", _shapes, speaks=lambda _: False)
