"""Nodes of the sandbox that differ from their plan."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.model import kinds
from kerf.model.kubernetes.objects import Node
from kerf.sandbox.weather import Weather
from kerf.sandbox.world import World
from kerf_api.resources import Resources
from tests.unit.sandbox.sandbox_world import USER_DATA, launch, nodes, wait

TAINT = "corp.example.com/agent=missing:NoSchedule"


def joined(count: int = 1, seed: int = 0, **weather: Any) -> tuple[World, list[Node]]:
    """A world with so many nodes, a minute after the launch."""
    world = World(seed=seed, weather=Weather(**weather))
    names = [f"m{number}" for number in range(count)]
    world.ec2.fleet(launch(world, *names, user_data=USER_DATA))
    wait(world, 60)
    return world, nodes(world)


def allocatable(**weather: Any) -> Resources:
    return Resources.parse(joined(**weather)[1][0].status.allocatable)


@pytest.mark.parametrize(
    ("resource", "lacks", "expected"),
    [
        ("cpu", "430m", 430),
        ("memory", "1Gi", 1 << 30),
        ("ephemeral-storage", "5Gi", 5 << 30),
        ("pods", "9", 9),
        ("cpu", "10%", 193),
    ],
)
def test_allocatable_lacks_an_amount_or_a_share(resource: str, lacks: str, expected: int) -> None:
    planned = allocatable()
    assert (planned - allocatable(lacking={resource: lacks}))[resource] == expected


def test_the_other_resources_and_the_capacity_are_as_planned() -> None:
    (plain,), (short,) = joined()[1], joined(lacking={"cpu": "430m"})[1]
    assert {**short.status.allocatable, "cpu": ""} == {**plain.status.allocatable, "cpu": ""}
    assert short.status.capacity == plain.status.capacity


def test_a_late_taint_for_good() -> None:
    world, (node,) = joined(late_taint=TAINT)
    assert TAINT in {str(taint) for taint in node.spec.taints}
    wait(world, 7200)
    assert TAINT in {str(taint) for taint in nodes(world)[0].spec.taints}


def test_a_late_taint_for_a_while() -> None:
    world, (node,) = joined(late_taint=TAINT, late_taint_after_seconds=10, late_taint_seconds=90)
    assert TAINT in {str(taint) for taint in node.spec.taints}
    wait(world, 90)
    assert TAINT not in {str(taint) for taint in nodes(world)[0].spec.taints}


def test_a_label_that_never_comes() -> None:
    world, (node,) = joined(missing_labels=["pool"])
    assert "pool" in joined()[1][0].metadata.labels
    assert "pool" not in node.metadata.labels
    world.server.patch(kinds.NODE, "", node.name, {"metadata": {"labels": {"pool": "one", "other": "here"}}})
    (again,) = nodes(world)
    assert ("pool" in again.metadata.labels, again.metadata.labels["other"]) == (False, "here")


def test_fewer_attachments() -> None:
    world, (node,) = joined(lacking_attachments=23)
    assert world.server.get(kinds.CSI_NODE, "", node.name).value.attachable == {"ebs.csi.aws.com": 3}


@pytest.mark.parametrize(
    ("selection", "differing"),
    [
        ({"differing_types": ["m6i.large"]}, True),
        ({"differing_types": ["c5.large"]}, False),
        ({"differing_nodepools": ["default"]}, True),
        ({"differing_nodepools": ["other"]}, False),
        ({"differing_share": 0.0}, False),
    ],
)
def test_only_some_nodes_differ(selection: dict[str, Any], differing: bool) -> None:
    (node,) = joined(late_taint=TAINT, **selection)[1]
    assert (TAINT in {str(taint) for taint in node.spec.taints}) == differing


def test_the_seed_selects_the_nodes() -> None:
    def tainted(seed: int) -> list[bool]:
        there = sorted(joined(8, seed, late_taint=TAINT, differing_share=0.5)[1], key=lambda node: node.name)
        return [TAINT in {str(taint) for taint in node.spec.taints} for node in there]

    assert tainted(1) == tainted(1)
    assert 0 < sum(tainted(1)) < 8
    assert tainted(1) != tainted(2)
