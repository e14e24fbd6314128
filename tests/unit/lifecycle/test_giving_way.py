"""A node takes no pods yet while others, who come first, would take its room: for whom, how long, and in what order."""

from __future__ import annotations

from dataclasses import replace as changed

import pytest
from msgspec.structs import replace

from kerf.lifecycle.nodeclaim.expectations import HELD_AT_MOST, SETTLES
from kerf.model.kinds import Ref
from kerf.model.kubernetes.objects import Pod
from kerf_api import labels
from tests.unit.lifecycle.nominated import REQUIRED, bind, has_just_come, join, marked, name_node, ranked, told, waiting
from tests.unit.lifecycle.world import NOW, World, node_claim, prepared


def test_a_node_gives_way_to_pods_that_are_more_important() -> None:
    """They would take it, or make others go again, before they have come to their own node."""
    world = ranked()
    join(world)
    assert world.settle().next_due == NOW + HELD_AT_MOST
    assert told(world) == {"web": "", "db": ""}
    join(world, "b", ready=False)
    world.settle()
    assert told(world) == {"web": "", "db": ""}
    world.set_ready("node-b", True)
    world.settle()
    assert told(world) == {"web": "", "db": "node-b"}
    assert (world.node("node-a").registered, world.node("node-b").registered) == (False, True)
    bind(world, "db", "node-b")
    world.settle()
    assert told(world)["web"] == "node-a"
    assert world.node("node-a").registered


@pytest.mark.parametrize("up", [False, True])
def test_it_gives_way_no_longer_than_some_seconds(up: bool) -> None:
    """Be it that the others' node does not come up, or that they do not come to it."""
    world = ranked()
    join(world)
    if up:
        join(world, "b")
    world.settle()
    world.pass_time(HELD_AT_MOST.total_seconds() - 1)
    world.settle()
    assert not world.node("node-a").registered
    world.pass_time(1)
    world.settle()
    assert world.node("node-a").registered


def each_with_one_more_important() -> World:
    """Each node was made for a pod that is important and for one that is not."""
    world = ranked(web=("web", "low"), db=("db", "small"))
    for name in ("low", "small"):
        world.put(waiting(name))
    web = world.objects[Ref("Pod", "default", "web")]
    world.put(replace(web, spec=replace(web.spec, priority=100)))
    return world


def test_two_nodes_that_give_way_to_each_other_open_when_both_are_up() -> None:
    """Each was made for a pod that matters more than one of the other's."""
    world = each_with_one_more_important()
    join(world)
    world.settle()
    assert not world.node("node-a").registered
    join(world, "b")
    world.settle()
    assert world.node("node-a").registered
    assert world.node("node-b").registered


def test_nodes_that_would_give_way_to_each_other_open_when_the_pods_of_both_have_been_told() -> None:
    """The one that is told later would find the other one's room free until then."""
    world = each_with_one_more_important()
    join(world)
    join(world, "b")
    world.obey(world.decide())
    name_node(world, "db", "")
    world.obey(world.decide())
    assert (world.node("node-a").registered, world.node("node-b").registered) == (False, False)
    world.obey(world.decide())
    assert (world.node("node-a").registered, world.node("node-b").registered) == (True, True)


def test_a_node_gives_way_to_pods_that_must_be_together_until_their_own_is_up() -> None:
    """The first would take what is left of it, and the second would find no room beside the first."""
    world = ranked()
    together = {"podAffinity": {REQUIRED: [{"topologyKey": labels.HOSTNAME, "labelSelector": {}}]}}
    world.put(waiting("db", affinity=together))
    join(world)
    world.settle()
    assert not world.node("node-a").registered
    join(world, "b")
    world.settle()
    assert world.node("node-a").registered


def test_pods_that_must_be_together_and_more_important_ones_come_at_the_same_time() -> None:
    """Neither waits for the other: those would take what is left here, and these what is meant for those there."""
    world = ranked()
    together = {"podAffinity": {REQUIRED: [{"topologyKey": labels.HOSTNAME, "labelSelector": {}}]}}
    world.put(waiting("web", affinity=together))
    for claim in ("a", "b"):
        join(world, claim)
    world.obey(world.decide())
    assert told(world) == {"web": "node-a", "db": "node-b"}
    world.obey(world.decide())
    assert (world.node("node-a").registered, world.node("node-b").registered) == (True, True)


def test_nodes_that_open_together_wait_for_the_one_that_came_last() -> None:
    world = ranked(web=("web", "low"))
    world.put(waiting("low"))
    web = world.objects[Ref("Pod", "default", "web")]
    world.put(replace(web, spec=replace(web.spec, priority=100)))
    join(world)
    has_just_come(world, join(world, "b"))
    assert world.settle().next_due == NOW + SETTLES
    assert (world.node("node-a").registered, world.node("node-b").registered) == (False, False)
    world.pass_time(SETTLES.total_seconds())
    world.settle()
    assert (world.node("node-a").registered, world.node("node-b").registered) == (True, True)


@pytest.mark.parametrize(
    ("priorities", "opened"),
    [
        pytest.param({"a": (0,), "b": (0,)}, "ab", id="all the same"),
        pytest.param({"a": (1000, 1000), "b": (100,), "c": (0,)}, "a", id="one after the other"),
        pytest.param({"a": (1000, 0), "b": (0,)}, "a", id="to the last of theirs it does no harm"),
        pytest.param({"a": (1000, 0), "b": (100,), "c": (0,)}, "ab", id="one would take the room of another's last"),
        pytest.param({"a": (1000, 0), "b": (100,), "c": (500,)}, "abc", id="some would take the room of one"),
        pytest.param({"a": (1000, 100), "b": (500, 0), "c": (50,), "d": (0,)}, "abc", id="a chain"),
    ],
)
def test_nodes_whose_pods_would_take_each_other_s_room_open_together(
    priorities: dict[str, tuple[int, ...]], opened: str
) -> None:
    names = {claim: [f"{claim}-{number}" for number in range(len(some))] for claim, some in priorities.items()}
    world = prepared(*(node_claim(claim, meta={"annotations": marked(*some)}) for claim, some in names.items()))
    world.settings = changed(world.settings, nominate_pods=True)
    world.settle()
    for claim, some in priorities.items():
        for name, priority in zip(names[claim], some, strict=True):
            one = waiting(name)
            world.put(replace(one, spec=replace(one.spec, priority=priority)))
        join(world, claim)
    world.settle()
    assert "".join(claim for claim in priorities if world.node(f"node-{claim}").registered) == opened


@pytest.mark.parametrize(("app", "waits"), [("web", False), ("db", True)])
def test_a_node_whose_pods_keep_others_away_gives_way_to_those(app: str, waits: bool) -> None:
    """No room is kept for their sake before one is there. Pods that keep their like away wait for nobody."""
    world = ranked()
    world.put(waiting("db"))
    away = {
        "podAntiAffinity": {
            REQUIRED: [{"topologyKey": labels.HOSTNAME, "labelSelector": {"matchLabels": {"app": app}}}]
        }
    }
    world.put(waiting("web", meta={"labels": {"app": "web"}}, affinity=away))
    join(world)
    world.settle()
    assert world.node("node-a").registered is not waits
    join(world, "b")
    world.settle()
    assert world.node("node-b").registered
    bind(world, "db", "node-b")
    world.settle()
    assert world.node("node-a").registered


def spread(name: str, unsatisfiable: str = "DoNotSchedule") -> Pod:
    selector = {"matchLabels": {"app": "web"}}
    row = {"maxSkew": 1, "topologyKey": labels.ZONE, "whenUnsatisfiable": unsatisfiable, "labelSelector": selector}
    return waiting(name, meta={"labels": {"app": "web"}}, topologySpreadConstraints=[row])


@pytest.mark.parametrize("up", [False, True])
@pytest.mark.parametrize(("unsatisfiable", "waits"), [("ScheduleAnyway", False), ("DoNotSchedule", True)])
def test_a_node_whose_pods_must_be_spread_gives_way_to_others(unsatisfiable: str, waits: bool, up: bool) -> None:
    """As long as the spread forbids their own node they would go there."""
    world = ranked()
    world.put(waiting("db"))
    world.put(spread("web", unsatisfiable))
    join(world)
    join(world, "b", ready=up)
    world.settle()
    assert (world.node("node-a").registered, world.node("node-b").registered) == (not waits, up)
    world.set_ready("node-b", True)
    world.settle()
    bind(world, "db", "node-b")
    world.settle()
    assert world.node("node-a").registered


def test_nodes_whose_pods_must_be_spread_open_when_all_are_up() -> None:
    """Else the spread forbids those of the first zone their own node, until the next has one."""
    world = ranked()
    world.put(spread("db"))
    world.put(spread("web"))
    join(world)
    join(world, "b", ready=False)
    world.settle()
    assert not world.node("node-a").registered
    world.set_ready("node-b", True)
    world.settle()
    assert (world.node("node-a").registered, world.node("node-b").registered) == (True, True)


def test_it_gives_way_to_no_pods_of_another_nodepool() -> None:
    world = ranked(labels={labels.NODEPOOL: "other", labels.NODECLASS: "default"})
    join(world)
    world.settle()
    assert world.node("node-a").registered
