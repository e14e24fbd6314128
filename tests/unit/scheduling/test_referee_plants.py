"""The referee finds each planted violation by the name of its rule, and nothing in the right answer to the same world.

`referee_plants.py` has the words that the tables here are written in.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.referee import RULES, violations
from tests.unit.scheduling import referee_plants_alone, referee_plants_new, referee_plants_together
from tests.unit.scheduling.referee_plants import Choice, Plant

PLANTS = [*referee_plants_alone.PLANTS, *referee_plants_together.PLANTS, *referee_plants_new.PLANTS]


def broken(plant: Plant, choice: Choice) -> Counter[str]:
    snapshot = plant.snapshot()
    answer: Any = choice.of(snapshot)
    return Counter(v.rule for v in violations(snapshot, list(snapshot.pods.pending.values()), answer, plant.exclude))


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_the_right_answer_is_right(plant: Plant) -> None:
    assert broken(plant, plant.right) == {}


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_the_broken_rule_is_found(plant: Plant) -> None:
    assert set(broken(plant, plant.wrong)) == {plant.rule}


def test_every_rule_is_planted_and_no_plant_twice() -> None:
    assert {plant.rule for plant in PLANTS} == set(RULES)
    assert len({plant.name for plant in PLANTS}) == len(PLANTS) >= 40
