"""Worlds are the same for a seed, have each feature, and can be read."""

from __future__ import annotations

import ast
from random import Random

import pytest

from tests.differential import supply
from tests.mutations.edits import changed
from tests.oracle.campaign import Tried, faults, features_of, kinds
from tests.oracle.difference import MISSED, NEW_NODE, Difference
from tests.oracle.draws_nodes import labelled_volumes
from tests.oracle.features import FEATURES, Feature
from tests.oracle.ours import snapshot_of
from tests.oracle.planted import MISREADINGS, Misreading
from tests.oracle.sketch import finished, pending
from tests.oracle.worlds import begun, drawn, world_of
from tests.sources import ROOT


def test_a_seed_is_one_world() -> None:
    assert world_of(7) == world_of(7)
    assert world_of(7) != world_of(8)


@pytest.mark.parametrize("feature", FEATURES, ids=str)
def test_worlds_have_the_features_that_are_drawn(feature: Feature) -> None:
    """Another feature, or chance, can undo one, but not in all worlds."""
    seeds = [seed for seed in range(400) if feature in drawn(seed)][:12]
    found = [seed for seed in seeds if feature.name in features_of(world_of(seed))]
    assert found


def test_the_names_in_a_world_are_unique() -> None:
    for seed in range(60):
        world = world_of(seed)
        names = [
            (kind, one["metadata"].get("namespace"), one["metadata"]["name"])
            for kind in world
            for one in _of(world, kind)
        ]
        assert len(set(names)) == len(names)
        assert len(snapshot_of(world).pods) == len(world["pods"])


def test_features_that_draw_objects_of_one_name_leave_one() -> None:
    sketch = begun(Random("volumes"))
    del sketch.workloads[1:]
    for draw in (supply.bound_volumes, labelled_volumes):
        draw(sketch)
    world = finished(sketch)
    names = [one["metadata"]["name"] for one in world["persistentVolumes"]]
    assert names
    assert len(names) == len(set(names)) == len(world["persistentVolumeClaims"])
    assert all("labels" in one["metadata"] for one in world["persistentVolumes"])
    assert all(len(pod["spec"]["volumes"]) == 1 for pod in pending(world))


def _of(world: dict[str, object], kind: str) -> list[dict[str, dict[str, str]]]:
    listed = world[kind]
    return [one for one in listed if isinstance(one, dict) and "metadata" in one] if isinstance(listed, list) else []


def test_an_unexplained_difference_fails_a_campaign() -> None:
    difference = Difference(MISSED, "default/web", "node-0", "", NEW_NODE)
    tried = Tried(3, frozenset(), 0, 1, 0, (), (), (difference,))
    assert list(faults([tried])) == ["1 worlds with an unexplained difference"]
    assert list(kinds([tried])) == ["unexplained: b a new node: 1 worlds, first seed 3"]


def test_misreadings_have_names_of_their_own() -> None:
    assert len({one.name for one in MISREADINGS}) == len(MISREADINGS)


@pytest.mark.parametrize("one", MISREADINGS, ids=lambda one: one.name)
def test_a_misreading_applies(one: Misreading) -> None:
    for file, text in changed(one.edits, ROOT).items():
        assert ast.unparse(ast.parse((ROOT / file).read_text())) != text.rstrip()
