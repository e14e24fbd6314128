"""From a claim to a node that counts (145 to 151 of the disruption catalogue)."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.model import kinds
from kerf.model.aws.cloud import FleetError
from kerf.model.kubernetes.devices import ResourceSlice
from kerf.model.plan import DeleteObject, LaunchInstances, Plan
from kerf_api import labels
from kerf_api.v1.conditions import put
from kerf_api.v1.meta import Taint, decode
from tests.unit.lifecycle.world import NOW, World, node_claim, prepared

SOLD_OUT = FleetError("InsufficientInstanceCapacity", "no m5.large", "m5.large", "us-west-2a", capacity=True)
DENIED = FleetError("UnauthorizedOperation", "no policy " + "x" * 400)
OWN, AGENT = {"key": "own", "effect": "NoSchedule"}, {"key": "agent", "effect": "NoSchedule"}
READY = ("True", "Initialized")


def launched(**spec: Any) -> World:
    world = prepared(node_claim("a", **spec))
    world.settle()
    world.deeds.clear()
    return world


def retainted(world: World, *taints: Taint) -> None:
    node = world.node("node-a")
    world.put(replace(node, spec=replace(node.spec, taints=taints)))
    world.settle()


def given_up(plan: Plan) -> list[str]:
    return [action.reason.code for action in plan.actions if isinstance(action, DeleteObject)]


# --- launch -----------------------------------------------------------------------------------------------------
def test_145_the_finalizer_comes_before_the_launch() -> None:
    world = prepared(node_claim("a", meta={"finalizers": []}))
    world.obey(world.decide())
    assert world.claim().metadata.finalizers == (labels.TERMINATION_FINALIZER,)
    assert labels.LAUNCH_GROUP not in world.claim().metadata.annotations
    world.settle()
    assert len(world.done(LaunchInstances)) == 1


def test_145_a_claim_of_another_provider_is_not_touched() -> None:
    ref = {"group": "example.com", "kind": "Other", "name": "default"}
    world = prepared(node_claim("a", nodeClassRef=ref, meta={"finalizers": []}))
    assert world.decide() == Plan()


def failing(*errors: FleetError) -> World:
    """A claim whose call EC2 answered with these errors and no instance."""
    world = prepared(node_claim("a"))
    world.given, world.errors = 0, errors
    for _ in range(2):
        world.obey(world.decide())
    return world


def test_146_where_there_is_nothing_to_be_had_the_claim_is_given_up_at_once() -> None:
    world = failing(SOLD_OUT)
    plan = world.decide()
    assert given_up(plan) == ["InsufficientCapacity"]
    assert [(e.type, e.reason, e.ref.name) for e in plan.events] == [("Warning", "InsufficientCapacityError", "a")]
    world.settle()
    assert world.get(kinds.NODE_CLAIM, "a") is None


def test_146_so_it_is_when_its_class_is_not_ready() -> None:
    world = prepared(node_claim("a"))
    known = world.get(kinds.NODE_CLASS, "default")
    told = put(known.status.conditions, "Ready", "False", "Why", generation=1, now=NOW, message="words")
    world.put(replace(known, status=replace(known.status, conditions=told)))
    assert given_up(world.decide()) == ["NodeClassNotReady"]


def test_146_another_error_is_reported_and_the_claim_stays() -> None:
    """In 300 letters."""
    world = failing(DENIED)
    world.settle()
    told = world.claim().condition("Launched")
    assert told is not None
    assert (told.status, told.reason, len(told.message)) == ("Unknown", "Unauthorized", 303)
    assert told.message.endswith("...")
    assert not world.claim().metadata.deleting


# --- registration -----------------------------------------------------------------------------------------------
def test_147_the_node_gets_what_the_claim_has() -> None:
    world = launched(meta={"annotations": {"example.com/note": "1"}}, taints=[OWN], startupTaints=[AGENT])
    world.join(world.claim())
    world.settle()
    node = world.node("node-a")
    assert [taint.key for taint in node.spec.taints] == ["own", "agent"]
    assert node.metadata.labels[labels.NODEPOOL] == "default"
    assert node.metadata.annotations["example.com/note"] == "1"
    assert node.metadata.finalizers == (labels.TERMINATION_FINALIZER,)
    owners = [(o.kind, o.uid, o.block_owner_deletion) for o in node.metadata.owner_references]
    assert owners == [("NodeClaim", "uid-a", True)]


def test_147_it_has_one_owner_however_often_it_is_written() -> None:
    world = launched()
    node = world.join(world.claim())
    plan = world.decide()
    world.obey(plan)
    owner = world.node("node-a").metadata.owner_references
    world.put(replace(node, metadata=replace(node.metadata, owner_references=owner)))
    world.settle()
    assert world.node("node-a").metadata.owner_references == owner
    assert len(owner) == 1


@pytest.mark.parametrize(("value", "synced"), [("true", False), ("false", True), ("True", True), ("", True)])
def test_147_a_node_may_opt_out_of_taints(value: str, synced: bool) -> None:
    world = launched(taints=[OWN])
    node = world.join(world.claim())
    world.put(replace(node, metadata=replace(node.metadata, labels={labels.DO_NOT_SYNC_TAINTS: value})))
    world.settle()
    assert [taint.key for taint in world.node("node-a").spec.taints] == ["own"] * synced


def test_147_a_start_up_taint_that_was_taken_off_does_not_come_back() -> None:
    world = launched(startupTaints=[AGENT])
    world.join(world.claim())
    world.settle()
    retainted(world)
    assert world.node("node-a").spec.taints == ()


def test_148_a_node_without_the_unregistered_taint_registers_with_a_warning() -> None:
    world = launched()
    world.join(world.claim(), taints=[])
    assert [(e.type, e.reason) for e in world.decide().events] == [("Warning", "UnregisteredTaintMissing")]
    world.settle()
    assert world.condition("Registered") == ("True", "Registered")


def test_149_nothing_holds_up_a_registration() -> None:
    """There are no hooks: the taint goes in the first look, and the labels of the claim are there."""
    world = launched()
    world.join(world.claim())
    world.obey(world.decide())
    node = world.node("node-a")
    assert [taint.key for taint in node.spec.taints] == []
    assert node.registered
    assert set(world.claim().metadata.labels.items()) <= set(node.metadata.labels.items())


# --- initialisation ---------------------------------------------------------------------------------------------
def test_150_a_node_that_is_not_ready_is_not_usable() -> None:
    world = launched()
    world.join(world.claim(), ready=False)
    world.settle()
    assert world.condition("Initialized") == ("Unknown", "NodeNotReady")
    assert not world.node("node-a").initialized
    world.set_ready("node-a", True)
    world.settle()
    assert world.condition("Initialized") == READY
    assert world.node("node-a").metadata.labels[labels.INITIALIZED] == "true"


@pytest.mark.parametrize(
    ("key", "effect", "reason"),
    [
        ("agent", "NoSchedule", "StartupTaintsExist"),
        ("node.kubernetes.io/not-ready", "NoSchedule", "KnownEphemeralTaintsExist"),
        ("node.kubernetes.io/not-ready", "NoExecute", "KnownEphemeralTaintsExist"),
        ("node.kubernetes.io/unreachable", "NoSchedule", "KnownEphemeralTaintsExist"),
        ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule", "KnownEphemeralTaintsExist"),
        ("readiness.k8s.io/network", "NoSchedule", "KnownEphemeralTaintsExist"),
        ("readiness.k8s.io/storage", "NoExecute", "KnownEphemeralTaintsExist"),
    ],
)
def test_150_a_taint_that_says_so_keeps_a_node_from_being_usable(key: str, effect: str, reason: str) -> None:
    world = launched(startupTaints=[AGENT])
    taint = Taint(key=key, effect=effect)
    world.join(world.claim())
    world.settle()
    retainted(world, taint)
    assert world.condition("Initialized") == ("Unknown", reason)
    retainted(world, Taint(key=key, effect="PreferNoSchedule") if "/not-" in key else Taint(key="other"))
    assert world.condition("Initialized") == READY


def test_150_a_resource_that_was_asked_for_must_be_there() -> None:
    """Of what nothing was asked nobody cares."""
    world = launched(resources={"requests": {"cpu": "1", "ephemeral-storage": "1Gi", "none": "0"}})
    node = world.join(world.claim())
    offered = node.status.allocatable
    world.put(replace(node, status=replace(node.status, allocatable={**offered, "ephemeral-storage": "0"})))
    world.settle()
    assert world.condition("Initialized") == ("Unknown", "ResourceNotRegistered")
    node = world.node("node-a")
    world.put(replace(node, status=replace(node.status, allocatable=offered)))
    world.settle()
    assert world.condition("Initialized") == READY


def devices(driver: str, generation: int, count: int = 1, node: str = "node-a") -> ResourceSlice:
    """One slice of a pool that has so many in this generation."""
    pool = {"name": node, "generation": generation, "resourceSliceCount": count}
    meta = {"name": f"{driver}-{generation}", "uid": f"uid-{driver}-{generation}"}
    return decode(ResourceSlice, {"metadata": meta, "spec": {"driver": driver, "pool": pool, "nodeName": node}})


def claiming(*slices: ResourceSlice, drivers: str = "gpu.example.com,nic.example.com", ignore: bool = False) -> World:
    """A node whose pods claim devices of these drivers, which have published these slices."""
    notes = {labels.REQUESTED_DRIVERS: drivers} if drivers else {}
    world = prepared(node_claim("a", meta={"annotations": notes}))
    world.settings = changed(world.settings, ignore_dra_requests=ignore)
    world.settle()
    world.join(world.claim())
    for each in slices:
        world.put(each)
    world.settle()
    return world


GPU, NIC = "gpu.example.com", "nic.example.com"


@pytest.mark.parametrize(
    ("slices", "usable"),
    [
        ([devices(GPU, 1)], False),
        ([devices(GPU, 1), devices(NIC, 1, node="other")], False),
        ([devices(GPU, 1), devices(NIC, 1, count=2)], False),
        ([devices(GPU, 1), devices(NIC, 1), devices(NIC, 2, count=2)], False),
        ([devices(GPU, 1), devices(NIC, 1), devices(NIC, 2)], True),
        ([devices(GPU, 1), devices(NIC, 1)], True),
    ],
    ids=["one driver", "elsewhere", "incomplete", "only an old generation", "the latest", "all"],
)
def test_151_every_driver_must_have_published_its_latest_pool(slices: list[ResourceSlice], usable: bool) -> None:
    expected = READY if usable else ("Unknown", "DRADriverPoolsNotPublished")
    assert claiming(*slices).condition("Initialized") == expected


def test_151_where_claims_of_devices_do_not_count_no_node_waits_for_them() -> None:
    assert claiming(ignore=True).condition("Initialized") == READY
    assert claiming(drivers="").condition("Initialized") == READY
