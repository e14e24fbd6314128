"""Bugs that somebody might make are found by the suite; and each of them can still be planted where it was."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

from tests.mutations.bug import RULES, Bug
from tests.mutations.catalogue import BROKEN, DRAWN, NO_BUG, SEED
from tests.mutations.copies import Broken, copy, found, named_tests, run, unmutated
from tests.mutations.edits import changed
from tests.mutations.planted import BUGS
from tests.sources import ROOT

ALL = (*BUGS, *(bug for each in BROKEN.values() for bug in each.bugs.values()))
CATALOGUES = pytest.mark.parametrize("name", BROKEN)


def _parametrized(bugs: Iterable[Bug]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("bug", bugs, ids=lambda bug: bug.name.replace(" ", "-"))


_each = _parametrized(ALL)
#: One that is found within seconds.
_quick = next(bug for bug in BUGS if bug.name == "a node that changes is one more")


@_each
def test_a_bug_can_still_be_planted(bug: Bug) -> None:
    """Every piece that it replaces is in one place, and the result compiles."""
    texts = changed(bug.edits, ROOT)
    assert texts
    for file, text in texts.items():
        if file.endswith(".py"):
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


def test_a_copy_that_cannot_be_imported_has_found_nothing() -> None:
    with copy() as root:
        (root / "reconciler" / "kerf" / "__init__.py").write_text("import nothing_of_that_name\n", encoding="utf-8")
        with pytest.raises(Broken):
            run(root, named_tests(BUGS[0]))


def test_a_test_that_dies_of_anything_but_an_assertion_has_found_nothing() -> None:
    with copy() as root:
        (root / "tests" / "test_dying.py").write_text("def test_dies():\n    assert {}['key']\n", encoding="utf-8")
        with pytest.raises(Broken, match="KeyError"):
            run(root, named_tests(Bug("dying", "", (), ("tests/test_dying.py::test_dies",))))


@CATALOGUES
def test_a_draw_is_the_same_on_every_machine_and_leaves_out_what_is_to_come(name: str) -> None:
    first = {
        "scheduling": [146, 130, 61, 161, 99, 172],
        "disruption": [146, 130, 61, 161, 99, 158],
        "aws": [146, 130, 61, 161, 99, 172],
    }
    assert BROKEN[name].drawn(SEED)[:6] == first[name]
    assert len({*BROKEN[name].drawn(SEED)}) == DRAWN


@CATALOGUES
def test_every_number_that_is_drawn_and_has_a_test_has_a_bug(name: str) -> None:
    of = BROKEN[name]
    bugless = [number for number, lack in of.lacking(of.drawn(SEED)).items() if lack == NO_BUG]
    assert not bugless, f"tests/mutations/behaviours_of_*.py needs bugs that break these behaviours: {bugless}"


def test_a_bug_is_found_and_only_there() -> None:
    assert [finding.by for finding in unmutated(_quick)] == [""]
    assert all(finding.by for finding in found(_quick))


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_without_a_bug_nothing_is_found() -> None:
    assert [finding.by for finding in unmutated(*ALL) if finding.by] == []


@pytest.mark.long
@pytest.mark.timeout(1800)
@_each
def test_a_bug_is_found(bug: Bug) -> None:
    assert all(finding.by for finding in found(bug))
