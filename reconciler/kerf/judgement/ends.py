"""Possible disruptions of a node in use, forceful and voluntary, each with its blockers.

The answers are those of the rooms that decide: the same blockers, budgets, windows and simulations. Here they apply to
one node, and all of them are reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from kerf.disruption.asking import Manner, Scheduler, Solve
from kerf.disruption.candidates import canary, costs
from kerf.disruption.candidates.candidates import Blocker, Candidate, blockers, unblocked
from kerf.disruption.candidates.pacing import failed_lately
from kerf.disruption.consolidation.balanced import Policy
from kerf.disruption.consolidation.consequences import coming, evicted
from kerf.disruption.consolidation.eligibility import consolidation_blockers, rest_blockers
from kerf.disruption.consolidation.search import single
from kerf.disruption.consolidation.worth import TOO_LITTLE
from kerf.disruption.disrupt import forced_ends, not_yet
from kerf.disruption.drift.drift import drift_detail
from kerf.disruption.forced.expiration import end_of
from kerf.disruption.forced.repair import sickness_of
from kerf.disruption.methods.methods import NO_ROOM, quiet_since
from kerf.disruption.methods.retirement import EXPIRING
from kerf.disruption.share import Share
from kerf.disruption.simulation import simulate
from kerf.disruption.view import View
from kerf.judgement.allowances import held
from kerf.judgement.obstacles import facts
from kerf.judgement.trials import remedies
from kerf.judgement.values import End, Hold, together
from kerf.model.instants import rfc3339
from kerf.model.plan import DeleteObject, Plan
from kerf.model.replicas import room
from kerf.model.snapshot import StateNode
from kerf.scheduling.offerings import prices
from kerf_api.v1.budgets import DRIFTED, EMPTY, EXPIRED, UNDERUTILIZED
from kerf_api.v1.nodeclaim import NodeClaim

_END_OF_TIME = datetime.max.replace(tzinfo=UTC)


def ends_of(view: View, key: str, ask: Solve | None = None) -> tuple[End, ...]:
    """Return the possible disruptions of a state node with a NodeClaim of Kerf: forceful first, then voluntary."""
    state = view.snapshot.state_nodes[key]
    assert state.claim is not None
    forced = forced_ends(view.snapshot, view.turn)
    found = [*_forced(forced, state.claim), *_sick(view, forced, state), *_expiring(view, forced, state.claim)]
    pool = view.snapshot.node_pools.get(state.pool_name)
    if pool is None or state.node is None or not state.claim.is_true("Initialized"):
        return tuple(found)
    ask = ask or Scheduler(view.snapshot, view.turn)
    codes = [DRIFTED] if state.claim.is_true("Drifted") else []
    codes.append(EMPTY if costs.empty(unblocked(view, key).pods) else UNDERUTILIZED)
    return (*found, *(_explained(view, key, _voluntary(code, view, key, ask), ask) for code in codes))


def known_ends(view: View, key: str, forced: Plan) -> tuple[End, ...]:
    """Return the same without a simulation, for lists of all nodes: consolidation is known from proposals alone.

    `forced` has the forceful disruptions of the whole snapshot, from `disrupt.forced_ends`.
    """
    state = view.snapshot.state_nodes[key]
    assert state.claim is not None
    found = [*_forced(forced, state.claim), *_sick(view, forced, state), *_expiring(view, forced, state.claim)]
    pool = view.snapshot.node_pools.get(state.pool_name)
    if pool is None or state.node is None or not state.claim.is_true("Initialized"):
        return tuple(found)
    one = unblocked(view, key)
    if state.claim.is_true("Drifted"):
        waits = canary.drift_blocker(view, state)
        holds = _holds(view, one, DRIFTED, [waits] if waits is not None else [])
        found.append(End(DRIFTED, _why_drifted(view, one), holds=holds))
    return (*found, _empty(view, one) if costs.empty(one.pods) else _of_proposals(view, one))


def _of_proposals(view: View, one: Candidate) -> End:
    """Return the proposed consolidation of the node, or the blockers of any consolidation."""
    holds = _holds(view, one, UNDERUTILIZED, consolidation_blockers(view, one.state, one.pool))
    proposed = next((p for p in view.snapshot.proposals if one.key in p.candidates), None)
    if proposed is None:
        return End(UNDERUTILIZED, "no cheaper placement of its pods is known", wanted=False, holds=holds)
    text = f"proposed for consolidation, nodes: {len(proposed.candidates)}; {prices.saves(proposed.saving)}"
    return End(UNDERUTILIZED, text, _ahead(view, _proposed(view, one)), holds=holds, saving=proposed.saving)


def _voluntary(code: str, view: View, key: str, ask: Solve) -> End:
    """Return the voluntary disruption for one of the reasons of budgets."""
    one = unblocked(view, key)
    if code == EMPTY:
        return _empty(view, one)
    return _drifted(view, one, ask) if code == DRIFTED else _underutilized(view, one, ask)


def _explained(view: View, key: str, end: End, ask: Solve) -> End:
    """Return the disruption with the cause of each blocker, and with the change that would unblock the node."""
    one = unblocked(view, key)
    try:
        holds = tuple(replace(hold, facts=facts(view, one, end.code, hold, ask)) for hold in end.holds)
        tried = remedies(view, key, end, ask, partial(_voluntary, end.code)) if end.open else None
    except Exception:  # a failure of optional advice must not lose the answer
        return end
    return replace(end, holds=holds, remedies=tried)


# --- forceful ---------------------------------------------------------------------------------------------------
def _forced(forced: Plan, claim: NodeClaim) -> Iterator[End]:
    """Return the disruption that deletes the NodeClaim in this reconcile."""
    for action in forced.actions:
        if isinstance(action, DeleteObject) and action.ref.name == claim.name:
            yield End(action.reason.code, action.reason.text, forceful=True)


def _expiring(view: View, forced: Plan, claim: NodeClaim) -> Iterator[End]:
    """Return the expiration of the NodeClaim, unless expiration deletes it in this reconcile."""
    if any(end.code == EXPIRED for end in _forced(forced, claim)):
        return
    try:
        end = end_of(view.snapshot, claim, _END_OF_TIME)  # the exact time, however far in the future
    except ValueError:
        return
    if end is None:
        return
    budget = held(view, claim.pool_name, EXPIRED) if end.paced else None
    holds = () if budget is None else (budget,)
    yield End(EXPIRED, _life(view, claim, end.prepared_from), end.at, wanted=False, forceful=True, holds=holds)


def _life(view: View, claim: NodeClaim, prepared_from: datetime) -> str:
    """Return the lifetime of the node, and the state of its successor."""
    condition = claim.condition(EXPIRING)
    if condition is not None:
        return f"expireAfter is {claim.spec.expire_after}; {condition.reason}: {condition.message}"
    text = f"expireAfter is {claim.spec.expire_after}"
    ahead = prepared_from > view.snapshot.now
    return f"{text}, its successor is made ready from {rfc3339(prepared_from)} on" if ahead else text


def _sick(view: View, forced: Plan, state: StateNode) -> Iterator[End]:
    """Return the pending repair of an unhealthy node, with its blockers."""
    sickness = sickness_of(state.node) if state.node is not None else None
    if sickness is None or any(end.code == "Unhealthy" for end in _forced(forced, _claim(state))):
        return
    subject = f"node/{state.name}"
    holds = [Hold(r.reason.code, r.reason.text) for r in forced.refusals if r.subject == subject]
    if not view.snapshot.settings.gates.node_repair:
        holds.append(Hold("NodeRepairOff", "feature gate NodeRepair is disabled, so nodes are not repaired"))
    yield End("Unhealthy", str(sickness), sickness.until, wanted=not holds, forceful=True, holds=tuple(holds))


def _claim(state: StateNode) -> NodeClaim:
    assert state.claim is not None
    return state.claim


# --- voluntary --------------------------------------------------------------------------------------------------
def _drifted(view: View, one: Candidate, ask: Solve) -> End:
    waits = canary.drift_blocker(view, one.state)
    speaking = [waits] if waits is not None else []
    lines: list[str] = []
    if one.pool.static:
        if not view.snapshot.settings.gates.static_capacity:
            speaking.append(Blocker("StaticCapacityOff", "feature gate StaticCapacity is disabled"))
        elif not room(view.snapshot, one.pool, 1):
            speaking.append(NO_ROOM)
    elif one.movable:
        outcome = simulate(view, [one], Share(ask), Manner.FREELY)
        speaking += [outcome.blocker] if outcome.blocker is not None else []
        lines = [*evicted(one.pods), *coming(outcome.new_nodes)]
    return End(DRIFTED, _why_drifted(view, one), holds=_holds(view, one, DRIFTED, speaking), facts=tuple(lines))


def _why_drifted(view: View, one: Candidate) -> str:
    """Return the reason of the drift, with both values where they are known."""
    condition = one.claim.condition("Drifted")
    reason = condition.reason if condition is not None else ""
    detail = drift_detail(view, one.claim, one.pool, reason)
    return f"{reason}: {detail}" if detail else reason


def _empty(view: View, one: Candidate) -> End:
    speaking = list(rest_blockers(view, one.claim, one.pool))
    held_for = view.snapshot.buffer_pods.get(one.key, 0)
    if held_for:
        speaking.append(Blocker("BufferPods", f"CapacityBuffers reserve capacity on it (pods: {held_for})"))
    at = None if speaking else quiet_since(one) + view.snapshot.settings.validation_delay
    holds = _holds(view, one, EMPTY, speaking)
    text = "no reschedulable pods"
    return End(EMPTY, text, _ahead(view, at), wanted=not _refused(speaking), holds=holds, saving=one.price)


def _underutilized(view: View, one: Candidate, ask: Solve) -> End:
    speaking = list(consolidation_blockers(view, one.state, one.pool))
    lasting = [blocker for blocker in speaking if blocker.until is None]
    if lasting:
        holds = _holds(view, one, UNDERUTILIZED, speaking)
        return End(UNDERUTILIZED, "consolidation is not simulated", wanted=False, holds=holds)
    move = single(view, one, Policy(view), Share(ask))
    at = _ahead(view, _proposed(view, one))
    if isinstance(move, Blocker):
        text = "its savings would be too small" if move.code in TOO_LITTLE else "its pods have no cheaper placement"
        holds = _holds(view, one, UNDERUTILIZED, [*speaking, move])
        return End(UNDERUTILIZED, text, at, wanted=False, holds=holds)
    cheaper = "a smaller capacity reservation is enough" if one.reserved else "a cheaper node is enough"
    text = f"{cheaper if move.new else 'its pods fit on other nodes'}: {prices.saves(move.saving)}"
    lines = (*evicted(one.pods), *coming(move.new))
    holds = _holds(view, one, UNDERUTILIZED, speaking)
    return End(UNDERUTILIZED, text, at, holds=holds, facts=lines, saving=move.saving)


def _proposed(view: View, one: Candidate) -> datetime | None:
    """Return the end of the validation delay of a proposal for the node; None without a proposal."""
    delay = view.snapshot.settings.validation_delay
    made = [p.made_at + delay for p in view.snapshot.proposals if one.key in p.candidates and p.made_at is not None]
    return min(made, default=None)


def _ahead(view: View, at: datetime | None) -> datetime | None:
    return at if at is not None and at > view.snapshot.now else None


def _refused(speaking: Iterable[Blocker]) -> bool:
    return any(blocker.until is None for blocker in speaking)


def _holds(view: View, one: Candidate, reason: str, speaking: Iterable[Blocker]) -> tuple[Hold, ...]:
    """Return the blockers: those of any disruption, a recent failure, those of the reason, then the budgets."""
    common = [blocker for blocker in blockers(view, one.key, eventual=reason == DRIFTED) if blocker.code != "Unmanaged"]
    failed = failed_lately(view, one.state) if reason != EMPTY else None
    found = [Hold.of(blocker) for blocker in (*common, *([failed] if failed is not None else []), *speaking)]
    budget = held(view, one.pool.name, reason)
    unready = not_yet(view.snapshot)
    found += [budget] if budget is not None else []
    found += [Hold(r.reason.code, r.reason.text) for r in unready.refusals] if unready is not None else []
    return together(found)
