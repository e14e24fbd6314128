"""NodePools beside the EC2NodeClasses that they name: reported where a pair leaves no instance type, and only there."""

from __future__ import annotations

from typing import Any

import pytest

from kerf_api import labels
from kerf_api.lint import together

from .manifests import BASES, placed
from .table.rows import requirement

REQUIREMENTS = "spec.template.spec.requirements"
RESERVATIONS = "spec.capacityReservationSelectorTerms"
TERMS = [{"tags": {"team": "a"}}]
AL2023, WINDOWS = "al2023@v20250505", "windows2022@latest"


def pool(*rows: dict[str, Any], name: str = "default", of: str = "own", replicas: int = 0) -> dict[str, Any]:
    made = placed(placed(BASES["NodePool"], "metadata.name", name), "spec.template.spec.nodeClassRef.name", of)
    made = placed(made, REQUIREMENTS, list(rows))
    return placed(made, "spec.replicas", replicas) if replicas else made


def node_class(alias: Any = AL2023, name: str = "own", **fields: Any) -> dict[str, Any]:
    made = placed(placed(BASES["EC2NodeClass"], "metadata.name", name), "spec.amiSelectorTerms", [{"alias": alias}])
    for path, value in fields.items():
        made = placed(made, f"spec.{path}", value)
    return made


def problems(*manifests: Any) -> list[tuple[int, str, str]]:
    return [
        (i, problem.rule[-3:], problem.path)
        for i, found in enumerate(together(manifests))
        for problem in found
        if problem.rule in ("KERF-SET-317", "KERF-SET-318")
    ]


def row(key: str, *values: str, operator: str = "In") -> dict[str, Any]:
    return requirement(key, operator, values)


OS, ARCH, CAPACITY = labels.OS, labels.ARCH, labels.CAPACITY_TYPE


@pytest.mark.parametrize(
    ("asked", "own"),
    [
        (row(OS, "windows"), node_class()),
        (row(OS, "linux", operator="NotIn"), node_class()),
        (row(OS, "linux"), node_class(WINDOWS)),
        (row(OS, "windows"), node_class(amiFamily="Bottlerocket")),
        (row(ARCH, "arm64"), node_class(WINDOWS)),
        (row(CAPACITY, "reserved"), node_class()),
        (row(CAPACITY, "reserved"), node_class(capacityReservationSelectorTerms=[])),
    ],
)
def test_a_pair_that_leaves_no_instance_type(asked: dict[str, Any], own: dict[str, Any]) -> None:
    other = row(labels.INSTANCE_TYPE, "m5.large")
    assert problems(pool(other, asked), own) == [(0, "317", f"{REQUIREMENTS}[1]")]
    assert problems(pool(other, asked, replicas=2), own) == [(0, "317", f"{REQUIREMENTS}[1]")]


@pytest.mark.parametrize(
    ("asked", "own"),
    [
        (row(OS, "linux", "windows"), node_class()),
        (row(OS, "windows"), node_class(WINDOWS)),
        (row(OS, "windows"), node_class("${ALIAS}")),
        (row(OS, "windows"), node_class(amiFamily="${FAMILY}")),
        (row(OS, "windows"), node_class(7)),
        (row(OS, "${OS}"), node_class()),
        (row(OS, "windows"), node_class(name="other")),
        (row(ARCH, "arm64"), node_class()),
        (row(ARCH, "arm64", "amd64"), node_class(WINDOWS)),
        (row(CAPACITY, "reserved", "spot"), node_class()),
        (row(CAPACITY, "reserved"), node_class(capacityReservationSelectorTerms=TERMS)),
        (row(CAPACITY, "reserved"), node_class(capacityReservationSelectorTerms="${TERMS}")),
    ],
)
def test_a_pair_that_fits_or_cannot_be_known(asked: dict[str, Any], own: dict[str, Any]) -> None:
    assert problems(pool(asked), own) == []


def test_two_classes_of_one_name_are_not_compared() -> None:
    assert problems(pool(row(OS, "windows")), node_class(), node_class(WINDOWS)) == []


def test_capacity_reservations_that_no_nodepool_may_use() -> None:
    own = node_class(capacityReservationSelectorTerms=TERMS)
    bought = row(CAPACITY, "on-demand", "spot")
    assert problems(own, pool(bought)) == [(0, "318", RESERVATIONS)]
    assert problems(own, pool(bought), pool(bought, name="two")) == [(0, "318", RESERVATIONS)]
    assert problems(own, pool(bought), pool(row(CAPACITY, "reserved"), name="two")) == []
    assert problems(own, pool(bought), pool(row(CAPACITY, "reserved"), name="two", replicas=2)) == []
    assert problems(own, pool(bought, of="other")) == []


def test_the_messages() -> None:
    (problem,) = [p for p in together([pool(row(OS, "windows")), node_class()])[0] if p.rule == "KERF-SET-317"]
    assert problem.message == "the NodePool launches no node: EC2NodeClass own (AL2023) has images for linux only"
    own = node_class(capacityReservationSelectorTerms=TERMS)
    found = together([own, pool(row(CAPACITY, "spot"))])[0]
    (problem,) = [p for p in found if p.rule == "KERF-SET-318"]
    assert problem.message == (
        "no instance is launched into these capacity reservations: NodePool default excludes the capacity type reserved"
    )
