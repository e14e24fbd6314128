"""Recorded decisions of the simulation are the same in another process."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from tests.simulation.replays import check


def test_another_process_makes_the_same_decisions(tmp_path: Path) -> None:
    found, wrong = check([24], 1, tmp_path)
    assert (wrong, found.errors) == ([], [])
    assert found.decisions > 200


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_ten_thousand_decisions_are_the_same(tmp_path: Path) -> None:
    found, wrong = check(count(), 10_000, tmp_path)
    assert (wrong, found.errors) == ([], [])
