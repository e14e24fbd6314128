"""Seeds of chaos: whatever happens in whatever order, nothing is lost, doubled or left over."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import date

import pytest

from tests.simulation.chaos import minimised, play, told
from tests.simulation.scripts import Deed, Script, differing, script

#: Of the first 300 seeds those that, together, make plans say all that the 300 make them say (choosing.py).
CHOSEN = (
    *(1, 3, 10, 13, 15, 16, 23, 27, 28, 29, 30, 32, 35, 39, 49, 57, 66, 74, 75, 76),
    *(84, 90, 93, 110, 111, 120, 121, 146, 147, 149, 155, 156, 170, 175, 176, 177, 178, 179, 181, 187),
    *(188, 194, 202, 209, 212, 215, 218, 219, 225, 227, 229, 232, 236, 239, 251, 260, 284, 285, 287, 295),
)
#: A few in one test each, so that workers share them evenly.
EACH, LONG_SEEDS = 6, 2000
#: `make long` plays so many more, others on each day: a repetition can find something new.
FRESH, OF_THE_DAY = 300, 10_000 + date.today().toordinal() * 300
#: Seeds of worlds in which nodes differ from their plan.
DIFFERING = 5


@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(0, len(CHOSEN), EACH))
def test_nothing_is_lost(first: int) -> None:
    _play(CHOSEN[first : first + EACH])


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("first", range(0, LONG_SEEDS, 50))
def test_nothing_is_lost_in_the_long_run(first: int) -> None:
    _play(range(first, first + 50))


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("number", range(0, FRESH, 50))
def test_nothing_is_lost_in_seeds_that_nobody_has_played(number: int) -> None:
    _play(range(OF_THE_DAY + number, OF_THE_DAY + number + 50))


@pytest.mark.timeout(600)
def test_nothing_is_lost_where_nodes_differ_from_their_plan() -> None:
    _play(range(DIFFERING), differing)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("first", range(DIFFERING, LONG_SEEDS, 50))
def test_nothing_is_lost_in_the_long_run_where_nodes_differ(first: int) -> None:
    _play(range(first, min(first + 50, LONG_SEEDS)), differing)


def _play(seeds: Sequence[int], changed: Callable[[Script], Script] = lambda what: what) -> None:
    """Nothing is broken, and the invariants have looked at most of what there was."""
    outcomes = [play(changed(script(seed))) for seed in seeds]
    failed = [outcome for outcome in outcomes if outcome.violation]
    assert not failed, "\n\n".join(told(minimised(outcome)) for outcome in failed[:1])
    asked = sum(outcome.asked.total() for outcome in outcomes)
    assert sum(outcome.looked.total() for outcome in outcomes) > asked / 2


def test_a_seed_lives_the_same_life_twice() -> None:
    """Also where sets have another order: each life is lived in a process with its own hash seed."""
    first, second = _life("1"), _life("2")
    assert first == second
    assert "violation=''" in first
    assert "launched=0" not in first
    assert first.count(" s  kube ") > 20


def _life(hash_seed: str) -> str:
    """All there is to tell of seed 4."""
    code = (
        "from tests.simulation.chaos import play; from tests.simulation.scripts import script; print(play(script(4)))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return told.stdout


def test_a_failure_is_made_shorter() -> None:
    """A world whose pods can never run breaks an invariant at once, whatever else happens: nothing else is told."""
    broken = _without_node_class(script(3))
    failed = play(broken)
    assert failed.violation.startswith("no rest")
    shorter = minimised(failed)
    assert shorter.violation.startswith("no rest")
    assert not shorter.script.rows
    assert f"seed {broken.seed}" in told(shorter)


def _without_node_class(whole: Script) -> Script:
    kept = tuple(m for m in whole.manifests if m["kind"] not in ("EC2NodeClass", "NodePool"))
    deeds = (Deed(70.0, "compact"), Deed(80.0, "delete_pod", (0.5,)), Deed(90.0, "reclaim", (0.1,)))
    return Script(whole.seed, whole.weather, kept, deeds, whole.faults[:3])
