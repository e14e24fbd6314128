"""Edits find their definition wherever it lives, and their piece whatever its layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutations.edits import DoesNotApply, Edit, changed

FLEET = """
LIMIT = 3

class Fleet:
    size: int = 2

    def cheapest(self, prices):
        # the order does not matter
        if not prices:
            return None
        return min(
            prices
        )

def cheapest(prices):
    def half(price):
        return price / 2
    return min(map(half, prices))
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "room" / "inner").mkdir(parents=True)
    (tmp_path / "room/inner/fleet.py").write_text(FLEET)
    (tmp_path / "room/other.py").write_text("def cheapest(prices):\n    return sorted(prices)[0]\n")
    (tmp_path / "values.yaml").write_text("replicas: 2\n")
    return tmp_path


@pytest.mark.parametrize(
    ("edit", "gone", "new"),
    [
        (Edit("room:Fleet.cheapest", "min(prices)", "max(prices)"), "min(prices)", "max(prices)"),
        (Edit("room:Fleet.cheapest", "if not prices: return None", ""), "if not prices", "return min(prices)"),
        (Edit("room:Fleet.cheapest", "return None", "pass\nreturn 0"), "return None", "pass\n            return 0"),
        (Edit("room:Fleet.size", "2", "3"), "size: int = 2", "size: int = 3"),
        (Edit("room:LIMIT", "LIMIT = 3", "LIMIT = 4"), "LIMIT = 3", "LIMIT = 4"),
        (Edit("room:cheapest.half", "price / 2", "price or 1"), "price / 2", "return price or 1"),
        (Edit("room/inner:cheapest", "min", "max"), "min(map", "max(map"),
        (Edit("room:Fleet.cheapest", "if not prices:", "if prices:"), "if not", "if prices:\n            return None"),
        (
            Edit("room:cheapest.half", "def half(price):", "def half(price=1):"),
            "half(price):",
            "(price=1):\n        return",
        ),
    ],
)
def test_a_piece_is_replaced_in_its_definition(root: Path, edit: Edit, gone: str, new: str) -> None:
    ((file, text),) = changed([edit], root).items()
    assert file == "room/inner/fleet.py"
    assert gone not in text
    assert new in text


def test_of_definitions_of_one_name_that_with_the_piece_counts(root: Path) -> None:
    assert [*changed([Edit("room:cheapest", "sorted(prices)", "prices")], root)] == ["room/other.py"]


def test_a_body_does_not_become_empty(root: Path) -> None:
    edit = Edit("room:cheapest", "return sorted(prices)[0]", "")
    assert changed([edit], root) == {"room/other.py": "def cheapest(prices):\n    pass\n"}


def test_edits_follow_each_other(root: Path) -> None:
    place = "room:Fleet.cheapest"
    edits = Edit(place, "min(prices)", "max(prices)"), Edit(place, "max(prices)", "sum(prices)")
    assert "return sum(prices)" in changed(edits, root)["room/inner/fleet.py"]
    assert (root / "room/inner/fleet.py").read_text() == FLEET


def test_a_place_without_a_definition_is_a_file(root: Path) -> None:
    assert changed([Edit("values.yaml", "2", "3")], root) == {"values.yaml": "replicas: 3\n"}


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (Edit("room:Fleet.dearest", "min(prices)", "0"), r"room:Fleet.dearest \(no file\) has 0 times"),
        (Edit("room:Fleet.cheapest", "sum(prices)", "0"), r"\(room/inner/fleet.py\) has 0 times"),
        (Edit("room:cheapest", "prices", "0"), r"\(room/inner/fleet.py, room/other.py\) has 2 times"),
        (Edit("values.yaml", "replicas: 3", ""), "values.yaml has 0 times"),
    ],
)
def test_a_piece_that_is_not_in_one_place_is_an_error(root: Path, edit: Edit, message: str) -> None:
    with pytest.raises(DoesNotApply, match=message):
        changed([edit], root)
