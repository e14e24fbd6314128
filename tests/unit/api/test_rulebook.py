"""The rule book is whole and true: every rule has an entry, and every entry's examples break and keep the rule."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kerf_api.lint import Problem, together, validate
from kerf_api.lint.differences.changes import Located, changes
from kerf_api.lint.rulebook import Entry, book
from kerf_api.lint.rulebook.page import markdown, text
from tests.sources import ROOT

from .manifests import ABSENT, BASES, placed

API = ROOT / "api" / "kerf_api"
#: Rules whose example would be a book of its own; their tests are in test_lint.py.
TOO_LONG_TO_PRINT = {
    *("KERF-SCHEMA-DEPTH", "KERF-SCHEMA-LIMIT", "KERF-SCHEMA-TEXT"),
    *("KERF-EC2-103", "KERF-EC2-207", "KERF-META-106"),
}
#: Rules of the command line, about files; their tests are in tests/unit/cli.
ABOUT_FILES = {rule for rule in book() if rule.startswith("KERF-FILE-")}
#: What `kerf convert` tells of manifests that the linter does not know; tests/unit/conversion has the examples.
ABOUT_CONVERSION = {rule for rule in book() if rule.startswith("KERF-CONV-")}
WORKLOAD = {"template": {"spec": {"containers": [{"name": "app", "image": "app"}]}}}
SIDE_BY_SIDE = [
    pytest.param(entry, id=entry.id) for entry in book().values() if entry.wrong_files and not entry.old_files
]
ABOUT_CHANGES = [pytest.param(entry, id=entry.id) for entry in book().values() if entry.old_files]
WITH_EXAMPLES = [pytest.param(entry, id=entry.id) for entry in book().values() if entry.wrong]
#: Two spaces, and a list with the next word right behind it.
BAD_SPACING = re.compile(r"\S  \S|[\])][a-z]{2}")


def used() -> set[str]:
    """The IDs that the definitions and the linter's code speak of."""
    sources = [*API.rglob("*.py"), *(API / "crds").glob("*.yaml")]
    return {rule for path in sources for rule in re.findall(r"KERF-[A-Z0-9]+-[A-Z0-9]+", path.read_text())}


def manifest(entry: Entry, fields: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = BASES[entry.kind]
    for path, value in fields.items():
        made = placed(made, path, ABSENT if value is None else value)
    return made


def files(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The objects of a rule across objects, made from their short form."""
    return [_file(row) for row in rows]


def _file(row: Mapping[str, Any]) -> dict[str, Any]:
    base = BASES.get(row["kind"]) or {"apiVersion": "apps/v1", "kind": row["kind"], "metadata": {}, "spec": WORKLOAD}
    fields = {"metadata.name": row["name"], **row.get("set", {})}
    if "class" in row:
        fields["T.nodeClassRef.name"] = row["class"]
    for path, value in fields.items():
        base = placed(base, path, ABSENT if value is None else value)
    return base


def broken(entry: Entry, fields: Mapping[str, Any]) -> list[Problem]:
    old = manifest(entry, entry.old) if entry.old is not None else None
    return [problem for problem in validate(manifest(entry, fields), old) if problem.rule == entry.id]


def test_every_rule_has_an_entry_and_every_entry_a_rule() -> None:
    assert set(book()) - ABOUT_FILES == used()


def test_every_entry_has_examples() -> None:
    without = {entry.id for entry in book().values() if not (entry.wrong or entry.wrong_files or entry.old_files)}
    assert without == TOO_LONG_TO_PRINT | ABOUT_FILES | ABOUT_CONVERSION


@pytest.mark.parametrize("entry", WITH_EXAMPLES)
def test_the_wrong_example_breaks_the_rule(entry: Entry) -> None:
    assert entry.wrong is not None
    found = broken(entry, entry.wrong)
    assert {problem.severity for problem in found} == {entry.severity}
    assert not any(BAD_SPACING.search(f"{problem.message}; {problem.hint}") for problem in found)


@pytest.mark.parametrize("entry", WITH_EXAMPLES)
def test_the_right_example_keeps_the_rule(entry: Entry) -> None:
    assert entry.right is not None
    assert broken(entry, entry.right) == []
    old = manifest(entry, entry.old) if entry.old is not None else None
    assert [p for p in validate(manifest(entry, entry.right), old) if p.severity == "error"] == []


def told_of_a_change(entry: Entry, after: Sequence[Mapping[str, Any]]) -> list[Problem]:
    before, now = ([Located("", made) for made in files(rows)] for rows in (entry.old_files, after))
    told = changes(before, now)
    return [p for problems in (*told.found, *told.removed) for p in problems if p.rule == entry.id]


@pytest.mark.parametrize("entry", ABOUT_CHANGES)
def test_a_change_breaks_and_keeps_the_rule(entry: Entry) -> None:
    assert {problem.severity for problem in told_of_a_change(entry, entry.wrong_files)} == {entry.severity}
    assert told_of_a_change(entry, entry.right_files) == []
    assert told_of_a_change(entry, entry.old_files) == []


@pytest.mark.parametrize("entry", SIDE_BY_SIDE)
def test_files_side_by_side_break_and_keep_the_rule(entry: Entry) -> None:
    wrong = [p for problems in together(files(entry.wrong_files)) for p in problems if p.rule == entry.id]
    assert {problem.severity for problem in wrong} == {entry.severity}
    right = [p.rule for problems in together(files(entry.right_files)) for p in problems]
    assert entry.id not in right


@pytest.mark.parametrize("entry", [pytest.param(entry, id=entry.id) for entry in book().values()])
def test_an_entry_reads_well(entry: Entry) -> None:
    assert not entry.title.endswith(".")
    assert len(entry.title) <= 100
    assert entry.why.endswith(".")
    assert entry.fix.endswith(".")


def test_the_reference_page_is_current() -> None:
    assert (ROOT / "docs/reference/rules.md").read_text() == markdown(), "run make manifests"


def test_a_rule_explains_itself_in_plain_text() -> None:
    shown = text(book()["KERF-NP-004"])
    assert "A budget has a schedule without a duration" in shown
    assert "schedule: 0 9 * * mon-fri" in shown
