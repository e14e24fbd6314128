"""The methods of disruption by commands, in their order: expiration, emptiness, drift (of static pools first),
consolidation.

Each finds the nodes it would like to disrupt, asks what speaks against them, and starts commands as far as budgets go.
A method that would simulate does so only while no other method has started anything in the plan, because its simulation
does not know of that; the next reconcile follows at once. Drift starts several nodes in a plan (`replacing.py`).
Source: disruption reference §1.1, §3.6, §4.4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from typing import Final

from kerf.disruption import announcing
from kerf.disruption.candidates import canary, costs
from kerf.disruption.candidates.budgets import Ledger, reported
from kerf.disruption.candidates.candidates import Blocker, Candidate, known_candidate, refused
from kerf.disruption.candidates.pacing import backing_off, next_change, no_budget, pool_blocker, settled, soon
from kerf.disruption.command import command_id, failure_of
from kerf.disruption.commands import start, start_together
from kerf.disruption.consolidation.eligibility import rest_blockers
from kerf.disruption.consolidation.moves import DELETE, Move, judge
from kerf.disruption.consolidation.proposals import agreed, outweighed, timely
from kerf.disruption.methods.replacing import drift_text, replaced
from kerf.disruption.methods.retirement import retirement
from kerf.disruption.on_nodes import tried
from kerf.disruption.share import NEXT_TIME, Share
from kerf.disruption.view import View
from kerf.model.gauges import PlanGauge
from kerf.model.memory import Step
from kerf.model.plan import NOTHING, Plan, Reason, Refusal, Source, joined
from kerf.model.replicas import may_renew, room
from kerf.model.snapshot import Proposal, StateNode
from kerf.scheduling.answers.nodeclaims import member_claim, member_name, to_claim
from kerf.scheduling.facts.joining import NOT_REGISTERED, members_left
from kerf.scheduling.offerings import prices
from kerf_api.v1.budgets import DRIFTED, EMPTY, UNDERUTILIZED
from kerf_api.v1.nodepool import NodePool

#: How many proposals of consolidation one plan may simulate.
_PROBES: Final = 2
#: About so many pods are moved by the deletions that one plan begins: to check these takes a fraction of a second.
_PODS_AT_ONCE: Final = 200


@dataclass(frozen=True, slots=True)
class Method:
    """A reason to disrupt: which commands `run` starts, and what it rests on beside what all commands rest on."""

    name: str
    run: Callable[[View, Ledger, Share], Plan]
    sources: frozenset[Source] = frozenset()


# --- emptiness --------------------------------------------------------------------------------------------------
def emptiness(view: View, ledger: Ledger, share: Share) -> Plan:
    """Every empty node that has been quiet long enough is removed, within budgets, the most expensive first."""
    wishes = _wishes(view, ledger)
    keys = [key for key, wish in wishes.items() if wish.empty]
    judged = {key: known_candidate(view, key) for key in keys}
    ready = [found for found in judged.values() if isinstance(found, Candidate)]
    plans = [refused(view.snapshot.state_nodes[k], b, soon(view)) for k, b in judged.items() if isinstance(b, Blocker)]
    plans += [
        tried(view.snapshot, f"node/{found.state.name}", partial(_empty_one, view, ledger, found))
        for found in sorted(ready, key=by_savings)
    ]
    plans += [_buffer(view, key, wish.buffer_pods) for key, wish in wishes.items() if wish.buffer_pods]
    return joined([_eligible(view, ledger, EMPTY, len(keys)), *plans])


def _buffer(view: View, key: str, number: int) -> Plan:
    """The refusal of a node that is empty but for the room that CapacityBuffers keep there."""
    text = f"CapacityBuffers reserve capacity on it (pods: {number})"
    return refused(view.snapshot.state_nodes[key], Blocker("BufferPods", text, quiet=True))


def _empty_one(view: View, ledger: Ledger, found: Candidate) -> Plan:
    due = quiet_since(found) + view.snapshot.settings.validation_delay
    if due > view.snapshot.now:
        return Plan(next_due=due)
    if not ledger.remaining(found.pool.name, EMPTY):
        return no_budget(view, found.state, EMPTY)
    ledger.take(found.pool.name, found.key)
    return start(view, found, EMPTY, "no reschedulable pods")


def quiet_since(found: Candidate) -> datetime:
    """Since when the node has been consolidatable and without pod events."""
    condition = found.claim.condition("Consolidatable")
    assert condition is not None
    times = (condition.last_transition_time, found.claim.status.last_pod_event_time)
    known = [time for time in times if time is not None]
    return max(known) if known else datetime.fromisoformat("1970-01-01T00:00:00+00:00")


# --- drift ------------------------------------------------------------------------------------------------------
def drift(view: View, ledger: Ledger, share: Share) -> Plan:
    """Drifted nodes: empty ones at once, then those that have drifted longest, their replacements first."""
    wishes = _wishes(view, ledger)
    keys = [key for key, wish in wishes.items() if wish.drifted]
    waiting, ready, held = [], [], cache(partial(pool_blocker, view))
    for key in sorted(keys, key=lambda key: _drift_order(view, key)):
        found = _drift_candidate(view, ledger, key, held)
        if isinstance(found, Plan):
            waiting.append(found)
        else:
            ready.append(found)
    ready, later = canary.first(view, ready)
    waiting += [refused(one.state, blocker, soon(view)) for one, blocker in later]
    eligible = len(keys) + sum(wish.outdated for wish in wishes.values())
    plans = [_eligible(view, ledger, DRIFTED, eligible), *waiting]
    full = [found for found in ready if found.movable]
    plans += [_drift_empty(view, ledger, found) for found in ready if not found.movable]
    if full or _unsure(waiting):
        plans += [Plan(next_due=soon(view))]
    if full and not ledger.used and settled(view):
        plans += replaced(view, ledger, _in_turns(view, full), share)
    return joined(plans)


def _in_turns(view: View, ready: Iterable[Candidate]) -> list[Candidate]:
    """Those that have drifted longest first, but a NodePool that has less under way before one that has more."""
    turn = Counter(view.snapshot.state_nodes[key].pool_name for key, c in view.commands.items() if c.reason == DRIFTED)
    rows = []
    for age, found in enumerate(ready):
        rows.append((turn[found.pool.name], age, found))
        turn[found.pool.name] += 1
    return [found for _, _, found in sorted(rows, key=lambda row: row[:2])]


def _drift_order(view: View, key: str) -> tuple[bool, datetime, str]:
    """Those that have drifted longest first, but last those whose replacements came up other than planned."""
    claim = view.snapshot.state_nodes[key].claim
    condition = claim.condition("Drifted") if claim is not None else None
    since = condition.last_transition_time if condition is not None else None
    failure = failure_of(claim.metadata.annotations, view.snapshot.now) if claim is not None else None
    return failure is not None and bool(failure.inputs), since or view.snapshot.now, key


def _drift_candidate(view: View, ledger: Ledger, key: str, held: Callable[[str], Blocker | None]) -> Candidate | Plan:
    """The candidate, or the refusal of one that has to wait; one that backs off says until when. `held` is what keeps
    a NodePool's nodes that need a replacement."""
    found = view.turn.one(_DRIFTED, view.each, key)
    if isinstance(found, Plan):
        return found
    waits = held(found.pool.name) if found.movable or found.pool.static else None
    if waits is not None:
        return refused(found.state, waits, waits.until)
    return found if ledger.remaining(found.pool.name, DRIFTED) else no_budget(view, found.state, DRIFTED)


def _unsure(waiting: Iterable[Plan]) -> bool:
    """Whether a refusal does not say until when it holds."""
    return any(plan.next_due is None for plan in waiting)


def _drifted(view: View, key: str) -> tuple[Candidate | Plan, datetime | None]:
    state = view.snapshot.state_nodes[key]
    due, held = next_change(view, state), backing_off(view, state)
    if held is not None:
        return held, due
    found = canary.drift_blocker(view, state) or known_candidate(view, key, eventual=True)
    return (refused(state, found) if isinstance(found, Blocker) else found), due


_DRIFTED: Final[Step[View, Candidate | Plan]] = Step("drifted nodes", "state_nodes", _drifted, speaks=lambda _: False)


def _drift_empty(view: View, ledger: Ledger, found: Candidate) -> Plan:
    if not ledger.remaining(found.pool.name, DRIFTED):
        return no_budget(view, found.state, DRIFTED)
    ledger.take(found.pool.name, found.key)
    return start(view, found, DRIFTED, drift_text(found))


# --- drift of static pools ----------------------------------------------------------------------------------------
#: Of a member of a static pool that has drifted.
NO_ROOM: Final = Blocker("NodeLimitReached", "limits.nodes allows no successor beside it", quiet=True)
NOT_JOINING: Final = Blocker(
    NOT_REGISTERED,
    "the latest nodes of its NodePool have not joined: Kerf launches one at a time until one does",
    quiet=True,
)


def static_drift(view: View, ledger: Ledger, share: Share) -> Plan:
    """Drifted members of static pools: a successor from the template each, as far as budgets and `limits.nodes` go."""
    keys = [key for key, wish in _wishes(view, ledger).items() if wish.outdated]
    pools = sorted({view.snapshot.state_nodes[key].pool_name for key in keys})
    return joined(
        tried(view.snapshot, f"nodepool/{name}", partial(_renewed, view, ledger, view.snapshot.node_pools[name], keys))
        for name in pools
    )


def _renewed(view: View, ledger: Ledger, pool: NodePool, keys: Sequence[str]) -> Plan:
    """None while the pool has too many: the surplus goes first, and so does what is being replaced."""
    snapshot = view.snapshot
    if not may_renew(snapshot, pool):
        return NOTHING
    mine = sorted((k for k in keys if snapshot.state_nodes[k].pool_name == pool.name), key=partial(_drift_order, view))
    held = cache(partial(pool_blocker, view))
    found = [_drift_candidate(view, ledger, key, held) for key in mine]
    plans = [plan for plan in found if isinstance(plan, Plan)]
    ready, later = canary.first(view, [one for one in found if isinstance(one, Candidate)], alone=True)
    plans += [refused(one.state, blocker, soon(view)) for one, blocker in later]
    granted = room(snapshot, pool, min(len(ready), ledger.remaining(pool.name, DRIFTED)))
    left = members_left(snapshot, pool)
    if not granted and ready:
        plans += [refused(one.state, NO_ROOM, soon(view)) for one in ready]
    elif left is not None:
        plans += [refused(one.state, NOT_JOINING, soon(view)) for one in ready[left:granted]]
        granted = min(granted, left)
    for one in ready[:granted]:
        salt = command_id(one.claim.metadata.uid, DRIFTED, snapshot.now)
        ledger.take(pool.name, one.key)
        successor = member_claim(snapshot, pool, member_name(pool, salt))
        plans.append(start(view, one, DRIFTED, drift_text(one), [successor]))
    return joined((*plans, Plan(next_due=soon(view) if ready or _unsure(plans) else None)))


# --- consolidation ----------------------------------------------------------------------------------------------
def consolidation(view: View, ledger: Ledger, share: Share) -> Plan:
    """Proposals that have stood their time and still hold: deletions, several at once, or one replacement a plan."""
    due, ready = timely(view)
    told = (
        *announcing.replaceable(view, ready),
        *announcing.restrained(view),
        *announcing.unreadable_thresholds(view),
    )
    plans = [_eligible(view, ledger, UNDERUTILIZED, len(ready)), Plan(events=told, next_due=due)]
    if ledger.used or not settled(view) or outweighed(view, ready):
        return joined(plans)
    late = share.first(ready, [{*proposal.candidates} for proposal in ready])
    together = _deletions(view, ledger, ready, share) if late is ready else None
    if together is not None:
        return joined([*plans, together])
    wanted = {key for proposal in ready for key in proposal.candidates}
    for proposal in late[:_PROBES]:
        if not share.begins(proposal.candidates, wanted):
            plans += [refused(state, NEXT_TIME, soon(view)) for state in _staying(view, proposal)]
            continue
        plan, started = _carried_out(view, ledger, proposal, share)
        plans.append(plan)
        if started:
            break
    return joined(plans)


def _deletions(view: View, ledger: Ledger, ready: Iterable[Proposal], share: Share) -> Plan | None:
    """Start those proposed deletions, the first so many, that hold all together; None when there are not two."""
    going: list[Candidate] = []
    for proposal in ready:
        found = agreed(view, proposal) if proposal.kind == DELETE else None
        if found is None or ledger.affordable(found, UNDERUTILIZED, going) != found:
            continue
        going += found
        if sum(len(one.movable) for one in going) >= _PODS_AT_ONCE:
            break
    if len(going) < 2 or not isinstance(move := judge(view, going, share), Move) or move.new:
        return None
    for one in going:
        ledger.take(one.pool.name, one.key)
    told = Plan(events=tuple(announcing.approved(view, going, move.saving)))
    begun = [start(view, one, UNDERUTILIZED, _saves(DELETE, one.price), saving=one.price) for one in going]
    return joined((*begun, told))


def _carried_out(view: View, ledger: Ledger, proposal: Proposal, share: Share) -> tuple[Plan, bool]:
    """Start the proposed command if the world still agrees, and whether that was so."""
    found = agreed(view, proposal)
    if found is None:
        return _dropped(
            view, proposal, announcing.CHURN, "the cluster has changed since the disruption was computed"
        ), False
    afforded = ledger.affordable(found, UNDERUTILIZED)
    short = next((one for one in found if one not in afforded), None)
    if short is not None:
        kept = _dropped(
            view, proposal, announcing.BUDGET, f"the budgets of NodePool {short.pool.name} block its disruption"
        )
        return kept + no_budget(view, short.state, UNDERUTILIZED), False
    move = judge(view, found, share)
    if not isinstance(move, Move) or (move.new and not _no_worse(move, proposal)):
        text = move.text if isinstance(move, Blocker) else "the replacement would be another one"
        return _dropped(view, proposal, announcing.SCHEDULING, text), False
    salt = command_id(found[0].claim.metadata.uid, UNDERUTILIZED, view.snapshot.now)
    claims = [to_claim(view.snapshot, new, salt=salt) for new in move.new]
    for one in found:
        ledger.take(one.pool.name, one.key)
    begun = start_together(view, found, UNDERUTILIZED, _saves(move.kind, move.saving), claims, move.saving)
    return begun + Plan(events=tuple(announcing.approved(view, found, move.saving))), True


def _dropped(view: View, proposal: Proposal, why: str, text: str) -> Plan:
    """The refusal of a proposal that does not hold; of nodes that are on their way already there is no refusal."""
    staying = _staying(view, proposal)
    reason = Reason("ConsolidationRejected", f"{why}: {text}")
    refusals = tuple(Refusal(f"node/{one.name}", reason) for one in staying)
    return Plan(refusals=refusals, events=announcing.rejected(staying, why, text), next_due=soon(view))


def _staying(view: View, proposal: Proposal) -> list[StateNode]:
    """The candidates of a proposal that are not on their way already."""
    known = view.snapshot.state_nodes
    keys = [key for key in proposal.candidates if key in known and view.command(key) is None]
    return [known[key] for key in keys if not known[key].deleting]


def _saves(kind: str, saving: int) -> str:
    return f"{kind}, {prices.saves(saving)}"


def _no_worse(move: Move, proposal: Proposal) -> bool:
    """A replacement was proposed too, and at least its types are still to be had; several save no less."""
    if len(move.candidates) > 1:
        return 0 < len(proposal.replacements) >= len(move.new) and move.saving >= proposal.saving
    proposed = {
        value
        for claim in proposal.replacements
        for entry in claim.spec.requirements
        if entry.key == "node.kubernetes.io/instance-type"
        for value in entry.values
    }
    return bool(proposed) and all(proposed <= set(new.instance_types) for new in move.new)


# --- shared -----------------------------------------------------------------------------------------------------
def by_savings(found: Candidate) -> tuple[object, str]:
    """The most money per disruption first; ties by name."""
    return -costs.savings_ratio(found.price, found.cost), found.key


# --- what the methods would like --------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Wish:
    """Which methods would like to disrupt a node; one that is empty but for `buffer_pods` is kept for these.
    `outdated` are drifted members of static pools.
    """

    empty: bool = False
    drifted: bool = False
    buffer_pods: int = 0
    outdated: bool = False


def _wishes(view: View, ledger: Ledger) -> dict[str, _Wish]:
    """By key, in order of keys; those about which this plan has decided something already are left out."""
    return {key: wish for key, wish in view.turn.all(_WISHES, view.each).spoken.items() if key not in ledger.taken}


def _wish(view: View, key: str) -> tuple[_Wish, None]:
    """Of an initialised node with a claim about which nothing has been decided."""
    state = view.snapshot.state_nodes[key]
    claim, pool = state.claim, view.snapshot.node_pools.get(state.pool_name)
    if claim is None or pool is None or state.deleting or not state.initialized or view.command(key) is not None:
        return _Wish(), None
    calm = claim.is_true("Consolidatable") and next(rest_blockers(view, claim, pool), None) is None
    empty = calm and costs.empty(view.snapshot.pods.on(state.name))
    held = view.snapshot.buffer_pods.get(key, 0) if empty else 0
    drifted, gate = claim.is_true("Drifted"), view.snapshot.settings.gates.static_capacity
    return _Wish(empty and not held, drifted and not pool.static, held, drifted and pool.static and gate), None


_WISHES: Step[View, _Wish] = Step("wishes", "state_nodes", _wish, speaks=lambda wish: wish != _Wish())


def _eligible(view: View, ledger: Ledger, reason: str, count: int) -> Plan:
    """The gauges of a reason; budgets only when something wants to use them."""
    plan = Plan(gauges={(PlanGauge.ELIGIBLE_NODES, (("reason", reason.lower()),)): count})
    return plan + reported(view.snapshot, ledger.budgets, reason) if count else plan


METHODS: Final = (
    Method("expiration", retirement),
    Method("emptiness", emptiness),
    Method("static drift", static_drift, frozenset({Source.NODE_CLASSES})),
    Method("drift", drift, frozenset({Source.NODE_CLASSES})),
    Method("consolidation", consolidation),
)
