"""The pages on NodePools, EC2NodeClasses and NodeClaims name every field of the CRDs, and their examples are valid."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kerf import disruption, lifecycle, model, scheduling
from kerf.disruption.drift import drift, rollout
from kerf.disruption.drift.conditions import CONSOLIDATABLE, DISRUPTION_REASON, DRIFTED
from kerf.disruption.methods.retirement import EXPIRING
from kerf.ec2 import errors
from kerf.ec2.nodeclass import drift as ec2_drift
from kerf.lifecycle.garbage.garbage_guard import HALTED
from kerf.lifecycle.nodeclaim import launch, unmarked
from kerf.lifecycle.nodeclaim.consistency import CONSISTENT
from kerf.lifecycle.nodeclaim.mismatches import NODE_MISMATCH
from kerf.lifecycle.nodepool.registration_health import HEALTHY
from kerf.model.ends import HELD
from kerf_api import crds, labels, lint
from kerf_api.kubelet import rules as kubelet_rules
from kerf_api.lint.problem import Problem
from kerf_api.v1.budgets import EXPIRED, REASONS
from kerf_api.v1.conditions import NODECLASS_DEPENDENTS, NODEPOOL_DEPENDENTS, READY, RESERVATIONS_READY
from tests.unit.docs import field_pages as pages

KINDS = sorted(pages.PAGES)


def faults(manifest: dict[str, Any]) -> list[Problem]:
    """What is wrong or unwise; hints aside."""
    return [problem for problem in lint.validate(manifest) if problem.severity != "info"]


@pytest.mark.parametrize("kind", KINDS)
def test_its_tables_have_every_field_with_its_type_and_default(kind: str) -> None:
    assert pages.rows(kind) == pages.fields(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_its_examples_are_valid(kind: str) -> None:
    assert [problem for one in pages.examples(kind) for problem in faults(one)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_a_spec_has_an_example(kind: str) -> None:
    shown = {path for one in pages.examples(kind) if one["kind"] == kind for path in pages.paths(one)}
    assert {path for path in pages.fields(kind) if path.startswith("spec")} - shown == set()


def test_every_operator_has_a_row_and_an_example() -> None:
    entries = crds.schema("NodePool")["properties"]["spec"]["properties"]["template"]["properties"]["spec"]
    known = entries["properties"]["requirements"]["items"]["properties"]["operator"]["enum"]
    listed = re.findall(r"^\| `(\w+)` \| [^|]* \| [^|]* \|$", pages.text("NodePool"), re.MULTILINE)
    used = {
        entry["operator"]
        for one in pages.examples("NodePool")
        if one["kind"] == "NodePool"
        for entry in one["spec"]["template"]["spec"]["requirements"]
    }
    assert {*known} <= {*listed}
    assert used == {*known}


def test_the_budgets_of_its_table_are_valid() -> None:
    lists = re.findall(r"^\| [^|]* \| `(\[\{nodes.*\])` \|$", pages.text("NodePool"), re.MULTILINE)
    assert len(lists) == 5
    for budgets in map(yaml.safe_load, lists):
        manifest = pages.merged(pages.BASES["NodePool"], {"spec": {"disruption": {"budgets": budgets}}})
        assert [problem for problem in faults(manifest) if problem.severity == "error"] == []


# --- docs/nodeclaims.md -----------------------------------------------------------------------------------------
CLAIMS = pages.text("NodeClaim")
REASON = re.compile(r"`([A-Z]\w+)`")


def cells(heading: str) -> list[list[str]]:
    """The rows of the table below a heading, without its head."""
    section = re.split(r"^##+ ", CLAIMS.partition(f"# {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")]
    return rows[2:]


def named(heading: str) -> set[str]:
    return {reason for row in cells(heading) for reason in REASON.findall(row[0])}


def test_it_has_every_annotation_that_kerf_writes_on_nodeclaims() -> None:
    listed = {key for row in cells("Labels and annotations") for key in re.findall(r"`([\w.-]+/[\w-]+)`", row[0])}
    assert listed == labels.WRITTEN_ON_CLAIMS | {labels.DO_NOT_DISRUPT}


def test_it_has_every_reason_of_drift() -> None:
    provider = {value for name, value in vars(ec2_drift).items() if name.endswith("_DRIFT")}
    assert named("Drift reasons") == provider | {drift._TEMPLATE, drift._REQUIREMENTS, drift._TYPE}


def test_it_has_every_reason_of_a_failed_launch() -> None:
    known = {reason for _, reason, _ in errors._KNOWN}
    texts = (errors.SPOT_ROLE_CODE, "AccessDenied", "AccessDenied: Not authorized for images", "other")
    known |= {errors.classify(text)[0] for text in (*texts, "InvalidParameter: belong to different networks")}
    known |= {launch.BEYOND_LIMITS, unmarked.UNMARKED}
    waits = re.findall(r'_wait\(view, claim, "(\w+)"', Path(launch.__file__).read_text(encoding="utf-8"))
    assert named("Launch reasons") == known | {*waits, "AwaitingReconciliation"}


def test_its_conditions_and_their_reasons_are_those_of_the_code() -> None:
    packages = (lifecycle, disruption, model, scheduling)
    files = [file for package in packages for file in Path(package.__file__ or "").parent.rglob("*.py")]
    source = "".join(file.read_text(encoding="utf-8") for file in files)
    listed = {name for row in cells("Conditions") for cell in row for name in REASON.findall(cell)}
    reasons = {*REASONS, EXPIRED, "Launched", "Registered", "Initialized"}
    assert {name for name in listed - reasons if f'"{name}"' not in source} == set()
    set_by_code = {*re.findall(r'(?:progress|claim|known)\.condition\("(\w+)", [A-Z]', source)}
    own = {DRIFTED, CONSOLIDATABLE, DISRUPTION_REASON, EXPIRING, CONSISTENT, HELD}
    assert set_by_code | own == named("Conditions")


# --- docs/nodeclasses.md ----------------------------------------------------------------------------------------
def test_its_example_of_a_kubelet_has_every_field_that_all_families_take() -> None:
    shown = [one["spec"]["kubelet"] for one in pages.examples("EC2NodeClass") if "kubelet" in one["spec"]]
    assert [{*kubelet} for kubelet in shown] == [kubelet_rules._MAPPED]
    for family in ("AL2", "AL2023", "Windows2022"):
        assert kubelet_rules.faults(shown[0], family) == []
    found = kubelet_rules.faults(shown[0], "Bottlerocket")
    assert [fault.steps for fault in found] == [("podsPerCore",)]


# --- conditions of NodePools and EC2NodeClasses -----------------------------------------------------------------
def conditions_of(kind: str) -> set[str]:
    """The conditions in the first column of the table that is headed so."""
    table = re.split(r"\n\n", pages.text(kind).partition("\n| condition |")[2], maxsplit=1)[0]
    return {name for line in table.splitlines() for name in REASON.findall(line.split(" | ")[0])}


def test_it_has_every_condition_of_an_ec2nodeclass() -> None:
    assert conditions_of("EC2NodeClass") == {*NODECLASS_DEPENDENTS, RESERVATIONS_READY, READY}


def test_it_has_every_condition_of_a_nodepool() -> None:
    rolls = {rollout.UP_TO_DATE, rollout.RECONCILING, rollout.STALLED, rollout.BUDGETS_VALID}
    others = {HEALTHY, NODE_MISMATCH, HALTED, HELD}
    assert conditions_of("NodePool") == {*NODEPOOL_DEPENDENTS, READY} | rolls | others
