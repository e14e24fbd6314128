"""Bugs that somebody might make are found by the suite; and each of them can still be planted where it was."""

from __future__ import annotations

import re

import pytest

from tests.mutations.bug import Bug, DoesNotApply, Edit
from tests.mutations.copies import ROOT, Broken, copy, found, named_tests, run, unmutated
from tests.mutations.planted import BUGS

RULES = "tests/simulation/test_rules.py"
_each = pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name.replace(" ", "-"))


@_each
def test_a_bug_can_still_be_planted(bug: Bug) -> None:
    """Every piece of source that it replaces is there exactly once, and what comes of it compiles."""
    texts: dict[str, str] = {}
    for edit in bug.edits:
        before = texts.get(edit.file) or (ROOT / edit.file).read_text(encoding="utf-8")
        texts[edit.file] = edit.applied(before)
    for file, text in texts.items():
        compile(text, file, "exec")


@_each
def test_a_bug_names_tests_that_exist(bug: Bug) -> None:
    assert bug.tests
    for test in bug.tests:
        file, _, name = test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text(encoding="utf-8")


def test_the_documentation_names_tests_that_exist() -> None:
    text = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    named = re.findall(r"`(?:(tests/\S+\.py)::)?(test_\w+)`", text)
    assert len(named) > 20
    for file, name in named:
        assert f"def {name}(" in (ROOT / (file or RULES)).read_text(encoding="utf-8"), name


def test_every_rule_is_in_the_documentation() -> None:
    rules = re.findall(r"^def (test_\w+)", (ROOT / RULES).read_text(encoding="utf-8"), re.MULTILINE)
    text = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    assert [rule for rule in rules if f"`{rule}`" not in text] == []


@pytest.mark.parametrize("text", ["", "twice twice"])
def test_a_piece_that_is_not_there_once_is_an_error(text: str) -> None:
    with pytest.raises(DoesNotApply):
        Edit("file.py", "twice", "once").applied(text)


def test_a_copy_that_cannot_be_imported_has_found_nothing() -> None:
    with copy() as root:
        (root / "reconciler" / "__init__.py").write_text("import nothing_of_that_name\n", encoding="utf-8")
        with pytest.raises(Broken):
            run(root, named_tests(BUGS[0]))


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_without_a_bug_nothing_is_found() -> None:
    assert [finding.by for finding in unmutated() if finding.by] == []


@pytest.mark.long
@pytest.mark.timeout(1800)
@_each
def test_a_bug_is_found(bug: Bug) -> None:
    assert all(finding.by for finding in found(bug))
