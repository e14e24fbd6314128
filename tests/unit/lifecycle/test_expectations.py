"""Pods are told which node was made for them, before it takes any: who, when, for how long, and what if it goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as changed
from datetime import timedelta

import pytest
from msgspec.structs import replace

from api import labels
from api.v1.meta import decode
from reconciler.lifecycle.expectations import EXPECT, HELD_AT_MOST, SETTLES, TAKE_BACK, TOLD_FOR
from reconciler.model.kinds import Ref
from reconciler.model.objects import Node, Pod
from reconciler.model.plan import PatchObject
from reconciler.runtime.results import subject
from reconciler.scheduling.claims import pod_mark
from tests.unit.lifecycle.world import NOW, World, node_claim, pod, prepared

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
REFUSED = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}


def waiting(name: str, **spec: object) -> Pod:
    one = pod(name, "", status=REFUSED, **spec)
    return replace(one, status=replace(one.status, start_time=None))


def marked(*planned: str) -> dict[str, str]:
    return {labels.PLANNED_PODS: ",".join(pod_mark(f"uid-{name}") for name in planned)}


def launched(*planned: str, on: bool = True, **spec: object) -> World:
    """A claim that was made for these pods, with its instance; `web` and `db` wait."""
    world = prepared(node_claim("a", meta={"annotations": marked(*planned)}, **spec))
    world.settings = changed(world.settings, nominate_pods=on)
    world.settle()
    world.put(waiting("web"))
    world.put(waiting("db"))
    world.deeds.clear()
    return world


def ranked(*, web: Sequence[str] = ("web",), db: Sequence[str] = ("db",), **more: object) -> World:
    """Two claims with their instances: `a` was made for `web`, `b` for `db`, which is more important; both wait."""
    world = prepared(
        node_claim("a", meta={"annotations": marked(*web)}), node_claim("b", meta={"annotations": marked(*db), **more})
    )
    world.settings = changed(world.settings, nominate_pods=True)
    world.settle()
    important = waiting("db")
    world.put(waiting("web"))
    world.put(replace(important, spec=replace(important.spec, priority=100)))
    return world


def join(world: World, claim: str = "a", *, ready: bool = True, taints: Sequence[dict[str, str]] = ()) -> Node:
    """Its machine joins now."""
    held = {"key": labels.UNREGISTERED_TAINT, "effect": "NoExecute"}
    node = world.join(world.claim(claim), ready=ready, taints=[held, *taints])
    found: Node = world.put(replace(node, metadata=replace(node.metadata, creation_timestamp=world.now)))
    return found


def name_node(world: World, name: str, node_name: str) -> None:
    """What the kube-scheduler writes when it forgets, or makes others go."""
    one = world.objects[Ref("Pod", "default", name)]
    world.put(replace(one, status=replace(one.status, nominated_node_name=node_name)))


def bind(world: World, name: str, node_name: str) -> None:
    one = world.objects[Ref("Pod", "default", name)]
    world.put(replace(one, spec=replace(one.spec, node_name=node_name)))


def occupy(world: World, node_name: str, cpu: str) -> None:
    world.put(pod("stranger", node_name, containers=[{"name": "a", "resources": {"requests": {"cpu": cpu}}}]))


def writes(world: World) -> list[tuple[str, str]]:
    """What pods are to be told now."""
    return [(a.verb, a.ref.name) for a in world.decide().actions if isinstance(a, PatchObject) and a.ref.kind == "Pod"]


def has_just_come(world: World, node: Node) -> None:
    ready = tuple(replace(c, last_transition_time=world.now) for c in node.status.conditions)
    world.put(replace(node, status=replace(node.status, conditions=ready)))


def told(world: World) -> dict[str, str]:
    found = (world.objects[Ref("Pod", "default", name)] for name in ("db", "web"))
    return {one.metadata.name: one.status.nominated_node_name for one in found}


def test_those_it_was_made_for_are_told_and_nobody_else() -> None:
    world = launched("web", "gone")
    join(world)
    world.settle()
    assert told(world) == {"web": "node-a", "db": ""}


def test_nobody_is_told_unless_asked_for() -> None:
    world = launched("web", on=False)
    join(world)
    world.settle()
    assert told(world) == {"web": "", "db": ""}
    assert world.node("node-a").registered


def test_the_node_takes_pods_when_they_have_been_told() -> None:
    world = launched("web")
    join(world)
    plan = world.decide()
    assert [a.ref.kind for a in plan.actions if isinstance(a, PatchObject)][:1] == ["Pod"]
    world.obey(plan)
    assert not world.node("node-a").registered
    world.obey(world.decide())
    assert world.node("node-a").registered


def test_it_opens_some_seconds_after_it_is_ready() -> None:
    """When it comes all that wait are tried once more; what is told meanwhile is forgotten."""
    world = launched("web")
    has_just_come(world, join(world))
    assert world.settle().next_due == NOW + SETTLES
    assert told(world)["web"] == "node-a"
    assert not world.node("node-a").registered
    world.pass_time(SETTLES.total_seconds())
    world.settle()
    assert world.node("node-a").registered


def test_it_waits_no_longer_than_some_seconds_for_that() -> None:
    """The writes may take their time."""
    world = launched("web")
    join(world)
    assert world.decide().next_due == NOW + HELD_AT_MOST
    world.pass_time(HELD_AT_MOST.total_seconds())
    plan = world.decide()
    assert [(a.verb, a.ref.kind) for a in plan.actions if isinstance(a, PatchObject)][:2] == [
        ("ExpectPod", "Pod"),
        ("UpdateNode", "Node"),
    ]


def test_it_does_not_wait_for_who_cannot_be_told() -> None:
    """The writes may be forbidden."""
    world = launched("web")
    join(world)
    [write] = (a for a in world.decide().actions if isinstance(a, PatchObject) and a.ref.kind == "Pod")
    world.facts["not_before"] = {subject(write): NOW + timedelta(seconds=1)}
    assert "UpdateNode" in [a.verb for a in world.decide().actions if isinstance(a, PatchObject)]


STARTS = {"key": "agent/not-ready", "effect": "NoSchedule"}


@pytest.mark.parametrize(("ready", "taints"), [(False, []), (True, [STARTS])])
def test_the_node_takes_no_pods_before_it_is_up(ready: bool, taints: list[dict[str, str]]) -> None:
    """Whoever was tried there before is nominated no more, and the next would take what was meant for it; so nobody is
    told before, either."""
    world = launched("web", startupTaints=taints)
    join(world, ready=ready, taints=taints)
    world.settle()
    assert told(world)["web"] == ""
    assert not world.node("node-a").registered
    node = world.node("node-a")
    kept = tuple(taint for taint in node.spec.taints if taint.key == labels.UNREGISTERED_TAINT)
    world.put(replace(node, spec=replace(node.spec, taints=kept)))
    world.set_ready("node-a", True)
    world.settle()
    assert told(world)["web"] == "node-a"
    assert world.node("node-a").registered


def test_one_that_does_not_become_ready_is_not_held_for_long() -> None:
    world = launched("web")
    join(world, ready=False)
    world.settle()
    world.pass_time(HELD_AT_MOST.total_seconds())
    world.settle()
    assert world.node("node-a").registered


def test_a_node_without_pods_to_tell_waits_for_nothing() -> None:
    world = launched("gone")
    join(world)
    world.obey(world.decide())
    assert world.node("node-a").registered


def test_for_whom_others_go_is_left_alone_until_its_own_node_takes_pods() -> None:
    world = launched("web")
    world.put(decode(Node, {"metadata": {"name": "other"}}))
    name_node(world, "web", "other")
    join(world, ready=False)
    world.settle()
    assert told(world)["web"] == "other"
    world.set_ready("node-a", True)
    world.settle()
    assert told(world)["web"] == "node-a"


# --- told again -------------------------------------------------------------------------------------------------
def test_what_was_forgotten_is_told_again_until_the_node_has_been_up_for_some_seconds() -> None:
    """The kube-scheduler forgets whenever it tries the pod in vain, and may not have heard yet that the node is up."""
    world = launched("web")
    join(world)
    assert world.settle().next_due == NOW + TOLD_FOR
    assert world.claim().is_true("Initialized")
    assert writes(world) == []
    world.pass_time(TOLD_FOR.total_seconds() - 1)
    name_node(world, "web", "")
    assert writes(world) == [(EXPECT, "web")]
    world.settle()
    assert told(world)["web"] == "node-a"
    name_node(world, "web", "")
    world.pass_time(1)
    assert writes(world) == []


def test_who_has_no_room_any_more_is_not_told_again() -> None:
    world = launched("web")
    join(world)
    world.settle()
    name_node(world, "web", "")
    web = world.objects[Ref("Pod", "default", "web")]
    asks = pod("x", "", containers=[{"name": "a", "resources": {"requests": {"cpu": "1500m"}}}]).spec.containers
    world.put(replace(web, spec=replace(web.spec, containers=asks)))
    occupy(world, "node-a", "500m")
    assert writes(world) == [(EXPECT, "web")]
    occupy(world, "node-a", "501m")
    assert writes(world) == []


def test_what_was_told_is_taken_back_when_others_have_taken_the_room() -> None:
    """Nothing may happen that makes the kube-scheduler try the pod again, and nobody else cares for it meanwhile."""
    world = launched("web")
    join(world)
    world.settle()
    web = world.objects[Ref("Pod", "default", "web")]
    asks = pod("x", "", containers=[{"name": "a", "resources": {"requests": {"cpu": "1500m"}}}]).spec.containers
    world.put(replace(web, spec=replace(web.spec, containers=asks)))
    occupy(world, "node-a", "500m")
    assert writes(world) == []
    occupy(world, "node-a", "501m")
    assert writes(world) == [(TAKE_BACK, "web")]
    world.settle()
    assert told(world)["web"] == ""


def test_a_pod_that_two_nodes_were_made_for_is_told_the_newer_one() -> None:
    """It was found to have no room on the other one."""
    world = launched("web")
    join(world)
    world.settle()
    created = (world.now + timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    world.put(node_claim("0", meta={"annotations": marked("web"), "creationTimestamp": created}))
    name_node(world, "web", "")
    world.settle()
    join(world, "0")
    world.settle()
    assert told(world)["web"] == "node-0"


# --- taken back -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("going", [True, False])
def test_what_was_expected_of_a_node_that_goes_is_taken_back(going: bool) -> None:
    world = launched("web")
    node = join(world)
    world.obey(world.decide())
    assert told(world)["web"] == "node-a"
    if going:
        meta = replace(node.metadata, deletion_timestamp=world.now + timedelta(seconds=1), finalizers=("a/b",))
        world.put(replace(node, metadata=meta))
    else:
        del world.objects[Ref("Node", "", "node-a")]
    world.obey(world.decide())
    assert told(world)["web"] == ""


# --- giving way -------------------------------------------------------------------------------------------------
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


def test_two_nodes_that_give_way_to_each_other_open_when_both_are_up() -> None:
    """Each was made for a pod that matters more than one of the other's."""
    world = ranked(web=("web", "low"), db=("db", "small"))
    for name in ("low", "small"):
        world.put(waiting(name))
    web = world.objects[Ref("Pod", "default", "web")]
    world.put(replace(web, spec=replace(web.spec, priority=100)))
    join(world)
    world.settle()
    assert not world.node("node-a").registered
    join(world, "b")
    world.settle()
    assert world.node("node-a").registered
    assert world.node("node-b").registered


def test_nodes_that_would_give_way_to_each_other_open_when_the_pods_of_both_have_been_told() -> None:
    """The one that is told later would find the other one's room free until then."""
    world = ranked(web=("web", "low"), db=("db", "small"))
    for name in ("low", "small"):
        world.put(waiting(name))
    web = world.objects[Ref("Pod", "default", "web")]
    world.put(replace(web, spec=replace(web.spec, priority=100)))
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


def test_it_gives_way_to_no_pods_of_another_nodepool() -> None:
    world = ranked(labels={labels.NODEPOOL: "other", labels.NODECLASS: "default"})
    join(world)
    world.settle()
    assert world.node("node-a").registered
