"""The conditions of a NodeClaim that disruption decides: Drifted, Consolidatable, and DisruptionReason.

They are computed again from the snapshot and written when they differ from what is there. A claim is consolidatable
once nothing has happened to its pods for `consolidateAfter`; DisruptionReason follows the command that the claim
carries. Source: disruption reference §1.5, §4.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from kerf.disruption.command import Command
from kerf.disruption.drift.drift import drift_detail, drift_reason, type_check_due
from kerf.disruption.on_nodes import rows_with
from kerf.disruption.view import View
from kerf.model.claims import since
from kerf.model.instants import earliest, is_ahead
from kerf.model.memory import planning
from kerf.model.plan import NOTHING, Plan, Reason
from kerf.model.writes import set_conditions
from kerf_api.v1 import conditions as rules
from kerf_api.v1.meta import Condition
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool

DRIFTED, CONSOLIDATABLE, DISRUPTION_REASON = "Drifted", "Consolidatable", "DisruptionReason"

Conditions = tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """Whether a claim is past its `consolidateAfter`; if not, when it will be (None: not by waiting)."""

    passed: bool
    until: datetime | None = None


def conditions(view: View) -> Plan:
    """One guarded write per claim whose conditions should change; due when the next window passes."""
    return view.turn.all(_CONDITIONS, view.each).plan


def _one(view: View, name: str) -> Plan:
    claim = view.snapshot.node_claims[name]
    if claim.metadata.deleting or claim.metadata.unreadable or not claim.managed:
        return NOTHING
    pool = view.snapshot.node_pools.get(claim.pool_name)
    wanted = _disruption_reason(view, claim, claim.status.conditions, view.command(name))
    dues: list[datetime | None] = []
    if pool is not None and not pool.metadata.unreadable:
        wanted = _drifted(view, claim, pool, wanted)
        wanted, due = _consolidatable(view, claim, pool, wanted)
        dues += [due, type_check_due(claim, view.snapshot.now)]
    if wanted == claim.status.conditions:
        return Plan(next_due=earliest(dues))
    reason = Reason("Conditions", ", ".join(_changes(claim.status.conditions, wanted)))
    return Plan(actions=(set_conditions(claim, wanted, reason),), next_due=earliest(dues))


_CONDITIONS = planning("claim conditions", "node_claims", "nodeclaim", _one)


def _changes(before: Conditions, after: Conditions) -> list[str]:
    """The types that differ, sorted."""
    known, new = {c.type: c for c in before}, {c.type: c for c in after}
    return sorted(t for t in {*known, *new} if known.get(t) != new.get(t))


# --- Drifted ----------------------------------------------------------------------------------------------------
def _drifted(view: View, claim: NodeClaim, pool: NodePool, wanted: Conditions) -> Conditions:
    reason = drift_reason(view, claim, pool)
    if reason is None:
        return wanted
    if not reason:
        return rules.drop(wanted, DRIFTED)
    return _held(view, claim, wanted, DRIFTED, reason, drift_detail(view, claim, pool, reason))


# --- Consolidatable ---------------------------------------------------------------------------------------------
def _consolidatable(
    view: View, claim: NodeClaim, pool: NodePool, wanted: Conditions
) -> tuple[Conditions, datetime | None]:
    if pool.static:
        return wanted, None
    window = consolidation_window(claim, pool, view.snapshot.now)
    if not window.passed:
        return rules.drop(wanted, CONSOLIDATABLE), window.until
    return _held(view, claim, wanted, CONSOLIDATABLE, CONSOLIDATABLE), None


def consolidation_window(claim: NodeClaim, pool: NodePool, now: datetime) -> Window:
    """Since the last pod event (or initialisation) as long as `consolidateAfter` must have passed."""
    try:
        length = pool.consolidate_after
    except ValueError:
        return Window(False)
    initialized = claim.condition("Initialized")
    if length is None or initialized is None or initialized.status != rules.TRUE:
        return Window(False)
    event = claim.status.last_pod_event_time
    at = event if event is not None and not is_ahead(event, now) else since(claim, "Initialized", now)
    if length == timedelta(0) or at is None or now - at >= length:
        return Window(True)
    return Window(False, at + length)


# --- DisruptionReason -------------------------------------------------------------------------------------------
def _disruption_reason(view: View, claim: NodeClaim, wanted: Conditions, command: Command | None) -> Conditions:
    """There while a command is; without one it goes once the node is initialised, as the taint does."""
    if command is not None:
        return _held(view, claim, wanted, DISRUPTION_REASON, command.reason)
    return rules.drop(wanted, DISRUPTION_REASON) if claim.is_true("Initialized") else wanted


def _held(view: View, claim: NodeClaim, wanted: Conditions, type_: str, reason: str, message: str = "") -> Conditions:
    """With the condition True for this reason; the very same conditions when it is so already."""
    known = rules.get(wanted, type_)
    message = message or ("" if reason == type_ else reason)
    if known is not None and (known.status, known.reason, known.message) == (rules.TRUE, reason, message):
        return wanted
    return rows_with(view.snapshot, claim, wanted, type_, rules.TRUE, reason, message)
