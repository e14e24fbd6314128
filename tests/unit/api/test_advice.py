"""Advice on NodeOverlays and CapacityBuffers: never an error, and told where it is due and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

from kerf_api import labels
from kerf_api.lint import LintSettings, validate
from kerf_api.lint.catalogue import Catalogue, Table
from kerf_api.lint.settings import STANDARD

from .manifests import changed
from .table.rows import requirement

AWS = labels.AWS_GROUP
ONE_TYPE = [requirement(labels.INSTANCE_TYPE, values=("m7i.large",))]
#: Of both sizes of one family: as many vCPUs, so that no size is larger.
ONE_SIZE = [requirement(f"{AWS}/instance-size", values=("large",)), requirement(f"{AWS}/instance-cpu", values=("2",))]
EMPTY = LintSettings(catalogue=Catalogue(Table([], {})))


def told(kind: str, path: str, value: Any, settings: LintSettings = STANDARD) -> list[tuple[str, str, str]]:
    found = validate(changed(kind, path, value), settings=settings)
    return [(problem.severity, problem.rule, problem.path) for problem in found]


@pytest.mark.parametrize(
    ("requirements", "place", "rule"),
    [
        ([requirement(f"{AWS}/instance-family", values=("m7x",))], "[0].values[0]", "KERF-NO-301"),
        ([requirement(f"{AWS}/instance-cpu", values=("4", "5"))], "[0].values[1]", "KERF-NO-301"),
        ([requirement("beta.kubernetes.io/arch", values=("arm",))], "[0].values[0]", "KERF-NO-301"),
        ([requirement(labels.ZONE, values=("us-east-1a", "eu-west-1"))], "[0].values[1]", "KERF-NO-302"),
        ([requirement(), requirement(operator="DoesNotExist", values=None)], "[1]", "KERF-NO-303"),
        ([requirement(labels.NODEPOOL, values=(n,)) for n in "ab"], "[1]", "KERF-NO-303"),
        ([requirement(f"{AWS}/instance-cpu", op, ("8",)) for op in ("Gt", "Lt")], "[1]", "KERF-NO-303"),
        ([requirement(f"{AWS}/instance-cpu", "Gt", ("9999",))], "[0]", "KERF-NO-304"),
        ([*ONE_TYPE, requirement(labels.ARCH, values=("arm64",))], "[0]", "KERF-NO-304"),
    ],
)
def test_an_overlay_that_meets_nothing_says_why(requirements: list[Any], place: str, rule: str) -> None:
    assert told("NodeOverlay", "spec.requirements", requirements) == [("warning", rule, f"spec.requirements{place}")]


@pytest.mark.parametrize(
    "requirements",
    [
        [],
        [requirement(labels.ZONE, values=("us-east-1a",))],
        [requirement(operator="NotIn"), requirement(operator="DoesNotExist", values=None)],
        [requirement(labels.NODEPOOL, values=("gone",)), requirement("example.com/team", values=("a",))],
        [requirement(labels.CAPACITY_TYPE, values=("reserved",))],
        [requirement(f"{AWS}/instance-gpu-count", "Gte", ("1",))],
        [requirement(f"{AWS}/instance-gpu-name", "DoesNotExist", None)],
    ],
)
def test_an_overlay_that_meets_something_is_left_alone(requirements: list[Any]) -> None:
    assert told("NodeOverlay", "spec.requirements", requirements) == []


def overlay(requirements: list[Any], **fields: Any) -> dict[str, Any]:
    return {"requirements": requirements, **fields}


@pytest.mark.parametrize(
    ("spec", "severity", "rule", "place"),
    [
        (overlay([], priceAdjustment="-100%"), "warning", "KERF-NO-305", "spec.priceAdjustment"),
        (overlay([], priceAdjustment="-1000"), "warning", "KERF-NO-305", "spec.priceAdjustment"),
        (overlay(ONE_SIZE, priceAdjustment="-100%"), "warning", "KERF-NO-305", "spec.priceAdjustment"),
        (overlay([], price="0"), "warning", "KERF-NO-305", "spec.price"),
        (overlay([], price="0.00"), "warning", "KERF-NO-305", "spec.price"),
        (overlay([], price="0.05"), "info", "KERF-NO-306", "spec.price"),
        (overlay([], priceAdjustment="+0%"), "warning", "KERF-NO-203", "spec.priceAdjustment"),
        (overlay([], priceAdjustment="-0.0"), "warning", "KERF-NO-203", "spec.priceAdjustment"),
        (overlay([], priceAdjustment="+0", capacity={}), "warning", "KERF-NO-203", "spec.priceAdjustment"),
        (overlay([], capacity={}), "warning", "KERF-NO-203", "spec"),
    ],
)
def test_prices_that_decide_nothing(spec: dict[str, Any], severity: str, rule: str, place: str) -> None:
    assert told("NodeOverlay", "spec", spec) == [(severity, rule, place)]


@pytest.mark.parametrize(
    "spec",
    [
        overlay(ONE_TYPE, priceAdjustment="-100%"),
        overlay(ONE_TYPE, price="0"),
        overlay(ONE_TYPE, price="0.05"),
        overlay(ONE_SIZE, price="0.05"),
        overlay([], priceAdjustment="-99.99%"),
        overlay([], priceAdjustment="-0.5"),
        overlay([], priceAdjustment="+1000%"),
        overlay([], priceAdjustment="+1000"),
        overlay([], priceAdjustment="+0%", weight=10),  # keeps those of less weight away
        overlay([], priceAdjustment="+0%", capacity={"example.com/x": 1}),
        overlay([], priceAdjustment="+0.01%"),
        overlay([], capacity={"example.com/x": 0}),
    ],
)
def test_prices_that_decide_something(spec: dict[str, Any]) -> None:
    assert told("NodeOverlay", "spec", spec) == []


def test_a_catalogue_without_types_ends_nothing() -> None:
    assert told("NodeOverlay", "spec.requirements", [], EMPTY) == []
    assert {severity for severity, _, _ in told("NodePool", "spec.weight", 1, EMPTY)} <= {"warning"}


def test_advice_can_be_left_out() -> None:
    assert told("NodeOverlay", "spec", overlay([], price="0"), LintSettings(advice=False)) == []


TEMPLATE = {"podTemplateRef": {"name": "web"}}
WORKLOAD = {"scalableRef": {"kind": "Deployment", "name": "web"}}


@pytest.mark.parametrize(
    ("spec", "severity", "rule", "place"),
    [
        ({**WORKLOAD, "percentage": 10, "limits": {"cpu": 0}}, "warning", "KERF-CB-301", "spec.limits.cpu"),
        ({**TEMPLATE, "limits": {"memory": "0Gi"}}, "warning", "KERF-CB-301", "spec.limits.memory"),
        ({**WORKLOAD, "replicas": 0}, "info", "KERF-CB-302", "spec.replicas"),
        ({**WORKLOAD, "replicas": 0, "percentage": 0}, "info", "KERF-CB-302", "spec.replicas"),
        ({**WORKLOAD, "percentage": 0, "limits": {"cpu": 1}}, "info", "KERF-CB-302", "spec.percentage"),
        ({**TEMPLATE, "replicas": 0}, "info", "KERF-CB-302", "spec.replicas"),
        ({**WORKLOAD, "replicas": 3, "percentage": 10}, "info", "KERF-CB-303", "spec.percentage"),
    ],
)
def test_buffers_of_another_size_than_it_seems(spec: dict[str, Any], severity: str, rule: str, place: str) -> None:
    assert told("CapacityBuffer", "spec", spec) == [(severity, rule, place)]


@pytest.mark.parametrize(
    "spec",
    [
        {**WORKLOAD, "percentage": 10, "limits": {"cpu": "1m"}},
        {**WORKLOAD, "percentage": 10, "replicas": 0},
        {**WORKLOAD, "percentage": 250},
        {**WORKLOAD, "limits": {"cpu": 10}},
        {**TEMPLATE, "replicas": 3, "limits": {"cpu": 10}},
    ],
)
def test_buffers_of_a_clear_size_are_left_alone(spec: dict[str, Any]) -> None:
    assert told("CapacityBuffer", "spec", spec) == []
