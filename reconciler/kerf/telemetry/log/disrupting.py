"""The line `disrupting node(s)`, as the tools that parse Karpenter's logs expect it, read from a command as stored;
and what is read from one that is given up.

Each candidate carries its command and has a line of its own. Source: operations reference §4.2.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from kerf.telemetry.series.spelling import snake_case
from kerf_api import durations, labels
from kerf_api.v1.budgets import EMPTY, UNDERUTILIZED
from kerf_api.v1.nodeclaim import NodeClaim


def written(patch: Mapping[str, Any]) -> dict[str, Any]:
    """The command, decoded, that a patch writes to a claim."""
    found: dict[str, Any] = json.loads(patch["metadata"]["annotations"][labels.COMMAND])
    return found


def fields(claim: NodeClaim, patch: Mapping[str, Any]) -> dict[str, Any]:
    """The fields for a candidate and the patch that wrote the command to it (annotation kerf.sh/command)."""
    command = written(patch)
    replacements, pods = len(command.get("replacements", ())), len(command.get("pods", ()))
    decision = "replace" if replacements else "delete"
    node, own = claim.status.node_name, claim.metadata.labels
    words = f"{command['reason']}/{command['id']}: {decision}: nodepools=[{claim.pool_name}]: [{node}]"
    if replacements:
        words += f" -> [{replacements} replacement{'s' if replacements > 1 else ''}]"
    if (saving := command.get("saving")) is not None:
        words += f" (savings: ${saving / 1e6:.2f})"
    candidate = {
        "Node": {"name": node},
        "NodeClaim": {"name": claim.name},
        "capacity-type": own.get(labels.CAPACITY_TYPE, ""),
        "instance-type": own.get(labels.INSTANCE_TYPE, ""),
    }
    return {
        "command": words,
        "decision": decision,
        "disrupted-node-count": 1,
        "replacement-node-count": replacements,
        "pod-count": pods,
        "disrupted-nodes": [candidate],
        "replacement-nodes": [{"NodeClaim": {"name": name}} for name in command.get("replacements", ())],
        "why": command.get("why", ""),
    }


def termination_mode(claim: NodeClaim | None) -> str:
    """How a claim's drain ends, as metrics have it: gracefully, by force at once, or by force some time."""
    text = claim.spec.termination_grace_period if claim is not None else None
    try:
        grace = durations.parse_nillable(text)
    except ValueError:
        grace = None
    if grace is None:
        return "graceful"
    return "eventual" if grace > timedelta(0) else "forceful"


def consolidation_type(command: Mapping[str, Any]) -> str:
    """What kind of consolidation a command (decoded) is, as metrics have it; empty when it is none.

    `multi`: it goes with others for the same replacements.
    """
    reason = command.get("reason")
    if reason == UNDERUTILIZED:
        return "multi" if command.get("peers") else "single"
    return "empty" if reason == EMPTY else ""


@dataclass(frozen=True, slots=True)
class Failed:
    """A command that was given up because a replacement failed: how many it had, and its labels, as metrics have them:
    decision, reason, type of consolidation."""

    replacements: int
    labels: tuple[str, str, str]


def failed(claim: NodeClaim, patch: Mapping[str, Any]) -> Failed | None:
    """The command that this patch takes from a claim for that; None when it is for something else."""
    if not patch["metadata"]["annotations"].get(labels.COMMAND_FAILED):
        return None
    command = _command(claim)
    replacements = len(command.get("replacements", ()))
    reason = snake_case(str(command.get("reason", "")))
    return Failed(replacements, ("replace" if replacements else "delete", reason, consolidation_type(command)))


def given_up(claim: NodeClaim, patch: Mapping[str, Any]) -> str:
    """The kind of consolidation that this patch takes from a claim because the world has changed since it began; empty
    when it was none, when its replacement failed, or when that is unknown."""
    if patch["metadata"]["annotations"].get(labels.COMMAND_FAILED):
        return ""
    return consolidation_type(_command(claim))


def _command(claim: NodeClaim) -> dict[str, Any]:
    """The command of a claim, decoded; empty when it is unknown."""
    try:
        found: dict[str, Any] = json.loads(claim.metadata.annotations.get(labels.COMMAND, ""))
    except ValueError:
        return {}
    return found
