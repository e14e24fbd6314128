"""Every alert has a switch, a way to be tuned, a place in the documentation that says what to do, and a test."""

from __future__ import annotations

import re
from typing import Final

import pytest
import yaml

from tests.sources import ROOT

from .monitoring import ALERTS, RULE_TESTS, RUNBOOK, Alert, alerts
from .values_table import defaults

NAMES: Final = [alert.name for alert in alerts()]
each = pytest.mark.parametrize("alert", alerts(), ids=lambda alert: str(alert.name))


def test_names_are_unique_and_ours() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert all(re.fullmatch(r"Kerf[A-Z][A-Za-z0-9]+", name) for name in NAMES)


def test_there_is_a_value_for_each_and_for_nothing_else() -> None:
    assert list(defaults()["prometheusRule"]["alerts"]) == NAMES


@each
def test_those_that_compare_with_a_threshold_have_one(alert: Alert) -> None:
    value = defaults()["prometheusRule"]["alerts"][alert.name]
    assert ("$(threshold)" in alert.expr) == ("threshold" in value)
    assert value["enabled"] is True
    assert value["severity"] in ("critical", "warning")


@each
def test_it_is_about_this_release_alone(alert: Alert) -> None:
    """But for what the API server tells, which knows webhooks by name."""
    selectors = re.findall(r"\{([^{}]*)\}", alert.expr)
    assert selectors
    assert all("$(job)" in one or "webhook[.]kerf[.]sh" in one for one in selectors)


@each
def test_who_is_called_is_told_what_and_why(alert: Alert) -> None:
    assert 10 < len(alert.summary) <= 140
    assert not alert.summary.endswith(".")
    assert alert.description.endswith(".")
    mentioned = re.findall(r"\$labels\.(\w+)", alert.summary + alert.description)
    by = re.findall(r"by \(([^)]*)\)", alert.expr)
    kept = {name.strip() for names in by for name in names.split(",")}
    assert set(mentioned) <= kept


@each
def test_it_leads_to_a_section_that_says_what_to_do(alert: Alert) -> None:
    """Its address is the name in small letters, in Markdown everywhere."""
    section = re.search(rf"^### {alert.name}\n\n(.+?)(?=^##|\Z)", RUNBOOK.read_text(encoding="utf-8"), re.M | re.S)
    assert section is not None
    assert len(section[1]) > 120


def test_without_a_value_it_leads_to_the_page_of_these_sections() -> None:
    """A path in the repository: no address of a site holds for every company."""
    assert ROOT / defaults()["prometheusRule"]["runbookUrl"] == RUNBOOK
    assert RUNBOOK.is_file()


def test_there_is_no_section_of_an_alert_that_is_none() -> None:
    sections = re.findall(r"^### (Kerf\w+)$", RUNBOOK.read_text(encoding="utf-8"), re.M)
    assert sections == NAMES


def test_monitoring_lists_each_as_the_values_have_it() -> None:
    page = (ROOT / "docs/monitoring.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[`(Kerf\w+)`\]\(troubleshooting\.md#(\w+)\) \| ([^|]+) \|", page, re.M)
    assert [(name, anchor) for name, anchor, _ in rows] == [(name, name.lower()) for name in NAMES]
    assert {name: told for name, _, told in rows} == {name: _told(name) for name in NAMES}


def _told(name: str) -> str:
    value = defaults()["prometheusRule"]["alerts"][name]
    return f"{value['severity']}, {value['for']}" + (f"; {value['threshold']}" if "threshold" in value else "")


@each
def test_it_is_tried_both_ways(alert: Alert) -> None:
    """`promtool test rules` sees it fire, and sees it silent."""
    file = yaml.safe_load((RULE_TESTS / f"{alert.group}.yaml").read_text(encoding="utf-8"))
    tried = [one for test in file["tests"] for one in test.get("alert_rule_test", []) if one["alertname"] == alert.name]
    assert any(one.get("exp_alerts") for one in tried)
    assert any(not one.get("exp_alerts") for one in tried)


def test_each_group_has_a_file_of_tests() -> None:
    groups = {alert.group for alert in alerts()}
    assert {path.stem for path in RULE_TESTS.glob("*.yaml")} == groups
    assert ALERTS.read_text(encoding="utf-8").startswith("# ")
