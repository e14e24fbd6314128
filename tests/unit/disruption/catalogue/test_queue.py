"""Commands under way and what is left of old ones (1, 2, 25 to 27, 30 and 141 to 144 of the disruption catalogue)."""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from kerf.decide import decide
from kerf.disruption.command import Command, command_of
from kerf.disruption.commands import progress
from kerf.disruption.disrupt import disrupt
from kerf.disruption.propose import propose
from kerf.disruption.view import view
from kerf.model.annotations import text_of
from kerf.model.plan import CreateNodeClaim, DeleteObject, Plan
from kerf.model.snapshot import Batch
from kerf_api import labels
from kerf_api.v1.nodepool import NodePool
from tests.unit.disruption import worlds as w

DELAY, SECOND = timedelta(seconds=15), timedelta(seconds=1)
WAITS = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
TAINT = {"key": labels.DISRUPTED_TAINT, "effect": "NoSchedule"}
OLD = {**w.HASHES, labels.NODEPOOL_HASH: "old"}
MINUTES_TO_HOUR = [(10 * w.MINUTE, 100), (10 * w.MINUTE, 4_000), (800 * SECOND, 10_000), (3_200 * SECOND, 40_000)]


def deletions(plan: Plan) -> list[str]:
    return [action.ref.name for action in plan.actions if isinstance(action, DeleteObject)]


def command(world: w.World, name: str = "a") -> Command | None:
    return command_of(world.claim(name).metadata.annotations)


def replacing(*names: str, count: int = 1) -> w.World:
    """Drifted nodes with as many pods as they need new nodes; the replacements have been created."""
    pods = [w.pod(f"{name}{i}", name) for name in names for i in range(count)]
    ask = w.on_new_nodes("m5.large", count=count)
    world = w.World.of(w.rolling(), *w.drifted(*names), *pods, ask=ask)
    world.settle(40)
    assert len(world.replacements) == len(names) * count
    return world


def clean(world: w.World, name: str = "a") -> bool:
    """Neither taint nor condition nor command is left."""
    return not world.tainted(name) and world.claim(name).condition("DisruptionReason") is None and not command(world)


def test_001_what_is_left_of_a_command_that_is_no_more_goes() -> None:
    """Its taint and its condition; other taints stay."""
    a = w.claim("a")
    told = replace(a.status.conditions[0], type="DisruptionReason", reason="Drifted")
    a = replace(a, status=replace(a.status, conditions=(*a.status.conditions, told)))
    node = w.node(a, taints=[{"key": "team", "effect": "NoSchedule"}, TAINT])
    world = w.World.of(w.pool(consolidateAfter="Never"), a, node)
    assert world.tainted("a")
    world.settle()
    assert clean(world)
    assert [t.key for t in world.objects["node/node-a"].spec.taints] == ["team"]


@pytest.mark.parametrize("how", ["gone", "deleting"])
def test_002_a_replacement_that_is_lost_frees_the_node(how: str) -> None:
    world = replacing("a")
    (name,) = world.replacements
    if how == "gone":
        del world.objects[f"nodeclaim/{name}"]
    else:
        world.edit(f"nodeclaim/{name}", {"metadata": {"deletionTimestamp": w.stamp(w.NOW)}})
    world.settle()
    assert clean(world)
    assert not world.claim("a").metadata.deleting


def test_025_pods_of_a_node_that_waits_for_its_replacement_are_bought_no_node() -> None:
    """The replacement is not even created; of a node that goes already they are."""
    large = [{"name": "c", "resources": {"requests": {"cpu": "1900m"}}}]
    pending = w.pod("wait", phase="Pending", pod_conditions=WAITS, containers=large)
    pods = [w.pod("web", "a"), pending]
    world = w.World.of(w.rolling(), *w.drifted("a"), *pods, ask=w.on_new_nodes("m5.large"))
    for _ in range(2):
        world.tick()
    assert world.tainted("a")
    assert world.replacements == []

    def bought() -> int:
        """For how many pods."""
        batch = Batch(first=w.NOW - w.MINUTE, last=w.NOW - w.MINUTE)
        plan = decide(changed(world.snapshot(), batch=batch))
        return plan.purchase.pods if plan.purchase is not None else 0

    assert bought() == 1, "the one that waits"
    world.edit("nodeclaim/a", {"metadata": {"deletionTimestamp": w.stamp(w.NOW)}})
    assert bought() == 2


def test_026_commands_of_ten_pools_are_under_way_together() -> None:
    names = "abcdefghij"
    nodes = [each for name in names for each in (*w.pairs(name, pool_name=name), w.pod(f"on-{name}", name))]
    ask = w.on_new_nodes("t3.small", count=10)
    world = w.World.of(w.pool(), *map(w.pool, names), *nodes, ask=ask)
    for _ in range(40):
        world.facts["proposals"] = propose(world.snapshot(), ask)
        world.now += DELAY
        world.tick()
    assert [name for name in names if world.tainted(name)] == [*names]
    assert len(world.replacements) == 10


def of_class(pool: NodePool, name: str) -> NodePool:
    template = pool.spec.template
    ref = replace(template.spec.node_class_ref, name=name)
    template = replace(template, spec=replace(template.spec, node_class_ref=ref))
    return replace(pool, spec=replace(pool.spec, template=template))


@pytest.mark.parametrize("what", ["empty", "missing", "nonsense"])
def test_027_a_pool_that_makes_no_sense_does_not_hold_up_another(what: str) -> None:
    """Its list of types is empty, there is none, or its requirements cannot be read."""
    odd = of_class(w.pool("odd"), what)
    if what == "nonsense":
        odd = w.pool("odd", requirements=[{"key": "k", "operator": "Gt", "values": ["x"]}])
    theirs = [odd, *w.pairs("x", pool_name="odd"), w.pod("db", "x", annotations=w.PROTECTED)]
    world = [w.pool(), *w.pairs("a"), w.pod("web", "a"), *w.pairs("b", consolidatable=False), *theirs]
    catalogues = {"default": w.CATALOGUE, "empty": ()}
    found = propose(w.snapshot(world, catalogues=catalogues))
    assert [p.candidates for p in found] == [("a",)]
    plan = disrupt(w.snapshot(world, now=w.NOW + DELAY, catalogues=catalogues, proposals=found))
    assert w.started(plan) == ["a"]


@pytest.mark.parametrize(("age", "expected"), [(119, ["a"]), (120, [])])
def test_030_what_was_found_too_long_ago_taints_nothing(age: int, expected: list[str]) -> None:
    world = [w.pool(), *w.pairs("a"), w.pod("web", "a"), *w.pairs("b", consolidatable=False)]
    found = propose(w.snapshot(world), w.elsewhere("b"))
    plan = disrupt(w.snapshot(world, now=w.NOW + age * SECOND, proposals=found), w.elsewhere("b"))
    assert w.started(plan) == expected


def test_141_a_node_stays_until_all_its_replacements_are_initialised() -> None:
    world = replacing("a", count=2)
    one, two = world.replacements
    waiting = world.plan()
    assert {(e.ref.name, e.reason) for e in waiting.events} == {
        (name, reason) for name in (one, two) for reason in ("DisruptionLaunching", "DisruptionWaitingReadiness")
    }
    world.join(one)
    world.settle()
    assert world.tainted("a")
    assert command(world) is not None
    assert {e.ref.name for e in world.plan().events if e.reason == "DisruptionWaitingReadiness"} == {two}
    assert not world.claim("a").metadata.deleting
    world.join(two)
    assert deletions(world.plan()) == ["a"]


def test_142_a_command_has_ten_minutes() -> None:
    world = replacing("a")
    world.now = w.NOW + 10 * w.MINUTE
    world.settle()
    assert world.tainted("a")
    world.now += SECOND
    world.settle()
    assert clean(world)


def test_142_a_replacement_that_does_not_show_yet_is_waited_for() -> None:
    """It has been created; nobody has seen it."""
    world = w.World.of(w.rolling(), *w.drifted("a"), w.pod("web", "a"), ask=w.on_new_nodes("m5.large"))
    for _ in range(6):
        plan = world.plan()
        world.perform(action for action in plan.actions if not isinstance(action, CreateNodeClaim))
        world.now += 5 * SECOND
    assert world.tainted("a")
    assert command(world) is not None
    (creation,) = [action for action in world.plan().actions if isinstance(action, CreateNodeClaim)]
    world.perform([creation])
    world.settle()
    found = command(world)
    assert found is not None
    assert found.created


def test_143_without_a_replacement_the_node_goes_at_the_first_look() -> None:
    """After it was tainted; of two commands each goes on by itself."""
    world = replacing("a", "b")
    (mine,) = [name for name in world.replacements if world.claim(name).metadata.annotations[labels.REPLACES] == "b"]
    world.join(mine)
    assert deletions(world.plan()) == ["b"]
    empty = w.World.of(w.pool(), *w.pairs("a"))
    order = [[a.key.split()[0] for a in empty.tick().actions] for _ in range(3)]
    assert [keys[0] for keys in order] == ["StartCommand", "TaintNode", "DeleteObject"]


@pytest.mark.parametrize(("limit", "commands"), [*MINUTES_TO_HOUR, (w.HOUR, 45_000), (w.HOUR, 90_000)])
def test_144_how_long_a_command_may_take_grows_with_their_number(limit: timedelta, commands: int) -> None:
    def stopped(started: datetime) -> bool:
        one = Command(id="x", reason="Drifted", started=started, replacements=("r",), created=True, pods=("pod-web",))
        own = w.drifted("a", annotations={labels.COMMAND: text_of(one), **OLD})
        world = [w.rolling(), *own, w.pod("web", "a"), *w.pairs("r", consolidatable=False)]
        plan = progress(changed(view(w.snapshot(world)), commands=_Many({"a": one}, commands)))
        return "RollBackCommand nodeclaim/a" in [action.key for action in plan.actions]

    assert not stopped(w.NOW - limit)
    assert stopped(w.NOW - limit - SECOND)


class _Many(dict[str, Command]):
    """Some commands, of which there are said to be so many."""

    def __init__(self, known: dict[str, Command], number: int) -> None:
        super().__init__(known)
        self._number = number

    def __len__(self) -> int:
        return self._number
