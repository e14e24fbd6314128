"""`kerf explain` shows a rule's page, and knows what was meant."""

from __future__ import annotations

import pytest

from kerf.cli.verbs import explain
from kerf.manifests import file_rules
from kerf_api.lint.rulebook import book


def test_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain.main(["KERF-NP-120"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("KERF-NP-120 (error): A budget's schedule cannot be read\n\n")
    assert "\nWrong:\n" in shown
    assert "\nRight:\n" in shown


def test_a_page_about_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain.main(["KERF-FILE-UNUSED"]) == 0
    assert capsys.readouterr().out == (
        "KERF-FILE-UNUSED (info): An exception without a finding\n\n"
        "The rule that it names has no complaint there, so the exception only hides later findings.\n"
        "Remove the comment.\n"
    )


def test_short_and_small_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain.main(["np-120", "kerf-schema-type"]) == 0
    shown = capsys.readouterr().out
    assert "KERF-NP-120 (error)" in shown
    assert "\n\nKERF-SCHEMA-TYPE (error)" in shown


def test_an_unknown_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain.main(["KERF-SCHEMA-TIPE"]) == 2
    assert capsys.readouterr() == ("", "kerf explain: KERF-SCHEMA-TIPE is no rule; did you mean KERF-SCHEMA-TYPE?\n")


def test_every_rule_has_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain.main(list(book())) == 0
    assert len(capsys.readouterr().out) > 1000


def test_the_rules_that_are_known_are_those_with_pages() -> None:
    assert file_rules.known() == set(book())
