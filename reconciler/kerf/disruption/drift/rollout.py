"""How far the nodes of a NodePool are behind what it asks for, as conditions that tools can wait for.

`UpToDate` is True once no node has drifted. Until then it says how many are behind, being replaced, waiting for their
turn, and held by what; and `Reconciling` is True, by which kstatus (Flux, health checks) knows that a roll-out
continues. When for some minutes every node that is behind has been held by something that budgets and time do not
solve, or an action fails on every node that leaves, the roll-out is `Stalled`. While a change waits for approval both
conditions are absent: tools need not wait for it. `BudgetsValid` is False while a budget cannot be read, which closes
the pool for every reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from kerf.disruption.candidates import approval, canary
from kerf.disruption.candidates.candidates import Blocker, known_candidate
from kerf.disruption.candidates.pacing import next_change, next_try, pool_blocker
from kerf.disruption.drift import approvals, canaries
from kerf.disruption.drift.drift import drift_reason
from kerf.disruption.on_nodes import rows_with, tried
from kerf.disruption.view import View
from kerf.model import failures, kinds
from kerf.model.failures import Failure
from kerf.model.memory import Step
from kerf.model.plan import NOTHING, Event, Plan, Reason, joined
from kerf.model.snapshot import Snapshot, StateNode
from kerf.model.writes import set_conditions
from kerf_api import labels
from kerf_api.texts import counted
from kerf_api.v1 import budgets, hashes
from kerf_api.v1 import conditions as rules
from kerf_api.v1.meta import Condition
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool

UP_TO_DATE, RECONCILING = rules.NODEPOOL_PROGRESS
STALLED: Final = "Stalled"
BUDGETS_VALID: Final = "BudgetsValid"

#: What has been held for so long is stalled; a budget of pods that is used up for a moment is not.
STALLED_AFTER: Final = timedelta(minutes=5)
_SHOWN: Final = 3
#: The reason while every node that is behind has a blocker other than budgets.
BLOCKED: Final = "Blocked"
#: The reason while an action fails on every node that leaves.
_FAILS: Final = "ActionFails"
_NODES, _BEHIND, _LEAVING = "nodes", "behind", "leaving"
_ONCE: Final = 3600

Conditions = tuple[Condition, ...]


def rollout(view: View) -> Plan:
    """One guarded write per NodePool whose conditions should change."""
    asked = view.turn.all(_ROLES, view.each)
    behind: dict[str, list[str]] = {}
    for key, role in asked.spoken.items():
        behind.setdefault(role.pool, []).append(key)
    pools = view.snapshot.node_pools
    return joined(
        tried(view.snapshot, f"nodepool/{name}", partial(_one, view, pools[name], asked.sums, behind.get(name, ())))
        for name in sorted(pools)
    )


def _one(view: View, pool: NodePool, sums: Mapping[tuple[str, str], int], behind: Iterable[str]) -> Plan:
    meta = pool.metadata
    if meta.deleting or meta.unreadable or not pool.managed or not view.turn.one(_HASHED, view.each, pool.name):
        return NOTHING
    told, wanted = _with_budgets(view, pool, pool.status.conditions)
    counts = {part: sums.get((pool.name, part), 0) for part in (_NODES, _BEHIND, _LEAVING)}
    wanted, due = _with_progress(view, pool, wanted, counts, list(behind))
    drifted = counts[_BEHIND] + counts[_LEAVING]
    seen = approvals.seen(view, pool, drifted)
    seen = seen if seen.actions else canaries.noted(view, pool)
    wanted = approvals.with_condition(view, pool, wanted, counts[_BEHIND])
    wanted = canaries.with_condition(view, pool, wanted, drifted)
    known = Plan(events=told, next_due=due) + approvals.reported(view, pool, wanted)
    if seen.actions or wanted == pool.status.conditions:
        return known + seen
    reason = Reason("RollOut", ", ".join(f"{c.type}={c.status}" for c in wanted if c not in pool.status.conditions))
    return known + Plan(actions=(set_conditions(pool, wanted, reason),))


# --- budgets ----------------------------------------------------------------------------------------------------
def _with_budgets(view: View, pool: NodePool, known: Conditions) -> tuple[tuple[Event, ...], Conditions]:
    problems = view.turn.one(_FAULTS, view.each, pool.name)
    if not problems:
        return (), rows_with(view.snapshot, pool, known, BUDGETS_VALID, rules.TRUE, BUDGETS_VALID)
    text = f"{'; '.join(problems)}; until then no node is disrupted for any reason"
    event = Event(kinds.ref(pool), pool.metadata.uid, "Warning", "InvalidBudget", text, text, _ONCE)
    return (event,), rows_with(view.snapshot, pool, known, BUDGETS_VALID, rules.FALSE, "InvalidBudget", text)


# --- progress ---------------------------------------------------------------------------------------------------
def _with_progress(
    view: View, pool: NodePool, known: Conditions, counts: Mapping[str, int], behind: Sequence[str]
) -> tuple[Conditions, datetime | None]:
    """`behind` are the keys of the nodes that have drifted and about which nothing has been decided yet."""
    if not counts[_BEHIND] and not counts[_LEAVING]:
        done = rows_with(view.snapshot, pool, known, UP_TO_DATE, rules.TRUE, UP_TO_DATE)
        return rules.drop(rules.drop(done, RECONCILING), STALLED), None
    if not counts[_LEAVING] and approval.gate_of(view, pool).closed:
        words = f"{_up_to_date(counts[_NODES] - counts[_BEHIND], counts[_NODES])}; the change is not approved"
        known = rows_with(view.snapshot, pool, known, UP_TO_DATE, rules.FALSE, approval.AWAITING, words)
        return rules.drop(rules.drop(known, RECONCILING), STALLED), None
    holds = zip(behind, view.turn.some(_HOLDS, view.each, behind), strict=True)
    waits = pool_blocker(view, pool.name)
    rest = waits.text if waits is not None else ""
    held = {view.snapshot.state_nodes[key].name: text or rest for key, text in holds if text or rest}
    failing = _failing(view, pool) if counts[_LEAVING] else {}
    stuck = len(failing) == counts[_LEAVING] and (bool(failing) or len(held) == len(behind))
    reason = _FAILS if stuck and failing else BLOCKED if stuck else _moves(view, pool, counts)
    words = _words(counts, held, failing)
    known = rows_with(view.snapshot, pool, known, UP_TO_DATE, rules.FALSE, reason, words)
    known = rows_with(view.snapshot, pool, known, RECONCILING, rules.TRUE, reason, words)
    if not stuck:
        return rules.drop(known, STALLED), None
    before = rules.get(known, STALLED)
    since = before.last_transition_time if before is not None else view.snapshot.now
    if before is not None and before.status == rules.TRUE:
        return rows_with(view.snapshot, pool, known, STALLED, rules.TRUE, reason, words), None
    if since is not None and view.snapshot.now - since < STALLED_AFTER:
        return rows_with(view.snapshot, pool, known, STALLED, rules.UNKNOWN, reason, words), since + STALLED_AFTER
    return rows_with(view.snapshot, pool, known, STALLED, rules.TRUE, reason, words), None


def _moves(view: View, pool: NodePool, counts: Mapping[str, int]) -> str:
    """Why the nodes are not up to date yet: some leave, or the change has a canary that is not over, or budgets."""
    if counts[_LEAVING]:
        return "RollingOut"
    trial = canary.trial_of(view, pool)
    return canary.AWAITING if trial.waits and trial.phase != canary.PENDING else "WaitingForBudget"


def _failing(view: View, pool: NodePool) -> dict[str, str]:
    """By name of the node, the oldest failing action on each node of the pool that is being replaced."""
    found: dict[str, str] = {}
    replaced: dict[str, list[str]] = {}
    for name, command in view.commands.items():
        for new in command.replacements:  # nodes that are disrupted together share theirs
            replaced.setdefault(new, []).append(name)
    for one in failures.ordered(view.snapshot.failures.values()):
        claims = _claims_of(view.snapshot, one) if one.outcome in failures.STUCK else ()
        for key in (key for claim in claims for key in replaced.get(claim, [claim])):
            if key in view.snapshot.state_nodes:
                role = view.turn.one(_ROLES, view.each, key)
                if (role.pool, role.part) == (pool.name, _LEAVING):
                    found.setdefault(view.snapshot.state_nodes[key].name, one.text)
    return found


def _claims_of(snapshot: Snapshot, failure: Failure) -> list[str]:
    """The NodeClaims, by name, of the object of a failing action: itself, that of its Node, of its instance or of a pod
    there, or those of the NodePool that wait to be launched."""
    kind, _, name = failure.object.partition("/")
    if kind == "pod" and name in snapshot.pods:
        kind, name = "node", snapshot.pods[name].spec.node_name
    claims: Iterable[NodeClaim] = ()
    if kind == "node" and name in snapshot.nodes:
        claims = snapshot.claims_by_provider.get(snapshot.nodes[name].spec.provider_id, ())
    elif kind == "instance":
        claims = snapshot.claims_by_instance.get(name, ())
    elif kind == "nodepool" and failure.verb == failures.LAUNCH:
        return sorted(one.name for one in snapshot.claims_by_pool.get(name, ()) if not one.is_true("Launched"))
    return [name] if kind == "nodeclaim" else [claim.name for claim in claims]


def _up_to_date(number: int, nodes: int) -> str:
    return f"{number} of {counted(nodes, 'node')} {'is' if nodes == 1 else 'are'} up to date"


def _words(counts: Mapping[str, int], held: Mapping[str, str], failing: Mapping[str, str]) -> str:
    nodes, behind, leaving = counts[_NODES], counts[_BEHIND], counts[_LEAVING]
    waiting = behind - len(held)
    parts = [_up_to_date(nodes - behind - leaving, nodes)]
    parts += [f"{leaving - len(failing)} being replaced"] if leaving > len(failing) else []
    parts += [f"{len(failing)} not replaced because an action fails"] if failing else []
    parts += [f"{waiting} waiting for their turn"] if waiting > 0 else []
    parts += [f"{len(held)} blocked"] if held else []
    rows = [*((name, failing[name]) for name in sorted(failing)), *((name, held[name]) for name in sorted(held))]
    shown = [f"{name}: {text}" for name, text in rows[:_SHOWN]]
    more = [f"and {len(rows) - _SHOWN} more"] if len(rows) > _SHOWN else []
    return "; ".join([", ".join(parts), *shown, *more])


def _hold(view: View, state: StateNode) -> str:
    """What keeps a drifted node from its turn; empty when only budgets do."""
    if not state.initialized:
        return "the node is not initialized"
    assert state.claim is not None
    waits = canary.drift_blocker(view, state)
    if waits is not None:
        return "" if waits.code == canary.AWAITING else waits.text
    blocker = known_candidate(view, state.claim.name, eventual=True)
    if isinstance(blocker, Blocker):
        return "" if blocker.quiet else blocker.text
    waiting = next_try(view, state)
    return waiting.text if waiting is not None else ""


# --- what is known of single objects ----------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Role:
    """Of one state node in its NodePool's roll-out."""

    pool: str
    part: str

    @property
    def counts(self) -> tuple[tuple[tuple[str, str], int], ...]:
        if not self.part:
            return ()
        own = (((self.pool, _NODES), 1),)
        return own if self.part == _NODES else (*own, ((self.pool, self.part), 1))


def _role(view: View, key: str) -> tuple[_Role, None]:
    """A drifted node is behind until a plan decides about it, and leaving until it is gone. One that goes without
    having drifted counts no more, one that is not ready yet not before it is."""
    state = view.snapshot.state_nodes[key]
    claim, pool = state.claim, view.snapshot.node_pools.get(state.pool_name)
    if claim is None or not claim.managed or pool is None:
        return _Role(state.pool_name, ""), None
    drifted = claim.is_true("Drifted") or (not claim.metadata.deleting and bool(drift_reason(view, claim, pool)))
    if state.deleting:
        return _Role(pool.name, _LEAVING if drifted else ""), None
    if not drifted:
        return _Role(pool.name, _NODES if state.initialized else ""), None
    return _Role(pool.name, _LEAVING if labels.COMMAND in claim.metadata.annotations else _BEHIND), None


def _held(view: View, key: str) -> tuple[str, datetime | None]:
    """What holds a drifted node, until its last failure counts in another way at the latest."""
    state = view.snapshot.state_nodes[key]
    return _hold(view, state), next_change(view, state)


def _hashed(view: View, name: str) -> tuple[bool, None]:
    """Whether the pool's hash, by which its nodes are judged, is that of its template as it is now."""
    pool = view.snapshot.node_pools[name]
    return pool.metadata.annotations.get(labels.NODEPOOL_HASH) == hashes.nodepool_hash(pool), None


def _faults(view: View, name: str) -> tuple[tuple[str, ...], None]:
    """Why budgets of the pool cannot be read."""
    return tuple(budgets.problems(view.snapshot.node_pools[name].spec.disruption.budgets)), None


_ROLES: Final[Step[View, _Role]] = Step(
    "roll-out", "state_nodes", _role, speaks=lambda role: role.part == _BEHIND, counts=lambda role: role.counts
)
_HOLDS: Final[Step[View, str]] = Step("blockers of the roll-out", "state_nodes", _held, speaks=lambda _: False)
_HASHED: Final[Step[View, bool]] = Step("hashed", "node_pools", _hashed, speaks=lambda _: False)
_FAULTS: Final[Step[View, tuple[str, ...]]] = Step("budget faults", "node_pools", _faults, speaks=lambda _: False)
