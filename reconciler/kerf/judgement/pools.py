"""The judgement of one NodePool: whether Kerf can launch nodes from it, and every reason against it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Final

from kerf.disruption.drift.approvals import CHANGE_APPROVED
from kerf.disruption.drift.canaries import CANARY_PASSED
from kerf.disruption.drift.rollout import BLOCKED, STALLED
from kerf.disruption.view import view
from kerf.ec2 import refused_launches
from kerf.judgement.allowances import budgets
from kerf.judgement.drifted import drifted
from kerf.judgement.values import Budgets, Fact
from kerf.lifecycle.nodepool.registration_health import HEALTHY
from kerf.model import backoff, failures
from kerf.model.memory import Memory
from kerf.model.snapshot import Snapshot
from kerf.provisioning import contradictions, hindrances
from kerf_api.resources import Resources
from kerf_api.texts import counted
from kerf_api.v1 import conditions
from kerf_api.v1.meta import Condition
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool

#: The verdicts.
UNKNOWN, NOT_OURS, GOING, NOT_READY, BACKS_OFF, FULL, HINDERED, READY = (
    "NotFound",
    "NotOurs",
    "Going",
    "NotReady",
    "BacksOff",
    "LimitsReached",
    "Hindered",
    "Ready",
)
_MOST_NAMES: Final = 5


@dataclass(frozen=True, slots=True)
class PoolJudgement:
    """The explanation of one NodePool; `text` is the verdict in a line, `since` the start of this state."""

    name: str
    code: str
    text: str
    since: datetime | None = None
    about: str = ""
    facts: tuple[Fact, ...] = ()
    budgets: Budgets | None = None
    similar: tuple[str, ...] = ()


def why(snapshot: Snapshot, name: str) -> PoolJudgement:
    """Explain the NodePool `name`."""
    pool = snapshot.node_pools.get(name)
    if pool is None:
        similar = tuple(get_close_matches(name, sorted(snapshot.node_pools), _MOST_NAMES))
        return PoolJudgement(name, UNKNOWN, "does not exist", similar=similar)
    code, text, since = _verdict(snapshot, pool)
    facts, own = list(_facts(snapshot, pool)), None
    if not pool.metadata.unreadable:
        seen = view(snapshot, Memory().turn(snapshot))
        facts += drifted(seen, pool)
        own = budgets(seen, name)
    return PoolJudgement(name, code, text, since, _about(snapshot, pool), tuple(facts), own)


def _verdict(snapshot: Snapshot, pool: NodePool) -> tuple[str, str, datetime | None]:
    if pool.metadata.unreadable:
        return NOT_READY, f"cannot be read: {pool.metadata.unreadable}", None
    if not pool.managed:
        ref = pool.spec.template.spec.node_class_ref
        text = f"is managed by another controller: its nodeClassRef is {ref.kind}.{ref.group} {ref.name}"
        return NOT_OURS, text, None
    if pool.metadata.deleting:
        return GOING, "is being deleted", pool.metadata.deletion_timestamp
    hindered = list(hindrances.of(snapshot, pool))
    broken = conditions.first_broken(pool.status.conditions, conditions.NODEPOOL_DEPENDENTS)
    if broken is not None:
        of_class = hindered if broken.type == "NodeClassReady" else []
        fix = next((f"; {one.fix}" for one in of_class if one.of_class), "")
        return NOT_READY, f"is not Ready: {conditions.words(broken)}{fix}", broken.last_transition_time
    full = _reached(pool)
    if full:
        return FULL, f"has reached its limits: {', '.join(full)}", None
    if pool.static and not snapshot.settings.gates.static_capacity:
        return NOT_READY, "gets no nodes: the feature gate StaticCapacity is off", None
    if hindered:  # these are the cause of failed launches
        return HINDERED, f"gets no nodes now: {hindered[0]}", hindered[0].since
    return _of_launches(snapshot, pool)


def _of_launches(snapshot: Snapshot, pool: NodePool) -> tuple[str, str, datetime | None]:
    """Return the verdict by the latest launches, for a NodePool that nothing else keeps from nodes."""
    health = conditions.get(pool.status.conditions, HEALTHY)
    if health is not None and health.status == conditions.FALSE:
        return NOT_READY, f"is unhealthy: {conditions.words(health)}", health.last_transition_time
    until = backoff.until(pool, snapshot.now)
    if until is not None and until > snapshot.now:
        return BACKS_OFF, "is skipped after failed launches", None
    contrary = contradictions.of(snapshot, pool)
    if contrary is not None:
        return (HINDERED, f"gets no nodes now: {contrary}", None) if contrary.passes else _not_ready(contrary)
    return READY, "is ready: Kerf can launch nodes from it", None


def _not_ready(contrary: contradictions.Contradiction) -> tuple[str, str, datetime | None]:
    return NOT_READY, f"is not ready: {contrary}", None


def _reached(pool: NodePool) -> list[str]:
    """Return the exhausted limits, with the amounts."""
    if not pool.spec.limits:
        return []
    limits, used = Resources.parse(pool.spec.limits), Resources.parse(pool.status.resources)
    return [
        f"{name} {used.texts().get(name, '0')} of {limits.texts()[name]}"
        for name in sorted(limits)
        if used.get(name, 0) >= limits[name]
    ]


def _about(snapshot: Snapshot, pool: NodePool) -> str:
    claims = snapshot.claims_by_pool.get(pool.name, ())
    going = sum(claim.metadata.deleting for claim in claims)
    nodes = counted(len(claims), "NodeClaim") + (f", {going} of them terminating" if going else "")
    fixed = f", static with {pool.spec.replicas} replicas" if pool.static else ""
    return f"EC2NodeClass {pool.class_name}, {nodes}{fixed}"


def _facts(snapshot: Snapshot, pool: NodePool) -> Iterator[Fact]:
    """Return conditions that are not True, of NodePool and EC2NodeClass; failing actions; the back-off; limits."""
    for condition in pool.status.conditions:
        if (
            condition.type in (*conditions.NODEPOOL_DEPENDENTS, HEALTHY, CHANGE_APPROVED, CANARY_PASSED)
            and condition.status != conditions.TRUE
        ):
            yield Fact(f"{conditions.words(condition)}, since", condition.last_transition_time)
    stalled = conditions.get(pool.status.conditions, STALLED)
    if stalled is not None and stalled.status == conditions.TRUE:
        said = stalled.message.partition("; ")[0] if stalled.reason == BLOCKED else stalled.message  # see `drifted`
        yield Fact(f"the roll-out is stalled: {stalled.reason}: {said}; since", stalled.last_transition_time)
    node_class = snapshot.node_classes.get(pool.class_name)
    of = (*conditions.NODECLASS_DEPENDENTS, conditions.RESERVATIONS_READY)
    for condition in node_class.status.conditions if node_class is not None else ():
        if condition.type in of and condition.status != conditions.TRUE:
            yield Fact(
                f"EC2NodeClass {pool.class_name}: {conditions.words(condition)}, since", condition.last_transition_time
            )
    for one in failures.of(snapshot.failures, f"nodepool/{pool.name}", f"ec2nodeclass/{pool.class_name}"):
        yield Fact(one.standing(snapshot.now))
    for refusal in refused_launches.refused(snapshot.launch_failures.values(), snapshot.now, pool.name):
        yield Fact(refusal.standing(pool.name, snapshot.now))
    yield from _launching(snapshot, pool)
    known = backoff.remembered(pool, snapshot.now)
    if known is not None:
        text = f"failed launches in a row: {known.count}"
        until = backoff.ends(known, pool)
        yield Fact(f"{text}; no node is launched from it until", until) if until > snapshot.now else Fact(text)
    if pool.spec.limits:
        used = Resources.parse(pool.status.resources).texts()
        rows = ", ".join(f"{name} {used.get(name, '0')} of {limit}" for name, limit in sorted(pool.spec.limits.items()))
        yield Fact(f"limits: {rows}")


def _launching(snapshot: Snapshot, pool: NodePool) -> Iterator[Fact]:
    """Return the errors of launches that Kerf repeats, each with the first of its NodeClaims."""
    found: dict[str, tuple[NodeClaim, Condition]] = {}
    for claim in snapshot.claims_by_pool.get(pool.name, ()):
        condition = conditions.first_broken(claim.status.conditions, ("Launched",))
        if condition is not None and condition.message and not claim.metadata.deleting:
            found.setdefault(condition.message, (claim, condition))
    for claim, condition in list(found.values())[:_MOST_NAMES]:
        yield Fact(f"NodeClaim {claim.name}: {conditions.words(condition)}, since", condition.last_transition_time)
