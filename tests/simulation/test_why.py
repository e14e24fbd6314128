"""`kerf why` beside the cause: one thing is broken in a drawn world, the answer has to name it first, and its first
edit has to be enough; the controller in the sandbox shows that. `python -m tests.simulation.why` has the rest."""

from __future__ import annotations

import pytest

from tests.simulation.why.blocking import BLOCKERS
from tests.simulation.why.breaking import KINDS
from tests.simulation.why.manifests import covers, get, with_value
from tests.simulation.why.measure import Measured, measured, summary, table
from tests.simulation.why.pods import Found

#: Seeds of worlds with one NodePool and with several.
PODS, NODES = (1, 13, 35, 47), (0, 6, 19)
#: The worlds of the whole measurement, and the share that has to be right.
ALL_PODS, ALL_NODES, ENOUGH = 500, 200, 0.95


@pytest.mark.parametrize(("of_pods", "seed"), [*((True, s) for s in PODS), *((False, s) for s in NODES)])
def test_the_broken_thing_is_named_first_and_the_first_edit_is_enough(of_pods: bool, seed: int) -> None:
    (one,) = measured(int(of_pods), int(not of_pods), seed)
    assert one.found is not None
    assert (one.found.named, one.found.works) == (True, True), one.line


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("of_pods", [True, False])
def test_answers_are_right_in_nearly_all_worlds(of_pods: bool) -> None:
    some = measured(ALL_PODS if of_pods else 0, 0 if of_pods else ALL_NODES, 0)
    found = [one.found for one in some if one.found is not None]
    assert len(found) >= ENOUGH * len(some)
    assert sum(one.named for one in found) >= ENOUGH * len(found), table(some)
    assert sum(one.works for one in found) >= ENOUGH * len(found), table(some)
    if of_pods:
        assert 0.4 <= sum(one.nodepools >= 3 for one in found) / len(found) <= 0.6


def test_there_are_as_many_kinds_as_are_promised() -> None:
    assert len(KINDS) >= 24
    assert len(BLOCKERS) >= 24


def test_misses_are_in_the_table() -> None:
    good = Found("taint", 0, 1, True, True, "a taint", "tolerate it", "Edit")
    bad = Found("taint", 1, 3, False, True, "something else", "correct it", "Correct")
    rows = [Measured(True, 0, good), Measured(True, 1, bad), Measured(True, 2, None)]
    assert [Measured.read(one.line) for one in rows] == rows
    text = table(rows)
    assert "| taint | 2 | 1 | 2 |" in text
    assert "- taint (seed 1): named something else. Cause: something else" in text
    assert summary([good, bad]).startswith("2 worlds, 1 of them with three NodePools or more. Cause first: 50.0 %.")


def test_paths_are_read_as_answers_write_them() -> None:
    manifest = {"spec": {"list": [{"name": "a", "x": 1}], "map": {"b/c": 2}}}
    assert get(manifest, "spec.list[name=a].x") == get(manifest, "spec.list[0].x") == 1
    assert get(manifest, "spec.list[name=b].x") is None
    assert with_value(manifest, 'spec.map["b/c"]', None)["spec"]["map"] == {}
    assert with_value(manifest, "spec.new.list[-]", {"k": 1})["spec"]["new"] == {"list": [{"k": 1}]}
    assert covers("spec.list", "spec.list[0].x")
    assert not covers("spec.list[1]", "spec.list[0].x")
