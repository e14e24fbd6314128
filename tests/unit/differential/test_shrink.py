"""A world is made smaller for as long as what is looked for stays, and stays a world."""

from __future__ import annotations

from collections.abc import Callable

from tests.differential.draft import Json
from tests.differential.features import FEATURES
from tests.differential.generator import world_of, world_with
from tests.differential.ours import answer
from tests.differential.shrink import shrunk


def test_what_does_not_matter_goes() -> None:
    (feature,) = (one for one in FEATURES if one.name == "required terms: OR")
    small = shrunk(world_with(3, FEATURES[10:40]), feature.found)
    assert feature.found(small)
    assert (len(small["pods"]), small["nodes"], small["nodePools"], small["instanceTypes"]) == (1, [], [], [])
    (pod,) = small["pods"]
    assert set(pod["spec"]) == {"containers", "affinity"}
    terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert [len(term["matchExpressions"]) for term in terms["nodeSelectorTerms"]] == [1, 1]


def test_what_is_looked_for_in_vain_leaves_the_world_as_it_is() -> None:
    world = world_of(5)
    assert shrunk(world, lambda smaller: False) == world_of(5)


def test_a_question_that_fails_is_a_no() -> None:
    def fails(smaller: Json) -> bool:
        raise ValueError("not a world any more")

    assert shrunk(world_of(5), fails) == world_of(5)


def test_a_small_world_can_still_be_read() -> None:
    for seed in range(10):
        world = world_of(seed)
        stays = _asks_about(answer(world).pods[0].key)
        small = shrunk(world, stays, most=150)
        assert stays(small)
        assert len(str(small)) < len(str(world))


def test_trials_are_counted() -> None:
    asked: list[Json] = []

    def stays(smaller: Json) -> bool:
        asked.append(smaller)
        return True

    shrunk(world_of(5), stays, most=7)
    assert len(asked) <= 7


def _asks_about(key: str) -> Callable[[Json], bool]:
    return lambda world: any(pod.key == key for pod in answer(world).pods)
