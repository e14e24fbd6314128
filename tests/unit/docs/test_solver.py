"""docs/solver.md: its examples are what the solver does, and they show what the text says."""

from __future__ import annotations

from pathlib import Path

from benchmarks.document import rewrite
from tests import references
from tests.unit.docs import solver_examples as examples

TEXT = examples.PAGE.read_text(encoding="utf-8")


def test_the_examples_are_what_the_solver_does(tmp_path: Path) -> None:
    page = tmp_path / "solver.md"
    page.write_text(TEXT, encoding="utf-8")
    rewrite(page, examples.parts())
    assert page.read_text(encoding="utf-8") == TEXT, "python -m tests.unit.docs.solver_examples"


def test_what_the_page_names_is_there() -> None:
    assert [*references.missing(TEXT)] == []


def test_the_spread_holds_after_each_pod() -> None:
    zones = {key: node.zones for node in examples.spread_solution().new_nodes for key in node.pods}
    counts = dict(examples.RUNNING)
    for key in sorted(zones):
        (zone,) = zones[key]
        assert counts[zone] + 1 - min(counts.values()) <= 1, key
        counts[zone] += 1
    assert counts == {"z1": 3, "z2": 3, "z3": 3}


def test_the_sizes_cost_less_than_any_one_type() -> None:
    types = enumerate(examples.TYPES)
    alone = [-(-examples.EQUAL // examples.fitting(i)) * type_.offerings[0].price for i, type_ in types]
    assert examples.sizes_solution().price < min(alone)


def test_the_search_saves_and_the_bound_holds() -> None:
    first, last = examples.searched(0), examples.searched(1)
    assert last.bound is not None
    assert last.bound <= last.price < first.price
