"""The canary of a change: one node of a NodePool is replaced first, the others wait (docs/tasks/canary.md).

The state of the canary is an annotation of the NodePool, so a restart continues it. `kerf.disruption.drift.canaries`
writes it; here are the nodes that wait because of it. Budgets apply to the canary as to any node.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Final

from msgspec import Meta

from kerf.disruption.candidates import approval
from kerf.disruption.candidates.candidates import Blocker, Candidate, pod_blocker
from kerf.disruption.command import Command, command_of
from kerf.disruption.view import View
from kerf.model.annotations import read
from kerf.model.instants import Instant, is_ahead, rfc3339
from kerf.model.kubernetes import pods
from kerf.model.memory import Step
from kerf.model.snapshot import StateNode
from kerf_api import labels
from kerf_api.v1 import conditions
from kerf_api.v1.budgets import DRIFTED
from kerf_api.v1.meta import Value
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool

#: Kerf has not noted the change yet; no node is replaced yet; the canary is replaced; it is observed; pods fail there.
UNKNOWN, PENDING, REPLACING, SOAKING, FAILED = "Unknown", "Pending", "Replacing", "Soaking", "CanaryFailed"
#: The change continues: after its canary, or without it.
PASSED, CONTINUED = "CanaryPassed", "Continued"
#: The phases in which the change continues; empty without a canary.
_OPEN: Final = frozenset({"", PASSED, CONTINUED})
AWAITING: Final = "AwaitingCanary"
#: Why consolidation leaves drifted nodes while the canary is chosen.
_FIRST: Final = "the canary has not replaced a node yet"


class Canary(Value, frozen=True, kw_only=True):
    """The state of a canary.

    Attributes:
        plan: the digest of the change.
        node: the NodeClaim that is replaced first.
        command: the ID of its command.
        started: the start of the command.
        replacements: the NodeClaims of its successors.
        owners: the UIDs of the controllers of its pods.
        unwell: the UIDs of the controllers of which a pod was not ready there before.
        since: the time at which the NodeClaim was gone; None before.
        passed: whether the others may follow.
        failed: the pods that fail; empty when none do.
    """

    plan: str
    node: Annotated[str, Meta(max_length=253)]
    command: str
    started: Instant
    replacements: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    unwell: tuple[str, ...] = ()
    since: Instant | None = None
    passed: bool = False
    failed: Annotated[str, Meta(max_length=2000)] = ""


@dataclass(frozen=True, slots=True)
class Trial:
    """The canary of a NodePool's change: the `digest` of the change, the time at which Kerf `noted` it, and `soak`."""

    phase: str = ""
    digest: str = ""
    noted: datetime | None = None
    soak: timedelta = timedelta(0)
    canary: Canary | None = None

    @property
    def waits(self) -> bool:
        """Whether drifted nodes wait, except for the canary itself."""
        return self.phase not in _OPEN

    @property
    def until(self) -> datetime | None:
        """The end of the soak time; None before it begins."""
        since = self.canary.since if self.canary is not None else None
        return since + self.soak if since is not None else None


def trial_of(view: View, pool: NodePool) -> Trial:
    """The canary of a NodePool; one without a phase when its changes need none."""
    return view.turn.one(_TRIALS, view.each, pool.name)


def chooses(view: View, pool: NodePool) -> bool:
    """Whether the NodePool has no canary yet: one node is started, which becomes it."""
    return trial_of(view, pool).phase == PENDING


def drift_blocker(view: View, state: StateNode) -> Blocker | None:
    """Why a drifted node stays: the change is not approved, or its canary has not passed."""
    unapproved, pool = approval.drift_blocker(view, state), view.snapshot.node_pools.get(state.pool_name)
    if unapproved is not None or pool is None:
        return unapproved
    trial = trial_of(view, pool)
    return _blocker(view, pool, trial) if trial.waits and trial.phase != PENDING else None


def consolidation_blocker(view: View, state: StateNode, pool: NodePool) -> Blocker | None:
    """Why a node in use is not consolidated: it is of a version that is not approved, or drifted before the canary."""
    unapproved, trial = approval.consolidation_blocker(view, state, pool), trial_of(view, pool)
    if unapproved is not None:
        return unapproved
    drifted = state.claim is not None and state.claim.is_true("Drifted")
    return _blocker(view, pool, trial) if trial.waits and drifted else None


def first(
    view: View, ready: Iterable[Candidate], *, alone: bool = False
) -> tuple[list[Candidate], list[tuple[Candidate, Blocker]]]:
    """The candidates without those that wait for a canary, and these.

    Where no canary is chosen yet, all nodes with pods stay candidates: drift starts one of them. Without such nodes, or
    with `alone`, one node does.
    """
    kept: list[Candidate] = []
    waiting: list[tuple[Candidate, Blocker]] = []
    pools: dict[str, list[Candidate]] = {}
    for one in ready:
        pools.setdefault(one.pool.name, []).append(one)
    for members in pools.values():
        pool = members[0].pool
        if not chooses(view, pool):
            kept += members
            continue
        chosen = _chosen(view, pool, members, alone)
        kept += chosen
        keys = {one.key for one in chosen}
        waiting += [(one, _blocker(view, pool, trial_of(view, pool))) for one in members if one.key not in keys]
    return kept, waiting


def _chosen(view: View, pool: NodePool, members: list[Candidate], alone: bool) -> list[Candidate]:
    if begun(view, pool, trial_of(view, pool)) is not None:
        return []
    full = [one for one in members if one.movable] or ([] if _in_use(view, pool) else members[:1])
    full = [one for one in full if pod_blocker(view, one.pods) is None] or full  # a drain that pods hold takes long
    return full[:1] if alone else full


def _in_use(view: View, pool: NodePool) -> bool:
    """Whether a drifted node has pods, be it blocked: an empty one would be observed for nothing."""
    claims = view.snapshot.claims_by_pool.get(pool.name, ())
    names = [claim.status.node_name for claim in claims if claim.is_true("Drifted") and not claim.metadata.deleting]
    return any(pods.reschedulable(pod) for name in names if name for pod in view.pods_on(name))


def begun(view: View, pool: NodePool, trial: Trial) -> tuple[NodeClaim, Command] | None:
    """The NodeClaim that a drift command of this change is about, being deleted included, and the command."""
    found = []
    for claim in view.snapshot.claims_by_pool.get(pool.name, ()):
        command = command_of(claim.metadata.annotations)
        if command is not None and command.reason == DRIFTED and trial.noted is not None:
            found += [(command.started, claim.name, claim, command)] if command.started >= trial.noted else []
    return min(found, key=lambda row: row[:2])[2:] if found else None


def unnoted(view: View, pool: NodePool, command: Command) -> bool:
    """Whether the command is that of a canary that the NodePool does not name yet: without the note another follows."""
    trial = trial_of(view, pool)
    return trial.phase == PENDING and trial.noted is not None and command.started >= trial.noted


def how_to_continue(digest: str) -> str:
    """The step that lets a change continue without its canary, for messages."""
    return f"to continue, set {labels.CONTINUED_PLAN}: {digest} on it"


def said(trial: Trial) -> str:
    """The state of the canary in words."""
    canary = trial.canary
    if trial.phase == REPLACING and canary is not None:
        return f"NodeClaim {canary.node} is replaced first"
    if trial.phase == SOAKING and canary is not None and trial.until is not None:
        return f"NodeClaim {canary.node} was replaced; its pods are observed until {rfc3339(trial.until)}"
    if trial.phase == FAILED and canary is not None:
        return f"after NodeClaim {canary.node} was replaced, {canary.failed}; {how_to_continue(trial.digest)}"
    return f"its canary failed; {how_to_continue(trial.digest)}" if trial.phase == FAILED else _FIRST


def _blocker(view: View, pool: NodePool, trial: Trial) -> Blocker:
    if not trial.digest:
        text = f"NodePool {pool.name} waits for its canary; the plan is not known yet"
        return Blocker(AWAITING, text, quiet=True)
    text = f"NodePool {pool.name} waits for the canary of plan {trial.digest}: {said(trial)}"
    ahead = trial.phase == SOAKING and trial.until is not None and trial.until > view.snapshot.now
    code, until = FAILED if trial.phase == FAILED else AWAITING, trial.until if ahead else None
    return Blocker(code, text, quiet=True, until=until)


# --- what is known of a NodePool ----------------------------------------------------------------------------------
def _trial(view: View, name: str) -> tuple[Trial, datetime | None]:
    pool = view.snapshot.node_pools[name]
    gate = approval.gate_of(view, pool)
    if not gate.soak:
        return Trial(), None
    if gate.parts is None or gate.since is None:
        return Trial(UNKNOWN, soak=gate.soak), None
    if gate.since > view.snapshot.now:  # the clock was set back: no command would be of this change
        return Trial(UNKNOWN, soak=gate.soak), gate.since
    digest, notes = gate.parts.digest, pool.metadata.annotations
    canary = read(notes, labels.CANARY, Canary)
    if canary is not None and (canary.plan != digest or canary.started < gate.since):
        canary = None
    latest = max(canary.started, canary.since or canary.started) if canary is not None else gate.since
    ahead = is_ahead(latest, view.snapshot.now)
    phase = CONTINUED if notes.get(labels.CONTINUED_PLAN) == digest else _phase(None if ahead else canary)
    if phase == PENDING and (canary is None or ahead):
        phase = _reported(view, pool, digest)
    return Trial(phase, digest, gate.since, gate.soak, None if ahead else canary), latest if ahead else None


def _reported(view: View, pool: NodePool, digest: str) -> str:
    """The phase that the condition reports although its note is lost: `kubectl replace` removes only annotations.

    A canary that stays because its command was rolled back is over.
    """
    known = conditions.get(pool.status.conditions, "CanaryPassed")
    ours = known is not None and known.message.startswith(f"plan {digest}:")  # the rest may name pods of tenants
    if known is None or not ours or known.reason not in (REPLACING, SOAKING, FAILED):
        return PENDING
    if known.reason != REPLACING:
        return known.reason
    claim = view.snapshot.node_claims.get(reported_node(pool))
    if claim is None:
        return SOAKING
    return REPLACING if claim.metadata.deleting or command_of(claim.metadata.annotations) is not None else PENDING


def reported_node(pool: NodePool) -> str:
    """The NodeClaim of the canary, as the condition names it (see `said`); empty when it names none."""
    known = conditions.get(pool.status.conditions, "CanaryPassed")
    _, named, rest = known.message.partition("NodeClaim ") if known is not None else ("", "", "")
    return rest.split(" ")[0][:253] if named else ""


def _phase(canary: Canary | None) -> str:
    if canary is None:
        return PENDING
    if canary.passed or canary.failed:
        return PASSED if canary.passed else FAILED
    return REPLACING if canary.since is None else SOAKING


_TRIALS: Final[Step[View, Trial]] = Step("canaries", "node_pools", _trial, speaks=lambda _: False)
