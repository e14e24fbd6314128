"""The judgement of one node: the verdict first, then the facts that it is based on. Pure.

The name is that of the Node or the NodeClaim, or the ID of the instance.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from difflib import get_close_matches
from typing import Final

from kerf.disruption.asking import Solve
from kerf.disruption.candidates.candidates import blockers
from kerf.disruption.view import View, view
from kerf.judgement.allowances import budgets
from kerf.judgement.ends import ends_of
from kerf.judgement.stages import refused_launch, stage_of
from kerf.judgement.values import (
    COMING,
    DUE,
    FREE,
    GOING,
    NOT_OURS,
    STAYS,
    UNKNOWN,
    End,
    Hold,
    Judgement,
    Stage,
    together,
)
from kerf.model.boundaries import broken
from kerf.model.instants import rfc3339
from kerf.model.memory import Memory
from kerf.model.snapshot import Snapshot, StateNode
from kerf.scheduling.answers.patches import WAIT, Patch
from kerf_api import labels
from kerf_api.texts import counted

_COMING: Final = ("Launching", "Registering", "Initializing")
_MOST_NAMES: Final = 5


def why(snapshot: Snapshot, name: str, ask: Solve | None = None) -> Judgement:
    """Explain the node `name`. `ask` is the scheduler for simulations, by default the real one."""
    key = _key(snapshot, name)
    if key is None:
        text = f"does not exist{refused_launch(snapshot, name)}"
        return Judgement(name, UNKNOWN, text, similar=_similar(snapshot, name))
    seen = view(snapshot, Memory().turn(snapshot))
    state, stage = snapshot.state_nodes[key], _stage(seen, key)
    if stage.code in ("NotOurs", "Unreadable"):
        code = NOT_OURS if stage.code == "NotOurs" else STAYS
        return Judgement(state.name, code, stage.text, about=_about(snapshot, state), stage=stage)
    if stage.code not in ("InUse", *_COMING):
        return Judgement(state.name, GOING, stage.text, stage.since, _about(snapshot, state), stage)
    ends, unasked = _ends(seen, key, ask)
    holds = together([*unasked, *(hold for end in ends for hold in end.holds)])
    code, text, at = _verdict(snapshot.now, stage, ends, holds)
    own_budgets = budgets(seen, state.pool_name) if stage.code == "InUse" else None
    about, patches = _about(snapshot, state), tuple(_patches(state.name, code, at, ends))
    return Judgement(state.name, code, text, at, about, stage, ends, holds, own_budgets, patches=patches)


def _stage(seen: View, key: str) -> Stage:
    """Return the stage of a node; an unreadable object is reported as unreadable, as in a plan."""
    try:
        return stage_of(seen, key)
    except Exception as error:
        return Stage("Unreadable", f"cannot be read: {broken(error)}")


def _ends(seen: View, key: str, ask: Solve | None) -> tuple[tuple[End, ...], list[Hold]]:
    """Return the possible disruptions; and the blockers of a node without a possible voluntary disruption."""
    try:
        ends = ends_of(seen, key, ask)
        speaking = [] if any(not end.forceful for end in ends) else list(blockers(seen, key))
    except Exception as error:
        reason = broken(error)
        return (), [Hold(reason.code, f"its disruption cannot be evaluated: {reason.text}")]
    return ends, [Hold.of(blocker) for blocker in speaking]


# --- the node of a name -----------------------------------------------------------------------------------------
def _key(snapshot: Snapshot, name: str) -> str | None:
    """Return the key of `state_nodes`; a Node has precedence over a NodeClaim of the same name."""
    found = [key for key, state in snapshot.state_nodes.items() if state.node is not None and state.node.name == name]
    found += [name] if name in snapshot.node_claims else []
    found += [claim.name for claim in snapshot.claims_by_instance.get(name, ())]
    return found[0] if found else None


def _similar(snapshot: Snapshot, name: str) -> tuple[str, ...]:
    names = sorted({*snapshot.nodes, *snapshot.node_claims})
    alike = [other for other in names if other.startswith(name) or name.startswith(f"{other}.")]
    alike += get_close_matches(name, names, _MOST_NAMES)
    return tuple(dict.fromkeys(alike))[:_MOST_NAMES]


def _about(snapshot: Snapshot, state: StateNode) -> str:
    """Describe the node: NodeClaim, NodePool, instance type, capacity type, zone, number of pods."""
    parts = []
    if state.claim is not None:
        of_pool = f" of NodePool {state.pool_name}" if state.pool_name else ""
        parts.append(f"NodeClaim {state.claim.name}{of_pool}")
    keys = (labels.INSTANCE_TYPE, labels.CAPACITY_TYPE, labels.ZONE)
    parts.append(" ".join(state.labels[key] for key in keys if key in state.labels))
    if state.node is not None:
        count = sum(1 for _ in snapshot.pods.on(state.node.name))
        parts.append(counted(count, "pod"))
    return ", ".join(part for part in parts if part)


# --- the verdict ------------------------------------------------------------------------------------------------
def _verdict(
    now: datetime, stage: Stage, ends: tuple[End, ...], holds: tuple[Hold, ...]
) -> tuple[str, str, datetime | None]:
    """Return the code, the text and its time: for a node that stays the time of its forceful disruption."""
    due = min(
        ((at, end) for end in ends if (at := end.earliest(now)) is not None), key=lambda row: row[0], default=None
    )
    if due is not None and due[0] <= now:
        verb = "is terminated" if due[1].forceful else "can be disrupted"
        return FREE, f"{verb} now ({due[1].code}: {due[1].text})", None
    if stage.code in _COMING:
        return COMING, stage.text, stage.since
    if due is not None and any(end.wanted and not end.open for end in ends):
        return DUE, f"can be disrupted ({due[1].code}: {due[1].text}) at the earliest", due[0]
    return STAYS, f"stays: {_first(ends, holds)}", due[0] if due is not None else None


def _patches(name: str, code: str, at: datetime | None, ends: tuple[End, ...]) -> Iterator[Patch]:
    """Return the changes that help, those of a wanted disruption first; or the time until nothing blocks the node."""
    if code == DUE and at is not None:
        yield Patch(WAIT, "Node", name, f"wait until {rfc3339(at)}")
    for end in sorted(ends, key=lambda end: not end.wanted):
        found = end.remedies.found if end.remedies is not None else ()
        yield from (one.patch for one in found if one.patch is not None)


def _first(ends: tuple[End, ...], holds: tuple[Hold, ...]) -> str:
    """Return the most important blocker: of a wanted disruption, else of one that is only possible."""
    rows = sorted((end for end in ends if end.open), key=lambda end: not end.wanted)
    first = rows[0].open[0] if rows else holds[0] if holds else None
    if first is None:
        return "no reason for disruption"
    return f"{first}, and {len(holds) - 1} more" if len(holds) > 1 else str(first)
