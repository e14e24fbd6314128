"""The troubles of a cluster: what is wrong now and needs a person.

`kerf status`, `kerf why`, the metric `kerf_troubles` and the page of a cluster without a controller are made of these.
Every trouble rests on facts that are given; this module reads no clock and no cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kerf.disruption.drift.approvals import CHANGE_APPROVED
from kerf.disruption.drift.canaries import CANARY_PASSED
from kerf.ec2 import refused_launches
from kerf.ec2.errors import LACKS_OF_ACCOUNT
from kerf.ec2.nodeclass import profile_verdicts
from kerf.lifecycle.garbage.garbage_guard import HALTED
from kerf.lifecycle.nodepool.registration_health import HEALTHY
from kerf.model import failures, overlays
from kerf.model.boundaries import MALFORMED
from kerf.model.claims import launched_since
from kerf.model.ends import HELD
from kerf.model.failures import STUCK, Failure
from kerf.model.instants import rfc3339
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.model.plan import INTERNAL_ERROR, Reason, Refusal
from kerf.model.snapshot import LaunchFailure
from kerf.provisioning.provision import NOT_YET
from kerf_api.texts import shortened
from kerf_api.v1 import conditions
from kerf_api.v1.conditions import FALSE, TRUE
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import Condition, ObjectMeta
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool

#: The codes of troubles.
ACTION_FAILS: Final = "ActionFails"
PODS_UNSCHEDULABLE: Final = "PodsUnschedulable"
NOT_READY: Final = "NotReady"
GUARD: Final = "GuardTripped"
NOT_SCHEDULED: Final = "NotScheduled"
NOT_DRAINED: Final = "NotDrained"
LAUNCH_REFUSED: Final = "LaunchRefused"
OBJECT_REFUSED: Final = "ObjectRefused"
#: A change that waits; these are not among `CODES`.
UNAPPROVED: Final = "AwaitingApproval"
CANARY_FAILED: Final = "CanaryFailed"
CODES: Final = (
    ACTION_FAILS,
    PODS_UNSCHEDULABLE,
    NOT_READY,
    GUARD,
    NOT_SCHEDULED,
    NOT_DRAINED,
    LAUNCH_REFUSED,
    OBJECT_REFUSED,
)
#: A node takes about a minute: before that a pod without a place may be on its way.
UNSCHEDULABLE_AFTER: Final = timedelta(minutes=1)
#: An action that may come off by itself, and a condition that is not known yet, need a person after this time.
PATIENCE: Final = timedelta(minutes=2)
#: Slow answers may cost a controller its lease before that: they are reported sooner.
SLOW_PATIENCE: Final = timedelta(seconds=30)
#: An instance boots and joins within this time, or something is wrong with its image, network or role.
JOINS_WITHIN: Final = timedelta(minutes=5)
#: A removal without a deadline that takes longer may never end. The alert KerfNodeDoesNotDrain waits as long.
REMOVED_WITHIN: Final = timedelta(hours=2)
#: A launched node is initialized, and its pods are bound, within this time, or they need a person.
SERVES_WITHIN: Final = timedelta(minutes=10)
#: Pods that opted out, or that have a place in a later pass.
_NO_TROUBLE: Final = NOT_YET | {"OptedOut"}
_GUARDS: Final = (HALTED, HELD)
#: The condition of an EC2NodeClass that reports the failure of an action.
_REPORTED_BY: Final = {"EnsureInstanceProfile": profile_verdicts.CONDITION, "ValidateClass": "ValidationSucceeded"}
#: By the code of a refusal of an object.
_OBJECT_FIXES: Final = {
    MALFORMED: "correct the object; kerf validate shows the errors of Karpenter's kinds",
    INTERNAL_ERROR: "report this as a bug in Kerf, with the object",
    overlays.CONFLICT: "correct one of the NodeOverlays, or give them different weights",
    overlays.INVALID: "correct the NodeOverlay",
}
_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that needs a person.

    Attributes:
        code: one of `CODES`, or a code of the reporter.
        object: the first object that it is about (`kind/[namespace/]name`), or a name of a part.
        text: the problem, then its cause in the words of the API.
        fix: what to do.
        since: when it began; None when that is not known.
        times: how many attempts have failed, or how many objects it is about.
        at_least: it may have begun before `since`.
    """

    code: str
    object: str
    text: str
    fix: str = ""
    since: datetime | None = None
    times: int = 1
    at_least: bool = False

    def __str__(self) -> str:
        return f"{self.object}: {self.text}" + (f"; {self.fix}" if self.fix else "")


# --- actions ----------------------------------------------------------------------------------------------------
def failing(known: Iterable[Failure], now: datetime, classes: Iterable[EC2NodeClass] = ()) -> Iterator[Trouble]:
    """The actions that fail: at once where no further attempt helps, else after `PATIENCE`. A permission that is
    missing is missing for all objects: one trouble. What a condition of these classes reports is left to `not_ready`.
    """
    groups: dict[tuple[str, ...], list[Failure]] = {}
    reported = {
        (verb, f"ec2nodeclass/{one.name}")
        for one in classes
        for verb, type_ in _REPORTED_BY.items()
        if any(c.type == type_ and c.status == FALSE for c in one.status.conditions)
    }
    for one in failures.ordered(known):
        patience = SLOW_PATIENCE if one.outcome == failures.SLOW else PATIENCE
        stuck = one.outcome in STUCK or now - one.since >= patience
        if stuck and (one.verb, one.object) not in reported:
            alone = () if one.outcome == "forbidden" else (one.object,)
            groups.setdefault((one.verb, one.outcome, *alone), []).append(one)
    for members in groups.values():
        first = members[0]  # the error names its object: that of another member would contradict the subject
        named = _names(one.object for one in members)
        text = first.text + (f" ({len(members)} objects: {named})" if members[1:] else "")
        times = sum(one.times for one in members)
        yield Trouble(ACTION_FAILS, first.object, text, first.fix, first.since, times, at_least=first.at_least)


def _names(names: Iterable[str]) -> str:
    return shortened(sorted(set(names)), _NAMED)


# --- launches ---------------------------------------------------------------------------------------------------
def refused(
    launches: Collection[LaunchFailure], claims: Iterable[NodeClaim], waiting: int, now: datetime
) -> Iterator[Trouble]:
    """What the account lacks, by launches that EC2 has refused lately, while a number of pods is `waiting`.

    A NodePool of which a node has been launched since has another way, such as another capacity type.
    """
    of_pool: dict[str, list[NodeClaim]] = {one.pool: [] for one in launches} if waiting else {}
    for claim in claims if of_pool else ():
        if claim.pool_name in of_pool:
            of_pool[claim.pool_name].append(claim)
    lasting = [one for one in launches if not launched_since(of_pool[one.pool], one.at)] if of_pool else ()
    for one in refused_launches.refused(lasting, now):
        if one.code in LACKS_OF_ACCOUNT:
            text = f"refuses launches: {one.text}"
            yield Trouble(LAUNCH_REFUSED, "aws/ec2", text, one.fix, one.since, one.times, at_least=one.at_least)


def named_pods(rows: Sequence[tuple[datetime, str]]) -> str:
    """How many pods, and the names of the first ones."""
    return f"1 pod ({rows[0][1]})" if len(rows) == 1 else f"{len(rows)} pods ({_names(key for _, key in rows)})"


# --- pods -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Unplaced:
    """A pod (`namespace/name`) without a place: since when it waits, and why."""

    pod: str
    since: datetime
    reason: Reason


def unschedulable(rows: Iterable[Unplaced], now: datetime) -> Iterator[Trouble]:
    """The pods that have waited for `UNSCHEDULABLE_AFTER`, by cause, the cause of most pods first."""
    causes: dict[str, list[Unplaced]] = {}
    for row in rows:
        if row.reason.text and row.reason.code not in _NO_TROUBLE and now - row.since >= UNSCHEDULABLE_AFTER:
            causes.setdefault(row.reason.text, []).append(row)
    for text, waiting in sorted(causes.items(), key=lambda one: (-len(one[1]), one[0])):
        first = min(waiting, key=lambda row: (row.since, row.pod))
        others = (
            f" (and {len(waiting) - 1} more: {_names(r.pod for r in waiting if r != first)})" if waiting[1:] else ""
        )
        fix = f"kerf why pod {first.pod} shows the cause and what helps"
        words = f"has no place{others}: {text}"
        yield Trouble(PODS_UNSCHEDULABLE, f"pod/{first.pod}", words, fix, first.since, len(waiting))


def unscheduled(every: Iterable[Pod], now: datetime) -> Iterator[Trouble]:
    """The pods that their scheduler has neither bound nor refused for `PATIENCE`, by scheduler.

    Kerf makes no node for a pod before its scheduler has refused it.
    """
    waiting: dict[str, list[tuple[datetime, str]]] = {}
    for pod in every:
        created = pod.metadata.creation_timestamp
        if pods.unanswered(pod) and created is not None and now - created >= PATIENCE:
            waiting.setdefault(pod.spec.scheduler_name, []).append((created, pod.key))
    for name, rows in sorted(waiting.items()):
        since, _ = min(rows)
        text = f"has neither bound nor refused {named_pods(rows)}"
        yield Trouble(NOT_SCHEDULED, f"scheduler/{name}", text, "see that the scheduler runs", since, len(rows))


# --- conditions -------------------------------------------------------------------------------------------------
def not_ready(pools: Iterable[NodePool], classes: Iterable[EC2NodeClass], now: datetime) -> Iterator[Trouble]:
    """EC2NodeClasses, then NodePools that are not Ready, with the first condition that is not True."""
    for node_class in classes:
        if not node_class.metadata.deleting:
            name = f"ec2nodeclass/{node_class.name}"
            of = (*conditions.NODECLASS_DEPENDENTS, conditions.RESERVATIONS_READY)
            yield from _unready(name, node_class.metadata, node_class.status.conditions, of, now)
    for pool in pools:
        if not pool.metadata.deleting and pool.managed:
            of_pool = (*conditions.NODEPOOL_DEPENDENTS, HEALTHY)
            yield from _unready(f"nodepool/{pool.name}", pool.metadata, pool.status.conditions, of_pool, now)


def _unready(
    name: str, meta: ObjectMeta, known: tuple[Condition, ...], dependents: Iterable[str], now: datetime
) -> Iterator[Trouble]:
    if meta.unreadable:
        yield Trouble(
            NOT_READY, name, f"cannot be read: {meta.unreadable}", "correct the object; kerf validate shows its errors"
        )
        return
    first = conditions.first_broken(known, dependents)
    if first is None or (first.type == HEALTHY and first.status != FALSE):
        return
    since = first.last_transition_time or meta.creation_timestamp
    unknown = first.status != FALSE or first.reason == conditions.READINESS_UNKNOWN
    if unknown and since is not None and now - since < PATIENCE:
        return
    kind, _, own = name.partition("/")
    fix = f"kerf why nodepool {own} shows the cause" if kind == "nodepool" else _class_fix(first)
    state = "is unhealthy" if first.type == HEALTHY else "is not Ready"  # no part of Ready
    yield Trouble(NOT_READY, name, f"{state}: {conditions.words(first)}", fix, since)


def _class_fix(broken: Condition) -> str:
    if broken.reason == profile_verdicts.ROLE_NOT_FOUND:
        return "create the role in IAM, or correct spec.role"
    if broken.reason == profile_verdicts.ACCESS_DENIED:
        return failures.IAM_FIX
    return "correct the EC2NodeClass or the account; kerf preflight checks both"


def stuck_claims(claims: Iterable[NodeClaim], known: Mapping[str, Failure], now: datetime) -> Iterator[Trouble]:
    """NodeClaims whose launch, registration, initialization or end fails, as far as their conditions say so.

    Of an end or a launch whose failing action is among `known` there is a trouble already.
    """
    for claim in claims:
        found = _failed_end(claim, known) if claim.metadata.deleting else _not_arrived(claim, known, now)
        if found is not None:
            since = found.last_transition_time or claim.metadata.creation_timestamp
            fix = f"kerf why nodeclaim {claim.name} shows the cause"
            yield Trouble(NOT_READY, f"nodeclaim/{claim.name}", conditions.words(found), fix, since)


def _failed_end(claim: NodeClaim, known: Mapping[str, Failure]) -> Condition | None:
    """The condition that reports a failing eviction or termination, unless such failures are known themselves."""
    unmet = (one for one in claim.status.conditions if one.status != TRUE)
    return next((one for one in unmet if not failures.known_end(known, one.reason)), None)


def _not_arrived(claim: NodeClaim, known: Mapping[str, Failure], now: datetime) -> Condition | None:
    first = conditions.first_broken(claim.status.conditions, ("Launched", "Registered", "Initialized"))
    if first is None or (first.type == "Launched" and failures.launch(known, claim.pool_name) is not None):
        return None
    since = first.last_transition_time or claim.metadata.creation_timestamp or now
    if first.type == "Launched":
        early = first.reason == conditions.AWAITING and now - since < PATIENCE
        return None if early or now - since < UNSCHEDULABLE_AFTER else first
    return first if now - since >= (JOINS_WITHIN if first.type == "Registered" else SERVES_WITHIN) else None


# --- drains -----------------------------------------------------------------------------------------------------
#: A NodeClaim keeps the grace period with which it was made.
_LATER_DRAINS: Final = "spec.template.spec.terminationGracePeriod in the NodePool limits the drains of later nodes"


@dataclass(frozen=True, slots=True)
class Kept:
    """A pod (`namespace/name`) that a drain waits for: PodDisruptionBudgets never allow its eviction."""

    pod: str
    budgets: tuple[str, ...]


def undrained(claim: NodeClaim, kept: Sequence[Kept]) -> Trouble:
    """The trouble of a NodeClaim that never drains, because of one or more pods."""
    first, budgets = kept[0], sorted({key for one in kept for key in one.budgets})
    many = f"pod {first.pod}" if len(kept) == 1 else f"{len(kept)} pods ({_names(one.pod for one in kept)})"
    noun = "PodDisruptionBudget" if len(budgets) == 1 else "PodDisruptionBudgets"
    allow = "allows" if len(budgets) == 1 else "allow"
    text = f"does not drain: {noun} {_names(budgets)} never {allow} the eviction of {many}"
    fix = f"correct the budget or delete the pod; {_LATER_DRAINS}"
    return Trouble(NOT_DRAINED, f"nodeclaim/{claim.name}", text, fix, claim.metadata.deletion_timestamp, len(kept))


def not_removed(claim: NodeClaim, since: datetime, state: str, *, drains: bool) -> Trouble:
    """The trouble of a NodeClaim whose removal has begun long ago; `state` is its state in words."""
    fix = f"kerf why nodeclaim {claim.name} shows the cause" + (f"; {_LATER_DRAINS}" if drains else "")
    return Trouble(NOT_DRAINED, f"nodeclaim/{claim.name}", f"is not removed: {state}", fix, since)


# --- objects ----------------------------------------------------------------------------------------------------
def refused_objects(refusals: Iterable[Refusal]) -> Iterator[Trouble]:
    """The objects that Kerf leaves out because it cannot interpret them, or because of a bug of its own. Pods that
    wait are left to `unschedulable`, NodePools and EC2NodeClasses that cannot be read to `not_ready`."""
    for one in sorted(set(refusals), key=lambda refusal: refusal.subject):
        if fix := _OBJECT_FIXES.get(one.reason.code):
            yield Trouble(OBJECT_REFUSED, one.subject, f"is ignored: {one.reason}", fix)


# --- guards -----------------------------------------------------------------------------------------------------
def guarded(named: Iterable[tuple[str, tuple[Condition, ...]]]) -> Iterator[Trouble]:
    """The guards that hold something, of objects by name (`kind/name`) with their conditions."""
    for name, known in named:
        for condition in known:
            if condition.type in _GUARDS and condition.status == TRUE:
                fix = "docs/operations.md has the steps to release it"
                yield Trouble(
                    GUARD, name, f"{condition.type}: {condition.message}", fix, condition.last_transition_time
                )


# --- approvals --------------------------------------------------------------------------------------------------
def unapproved(pools: Iterable[NodePool]) -> Iterator[Trouble]:
    """The NodePools whose change waits for approval, or for a person after its canary has failed. It is no fault of
    the cluster, so `kerf_troubles` does not count it."""
    for pool in pools:
        told = conditions.get(pool.status.conditions, CHANGE_APPROVED)
        if told is not None and told.status == FALSE and not pool.metadata.deleting:
            fix = "kerf plan shows its consequences; the digest above approves it"
            words = f"{told.reason}: {told.message}"
            yield Trouble(UNAPPROVED, f"nodepool/{pool.name}", words, fix, told.last_transition_time)
        told = conditions.get(pool.status.conditions, CANARY_PASSED)
        if told is not None and told.reason == CANARY_FAILED and not pool.metadata.deleting:
            fix = "revert or correct the change, or continue with the digest above"
            yield Trouble(CANARY_FAILED, f"nodepool/{pool.name}", told.message, fix, told.last_transition_time)


def plain(trouble: Trouble) -> dict[str, str | int | None]:
    """A trouble for JSON, with the names that the debug port has."""
    since = None if trouble.since is None else rfc3339(trouble.since)
    fields = {"code": trouble.code, "object": trouble.object, "text": trouble.text, "fix": trouble.fix}
    return {**fields, "since": since, "at_least": trouble.at_least, "times": trouble.times}
