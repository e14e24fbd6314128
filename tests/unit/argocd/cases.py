"""What Argo CD should show of which object: recorded ones, and the same with a change by a person or the controller."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

RECORDED: Final = Path(__file__).parent / "recorded"

Object = dict[str, Any]
Change = Callable[[Object], None]


@cache
def states(kind: str) -> dict[str, Object]:
    """The recorded objects of a kind, by what was going on."""
    objects: dict[str, Object] = yaml.safe_load((RECORDED / f"{kind}.yaml").read_text(encoding="utf-8"))
    return objects


def recorded(kind: str, state: str, *changes: Change) -> Object:
    """An object as it was left, with changes."""
    one = copy.deepcopy(states(kind)[state])
    for change in changes:
        change(one)
    return one


# --- changes ----------------------------------------------------------------------------------------------------
def edited(one: Object) -> None:
    """Somebody has changed the spec; nobody has looked yet."""
    one["metadata"]["generation"] += 1


def deleted(one: Object) -> None:
    one["metadata"]["deletionTimestamp"] = "2026-11-24T00:00:00Z"


def held_by(*finalizers: str) -> Change:
    return lambda one: one["metadata"].update(finalizers=list(finalizers))


def without(*types: str) -> Change:
    def change(one: Object) -> None:
        one["status"]["conditions"] = [c for c in one["status"]["conditions"] if c["type"] not in types]

    return change


def told(type_: str, status: str, reason: str = "", message: str = "", *, behind: int = 0) -> Change:
    """A condition as the controller sets it; seen `behind` generations ago."""

    def change(one: Object) -> None:
        without(type_)(one)
        seen = one["metadata"]["generation"] - behind
        row = {"type": type_, "status": status, "reason": reason or type_, "message": message}
        one["status"]["conditions"].append({**row, "observedGeneration": seen})

    return change


def at_generation(number: int) -> Change:
    """All conditions are of this generation."""

    def change(one: Object) -> None:
        for condition in one["status"]["conditions"]:
            condition["observedGeneration"] = number

    return change


def no_generations(one: Object) -> None:
    """As very old controllers left conditions."""
    for condition in one["status"]["conditions"]:
        del condition["observedGeneration"]


def emptied(one: Object) -> None:
    one["status"] = {"conditions": None}


STUCK: Final = "2 of 3 nodes are up to date, 1 blocked: node a: pod b has do-not-disrupt"
ROLLING: Final = "0 of 3 nodes are up to date, 1 being replaced, 2 waiting for their turn"

#: kind, recorded state, changes, status, what the message is (all of it; for "…" at its end, how it begins).
CASES: Final[list[tuple[str, str, tuple[Change, ...], str, str]]] = [
    # NodePool
    ("NodePool", "fresh", (), "Progressing", "generation 1 has not been looked at yet"),
    ("NodePool", "ready", (), "Healthy", ""),
    ("NodePool", "ready", (edited,), "Progressing", "generation 2 has not been looked at yet"),
    ("NodePool", "ready", (at_generation(0),), "Progressing", "generation 1 has not been looked at yet"),
    ("NodePool", "ready", (no_generations,), "Progressing", "generation 1 has not been looked at yet"),
    ("NodePool", "ready", (emptied,), "Progressing", "generation 1 has not been looked at yet"),
    ("NodePool", "ready", (without("Ready"),), "Progressing", "generation 1 has not been looked at yet"),
    ("NodePool", "ready", (told("Invented", "False", "Nobody", "knows it"),), "Healthy", ""),
    (
        "NodePool",
        "ready",
        (told("Ready", "Unknown"), told("ValidationSucceeded", "Unknown", "AwaitingReconciliation")),
        "Progressing",
        "ValidationSucceeded is Unknown (AwaitingReconciliation)",
    ),
    ("NodePool", "ready", (told("Ready", "Unknown", "Odd"),), "Progressing", "Ready is Unknown (Odd)"),
    ("NodePool", "ready", (told("Ready", "False", "Odd", "very"),), "Degraded", "Ready is False (Odd): very"),
    (
        "NodePool",
        "class-not-known",
        (),
        "Progressing",
        "NodeClassReady is False (NodeClassReadinessUnknown): the node class is not ready yet",
    ),
    (
        "NodePool",
        "class-not-known",
        (told("ValidationSucceeded", "False", "NodePoolValidationFailed", "label x"),),
        "Degraded",
        "ValidationSucceeded is False (NodePoolValidationFailed): label x; NodeClassReady is False "
        "(NodeClassReadinessUnknown): the node class is not ready yet",
    ),
    (
        "NodePool",
        "class-not-known",
        (told("NodeClassReady", "False", "NodeClassNotFound", "the node class does not exist"),),
        "Degraded",
        "NodeClassReady is False (NodeClassNotFound): the node class does not exist",
    ),
    ("NodePool", "class-looked-at", (), "Progressing", "NodeClassReady is False (NodeClassReadinessUnknown): …"),
    ("NodePool", "class-broken", (), "Degraded", "NodeClassReady is False (UnhealthyDependents): SubnetsReady=False…"),
    ("NodePool", "rolling-out", (), "Progressing", f"UpToDate is False (RollingOut): {ROLLING}"),
    ("NodePool", "rolling-out", (without("Reconciling"),), "Progressing", f"UpToDate is False (RollingOut): {ROLLING}"),
    (
        "NodePool",
        "rolling-out",
        (told("UpToDate", "False", "WaitingForBudget", ROLLING),),
        "Progressing",
        f"UpToDate is False (WaitingForBudget): {ROLLING}",
    ),
    (
        "NodePool",
        "ready",
        (told("UpToDate", "True", behind=1),),
        "Progressing",
        "the nodes have not been compared with the latest change yet",
    ),
    ("NodePool", "ready", (without("UpToDate", "BudgetsValid", "NodeRegistrationHealthy"),), "Healthy", ""),
    ("NodePool", "held", (), "Progressing", "UpToDate is False (Blocked): 0 of 3 nodes are up to date…"),
    (
        "NodePool",
        "held",
        (told("Stalled", "True", "Blocked", STUCK), told("UpToDate", "False", "Blocked", STUCK)),
        "Suspended",
        f"UpToDate is False (Blocked): {STUCK}",
    ),
    (
        "NodePool",
        "rolling-out",
        (told("UpToDate", "False", "AwaitingApproval", "0 of 2 nodes are up to date; the change is not approved"),),
        "Suspended",
        "UpToDate is False (AwaitingApproval): 0 of 2 nodes are up to date; the change is not approved",
    ),
    (
        "NodePool",
        "rolling-out",
        (told("NodeRegistrationHealthy", "False", "RegistrationFailed", "2 of the last 4 did not join"),),
        "Degraded",
        "NodeRegistrationHealthy is False (RegistrationFailed): 2 of the last 4 did not join",
    ),
    (
        "NodePool",
        "ready",
        (told("NodeRegistrationHealthy", "False", "RegistrationFailed", behind=1),),
        "Healthy",
        "",
    ),
    (
        "NodePool",
        "ready",
        (told("BudgetsValid", "False", "InvalidBudget", "no such month"),),
        "Degraded",
        "BudgetsValid is False (InvalidBudget): no such month",
    ),
    (
        "NodePool",
        "ready",
        (told("GarbageCollectionHalted", "True", "TooMany", "9 instances"),),
        "Suspended",
        "GarbageCollectionHalted (TooMany): 9 instances",
    ),
    (
        "NodePool",
        "rolling-out",
        (told("DeletionHeld", "True", "TooMany", "7 of 9 nodes"),),
        "Suspended",
        "DeletionHeld (TooMany): 7 of 9 nodes",
    ),
    ("NodePool", "ready", (told("DeletionHeld", "False", "NothingHeld"),), "Healthy", ""),
    ("NodePool", "ready", (deleted,), "Progressing", "being deleted"),
    (
        "NodePool",
        "class-broken",
        (deleted, held_by("foregroundDeletion")),
        "Progressing",
        "being deleted; waits for the finalizers foregroundDeletion",
    ),
    # EC2NodeClass
    ("EC2NodeClass", "fresh", (), "Progressing", "generation 1 has not been looked at yet"),
    ("EC2NodeClass", "looking", (), "Progressing", "AMIsReady is Unknown (AwaitingReconciliation); SubnetsReady is…"),
    (
        "EC2NodeClass",
        "trying",
        (),
        "Progressing",
        "ValidationSucceeded is Unknown (AwaitingReconciliation): a dry run of a launch is not complete yet",
    ),
    ("EC2NodeClass", "ready", (), "Healthy", ""),
    ("EC2NodeClass", "ready", (without("CapacityReservationsReady"),), "Healthy", ""),
    ("EC2NodeClass", "changed", (), "Progressing", "generation 2 has not been looked at yet"),
    (
        "EC2NodeClass",
        "broken",
        (),
        "Degraded",
        "SubnetsReady is False (SubnetsNotFound): SubnetSelector did not match…",
    ),
    (
        "EC2NodeClass",
        "ready",
        (told("Ready", "False"), told("ValidationSucceeded", "False", "DependenciesNotReady")),
        "Progressing",
        "ValidationSucceeded is False (DependenciesNotReady)",
    ),
    (
        "EC2NodeClass",
        "ready",
        (told("GarbageCollectionHalted", "True", "TooMany", "9 instances"),),
        "Suspended",
        "GarbageCollectionHalted (TooMany): 9 instances",
    ),
    (
        "EC2NodeClass",
        "deleting",
        (),
        "Progressing",
        "being deleted; waits for the finalizers karpenter.k8s.aws/termination",
    ),
    # NodeClaim
    ("NodeClaim", "fresh", (), "Progressing", "generation 1 has not been looked at yet"),
    (
        "NodeClaim",
        "launched",
        (),
        "Progressing",
        "Registered is Unknown (NodeNotFound): no node has joined the cluster yet; Initialized is Unknown…",
    ),
    ("NodeClaim", "registered", (), "Progressing", "Initialized is Unknown (NodeNotReady)…"),
    ("NodeClaim", "ready", (), "Healthy", ""),
    ("NodeClaim", "ready", (told("Disrupting", "True", "Nobody", "ever says so"),), "Healthy", ""),
    (
        "NodeClaim",
        "launched",
        (told("Launched", "Unknown", "SpotQuotaExceeded", "no more of them"),),
        "Progressing",
        "Launched is Unknown (SpotQuotaExceeded): no more of them; Registered is Unknown…",
    ),
    (
        "NodeClaim",
        "launched",
        (told("Ready", "False"), told("Registered", "False", "MultipleNodesFound", "a, b")),
        "Degraded",
        "Registered is False (MultipleNodesFound): a, b",
    ),
    (
        "NodeClaim",
        "ready",
        (told("ConsistentStateFound", "False", "ConsistencyCheckFailed", "half of its memory"),),
        "Degraded",
        "ConsistentStateFound is False (ConsistencyCheckFailed): half of its memory",
    ),
    ("NodeClaim", "drifted", (), "Healthy", "Drifted (NodePoolDrifted): label example.com/v was not there, now '2'"),
    ("NodeClaim", "chosen", (), "Progressing", "DisruptionReason (Drifted)"),
    (
        "NodeClaim",
        "draining",
        (),
        "Progressing",
        "being deleted; DisruptionReason (Drifted); Drained is Unknown (Draining); waits for the finalizers "
        "karpenter.sh/termination",
    ),
    (
        "NodeClaim",
        "ending",
        (),
        "Progressing",
        "being deleted; DisruptionReason (Drifted); waits for the finalizers karpenter.sh/termination",
    ),
    ("NodeClaim", "deleted", (), "Progressing", "being deleted; waits for the finalizers karpenter.sh/termination…"),
    (
        "NodeClaim",
        "draining",
        (held_by("karpenter.sh/termination", "example.com/backup"),),
        "Progressing",
        "being deleted; DisruptionReason (Drifted); Drained is Unknown (Draining); waits for the finalizers "
        "karpenter.sh/termination, example.com/backup",
    ),
    (
        "NodeClaim",
        "deleted",
        (told("DeletionHeld", "True", "TooMany", "not before noon"), held_by()),
        "Suspended",
        "being deleted; DeletionHeld (TooMany): not before noon",
    ),
    (
        "NodeClaim",
        "deleted",
        (told("DeletionHeld", "False", "Released"), held_by()),
        "Progressing",
        "being deleted",
    ),
    # NodeOverlay
    (
        "NodeOverlay",
        "fresh",
        (),
        "Progressing",
        "generation 1 has not been looked at yet; nobody does without the feature gate NodeOverlay",
    ),
    ("NodeOverlay", "ready", (), "Healthy", ""),
    ("NodeOverlay", "ready", (edited,), "Progressing", "generation 2 has not been looked at yet"),
    ("NodeOverlay", "conflict", (), "Degraded", "ValidationSucceeded is False (Conflict): …"),
    # CapacityBuffer
    (
        "CapacityBuffer",
        "ready",
        (emptied,),
        "Progressing",
        "generation 1 has not been looked at yet; nobody does without the feature gate CapacityBuffer",
    ),
    ("CapacityBuffer", "resolved", (), "Progressing", "whether there is room for its pods is not known yet"),
    ("CapacityBuffer", "ready", (), "Healthy", ""),
    ("CapacityBuffer", "ready", (edited,), "Progressing", "generation 2 has not been looked at yet"),
    (
        "CapacityBuffer",
        "ready",
        (told("Provisioning", "True", behind=1),),
        "Progressing",
        "whether there is room for its pods is not known yet",
    ),
    (
        "CapacityBuffer",
        "ready",
        (without("Provisioning"),),
        "Progressing",
        "whether there is room for its pods is not known yet",
    ),
    (
        "CapacityBuffer",
        "without-room",
        (),
        "Progressing",
        "Provisioning is False (RequiresNewCapacity): no capacity yet…",
    ),
    ("CapacityBuffer", "empty", (), "Healthy", ""),
    ("CapacityBuffer", "lost", (), "Degraded", "ReadyForProvisioning is False (ScalableRefNotFound): …"),
    ("CapacityBuffer", "lost", (deleted,), "Progressing", "being deleted"),
]
