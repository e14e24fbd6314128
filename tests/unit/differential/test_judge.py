"""What counts as a difference: pods that only the peer places, a higher price, a broken rule of the referee's."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from benchmarks.peers.karpenter import PeerClaim, PeerOutcome
from kerf.model.cluster import build
from kerf.model.kubernetes.pods import requests
from kerf.scheduling.answers.solution import Solution
from tests.differential.draft import Json
from tests.differential.explained import EXPLAINED
from tests.differential.generator import world_with
from tests.differential.judge import Comparison, Difference, PeerAnswer, compare, missing
from tests.differential.ours import Ours, answer, snapshot_of


def outcome(*claims: PeerClaim, existing: dict[str, str] | None = None) -> PeerOutcome:
    return PeerOutcome(0, 0, 0, len(claims), 0, 0, 0, False, claims, existing or {})


def as_peer(ours: Ours, cheaper: float = 1.0) -> PeerOutcome:
    """Our answer in the peer's words, at a part of the price."""
    claims = [
        PeerClaim(
            node.pool,
            node.instance_types,
            tuple(key.removeprefix("default/") for key in node.pods),
            node.zones[0],
            node.capacity_types[0],
            node.price / 1e6 * cheaper,
        )
        for node in ours.solution.new_nodes
    ]
    return outcome(*claims)


def kinds(found: Comparison) -> list[str]:
    return [difference.kind for difference in found.differences]


def test_the_same_answer_is_no_difference() -> None:
    world = world_with(1, [])
    found = compare(world, [as_peer(answer(world))])
    assert (found.differences, found.more, found.yielded) == ((), frozenset(), frozenset())
    assert found.our_cost == found.peer.cost > 0


def test_more_pods_than_the_peer_is_no_difference() -> None:
    world = world_with(1, [])
    found = compare(world, [outcome()])
    assert kinds(found) == []
    assert len(found.more) == len(world["pods"])
    assert found.our_cost == 0  # of the same pods, which are none


@pytest.mark.parametrize(("part", "expected"), [(0.995, []), (0.98, ["dearer"])])
def test_a_price_may_be_one_percent_higher(part: float, expected: list[str]) -> None:
    world = world_with(1, [])
    assert kinds(compare(world, [as_peer(answer(world), part)])) == expected


def test_the_best_of_the_peers_answers_counts() -> None:
    world = world_with(1, [])
    same, cheap = as_peer(answer(world)), as_peer(answer(world), 0.5)
    assert kinds(compare(world, [same, cheap])) == ["dearer"]
    assert kinds(compare(world, [outcome(), same])) == []


def test_a_pod_that_only_the_peer_places_is_told_with_our_reason_and_what_the_peer_broke() -> None:
    world = world_with(1, [])
    told = as_peer(answer(world))
    for pool in world["nodePools"]:
        spec = pool["spec"]["template"]["spec"]
        spec["taints"] = [{"key": "nobody", "effect": "NoSchedule"}]
    (difference,) = compare(world, [told]).differences
    assert difference.kind == "unplaced"
    assert "did not tolerate taint" in difference.words
    assert "taint" in difference.breaks


def two(first: int, second: int) -> tuple[Ours, Any, Any]:
    """Two pods with priorities: our side places the first; an answer that places the second, one that places both."""
    world = world_with(1, [])
    keys = []
    for pod, priority in zip(world["pods"][:2], (first, second), strict=True):
        pod["spec"]["priority"] = priority
        pod["metadata"]["labels"] = {"app": pod["metadata"]["name"]}
        keys.append(f"default/{pod['metadata']['name']}")
    snapshot = snapshot_of(world)
    ours = Ours(snapshot, tuple(snapshot.pods.pending.values()), Solution(placed={keys[0]: "node"}))
    return ours, PeerAnswer({keys[1]: "node"}, [], {}), PeerAnswer(dict.fromkeys(keys, "node"), [], {})


def test_who_gives_way_depends_on_priority() -> None:
    def sorts(ours: Ours, peer: PeerAnswer) -> list[int]:
        return [len(some) for some in missing(ours, peer)]

    ours, other, both = two(100, 0)
    assert sorts(ours, other) == [0, 0, 1]  # yielded
    assert sorts(ours, both) == [1, 0, 0]  # lost: nobody took its place
    ours, other, _ = two(0, 0)
    assert sorts(ours, other) == [0, 1, 0]  # swapped
    ours, other, _ = two(0, 100)
    assert sorts(ours, other) == [1, 0, 0]


def test_an_exchange_among_equals_is_a_choice_only_where_limits_are_short() -> None:
    (rule,) = (known for known in EXPLAINED if known.kind == "swapped" and known.seeds is None)
    assert rule.fits(1, Difference("swapped", "", short=True))
    assert not rule.fits(1, Difference("swapped", ""))
    assert not rule.fits(1, Difference("unplaced", "", short=True))


def test_pods_that_are_alike_stand_for_each_other() -> None:
    ours, other, _ = two(0, 0)
    alike = ours.snapshot.pods[next(iter(other.placed))]
    twin = msgspec.structs.replace(alike, metadata=msgspec.structs.replace(alike.metadata, name="twin"))
    world = Ours(
        build([alike, twin], now=ours.snapshot.now, settings=ours.snapshot.settings), (alike, twin), ours.solution
    )
    placed = Ours(world.snapshot, world.pods, Solution(placed={twin.key: "node"}))
    assert missing(placed, other) == (frozenset(), frozenset(), frozenset())
    assert len(missing(placed, PeerAnswer({alike.key: "node", twin.key: "node"}, [], {}))[0]) == 1


def test_nodes_of_the_peers_beyond_a_limit_do_not_count() -> None:
    """The one with the largest pod was opened first, so it is the one that stays."""
    world = world_with(1, [])
    told = as_peer(answer(world))
    assert len(told.claims) > 1
    for pool in world["nodePools"]:
        pool["spec"]["limits"] = {"nodes": "1"}
    found = compare(world, [told])
    sizes = {key: requests(found.ours.snapshot.pods[key])["cpu"] for node in found.peer.new_nodes for key in node.pods}
    assert len(found.peer.new_nodes) == len({claim.node_pool for claim in told.claims})
    assert max(sizes.values()) == max(requests(pod)["cpu"] for pod in found.ours.pods)
    assert "limits" not in {problem.rule for problem in found.peer.problems}


def test_what_our_answer_breaks_is_told_by_rule() -> None:
    """The engine's answer to another world, in which nothing may be made."""
    world: Json = world_with(1, [])
    good = answer(world)
    for pool in world["nodePools"]:
        pool["spec"]["limits"] = {"nodes": "0"}
    strict = snapshot_of(world)
    found = Comparison.of(Ours(strict, good.pods, good.solution), [outcome()], limited=True)
    assert kinds(found) == ["limits"]
