"""Pods are nominated to the node made for them, before that node takes any.

The kube-scheduler binds the pods, and its scores spread them over the nodes that are there: the first of several that
come up would take what was meant for the others, and what was meant for it would find no room any more. A pod with a
`status.nominatedNodeName` is tried on that node first, and pods that are no more important leave it its room there. So
the pods of a claim are nominated to its Node, and until that is done the Node keeps its taint, for some seconds at
most. A pod that is tried before its node takes any is nominated no more: whenever any node opens, all that wait may be
tried. So they are nominated when the Node is ready and has started, soon before it opens. Source: Kubernetes, KEP-1923
(prefer nominated node); scheduler, filtering.

From pods that are more important no room is kept: one that waits for its own node would take the first that comes up,
or make those go that have just come there. Nor is any kept from pods that a nominated one keeps away, before it is
there itself. And of pods that must be together the first takes what room is left anywhere, and the others find none
beside it. So a Node waits, too: until those of its NodePool are up whose pods might take the room of one of its own,
and until the pods have come that are before all of its own. Nodes whose pods might take each other's room open
together, when the pods of all have been nominated.

It is an expectation, nothing more: the kube-scheduler drops it whenever it tries the pod while its node is not up, or
full, and names another node when it makes others go. Until some time after the node is up the pod is nominated again,
as long as it has room there. It is taken back here when it has none any more, when the node is gone, or on its way out:
a pod that the kube-scheduler has no cause to try again would wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from math import inf

from kerf.lifecycle.view import View
from kerf.model import kinds
from kerf.model.kinds import Ref
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Node, Pod
from kerf.model.kubernetes.selectors import selector_of
from kerf.model.memory import Step, Turn
from kerf.model.plan import NOTHING, Action, PatchObject, Plan, Reason, joined
from kerf.model.snapshot import Snapshot, StateNode
from kerf.scheduling.answers.nodeclaims import pod_mark
from kerf_api import labels
from kerf_api.resources import total
from kerf_api.v1.nodeclaim import NodeClaim

#: A Node that has joined waits no longer than this: until it is up, for pods that come first, for the nomination of its
#: own.
HELD_AT_MOST = timedelta(seconds=30)
#: A Node opens no sooner than this after it has become ready: when it came the kube-scheduler tried all that wait once
#: more, and that has to be over.
SETTLES = timedelta(seconds=2)
#: Pods are nominated for this long after their node is initialised: the kube-scheduler may be late with them.
TOLD_FOR = timedelta(seconds=30)
EXPECT, TAKE_BACK = "ExpectPod", "TakeBackExpectation"
#: Of pods with one priority (a whole number), by how much those come later that must be spread, and those that keep
#: others away.
_SPREAD, _AWAY = 0.25, 0.5


@dataclass(frozen=True, slots=True)
class _Coming:
    """A claim whose Node is on its way or has just come, and those of the pods it was made for that are not bound yet.

    `first` and `last` are the highest and the lowest of their turns; `top` is the highest, too, and above all where
    pods must be together. `spread`: one must be spread. `untold`: one has yet to be nominated, and can be.
    """

    claim: NodeClaim
    node: Node | None
    pods: Sequence[Pod]
    first: float
    last: float
    top: float
    spread: bool
    untold: bool
    settles: datetime | None
    is_open: bool

    @classmethod
    def of(cls, snapshot: Snapshot, claim: NodeClaim, node: Node | None, found: Iterable[Pod]) -> _Coming:
        listed = sorted(found, key=lambda pod: pod.key)
        turns = [_turn(pod) for pod in listed]
        top = inf if any(map(_must_be_together, listed)) else max(turns)
        untold = any(pod.key in snapshot.pods.pending and not _failed(snapshot, pod) for pod in listed)
        settles = _settles(node, snapshot.now) if node is not None else None
        is_open = node is not None and node.registered
        spread = any(map(pods.must_be_spread, listed))
        return cls(claim, node, listed, max(turns), min(turns), top, spread, untold, settles, is_open)

    @property
    def waits(self) -> bool:
        """Whether its Node has to wait for its own affairs only."""
        return not self.is_open and (self.untold or self.settles is not None)

    @property
    def up(self) -> bool:
        """Whether nothing but what we hold it by keeps its pods from the Node."""
        return (
            self.node is not None
            and self.node.ready
            and all(
                taint.key == labels.UNREGISTERED_TAINT or any(taint.matches(own) for own in self.claim.spec.taints)
                for taint in self.node.spec.taints
            )
        )


def first(turn: Turn, claims: Plan, each: View) -> Plan:
    """The plan for the claims, with the pods nominated first; as it was when pods are not to be nominated."""
    snapshot = turn.snapshot
    if not snapshot.settings.nominate_pods:
        return claims
    asked = turn.all(COMING, each)
    coming = _planned(snapshot, asked.spoken) if any(asked.spoken.values()) else ()
    told, until = list[PatchObject](), dict[str, datetime]()
    ready = frozenset(name for rows in _by_pool(coming).values() for name in _ready(rows))
    late = _by_pool(one for one in coming if one.claim.name in ready and one.waits)
    beaten = {pool: max(one.top for one in rows) for pool, rows in late.items()}
    for one in coming:
        if one.node is not None:
            tells = one.claim.name in ready
            opens = tells and not one.waits and one.last >= beaten.get(one.claim.pool_name, -inf)
            end = None if opens else _held_until(one.node, snapshot.now)
            if end is not None:
                until[one.node.name] = min(end, one.settles or end)
            if tells or end is None:
                told += _messages(snapshot, one, one.node, partial(turn.one, SHARED, each, one.claim.name))
    rest = (action for action in claims.actions if not _joins_one_of(action, until))
    plan = replace(claims, actions=(*told, *rest))
    dues = [*until.values(), *([asked.due] if asked.due is not None else [])]
    due = Plan(next_due=min(dues)) if dues else NOTHING
    return joined((plan, due, Plan(actions=tuple(_taken_back(snapshot, {action.ref for action in told})))))


def _comes(view: View, name: str) -> tuple[str | None, datetime | None]:
    """The Node of a claim that is launched and has not been initialised for long, while both stay; empty before it has
    joined."""
    claim = view.snapshot.node_claims[name]
    if not claim.managed or claim.metadata.deleting or not claim.is_true("Launched"):
        return None, None
    node, until = view.node_of(claim), None
    if claim.is_true("Initialized"):
        until = _told_until(claim)
        if node is None or until is None or until <= view.snapshot.now:
            return None, None
    if node is None:
        return "", None
    return (None if node.metadata.deleting else node.name), until


def _told_until(claim: NodeClaim) -> datetime | None:
    initialized = claim.condition("Initialized")
    since = initialized.last_transition_time if initialized is not None else None
    return since + TOLD_FOR if since is not None else None


def _planned(snapshot: Snapshot, coming: Mapping[str, str | None]) -> Sequence[_Coming]:
    """The claims that were made for pods that are not bound yet, by name. A pod that several were made for belongs to
    the newest: it found no room on the others."""
    claims = [snapshot.node_claims[name] for name in coming]
    owner = {mark: claim.name for claim in sorted(claims, key=_age) for mark in _marks(claim)}
    found = dict[str, list[Pod]]()
    for pod in _not_bound(snapshot):
        if (name := owner.get(pod_mark(pod.metadata.uid))) is not None:
            found.setdefault(name, []).append(pod)
    return [
        _Coming.of(snapshot, snapshot.node_claims[name], snapshot.nodes.get(coming[name] or ""), found[name])
        for name in sorted(found)
    ]


def _age(claim: NodeClaim) -> tuple[float, str]:
    created = claim.metadata.creation_timestamp
    return (created.timestamp() if created is not None else 0.0, claim.name)


def _marks(claim: NodeClaim) -> Sequence[str]:
    return claim.metadata.annotations.get(labels.PLANNED_PODS, "").split(",")


def _not_bound(snapshot: Snapshot) -> Iterator[Pod]:
    """Pods that wait for a node, or are expected on one."""
    yield from snapshot.pods.pending.values()
    for expected in snapshot.pods.nominated.values():
        yield from (pod for pod in expected.values() if pods.active(pod))


def _turn(pod: Pod) -> float:
    """Its priority. Of pods with the same one, those come last that keep others away; and before them those that must
    be spread, which go where others should, as long as the spread forbids their own node."""
    affinity = pod.spec.affinity
    terms = affinity.pod_anti_affinity.required if affinity is not None and affinity.pod_anti_affinity else ()
    own = pod.metadata.labels
    if not all(selector_of(term.label_selector, own, ()).matches(own) for term in terms):
        return pod.spec.priority - _AWAY
    return pod.spec.priority - (_SPREAD if pods.must_be_spread(pod) else 0)


def _must_be_together(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    return affinity is not None and affinity.pod_affinity is not None and bool(affinity.pod_affinity.required)


def _by_pool(coming: Iterable[_Coming]) -> Mapping[str, Sequence[_Coming]]:
    found = dict[str, list[_Coming]]()
    for one in coming:
        found.setdefault(one.claim.pool_name, []).append(one)
    return found


def _ready(rows: Sequence[_Coming]) -> Sequence[str]:
    """The claims of a NodePool that wait for no other: whose pods are to be nominated, and which then open together."""
    able = sorted(_safe(rows), key=lambda one: (-one.top, -one.first, one.claim.name))
    found, first, last = list[str](), -inf, inf
    for one in able:
        if found and one.top <= last and one.first != first:
            break  # all those are before it and those that follow
        found.append(one.claim.name)
        first, last = max(first, one.first), min(last, one.last)
    return found


def _safe(rows: Sequence[_Coming]) -> Sequence[_Coming]:
    """Those that are open, and those that may open at once: then no pod waits that would take the capacity for theirs.

    Nodes of pods that must be spread wait for each other: as long as a zone has none of them the spread forbids the
    others their own node, and their room there is given away.
    """
    able, away = [one for one in rows if one.up], max((one.top for one in rows if not one.up), default=-inf)
    apart = any(one.spread and not one.up for one in rows)
    while waits := [one for one in able if not one.is_open and (one.last < away or (apart and one.spread))]:
        away, apart = max(away, *(one.top for one in waits)), apart or any(one.spread for one in waits)
        able = [one for one in able if one not in waits]
    return able


def _messages(snapshot: Snapshot, one: _Coming, node: Node, shared: Callable[[], bool]) -> Iterator[PatchObject]:
    """The nominations of its pods. Those that the kube-scheduler makes room for elsewhere are left alone until their
    own node takes pods."""
    for pod in one.pods:
        expected = pods.expected_on(pod)
        if not node.registered:
            yield from () if expected else (_expected(pod, node.name),)
        elif (fits := not shared() or _fits(snapshot, one.claim, node, pod)) and expected != node.name:
            yield _expected(pod, node.name)
        elif not fits and expected == node.name:
            yield _told(pod, None, TAKE_BACK, f"node {node.name} has no capacity for it any more")


def _shared(view: View, name: str) -> tuple[bool, None]:
    """Whether pods that the claim was not made for are on its Node, and may take the room of those that it was."""
    claim = view.snapshot.node_claims[name]
    node, own = view.node_of(claim), frozenset(_marks(claim))
    sitting = view.snapshot.pods.on(node.name) if node is not None else ()
    return any(pod_mark(pod.metadata.uid) not in own and not pods.of_daemon_set(pod) for pod in sitting), None


def _fits(snapshot: Snapshot, claim: NodeClaim, node: Node, pod: Pod) -> bool:
    """Beside the pods that are on the Node, those that terminate among them."""
    sitting = (pods.requests(other) for other in snapshot.pods.on(node.name) if not pods.terminal(other))
    return total((pods.requests(pod), *sitting)).fits(StateNode(claim, node).allocatable)


def _held_until(node: Node, now: datetime) -> datetime | None:
    """How long at most the Node keeps its taint; None when it has lost it, or waited long enough."""
    created = node.metadata.creation_timestamp
    if node.registered or created is None:
        return None
    return created + HELD_AT_MOST if now < created + HELD_AT_MOST else None


def _settles(node: Node, now: datetime) -> datetime | None:
    """When it has been ready for long enough; None when it has."""
    ready = [c.last_transition_time for c in node.status.conditions if c.type == "Ready" and c.status == "True"]
    return max((at + SETTLES for at in ready if at is not None and now < at + SETTLES), default=None)


def _joins_one_of(action: Action, names: Mapping[str, datetime]) -> bool:
    return isinstance(action, PatchObject) and action.ref.kind == kinds.NODE.name and action.ref.name in names


def _taken_back(snapshot: Snapshot, told: Container[Ref]) -> Iterator[PatchObject]:
    """A pod that is expected on a node that is not there, or goes, would wait there for ever."""
    for name, found in sorted(snapshot.pods.nominated.items()):
        node = snapshot.nodes.get(name)
        if node is None or node.metadata.deleting:
            every = (
                _told(pod, None, TAKE_BACK, f"node {name} is deleted or being deleted")
                for _, pod in sorted(found.items())
            )
            yield from (action for action in every if action.ref not in told)


def _expected(pod: Pod, node_name: str) -> PatchObject:
    return _told(pod, node_name, EXPECT, f"node {node_name} was made for it")


def taken_back(pod: Pod, why: str) -> PatchObject:
    """The pod is expected on no node any more."""
    return _told(pod, None, TAKE_BACK, why)


def _failed(snapshot: Snapshot, pod: Pod) -> bool:
    """Whether it could not be nominated: that may be forbidden, and no Node waits for it."""
    return _expected(pod, "").key in snapshot.not_before


def _told(pod: Pod, node_name: str | None, verb: str, why: str) -> PatchObject:
    return PatchObject(
        reason=Reason("Expected", why),
        verb=verb,
        ref=kinds.ref(pod),
        patch={"status": {"nominatedNodeName": node_name}},
        subresource="status",
        resource_version=pod.metadata.resource_version,
    )


COMING = Step("claims whose nodes are being launched", "node_claims", _comes, speaks=lambda node: node is not None)
SHARED = Step("nodes in launch with unexpected pods", "node_claims", _shared, speaks=bool)
