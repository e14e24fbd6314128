"""A seed is a world, every feature comes up, and both sides can read what comes out."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.differential.campaign import LEAST, MANY, features_of
from tests.differential.features import FEATURES, Feature
from tests.differential.generator import world_of, world_with
from tests.differential.ours import answer, snapshot_of


def test_a_seed_is_a_world() -> None:
    assert world_of(7) == world_of(7)
    assert world_of(7) != world_of(8)


def test_every_feature_is_in_twenty_of_three_hundred_worlds() -> None:
    counted = Counter(name for seed in range(MANY) for name in features_of(world_of(seed)))
    assert {f.name: counted[f.name] for f in FEATURES if counted[f.name] < LEAST} == {}


@pytest.mark.parametrize("feature", FEATURES, ids=str)
def test_a_feature_that_is_drawn_shows(feature: Feature) -> None:
    shown = [feature.found(world_with(seed, [feature])) for seed in range(20)]
    assert sum(shown) >= 15


@pytest.mark.parametrize("feature", FEATURES, ids=str)
def test_a_world_without_a_feature_does_not_show_it(feature: Feature) -> None:
    assert not any(feature.found(world_with(seed, [])) for seed in range(5))


def test_objects_have_names_of_their_own() -> None:
    for seed in range(100):
        world = world_of(seed)
        pods = [*world["pods"], *(pod for node in world["nodes"] for pod in node.get("pods", []))]
        names = [(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in pods]
        assert len(set(names)) == len(names)
        for listed in world["storage"].values():
            stored = [(one["metadata"].get("namespace"), one["metadata"]["name"]) for one in listed]
            assert len(set(stored)) == len(stored)


def test_every_pod_that_waits_is_asked_about() -> None:
    for seed in range(20):
        world = world_of(seed)
        asked = {pod.key for pod in answer(world).pods}
        assert {f"{p['metadata']['namespace']}/{p['metadata']['name']}" for p in world["pods"]} <= asked


def test_what_is_read_has_everything() -> None:
    for seed in range(20):
        world = world_of(seed)
        snapshot = snapshot_of(world)
        assert len(snapshot.node_pools) == len(world["nodePools"])
        assert len(snapshot.state_nodes) == len(world["nodes"])
        assert len(snapshot.daemon_sets) == len(world["daemonSets"])
        assert len(snapshot.volume_claims) == len(world["storage"].get("persistentVolumeClaims", []))
        assert not any(pod.metadata.unreadable for pod in snapshot.pods.values())
