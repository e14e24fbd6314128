"""How a controller is doing, for who is called at night: who leads, how old its data are, what waits, what is held.

It is put together by the loop's own thread, between two looks, so that nothing moves meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import median
from typing import Final

from kerf.judgement import draining, supply, troubles, unhealthy
from kerf.judgement.starts import Starting, starting
from kerf.judgement.troubles import Trouble, Unplaced
from kerf.model import kinds
from kerf.model.kinds import Ref
from kerf.model.kubernetes import pods
from kerf.model.plan import Plan, Refusal, Source
from kerf.model.replicas import kept, members
from kerf.model.snapshot import Snapshot
from kerf.runtime.state.state import State
from kerf.telemetry.turns import Turn

#: A loop that has not looked for this long has stopped, or something holds it up.
LATE: Final = timedelta(minutes=1)
#: So many of each sort are named.
_MOST: Final = 20
_UNREAD: Final = "the log names the error; kerf preflight lists permissions that are missing"
_NO_LEADER: Final = "kubectl get pods shows whether the other replicas run"
_LATE: Final = "kerf debug threads shows what it waits for"
_RECORDER: Final = "decisions are not affected; RECORD_FOLDER and RECORD_S3 name the places that must be writable"
_GUARDED: Final = (kinds.NODE_POOL, kinds.NODE_CLASS, kinds.NODE_CLAIM)


@dataclass(frozen=True, slots=True)
class SourceAge:
    """When a source was last complete, in seconds ago (None: never); `stale`: nothing is destroyed that rests on it."""

    name: str
    age_seconds: float | None
    stale: bool


@dataclass(frozen=True, slots=True)
class Wait:
    """What is left alone for so long, because it failed or EC2 has none."""

    subject: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Pace:
    """Of the loop: since its latest look and until the next, what it has not processed yet, and how long turns took."""

    looked_seconds_ago: float
    next_look_in_seconds: float | None
    news_waiting: int
    median_turn_seconds: float
    longest_turn_seconds: float


@dataclass(frozen=True, slots=True)
class Counts:
    node_claims: int
    nodes: int
    instances: int
    pending_pods: int
    under_way: int
    starting: Starting | None
    #: Spot instances that EC2 has reclaimed within the last hour, by NodePool.
    reclaimed: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Working:
    """What the loop knows. `refused` counts what the latest plan decided against, by the code of the reason.
    `troubles` are those of the cluster; some are known to the leader alone."""

    at: datetime
    missing: tuple[str, ...]
    sources: tuple[SourceAge, ...]
    pace: Pace
    counts: Counts
    under_way: tuple[str, ...]
    back_offs: tuple[Wait, ...]
    out_of_stock: tuple[Wait, ...]
    troubles: tuple[Trouble, ...]
    refused: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Replica:
    """What the process knows. `leader` holds the lease (empty: none, or unknown); `recording` are the flight recorder's
    problems."""

    identity: str
    version: str
    commit: str
    log_level: str
    leading: bool
    lease: str
    leader: str
    in_the_way: tuple[str, ...]
    recording: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Status:
    """`problems` are what needs a person now; none when all is well. `not_checked` names what this replica does not
    know, and why."""

    problems: tuple[Trouble, ...]
    replica: Replica
    working: Working
    not_checked: tuple[str, ...] = ()


def of(replica: Replica, working: Working) -> Status:
    return Status(tuple(_problems(replica, working)), replica, working, tuple(_not_checked(replica)))


def _not_checked(replica: Replica) -> Iterator[str]:
    """A replica that does not lead performs no action, and may not list events."""
    if not replica.leading:
        leader = f"the leader {replica.leader}" if replica.leader else "a leader, and there is none,"
        yield f"actions that fail, back-offs and refusals: only {leader} knows them"


def working(
    state: State,
    plan: Plan,
    now: datetime,
    *,
    looked_at: datetime,
    next_due: datetime | None,
    waiting: int,
    turns: Iterable[Turn],
) -> Working:
    """`plan` is the latest one; only the thread that changes the state may ask."""
    took = [turn.seconds for turn in turns] or [0.0]
    refused = Counter(refusal.reason.code for refusal in plan.refusals)
    return Working(
        at=now,
        missing=tuple(state.missing()),
        sources=tuple(_sources(state, now)),
        pace=Pace(
            looked_seconds_ago=_seconds(now - looked_at),
            next_look_in_seconds=None if next_due is None else _seconds(next_due - now),
            news_waiting=waiting,
            median_turn_seconds=round(median(took), 4),
            longest_turn_seconds=round(max(took), 4),
        ),
        counts=Counts(
            node_claims=state.cluster.count(kinds.NODE_CLAIM),
            nodes=state.cluster.count(kinds.NODE),
            instances=len(state.fleet.instances),
            pending_pods=state.cluster.pending_count,
            under_way=len(state.under_way),
            starting=starting(state.cluster.objects(kinds.NODE_CLAIM).values(), now),
            reclaimed=state.interruptions.reclaimed(now),
        ),
        under_way=tuple(action.key for action in state.under_way[:_MOST]),
        back_offs=_waits({**state.evictions.holding(now), **state.actions.holding(now)}, now),
        out_of_stock=_waits({"/".join(map(str, k)): u for k, u in state.fleet.out_of_stock(now).items()}, now),
        troubles=tuple(_troubles(state, plan, now)),
        refused=dict(sorted(refused.items())),
    )


def _sources(state: State, now: datetime) -> Iterator[SourceAge]:
    watched = {kind.name for kind in kinds.watched(state.settings)}
    for source in Source:
        if source is Source.ZONAL_SHIFTS and not state.settings.zonal_shift:
            continue
        if source is not Source.INSTANCES and source is not Source.ZONAL_SHIFTS and source.value not in watched:
            continue
        at = state.freshness.at.get(source)
        fresh = state.fresh(frozenset({source}), now)
        yield SourceAge(source.value, None if at is None else _seconds(now - at), not fresh)


def _waits(until: Mapping[str, datetime], now: datetime) -> tuple[Wait, ...]:
    """The longest first, as many as are named."""
    rows = sorted(((end, subject) for subject, end in until.items() if end > now), reverse=True)
    return tuple(Wait(subject, _seconds(end - now)) for end, subject in rows[:_MOST])


def _troubles(state: State, plan: Plan, now: datetime) -> Iterator[Trouble]:
    """What the loop knows to be wrong, the most telling first."""
    pools, classes = state.cluster.objects(kinds.NODE_POOL), state.cluster.objects(kinds.NODE_CLASS)
    claims, known = state.cluster.objects(kinds.NODE_CLAIM), state.failures.at(now)
    yield from troubles.failing(known.values(), now, classes.values())
    yield from troubles.not_ready(pools.values(), classes.values(), now)
    yield from troubles.stuck_claims(claims.values(), known, now)
    nodes, repaired = state.cluster.objects(kinds.NODE).values(), state.settings.gates.node_repair
    yield from unhealthy.unhealthy(claims.values(), nodes, now, repaired=repaired)
    yield from troubles.refused(state.fleet.failures(now).values(), claims.values(), state.cluster.pending_count, now)
    snapshot = state.snapshot(now)
    if state.settings.gates.static_capacity:
        yield from supply.incomplete(_lacking(snapshot), snapshot.launch_failures.values(), now)
    else:
        yield from supply.without_gate(pools.values())
    yield from draining.never_drained(snapshot)
    yield from troubles.unschedulable(_unplaced(state, now), now)
    yield from _unserved(state, snapshot)
    yield from troubles.refused_objects(_of_objects(snapshot, plan))
    yield from troubles.unscheduled(state.cluster.objects(kinds.POD).values(), now)
    for source in sorted(state.freshness.doubted):
        text = "an update could not be processed: no disruption that depends on this kind until Kerf restarts"
        yield Trouble(troubles.GUARD, source.value, text, "restart the pod, and report this with its log")
    objects = ((kind, one) for kind in _GUARDED for one in state.cluster.objects(kind).values())
    yield from troubles.guarded((str(Ref.of(kind, one)), one.status.conditions) for kind, one in objects)
    yield from troubles.unapproved(pools.values())


def _unplaced(state: State, now: datetime) -> Iterator[Unplaced]:
    """The pods that the latest pass refused and that are still pending."""
    for refusal in state.promises.latest.refusals:
        kind, _, key = refusal.subject.partition("/")
        pod = state.cluster.objects(kinds.POD).get(key) if kind == "pod" else None
        if pod is not None and state.cluster.pending(pod):
            yield Unplaced(key, pods.waiting_since(pod) or now, refusal.reason)


def _unserved(state: State, snapshot: Snapshot) -> Iterator[Trouble]:
    """The pending pods of which the latest pass says nothing: it expects them on a node. Nothing before a pass."""
    if not state.promises.latest.provisioned:
        return
    refused = {one.subject for one in state.promises.latest.refusals}
    rows = {
        key: pods.waiting_since(pod) or snapshot.now
        for key, pod in snapshot.pods.pending.items()
        if f"pod/{key}" not in refused
    }
    claims = snapshot.node_claims.values()
    coming = any(one.is_true("Launched") and not one.is_true("Initialized") for one in claims)
    yield from supply.unserved(rows, snapshot.launch_failures.values(), snapshot.now, coming=coming)


def _lacking(snapshot: Snapshot) -> dict[str, int]:
    """How many nodes static NodePools lack, by name."""
    found: dict[str, int] = {}
    for pool in snapshot.node_pools.values():
        claims = members(snapshot.claims_by_pool.get(pool.name, ())).active
        number = (kept(pool) or 0) - sum(one.is_true("Launched") for one in claims)
        if number > 0:
            found[pool.name] = number
    return found


def _of_objects(snapshot: Snapshot, plan: Plan) -> Iterator[Refusal]:
    """The refusals that are not reported as pods without a place, or as objects that are not Ready."""
    pools, classes = snapshot.node_pools.values(), snapshot.node_classes.values()
    unread = {f"nodepool/{one.name}" for one in pools if one.metadata.unreadable}
    unread |= {f"ec2nodeclass/{one.name}" for one in classes if one.metadata.unreadable}
    for one in plan.refusals:
        if one.subject.removeprefix("pod/") not in snapshot.pods.pending and one.subject not in unread:
            yield one


def _problems(replica: Replica, working: Working) -> Iterator[Trouble]:
    for one in replica.in_the_way:
        yield Trouble("Obstacle", f"replica/{replica.identity}", one)
    if not replica.leader:
        yield Trouble("NoLeader", f"lease/{replica.lease}", "no known replica has it: nothing is decided", _NO_LEADER)
    if working.missing:
        names = ", ".join(working.missing)
        yield Trouble("NotListed", "watches", f"not listed yet, so nothing is decided: {names}", _UNREAD)
    elif old := [one.name for one in working.sources if one.stale]:
        yield Trouble("Stale", "watches", f"too old, so no disruption that depends on it: {', '.join(old)}", _UNREAD)
    if working.pace.looked_seconds_ago > LATE.total_seconds():
        yield Trouble("LoopLate", "loop", f"the latest reconcile was {working.pace.looked_seconds_ago:g} s ago", _LATE)
    for one in replica.recording:
        yield Trouble("RecorderFails", f"replica/{replica.identity}", one, _RECORDER)
    yield from working.troubles


def _seconds(span: timedelta) -> float:
    return round(span.total_seconds(), 1)
