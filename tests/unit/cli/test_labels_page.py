"""docs/reference/labels.md: no label is missing, and its operators and examples are valid in a NodePool."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kerf.cli.pages.labels import OWN, WELL_KNOWN, labels_page
from kerf_api import labels, lint

ROWS = {
    cells[0].strip("`"): cells
    for line in labels_page().splitlines()
    if line.startswith("| `")
    for cells in [line.strip("| ").split(" | ")]
}
COMPARISONS = ("Gt", "Gte", "Lt", "Lte")


def pool(requirement: dict[str, Any]) -> dict[str, Any]:
    reference = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "example"}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "example"},
        "spec": {"template": {"spec": {"nodeClassRef": reference, "requirements": [requirement]}}},
    }


def test_every_well_known_label_has_one_row() -> None:
    assert sorted(label.key for label in WELL_KNOWN) == sorted(labels.WELL_KNOWN)


def test_every_old_name_has_a_row() -> None:
    assert {old: ROWS[old][1].strip("`") for old in labels.ALIASES} == labels.ALIASES


def test_those_that_kerf_sets_itself_are_restricted_as_the_page_says() -> None:
    own = {key for key, _, _ in OWN}
    assert {key for key in own if key.startswith(labels.RESTRICTED_DOMAINS)} == own - {labels.EXCLUDE_BALANCERS}
    assert all(labels.is_restricted(key) for key in own - {labels.EXCLUDE_BALANCERS})
    assert labels.is_restricted(labels.HOSTNAME)


@pytest.mark.parametrize("key", sorted(labels.WELL_KNOWN - {labels.NODEPOOL}))
def test_its_operators_take_its_examples(key: str) -> None:
    values = [value.strip('"') for value in re.findall(r"`([^`]*)`", ROWS[key][2])]
    for operator in re.findall(r"`(\w+)`", ROWS[key][4]):
        given = values[:1] if operator in COMPARISONS else [] if operator.endswith(("xists", "Exist")) else values
        found = lint.validate(pool({"key": key, "operator": operator, "values": given}))
        assert [problem for problem in found if problem.severity == "error"] == [], (operator, values)


def test_a_number_has_comparisons_and_a_text_has_none() -> None:
    assert "`Gte`" in ROWS[f"{labels.AWS_GROUP}/instance-cpu"][4]
    assert "`Gte`" not in ROWS[f"{labels.AWS_GROUP}/instance-size"][4]
    assert "`DoesNotExist`" in ROWS[f"{labels.AWS_GROUP}/instance-gpu-count"][4]
    assert "`DoesNotExist`" not in ROWS[f"{labels.AWS_GROUP}/instance-cpu"][4]
