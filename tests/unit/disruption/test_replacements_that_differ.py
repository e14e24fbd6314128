"""A replacement that came up other than planned: no pod is moved there, and Kerf does not buy it again and again."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.disruption.candidates.pacing import failed_now
from kerf.disruption.command import Command, Failure, command_of, failure_of
from kerf.disruption.replacing import ends_at
from kerf.disruption.view import view
from kerf.model.annotations import text_of
from kerf.model.kubernetes.objects import Pod
from kerf.model.kubernetes.storage import StorageClass
from kerf.model.memory import Memory
from kerf.scheduling.mismatch.inputs import inputs_of
from kerf.scheduling.mismatch.replacements import MISFITS, Misfit
from kerf_api import labels
from kerf_api.v1.meta import Taint, decode
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.disruption.test_commands import HOUR, MINUTE, deletions, drifted_world
from tests.unit.disruption.worlds import NOW, World, claim, node, pod
from tests.unit.scheduling.referee_plants import csi_node

FOREIGN = Taint(key="corp.example.com/agent", value="missing", effect="NoSchedule")


def joined(web: Pod | None = None, **node: Any) -> tuple[World, str]:
    """A drifted node, and its replacement that has joined with another spec or status than planned."""
    world = drifted_world()
    world.settle()
    if web is not None:
        world.add(web)
    (name,) = world.replacements
    world.join(name)
    its = world.claim(name)
    own = replace(its, status=replace(its.status, allocatable={"cpu": "1930m", "memory": "6Gi", "pods": "29"}))
    world.add(replace(own, spec=replace(own.spec, resources=replace(own.spec.resources, requests={"cpu": "1800m"}))))
    world.edit(f"node/node-{name}", node)
    return world, name


def has(cpu: str) -> dict[str, Any]:
    return {"status": {"allocatable": {"cpu": cpu, "memory": "6Gi", "pods": "29"}}}


def _reason(world: World) -> str:
    """Why the command ends; empty when it does not."""
    return "; ".join(one.reason.text for one in world.plan().refusals if one.subject == "nodeclaim/a")


def tainted() -> dict[str, Any]:
    return {"spec": {"taints": [{"key": FOREIGN.key, "value": FOREIGN.value, "effect": FOREIGN.effect}]}}


def misfit(world: World, name: str) -> Misfit | None:
    turn = Memory().turn(world.snapshot())
    return turn.one(MISFITS, turn.noted, name)


def test_one_that_has_too_little_for_the_pods_ends_the_command() -> None:
    world, name = joined(**has("1500m"))
    plan = world.plan()
    assert deletions(plan) == []
    (why,) = [one.reason for one in plan.refusals if one.subject == "nodeclaim/a"]
    assert (why.code, why.text) == (
        "ReplacementDiffers",
        f"node node-{name} is other than planned: allocatable cpu is 1500m, expected 1930m",
    )
    world.settle()
    assert labels.COMMAND not in world.claim("a").metadata.annotations
    failure = failure_of(world.claim("a").metadata.annotations, world.now)
    assert failure is not None
    assert failure.inputs == inputs_of(world.snapshot())


@pytest.mark.parametrize("cpu", ["1800m", "1930m", "nonsense"])
def test_one_that_has_enough_or_cannot_be_judged_is_used(cpu: str) -> None:
    world, _ = joined(**has(cpu))
    assert [one.ref.name for one in deletions(world.plan())] == ["a"]


def test_a_taint_that_the_node_pool_does_not_declare_has_time_to_go() -> None:
    world, name = joined(**tainted())
    plan = world.plan()
    assert deletions(plan) == []
    assert plan.next_due == NOW + timedelta(minutes=4, seconds=50)
    assert _reason(world) == (
        f"node node-{name} is other than planned: taint is {FOREIGN}, expected none; "
        "that may change until 2026-03-04T12:04:50Z"
    )
    world.edit(f"node/node-{name}", {"spec": {"taints": []}})
    assert [one.ref.name for one in deletions(world.plan())] == ["a"]


def test_a_taint_that_stays_ends_the_command() -> None:
    world, _ = joined(**tainted())
    world.now += 5 * MINUTE
    world.settle()
    assert labels.COMMAND not in world.claim("a").metadata.annotations
    assert not world.claim("a").metadata.deleting


def test_a_taint_that_the_pods_tolerate_is_none() -> None:
    world, _ = joined(**tainted())
    world.add(pod("web", "a", tolerations=[{"key": FOREIGN.key, "operator": "Exists"}]))
    assert [one.ref.name for one in deletions(world.plan())] == ["a"]


def test_what_was_initialized_long_ago_is_no_misfit() -> None:
    world, name = joined(**has("1500m"))
    assert misfit(world, name) is not None
    world.now += 11 * MINUTE
    assert misfit(world, name) is None


def test_a_cordon_has_time_to_go_and_then_ends_the_command() -> None:
    world, name = joined(spec={"unschedulable": True})
    assert deletions(world.plan()) == []
    world.now += 5 * MINUTE
    why = _reason(world)
    assert why == f"node node-{name} is other than planned: it is cordoned"


def test_a_label_that_pods_select_has_time_to_come() -> None:
    world, name = joined(pod("web", "a", nodeSelector={"example.com/rack": "r1"}))
    assert deletions(world.plan()) == []
    world.now += 5 * MINUTE
    why = _reason(world)
    assert why == f"node node-{name} is other than planned: its labels do not match what pod shop/web requires"
    world.edit(f"node/node-{name}", {"metadata": {"labels": {"example.com/rack": "r1"}}})
    assert misfit(world, name) is None


def test_daemon_pods_that_no_plan_knew_count() -> None:
    world, name = joined(**has("1930m"))
    wide = [{"name": "c", "resources": {"requests": {"cpu": "1500m"}}}]  # beside the 500m of the pod that moves
    world.add(pod("agent", name, owner="DaemonSet", containers=wide))
    why = _reason(world)
    assert why.endswith(": its DaemonSets and the pods that are to move there need cpu 2 of 1930m")


def test_nodes_that_attach_too_few_volumes_are_no_replacement() -> None:
    spec = {"storageClassName": "gp3", "accessModes": ["ReadWriteOnce"], "resources": {}}
    volumes = [{"name": f"v{n}", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}} for n in range(2)]
    world, name = joined(pod("web", "a", volumes=volumes))
    world.add(decode(StorageClass, {"metadata": {"name": "gp3"}, "provisioner": "ebs.csi.aws.com"}))
    assert misfit(world, name) is None
    world.add(csi_node(f"node-{name}", 1))
    why = _reason(world)
    assert why.endswith(": it attaches 1 volumes of ebs.csi.aws.com, and 2 are to move there")


@pytest.mark.parametrize(("boot", "limit"), [(1, 10), (9, 14)])
def test_a_replacement_that_starts_slowly_is_compared_all_the_same(boot: int, limit: int) -> None:
    """The limit of the command is ten minutes, or nearly six after the replacement is initialized."""
    world = drifted_world()
    world.settle()
    (name,) = world.replacements
    world.now += boot * MINUTE
    world.join(name)
    (command,) = (command_of(one.metadata.annotations) for one in [world.claim("a")])
    assert command is not None
    end = ends_at(view(world.snapshot()), command)
    assert limit <= (end - command.started) / MINUTE < limit + 1


def test_a_second_one_of_the_same_inputs_is_followed_by_one_a_day() -> None:
    once, twice = (Failure(at=NOW, count=count, inputs="i") for count in (1, 2))
    assert once.until == NOW + MINUTE
    assert twice.until == NOW + 24 * HOUR
    assert Failure(at=NOW, count=2).until == NOW + 2 * MINUTE


def test_one_that_is_late_is_followed_by_one_an_hour() -> None:
    waits = [Failure(at=NOW, count=count, inputs="i", late=True).until - NOW for count in (1, 2, 9)]
    assert waits == [MINUTE, HOUR, HOUR]


def test_a_first_one_waits_a_minute_whatever_failed_before() -> None:
    """Neither a failure of another kind nor one with other inputs is the first of two."""
    world = drifted_world()
    for before in ('{"at":"2026-03-04T11:30:00Z","count":2}', '{"at":"2026-03-04T11:30:00Z","count":2,"inputs":"x"}'):
        meta = world.claim("a").metadata
        own = replace(meta, annotations={**meta.annotations, labels.COMMAND_FAILED: before})
        command = Command(id="c", reason="Drifted", started=NOW)
        found = failed_now(world.snapshot(), replace(world.claim("a"), metadata=own), command, differs=True)
        assert (found.count, found.until - found.at) == (1, MINUTE)


@pytest.mark.parametrize("blocked", [True, False])
def test_other_inputs_are_tried_at_once(*, blocked: bool) -> None:
    world = drifted_world()
    inputs = inputs_of(world.snapshot()) if blocked else "others"
    failed = replace(
        world.claim("a").metadata,
        annotations={
            **world.claim("a").metadata.annotations,
            labels.COMMAND_FAILED: f'{{"at":"2026-03-04T11:00:00Z","count":2,"inputs":"{inputs}"}}',
        },
    )
    world.add(replace(world.claim("a"), metadata=failed))
    claims: list[NodeClaim] = [one for one in world.objects.values() if isinstance(one, NodeClaim)]
    assert len(claims) == 1
    refusals = [one.reason for one in world.plan().refusals if one.reason.code == "BackingOff"]
    assert bool(refusals) is blocked
    if blocked:
        assert refusals[0].text.startswith("its replacement came up other than planned 2 times; next try at ")


def _failed(world: World, name: str, *, inputs: str) -> None:
    """Two replacements in a row of this node came up other than planned an hour ago."""
    meta = world.claim(name).metadata
    failed = f'{{"at":"2026-03-04T11:00:00Z","count":2,"inputs":"{inputs}"}}'
    notes = {**meta.annotations, labels.COMMAND_FAILED: failed}
    world.add(replace(world.claim(name), metadata=replace(meta, annotations=notes)))


@pytest.mark.parametrize(("failing", "held"), [(["a"], False), (["a", "b"], True)])
def test_two_nodes_with_two_in_a_row_hold_the_roll_out_of_their_node_pool(failing: list[str], *, held: bool) -> None:
    """One node may have pods that are a case of their own."""
    world = drifted_world()
    for name in ("b", "c"):
        other = claim(name, drifted=NOW - MINUTE, consolidatable=False)
        world.add(other, node(other), pod(f"web-{name}", name))
    inputs = inputs_of(world.snapshot())
    for name in failing:
        _failed(world, name, inputs=inputs)
    texts = [one.reason.text for one in world.plan().refusals if one.subject == "node/node-c"]
    text = "replacements of nodes of NodePool default came up other than planned; next try at 2026-03-05T11:00:00Z"
    assert texts == ([text] if held else [])


@pytest.mark.parametrize(
    ("minutes", "well", "commands", "held"),
    [(30, 40, "xy", True), (30, 20, "xy", False), (61, 90, "xy", False), (30, 40, "xx", False)],
    ids=["late", "well since", "over", "replaced together"],
)
def test_two_nodes_with_late_replacements_hold_the_roll_out_of_their_node_pool(
    minutes: float, well: float, commands: str, *, held: bool
) -> None:
    """Until a node of it is initialized: by then whatever was missing is there."""
    world = drifted_world()
    for name in ("b", "c"):
        other = claim(name, drifted=NOW - MINUTE, consolidatable=False)
        world.add(other, node(other), pod(f"web-{name}", name))
    inputs = inputs_of(world.snapshot())
    for name, command in zip("ab", commands, strict=True):
        meta = world.claim(name).metadata
        failed = text_of(Failure(at=NOW - minutes * MINUTE, inputs=inputs, late=True, command=command))
        notes = {**meta.annotations, labels.COMMAND_FAILED: failed}
        world.add(replace(world.claim(name), metadata=replace(meta, annotations=notes)))
    for one in [one for one in world.objects.values() if isinstance(one, NodeClaim)]:
        at = NOW - well * MINUTE
        rows = tuple(
            replace(row, last_transition_time=at) if row.type == "Initialized" else row for row in one.status.conditions
        )
        world.add(replace(one, status=replace(one.status, conditions=rows)))
    texts = [one.reason.text for one in world.plan().refusals if one.subject == "node/node-c"]
    assert any("were not initialized in time; next try at" in text for text in texts) is held


def test_a_node_whose_replacements_differed_is_the_last_to_be_tried_again() -> None:
    """When its day is over, it must not take the budget from the others once more."""
    world = drifted_world()
    other = claim("b", drifted=NOW - MINUTE, consolidatable=False)
    world.add(other, node(other), pod("web-2", "b"))
    _failed(world, "a", inputs="of a while ago")
    assert [one.key for one in world.plan().actions if one.key.startswith("StartCommand")] == [
        "StartCommand nodeclaim/b"
    ]


def test_a_failure_of_an_earlier_release_is_one_without_inputs() -> None:
    found = failure_of({labels.COMMAND_FAILED: '{"at":"2026-03-04T11:00:00Z","count":2,"template":"a/b"}'}, NOW)
    assert found is not None
    assert (found.count, found.inputs, found.until - found.at) == (2, "", 2 * MINUTE)


def test_a_node_that_is_not_ready_for_a_while_is_waited_for() -> None:
    world, name = joined(status={"conditions": [{"type": "Ready", "status": "False"}]})
    world.now += 6 * MINUTE
    found = misfit(world, name)
    assert found is not None
    assert (found.causes, found.verdict) == (("it is not ready",), world.now + timedelta(seconds=10))


def test_a_late_change_gives_a_replacement_the_time_again() -> None:
    world, name = joined(spec={"unschedulable": True})
    world.now += 6 * MINUTE
    assert misfit(world, name) is not None
    turn = Memory().turn(dataclasses.replace(world.snapshot(), node_changed_at={f"node-{name}": world.now - MINUTE}))
    found = turn.one(MISFITS, turn.noted, name)
    assert found is not None
    assert found.verdict == world.now - MINUTE + timedelta(minutes=4, seconds=50)
