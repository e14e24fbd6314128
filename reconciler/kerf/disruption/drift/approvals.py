"""The approval of a NodePool's change as others see it: the condition `ChangeApproved`, an event, a gauge, and the
annotation by which Kerf recognizes the change after a restart.

The condition is not part of `Ready`: nodes are launched from the new version meanwhile.
"""

from __future__ import annotations

from typing import Final

from kerf.disruption.candidates.approval import AWAITING, Gate, Seen, gate_of, how_to_approve, is_earlier
from kerf.disruption.on_nodes import rows_with
from kerf.disruption.view import View
from kerf.model import kinds
from kerf.model.annotations import text_of
from kerf.model.gauges import Labels, PlanGauge
from kerf.model.instants import rfc3339
from kerf.model.plan import NOTHING, Event, Plan, Reason, Source
from kerf.model.writes import annotate
from kerf_api import labels
from kerf_api.v1 import conditions as rules
from kerf_api.v1.meta import Condition
from kerf_api.v1.nodepool import NodePool
from kerf_api.v1.plan_digest import Parts

CHANGE_APPROVED: Final = "ChangeApproved"
#: No node is of an earlier version.
NOTHING_TO_APPROVE: Final = "NothingToApprove"
#: Seconds in which the same event is one.
_ONCE: Final = 3600

Conditions = tuple[Condition, ...]


# --- the annotation -----------------------------------------------------------------------------------------------
def seen(view: View, pool: NodePool, drifted: int) -> Plan:
    """The write of the annotation: a new version with the time, or that no node is of an earlier one any more.

    `drifted` is the number of nodes that have drifted, those that leave included.
    """
    gate, known = gate_of(view, pool), pool.metadata.annotations.get(labels.SEEN_PLAN)
    if not gate.noted:
        return NOTHING if known is None else _noted(pool, None, "changes need neither approval nor canary any more")
    if gate.parts is None or not view.snapshot.fresh(Source.NODE_CLAIMS):
        return NOTHING
    before = gate.seen
    if before is None or before.parts != gate.parts:
        settled = before.settled if before is not None else _assumed(pool, gate.parts, drifted)
        now = view.snapshot.now.replace(microsecond=0)
        return _noted(pool, Seen(parts=gate.parts, since=now, settled=settled), f"plan {gate.parts.digest}")
    over = not _earlier(view, pool, gate, drifted) if gate.closed else not drifted
    if gate.settled or not over:
        return NOTHING
    done = Seen(parts=gate.parts, since=before.since, settled=gate.parts)
    return _noted(pool, done, f"no node is older than plan {gate.parts.digest}")


def _assumed(pool: NodePool, parts: Parts, drifted: int) -> Parts | None:
    """The digests of all nodes where no note is left. `kubectl replace` removes the note, but not the condition: a
    change that waits keeps waiting."""
    told = rules.get(pool.status.conditions, CHANGE_APPROVED)
    over = told is None or (told.reason == NOTHING_TO_APPROVE and parts.digest in told.message)
    return parts if over and not drifted else None


def _noted(pool: NodePool, value: Seen | None, why: str) -> Plan:
    notes = {labels.SEEN_PLAN: None if value is None else text_of(value)}
    return Plan(actions=(annotate(pool, "NotePlan", notes, Reason("PlanSeen", f"NodePool {pool.name}: {why}")),))


def _earlier(view: View, pool: NodePool, gate: Gate, drifted: int) -> int:
    """The number of nodes of an earlier version; where all others are settled, that of the drifted ones."""
    if gate.settled:
        return drifted
    claims = view.snapshot.claims_by_pool.get(pool.name, ())
    return sum(not claim.metadata.deleting and is_earlier(gate, claim) for claim in claims)


# --- the condition ------------------------------------------------------------------------------------------------
def with_condition(view: View, pool: NodePool, known: Conditions, drifted: int) -> Conditions:
    """The NodePool's conditions with that of its change; without it when changes need no approval.

    `drifted` is the number of drifted nodes that nothing has been decided about.
    """
    gate = gate_of(view, pool)
    if not gate.rule.on:
        return rules.drop(known, CHANGE_APPROVED)
    if gate.parts is None:
        return known
    earlier = _earlier(view, pool, gate, drifted)
    digest = gate.parts.digest
    if not earlier:
        return rows_with(view.snapshot, pool, known, CHANGE_APPROVED, rules.TRUE, NOTHING_TO_APPROVE, f"plan {digest}")
    if gate.reason:
        words = f"plan {digest}: Kerf replaces {_nodes(drifted, 'drifted ')} within budgets"
        return rows_with(view.snapshot, pool, known, CHANGE_APPROVED, rules.TRUE, gate.reason, words)
    words = _waiting(gate, digest, earlier, drifted)
    return rows_with(view.snapshot, pool, known, CHANGE_APPROVED, rules.FALSE, AWAITING, words)


def _waiting(gate: Gate, digest: str, earlier: int, drifted: int) -> str:
    before = gate.seen.settled if gate.seen is not None else None
    parts = gate.parts.changed_since(before) if gate.parts is not None and before is not None else ()
    about = f" ({', '.join(parts)})" if parts else ""
    what = f"plan {digest}{about} would replace {_nodes(drifted, 'drifted ')}"
    kept = f"{_nodes(earlier)} of an earlier version {'is' if earlier == 1 else 'are'} kept"
    without = f"; without approval it continues at {rfc3339(gate.until)}" if gate.until is not None else ""
    return "; ".join((f"{what}; {kept}; {how_to_approve(digest)}{without}", *gate.faults))


def _nodes(count: int, which: str = "") -> str:
    return f"{count} {which}{'node' if count == 1 else 'nodes'}"


# --- event and gauge ----------------------------------------------------------------------------------------------
def reported(view: View, pool: NodePool, wanted: Conditions) -> Plan:
    """One event for each change that begins to wait, one for invalid annotations, and the gauge."""
    gate, told = gate_of(view, pool), rules.get(wanted, CHANGE_APPROVED)
    ref, uid = kinds.ref(pool), pool.metadata.uid
    events = [Event(ref, uid, "Warning", "InvalidAnnotation", fault, fault, _ONCE) for fault in gate.faults]
    if told is None or told.status != rules.FALSE or gate.parts is None:
        return Plan(events=tuple(events), next_due=gate.until)
    before = rules.get(pool.status.conditions, CHANGE_APPROVED)
    if before is None or before.status != rules.FALSE or gate.parts.digest not in before.message:
        events.append(Event(ref, uid, "Normal", "ChangeAwaitsApproval", told.message, gate.parts.digest, _ONCE))
    waiting: dict[tuple[PlanGauge, Labels], float] = {
        (PlanGauge.CHANGES_AWAITING_APPROVAL, (("nodepool", pool.name),)): 1.0
    }
    return Plan(events=tuple(events), gauges=waiting, next_due=gate.until)
