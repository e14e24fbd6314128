"""What the health expressions of `manifests/flux/` make of objects as they come about, without a cluster.

`test_flux.py` has kustomize-controller itself read the same expressions; here are the states that it does not live
through. In progress is what is neither failed nor current, and an object that an expression cannot be asked about.
"""

from __future__ import annotations

from typing import Any, Final

import cel
import pytest
import yaml

from .flux_installation import MANIFESTS

CURRENT, FAILED, IN_PROGRESS = "current", "failed", "in progress"
POOL, CLASS = "NodePool", "EC2NodeClass"
GENERATION: Final = 3

Row = tuple[str, str, int] | tuple[str, str, int, str]


def health(kind: str, thing: dict[str, Any]) -> str:
    """As kustomize-controller has it. Source: Flux RFC 0009."""
    (asked,) = (
        check
        for step in yaml.safe_load_all((MANIFESTS / "kustomizations.yaml").read_text())
        for check in step["spec"].get("healthCheckExprs", ())
        if check["kind"] == kind
    )
    for outcome in (FAILED, CURRENT):
        try:
            if cel.compile(asked[outcome]).execute(cel.Context(variables=thing)):
                return outcome
        except (KeyError, RuntimeError, ValueError):
            return IN_PROGRESS
    return IN_PROGRESS


def thing(*rows: Row) -> dict[str, Any]:
    """With these conditions: type, status, generation, and a reason if one is given."""
    names = ("type", "status", "observedGeneration", "reason")
    conditions = [dict(zip(names, row, strict=False)) for row in rows]
    return {"metadata": {"generation": GENERATION}, "status": {"conditions": conditions}}


NOW, BEFORE = GENERATION, GENERATION - 1


@pytest.mark.parametrize(
    ("kind", "found", "outcome"),
    [
        (POOL, [("Ready", "True", NOW), ("UpToDate", "True", NOW)], CURRENT),
        (POOL, [("Ready", "True", NOW)], IN_PROGRESS),
        (POOL, [("Ready", "True", BEFORE), ("UpToDate", "True", BEFORE)], IN_PROGRESS),
        (POOL, [("Ready", "True", NOW), ("UpToDate", "True", BEFORE)], IN_PROGRESS),
        (POOL, [("Ready", "True", NOW), ("UpToDate", "False", NOW), ("Reconciling", "True", NOW)], IN_PROGRESS),
        (POOL, [("Ready", "True", NOW), ("UpToDate", "False", NOW), ("Stalled", "Unknown", NOW)], IN_PROGRESS),
        (POOL, [("Ready", "True", NOW), ("UpToDate", "False", NOW), ("Stalled", "True", NOW)], FAILED),
        (POOL, [("Ready", "True", NOW), ("UpToDate", "True", NOW), ("Stalled", "True", BEFORE)], CURRENT),
        (POOL, [("Ready", "True", NOW), ("UpToDate", "False", NOW, "AwaitingApproval")], CURRENT),
        (POOL, [("Ready", "True", NOW), ("UpToDate", "False", BEFORE, "AwaitingApproval")], IN_PROGRESS),
        (POOL, [("Ready", "False", NOW, "NotReady"), ("UpToDate", "False", NOW, "AwaitingApproval")], IN_PROGRESS),
        (POOL, [("Ready", "True", NOW), ("UpToDate", "False", NOW, "AwaitingCanary")], IN_PROGRESS),
        (POOL, [("Ready", "False", NOW), ("NodeClassReady", "False", NOW)], IN_PROGRESS),
        (POOL, [("Ready", "False", NOW), ("ValidationSucceeded", "False", NOW)], FAILED),
        (POOL, [("Ready", "False", BEFORE), ("ValidationSucceeded", "False", BEFORE)], IN_PROGRESS),
        (CLASS, [("Ready", "True", NOW)], CURRENT),
        (CLASS, [("Ready", "True", BEFORE)], IN_PROGRESS),
        (CLASS, [("Ready", "False", NOW), ("SubnetsReady", "False", NOW)], IN_PROGRESS),
        (CLASS, [("Ready", "False", NOW), ("ValidationSucceeded", "False", NOW)], FAILED),
    ],
)
def test_the_health_of_what_is_seen(kind: str, found: list[Row], outcome: str) -> None:
    assert health(kind, thing(*found)) == outcome


@pytest.mark.parametrize("kind", [POOL, CLASS])
def test_what_nobody_has_looked_at_yet_is_in_progress(kind: str) -> None:
    """By kstatus' own rules, without the expressions, it would pass for ready."""
    assert health(kind, {"metadata": {"generation": 1}}) == IN_PROGRESS
    assert health(kind, {"metadata": {"generation": 1}, "status": {"nodes": 0}}) == IN_PROGRESS
