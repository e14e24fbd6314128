"""The deletion guard: when another client deletes many NodeClaims, their nodes are not all drained at once.

A NodePool that is removed from Git, or a definition that is uninstalled, takes its NodeClaims along, and no client can
take that back: what is deleted goes. But when, and how many at once, is ours to say. As many as a user may well mean
(three, or a tenth of the nodes) are drained at once. Of more the drain is held for some minutes, in which new nodes for
their pods come up and an operator may look; then they are removed in steps, each when the pods of the one before have a
node. Nothing is remembered: who is held follows from deletion times, taints and annotations. What Kerf ends itself
(`model/ends.py`) does not count and is not held, nor is what has no pods to lose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as change
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from kerf.lifecycle.nodeclaim.progress import Progress, finish
from kerf.lifecycle.view import View
from kerf.model import ends, kinds
from kerf.model.claims import deadline_of
from kerf.model.ends import HELD
from kerf.model.gauges import PlanGauge
from kerf.model.instants import rfc3339
from kerf.model.kinds import Ref
from kerf.model.kubernetes.pods import DISRUPTED
from kerf.model.memory import Step
from kerf.model.plan import NOTHING, Plan, Reason, Refusal, joined
from kerf.model.writes import act, changed, warning, with_condition
from kerf_api import durations, labels
from kerf_api.deletion import FEW, allowance, allowed_by, how_to_allow
from kerf_api.v1 import conditions
from kerf_api.v1.conditions import FALSE, TRUE
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool

NODES: Final = "nodes"
#: A step waits for pods without a node so many times the waiting time at most, from the first deletion on.
_PATIENCE: Final = 6
_TOLD_AGAIN_SECONDS: Final = 600
_TOO_MANY, _LATER = "TooMany", "WaitsForItsTurn"

Keeper = NodePool | EC2NodeClass


@dataclass(frozen=True, slots=True)
class Deleted:
    """A claim that another client has deleted while pods may run on its node; `begun`: its drain is under way, of which
    `started` is noted a little later.

    It is held until `due` at least, when there are too many, and whatever there is until `latest` at most.
    """

    claim: NodeClaim
    since: datetime
    begun: bool
    started: datetime | None
    due: datetime
    latest: datetime | None

    @property
    def order(self) -> tuple[datetime, str]:
        return self.since, self.claim.name


@dataclass(frozen=True, slots=True)
class Standing:
    """A claim for the count: whether its node is there, and whether another client deletes it."""

    joined: bool
    deleted: Deleted | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """`held` are the names of claims that are not drained now; `plan` is what is to be written and said about them."""

    held: frozenset[str]
    plan: Plan


# --- who counts -------------------------------------------------------------------------------------------------
def _standing(view: View, name: str) -> tuple[Standing, None]:
    claim = view.snapshot.node_claims[name]
    return Standing(claim.managed and claim.is_true("Registered"), deleted(view, claim)), None


#: The members that speak are those that another client has deleted.
STANDINGS: Final[Step[View, Standing]] = Step(
    "deletions by others",
    "node_claims",
    _standing,
    speaks=lambda standing: standing.deleted is not None,
    counts=lambda standing: ((NODES, int(standing.joined)),),
)


def deleted(view: View, claim: NodeClaim) -> Deleted | None:
    """The claim as the guard sees it; None when its deletion is none of the guard's business."""
    meta, wait = claim.metadata, view.snapshot.settings.deletion_guard_wait
    since = meta.deletion_timestamp
    if not wait or since is None or meta.unreadable or labels.TERMINATION_FINALIZER not in meta.finalizers:
        return None
    if not claim.managed or not claim.is_true("Registered") or ends.by_us(claim):
        return None
    drain = claim.condition("Drained")
    tainted = any(taint.matches(DISRUPTED) for node in view.nodes_of(claim) for taint in node.spec.taints)
    if drain is None and not tainted and _nothing_to_lose(view, claim):
        return None
    try:
        latest = _half_time(claim, since)
    except (ValueError, OverflowError):  # its end says what is wrong with it
        return None
    started = drain.last_transition_time if drain is not None else None
    due = since + wait if latest is None else min(since + wait, latest)
    return Deleted(claim, since, drain is not None or tainted, started, due, latest)


def _nothing_to_lose(view: View, claim: NodeClaim) -> bool:
    """There is no Node, or its instance ends or has ended: its pods lose their place anyway."""
    nodes, instance = view.nodes_of(claim), view.instance(claim.status.provider_id)
    if not nodes:
        return True
    return not instance.live if instance is not None else not any(node.ready for node in nodes)


def _half_time(claim: NodeClaim, since: datetime) -> datetime | None:
    """When half of the time is over that a drain has: the other half is for the drain. Raises ValueError."""
    end, grace = deadline_of(claim), durations.parse_nillable(claim.spec.termination_grace_period)
    if end is None:
        return None if grace is None else since + grace / 2
    return since + (end - since) / 2


# --- who is held ------------------------------------------------------------------------------------------------
def judge(view: View, found: Sequence[Deleted], nodes: int) -> Verdict:
    """What becomes of these claims; `nodes` is how many there are in the cluster, theirs included."""
    most = limit(nodes, view.snapshot.settings.deletion_guard_percent)
    counts = Counts.of(found, nodes, most)
    counted = [one for one in found if not _is_meant(view, one.claim, counts)]
    many = len(counted) > most or any(one.claim.is_true(HELD) for one in counted)
    unsettled = _unsettled(view, counted) if many else None
    held = _held(view, counted, most, unsettled) if many else []
    told = [_told(view, one) for one in held]
    plan = joined((*told, *_keepers(view, held, counts), _due(view, held, counted, unsettled)))
    return Verdict(frozenset(one.claim.name for one in held), plan)


def limit(nodes: int, percent: int) -> int:
    """How many are removed at once without a question: a few, or a share of all where that is more; of a few nodes,
    half."""
    return max(1, min(FEW, nodes // 2), nodes * percent // 100)


def _held(view: View, counted: Sequence[Deleted], most: int, unsettled: datetime | None) -> list[Deleted]:
    """Those that have to wait: all for the waiting time, then as many as there are more than are removed at once.

    A drain that gets no further keeps its place for as long as the waiting time, so that the others continue.
    """
    now = view.snapshot.now
    open_ = sorted((one for one in counted if not one.begun), key=lambda one: one.order)
    waiting = [one for one in open_ if one.latest is None or one.latest > now]
    busy = sum(one.begun and _busy_until(view, one) > now for one in counted) + len(open_) - len(waiting)
    room = 0 if unsettled else max(0, most - busy)
    going = {one.claim.name for one in [one for one in waiting if one.due <= now][:room]}
    return [one for one in waiting if one.claim.name not in going]


def _busy_until(view: View, one: Deleted) -> datetime:
    """Until when its drain keeps its place; one that is only just beginning, for some time."""
    return (one.started or view.snapshot.now) + view.snapshot.settings.deletion_guard_wait


def _unsettled(view: View, counted: Sequence[Deleted]) -> datetime | None:
    """Until when the next step waits, if pods that came since the first deletion have no node; not for ever."""
    now, wait = view.snapshot.now, view.snapshot.settings.deletion_guard_wait
    first = min(one.since for one in counted)
    if first + _PATIENCE * wait <= now:
        return None
    born = (pod.metadata.creation_timestamp for pod in view.snapshot.pods.pending.values())
    ends_ = [at + wait for at in born if at is not None and at >= first and at + wait > now]
    return min((*ends_, first + _PATIENCE * wait)) if ends_ else None


def _due(view: View, held: Sequence[Deleted], counted: Sequence[Deleted], unsettled: datetime | None) -> Plan:
    """When the time of a claim has come, or the next step need wait no longer."""
    if not held:
        return NOTHING
    times = [at for one in held for at in (one.due, one.latest)]
    times += [unsettled, *(_busy_until(view, one) for one in counted if one.begun)]
    dues = [at for at in times if at is not None and at > view.snapshot.now]
    return Plan(next_due=min(dues)) if dues else NOTHING


# --- whether it is meant ----------------------------------------------------------------------------------------
def _is_meant(view: View, claim: NodeClaim, counts: Counts) -> bool:
    """Whether a user has given permission: on the claim, or for as many on its NodePool or class."""
    notes = claim.metadata.annotations
    if allowance(notes) or allowed_by(notes.get(labels.DELETION_ALLOWED, "")) >= counts.of_pool[claim.pool_name]:
        return True
    pool, class_name = view.snapshot.node_pools.get(claim.pool_name), claim.spec.node_class_ref.name
    if pool is not None and allowance(pool.metadata.annotations) >= counts.of_pool[claim.pool_name]:
        return True
    node_class = view.snapshot.node_classes.get(class_name)
    return node_class is not None and allowance(node_class.metadata.annotations) >= counts.of_class[class_name]


def note_leave(progress: Progress) -> Progress:
    """What its NodePool says of its deletion, noted on the claim: when that counts the NodePool may be gone."""
    claim = progress.claim
    pool = progress.view.snapshot.node_pools.get(claim.pool_name)
    if pool is None or pool.metadata.deleting:
        return progress
    word, notes = pool.metadata.annotations.get(labels.ALLOW_DELETION), claim.metadata.annotations
    if word == notes.get(labels.DELETION_ALLOWED):
        return progress
    kept = {key: text for key, text in notes.items() if key != labels.DELETION_ALLOWED}
    kept |= {labels.DELETION_ALLOWED: word} if word is not None else {}
    return progress.with_claim(replace(claim, metadata=replace(claim.metadata, annotations=kept)))


# --- texts of events and conditions -----------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Counts:
    """How many another client has deleted, by NodePool and by class; of how many nodes; how many are removed at
    once."""

    of_pool: Mapping[str, int]
    of_class: Mapping[str, int]
    nodes: int
    most: int

    @classmethod
    def of(cls, found: Iterable[Deleted], nodes: int, most: int) -> Counts:
        claims = [one.claim for one in found]
        by_class = Counter(claim.spec.node_class_ref.name for claim in claims)
        return cls(Counter(claim.pool_name for claim in claims), by_class, nodes, most)


def _told(view: View, one: Deleted) -> Plan:
    """The condition of a claim that is held, and an event about it; emitted again when the words change, as when its
    turn comes nearer."""
    claim, waits = one.claim, one.due > view.snapshot.now
    when = f"its node is not drained before {rfc3339(one.due)}" if waits else "others are drained before its node is"
    text = (
        f"it was deleted with many others, and not by Kerf: {when}. "
        f"To allow it now: {how_to_allow('nodeclaim', claim.name, 1)}"
    )
    code, known = _TOO_MANY if waits else _LATER, claim.condition(HELD)
    if known is not None and (known.status, known.reason, known.message) == (TRUE, code, text):
        return NOTHING
    said = finish(Progress(view, claim, None).condition(HELD, TRUE, code, text), claim)
    return joined((said, Plan(events=(warning(claim, HELD, text),))))


def released(progress: Progress) -> Progress:
    """The claim is held no longer."""
    return progress.condition(HELD, FALSE, "Released") if progress.claim.is_true(HELD) else progress


def _keepers(view: View, held: Sequence[Deleted], counts: Counts) -> list[Plan]:
    """What NodePools say of their claims that are held, or, where a NodePool is gone, what the class says."""
    shares: dict[Ref | None, tuple[Keeper | None, list[Deleted]]] = {}
    for one in held:
        keeper = _keeper_of(view, one.claim)
        shares.setdefault(kinds.ref(keeper) if keeper is not None else None, (keeper, []))[1].append(one)
    pools: list[Keeper] = [one for _, one in sorted(view.snapshot.node_pools.items())]
    classes: list[Keeper] = [one for _, one in sorted(view.snapshot.node_classes.items())]
    said = [one for one in (*pools, *classes) if _says_so(one)]
    plans = [_relieved(view, one) for one in said if kinds.ref(one) not in shares]
    plans += [_hold(view, keeper, share, counts) for keeper, share in shares.values() if keeper is not None]
    by_pool = Counter(one.claim.pool_name for one in held)
    plans.append(
        Plan(
            gauges={(PlanGauge.DELETIONS_HELD, (("nodepool", name),)): float(n) for name, n in sorted(by_pool.items())}
        )
    )
    return plans


def _keeper_of(view: View, claim: NodeClaim) -> Keeper | None:
    pool = view.snapshot.node_pools.get(claim.pool_name)
    return pool if pool is not None and pool.managed else view.class_of(claim)


def _says_so(keeper: Keeper) -> bool:
    known = conditions.get(keeper.status.conditions, HELD)
    return known is not None and known.status == TRUE


def _hold(view: View, keeper: Keeper, share: Sequence[Deleted], counts: Counts) -> Plan:
    is_pool = isinstance(keeper, NodePool)
    number = (counts.of_pool if is_pool else counts.of_class)[keeper.name]
    names = ", ".join(one.claim.name for one in share[:5]) + (", …" if len(share) > 5 else "")
    first, now = min(one.due for one in share), view.snapshot.now
    start = f"the first of them from {rfc3339(first)} on" if first > now else "when the pods of others have a node"
    text = (
        f"{len(share)} of {counts.nodes} nodes, whose NodeClaims another client has deleted ({names}), are not drained "
        f"yet; they will be, {start}, at most {counts.most} at once. Their pods need another NodePool: apply "
        f"one. To allow it now: {how_to_allow(_KUBECTL[is_pool], keeper.name, number)}"
    )
    reason, subject = Reason(HELD, text), str(kinds.ref(keeper))
    event = change(warning(keeper, HELD, text), dedupe_seconds=_TOLD_AGAIN_SECONDS)
    said = act(
        *changed(keeper, with_condition(keeper, HELD, TRUE, _TOO_MANY, text, now=view.now), "HoldDeletions", reason)
    )
    return joined((said, Plan(refusals=(Refusal(subject, reason),), events=(event,))))


_KUBECTL: Final = {True: "nodepool", False: "ec2nodeclass"}


def _relieved(view: View, keeper: Keeper) -> Plan:
    after = with_condition(keeper, HELD, FALSE, "NothingHeld", now=view.now)
    return act(*changed(keeper, after, "ReleaseDeletions", Reason("NothingHeld", "no deletion is blocked any more")))
