"""A seed is a world: some workloads, NodePools and nodes, with features from the table, as manifests."""

from __future__ import annotations

from random import Random
from typing import Final

from tests.differential.draft import Json, catalogue
from tests.oracle.features import FEATURES, Feature
from tests.oracle.sketch import Sketch, finished

_DISK: Final = ("10Gi", "20Gi")


def world_of(seed: int) -> Json:
    """The world of a seed."""
    sketch = begun(Random(f"world {seed}"))
    for feature in drawn(seed):
        feature.draw(sketch)
    for row in sketch.types:
        disk = sketch.dice.choice(_DISK)
        row["capacity"]["ephemeral-storage"] = row["allocatable"]["ephemeral-storage"] = disk
    if seed % 8 == 0:
        sketch.settings["improveSeconds"] = 0.02
    return finished(sketch)


def begun(dice: Random) -> Sketch:
    """A world before any feature: types, NodePools, workloads, nodes with some pods."""
    sketch = Sketch(dice, types=list(catalogue(dice)))
    for _ in range(dice.choice((1, 1, 2))):
        sketch.add_pool()
    for _ in range(dice.randint(2, 3)):
        sketch.add_workload()
    for _ in range(dice.randint(2, 4)):
        sketch.add_node(dice.choice(("existing", "existing", "existing", "unmanaged")))
    return sketch


def drawn(seed: int) -> list[Feature]:
    """The features of a seed, in the order of the table."""
    dice = Random(f"features of {seed}")
    chosen = set(dice.sample(range(len(FEATURES)), dice.randint(3, 11)))
    return [feature for number, feature in enumerate(FEATURES) if number in chosen]
