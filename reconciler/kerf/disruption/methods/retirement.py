"""Retirement: a NodeClaim that is about to expire has its successor ready before it is removed.

From some minutes before its end the claim says so in a condition (`Expiring`): when it goes, and which pods will hold
its drain. Then its end is thought through once. Where its pods need new nodes, a command replaces it as it would one
that has drifted; where they have room elsewhere, or nowhere, nothing is bought, and the condition says which. However
that comes out, at its end the claim is deleted (`expiration.py`). With `EXPIRE_WITHIN_BUDGETS`, and for a day for what
had expired before Kerf began to lead, both wait for the budgets of the NodePool, those without reasons; a claim that
these held beyond its end has its successor first, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from kerf.disruption.asking import Manner
from kerf.disruption.candidates.budgets import Ledger
from kerf.disruption.candidates.candidates import Candidate, bound_to_go, pod_blocker
from kerf.disruption.candidates.pacing import backing_off, no_budget, settled, soon
from kerf.disruption.command import command_id, failure_of
from kerf.disruption.commands import start
from kerf.disruption.forced.expiration import PACED_FOR, End, end_of, expired
from kerf.disruption.on_nodes import node_events, rows_with, tried
from kerf.disruption.share import Share
from kerf.disruption.simulation import simulate
from kerf.disruption.view import View
from kerf.model.instants import rfc3339
from kerf.model.memory import Step
from kerf.model.plan import PatchObject, Plan, Reason, joined
from kerf.model.replicas import may_renew, room
from kerf.model.snapshot import StateNode
from kerf.model.writes import set_conditions
from kerf.scheduling.answers.nodeclaims import member_claim, member_name, to_claim
from kerf.scheduling.facts.joining import NOT_REGISTERED, members_left
from kerf_api import durations
from kerf_api.v1 import conditions as rules
from kerf_api.v1.budgets import EXPIRED
from kerf_api.v1.nodeclaim import NodeClaim

EXPIRING: Final = "Expiring"
#: What the condition says once the end has been thought through and nothing is bought for it.
_NOT_NEEDED, _NO_PLACE = "SuccessorNotNeeded", "NoPlaceForPods"
#: Seconds in which the same announcement is one.
_ONCE: Final = 3600


def retirement(view: View, ledger: Ledger, share: Share) -> Plan:
    """Announce ends, make successors ready, one a plan; and end what budgets were to hold up."""
    asked = view.turn.all(_ENDS, view.each)
    ends = {key: end for key, end in asked.spoken.items() if end is not None and _open(view, ledger, key)}
    plans = [Plan(next_due=asked.due)]
    waiting: list[tuple[StateNode, NodeClaim, End]] = []
    for key in sorted(ends, key=lambda key: (ends[key].at, key)):
        state, claim = view.snapshot.state_nodes[key], view.snapshot.node_claims[key]
        if claim.condition(EXPIRING) is None:
            plans.append(tried(view.snapshot, f"nodeclaim/{key}", partial(_announced, view, state, claim, ends[key])))
        elif ends[key].paced and not ledger.remaining(state.pool_name, EXPIRED):
            plans.append(no_budget(view, state, EXPIRED))
        elif _undecided(claim) and (ends[key].at > view.snapshot.now or _held_beyond_its_end(view, claim, ends[key])):
            waiting.append((state, claim, ends[key]))
        elif ends[key].at <= view.snapshot.now:  # without budgets it would be gone
            ledger.take(state.pool_name, key)
            plans.append(expired(view.snapshot, claim))
    return joined([*plans, *_prepared(view, ledger, waiting, share)])


def _open(view: View, ledger: Ledger, key: str) -> bool:
    """Whether neither a command nor this plan has decided about it."""
    return key not in ledger.taken and view.command(key) is None


# --- the announcement -------------------------------------------------------------------------------------------
def _announced(view: View, state: StateNode, claim: NodeClaim, end: End) -> Plan:
    """The condition, and the same words as an event: a warning when pods block the drain."""
    text, held = _outlook(view, claim, end), _held(view, state)
    words = f"{text}; blocked now by: {held}" if held else text
    events = node_events(state, EXPIRING, words, type_="Warning" if held else "Normal", dedupe_seconds=_ONCE)
    return Plan(actions=(_noted(view, claim, EXPIRING, words),), events=events)


def _outlook(view: View, claim: NodeClaim, end: End) -> str:
    """When it goes, and when that is over: the deadline of its drain, if it has one."""
    grace = claim.spec.termination_grace_period
    when = f"at {rfc3339(end.at)} or as soon as its successor is ready"
    if end.paced:
        limit = "" if end.latest is None else f", at the latest at {rfc3339(end.latest)}"
        when = f"from {rfc3339(end.at)} on, as its NodePool's budgets allow{limit}, or when its successor is ready"
    if grace is None:
        return f"is removed {when}; its drain has no time limit (no terminationGracePeriod)"
    if end.paced:
        return f"is removed {when}; its drain is forced {grace} later (terminationGracePeriod)"
    latest = rfc3339(end.at + durations.parse(grace))
    return f"is removed {when}; its drain is forced at {latest} (terminationGracePeriod of {grace})"


def _held(view: View, state: StateNode) -> str:
    blocker = pod_blocker(view, view.pods_on(state.node.name)) if state.node is not None else None
    return blocker.text if blocker is not None else ""


def _noted(view: View, claim: NodeClaim, reason: str, message: str) -> PatchObject:
    wanted = rows_with(view.snapshot, claim, claim.status.conditions, EXPIRING, rules.TRUE, reason, message)
    return set_conditions(claim, wanted, Reason(reason, message))


# --- the successor ----------------------------------------------------------------------------------------------
def _undecided(claim: NodeClaim) -> bool:
    known = claim.condition(EXPIRING)
    return known is not None and known.reason == EXPIRING


def _held_beyond_its_end(view: View, claim: NodeClaim, end: End) -> bool:
    """Budgets held it up, so a little longer does no harm: all that they held would else go within seconds, one after
    the other. But a successor that cannot be had is not waited for."""
    return end.paced and failure_of(claim.metadata.annotations, view.snapshot.now) is None


def _prepared(
    view: View, ledger: Ledger, waiting: Sequence[tuple[StateNode, NodeClaim, End]], share: Share
) -> Iterator[Plan]:
    """What becomes of the first that neither backs off nor waits for another node: a simulation does not see what was
    started beside it. Those that wait share the work of a pass, and have their turns."""
    waits, names = set[str](), {claim.name for _, claim, _ in waiting}
    for state, claim, end in share.first(waiting, [{claim.name} for _, claim, _ in waiting]):
        if state.pool_name in waits:
            continue
        held = backing_off(view, state)
        if held is not None:
            yield held
        elif ledger.used or not settled(view) or not share.begins((claim.name,), names):
            yield Plan(next_due=soon(view))
            return
        else:
            plan = tried(view.snapshot, f"node/{state.name}", partial(_one, view, ledger, claim, end, share))
            yield plan + Plan(next_due=soon(view))
            if plan.actions or plan.refusals:
                return
            if view.snapshot.node_pools[state.pool_name].static:
                waits.add(state.pool_name)  # what it waits for the others of its NodePool wait for, too


def _one(view: View, ledger: Ledger, claim: NodeClaim, end: End, share: Share) -> Plan:
    found = bound_to_go(view, claim.name)
    if found is None or not found.movable:
        return _decided(view, claim, _NOT_NEEDED, "no pod of it needs another node")
    salt = command_id(claim.metadata.uid, EXPIRED, view.snapshot.now)
    if found.pool.static:
        # While the one that is on its way is the successor of another member, the NodePool has more than its number.
        if members_left(view.snapshot, found.pool) == 0:
            return _later(view, claim, end, NOT_REGISTERED, "the latest nodes of its NodePool have not joined")
        successors = _member(view, found, salt)
        if not successors:
            return _decided(view, claim, _NOT_NEEDED, "its NodePool launches a new node after its termination")
    else:
        outcome = simulate(view, [found], share, Manner.FREELY, must_go=True)
        successors = [to_claim(view.snapshot, new, salt=salt) for new in outcome.new_nodes]
        if not successors and (blocker := outcome.blocker) is not None:
            if outcome.barred:
                return _later(view, claim, end, blocker.code, blocker.text)
            return _decided(view, claim, _NO_PLACE, blocker.text)
        if not successors:
            return _decided(view, claim, _NOT_NEEDED, "its pods fit on other nodes")
    ledger.take(found.pool.name, found.key)
    return start(view, found, EXPIRED, f"about to reach its expireAfter of {claim.spec.expire_after}", successors)


def _later(view: View, claim: NodeClaim, end: End, reason: str, words: str) -> Plan:
    """Of a node whose NodePool makes no successor for now, because others of its nodes do not come up: it waits for
    that until its end, or, where budgets count, for a day longer."""
    if view.snapshot.now < (end.latest if end.latest is not None else end.at + PACED_FOR):
        return Plan(next_due=soon(view))
    return _decided(view, claim, reason, words)


def _decided(view: View, claim: NodeClaim, reason: str, words: str) -> Plan:
    known = claim.condition(EXPIRING)
    before = f"{known.message}; " if known is not None and known.message else ""
    return Plan(actions=(_noted(view, claim, reason, f"{before}no successor: {words}"),))


def _member(view: View, found: Candidate, salt: str) -> list[NodeClaim]:
    """One from the template, if `limits.nodes` has room for it beside the old one and no surplus is to go first."""
    snapshot, pool = view.snapshot, found.pool
    if not may_renew(snapshot, pool) or not room(snapshot, pool, 1):
        return []
    return [member_claim(snapshot, pool, member_name(pool, salt))]


# --- what is known of single claims -----------------------------------------------------------------------------
def _end(view: View, name: str) -> tuple[End | None, datetime | None]:
    """The end of a claim that is about to expire; before that, when it will be."""
    claim = view.snapshot.node_claims[name]
    if claim.metadata.deleting or claim.metadata.unreadable or not claim.managed:
        return None, None
    try:
        end = end_of(view.snapshot, claim, view.snapshot.now)
    except ValueError:  # `expire` says so
        return None, None
    if end is None or end.prepared_from > view.snapshot.now:
        return None, end.prepared_from if end is not None else None
    return end, None


_ENDS: Step[View, End | None] = Step("ends", "node_claims", _end, speaks=lambda end: end is not None)
