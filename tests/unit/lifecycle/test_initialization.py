"""Initialized and ConsistentStateFound: every reason, and Nodes that join anew."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

import pytest
from msgspec.structs import replace

from api import labels
from api.v1.meta import Taint, decode
from reconciler.model import kinds
from reconciler.model.devices import ResourceSlice
from tests.unit.lifecycle.nodes import change, launched, measured
from tests.unit.lifecycle.world import World, node_claim, running

EPHEMERAL = [
    ("node.kubernetes.io/not-ready", "NoSchedule"),
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoSchedule"),
    ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),
    ("readiness.k8s.io/network", "NoSchedule"),
]


def registered(**spec: Any) -> World:
    world = launched(spec=spec)
    world.join(world.claim())
    return world


def test_not_ready() -> None:
    world = launched()
    world.join(world.claim(), ready=False)
    world.settle()
    assert world.condition("Initialized") == ("Unknown", "NodeNotReady")
    world.set_ready("node-a", True)
    world.settle()
    assert world.condition("Initialized") == ("True", "Initialized")


def test_startup_taints() -> None:
    world = registered(startupTaints=[{"key": "agent", "effect": "NoSchedule"}])
    world.settle()
    assert world.condition("Initialized") == ("Unknown", "StartupTaintsExist")
    change(world, "node-a", taints=())
    world.settle()
    assert world.condition("Initialized") == ("True", "Initialized")


@pytest.mark.parametrize(("key", "effect"), EPHEMERAL)
def test_ephemeral_taints(key: str, effect: str) -> None:
    world = launched()
    world.join(world.claim(), taints=[{"key": key, "effect": effect}])
    world.settle()
    assert world.condition("Initialized") == ("Unknown", "KnownEphemeralTaintsExist")
    change(world, "node-a", taints=(Taint(key=key, effect="PreferNoSchedule"),) if "/not-" in key else ())
    world.settle()
    assert world.condition("Initialized") == ("True", "Initialized")


def test_resources_that_were_asked_for() -> None:
    world = launched(spec={"resources": {"requests": {"cpu": "1", "ephemeral-storage": "1Gi", "none": "0"}}})
    node = world.join(world.claim())
    offered = node.status.allocatable
    less = {key: value for key, value in offered.items() if key != "ephemeral-storage"}
    world.put(replace(node, status=replace(node.status, allocatable=less)))
    world.settle()
    assert world.condition("Initialized") == ("Unknown", "ResourceNotRegistered")
    node = world.node("node-a")
    world.put(replace(node, status=replace(node.status, allocatable=offered)))
    world.settle()
    assert world.condition("Initialized") == ("True", "Initialized")


def devices_of(node_name: str, driver: str, generation: int, count: int = 1) -> ResourceSlice:
    pool = {"name": node_name, "generation": generation, "resourceSliceCount": count}
    meta = {"name": f"{driver}-{generation}", "uid": f"uid-{driver}-{generation}"}
    spec = {"driver": driver, "pool": pool, "nodeName": node_name}
    return decode(ResourceSlice, {"metadata": meta, "spec": spec})


def claiming(*, ignore: bool) -> World:
    """A node whose pods claim devices of two drivers, of which one has published its pool."""
    annotations = {labels.REQUESTED_DRIVERS: "gpu.example.com,nic.example.com"}
    world = launched(spec={"meta": {"annotations": annotations}})
    world.settings = changed(world.settings, ignore_dra_requests=ignore)
    world.join(world.claim())
    world.put(devices_of("node-a", "gpu.example.com", 1))
    world.put(devices_of("other", "nic.example.com", 1))
    world.settle()
    return world


def test_devices_that_pods_claim_are_waited_for_driver_by_driver() -> None:
    """A pool counts when all of its latest generation is there."""
    world = claiming(ignore=False)
    assert world.condition("Initialized") == ("Unknown", "DRADriverPoolsNotPublished")
    world.put(devices_of("node-a", "nic.example.com", 1))
    world.put(devices_of("node-a", "nic.example.com", 2, count=2))
    world.settle()
    assert world.condition("Initialized") == ("Unknown", "DRADriverPoolsNotPublished")
    world.put(devices_of("node-a", "nic.example.com", 2))
    world.settle()
    assert world.condition("Initialized") == ("True", "Initialized")


def test_devices_are_not_waited_for_where_claims_are_ignored() -> None:
    assert claiming(ignore=True).condition("Initialized") == ("True", "Initialized")


def test_a_node_that_went_before_it_was_usable() -> None:
    world = launched()
    world.join(world.claim(), ready=False)
    world.settle()
    world.objects.pop(kinds.ref(world.node("node-a")))
    world.settle()
    assert world.condition("Initialized") == ("Unknown", "NodeNotFound")


@pytest.mark.parametrize(
    ("memory", "found"),
    [
        ("8Gi", ("True", "ConsistentStateFound")),
        ("7373Mi", ("True", "ConsistentStateFound")),
        ("7372Mi", ("False", "ConsistencyCheckFailed")),
    ],
)
def test_a_node_that_is_far_smaller_than_promised_is_told_once(memory: str, found: tuple[str, str]) -> None:
    world = measured(memory)
    plans = [world.decide()]
    while plans[-1].actions:
        world.obey(plans[-1])
        plans.append(world.decide())
    assert world.condition("ConsistentStateFound") == found
    assert world.condition("Ready") == ("True", "Ready")
    told = [e.message for plan in plans for e in plan.events if e.reason == "FailedConsistencyCheck"]
    assert [("memory" in words, "cpu" in words) for words in told] == [(True, False)] * (found[0] == "False")


def test_a_node_that_is_found_in_order_later() -> None:
    world = measured("4Gi")
    world.settle()
    node = world.node("node-a")
    world.put(replace(node, status=replace(node.status, capacity={**node.status.capacity, "memory": "8Gi"})))
    world.settle()
    assert world.condition("ConsistentStateFound") == ("True", "ConsistentStateFound")


def test_initialization_never_reverts() -> None:
    world = running(node_claim("a"))
    world.set_ready("node-a", False)
    world.settle()
    assert world.condition("Initialized") == ("True", "Initialized")
    assert world.claim().is_true("Ready")


def test_before_registration_nothing_is_said_of_initialization() -> None:
    assert launched().condition("Initialized") == ("Unknown", "AwaitingReconciliation")


def test_our_labels_are_put_back_on_a_usable_node() -> None:
    """A person took them off: without them the node would never be disrupted again."""
    world = running(node_claim("a"))
    world.settle()
    node = world.node("node-a")
    others = {k: v for k, v in node.metadata.labels.items() if k not in (labels.INITIALIZED, labels.REGISTERED)}
    world.put(replace(node, metadata=replace(node.metadata, labels=others)))
    world.settle()
    assert world.node("node-a").metadata.labels == node.metadata.labels


OWN, AGENT = {"key": "own", "effect": "NoSchedule"}, {"key": "agent", "effect": "NoSchedule"}


def joined_anew() -> World:
    """A usable Node was taken away, finalizer and all; its machine has restarted and registers again."""
    world = launched(spec={"taints": [OWN], "startupTaints": [AGENT]})
    world.join(world.claim())
    world.settle()
    change(world, "node-a", taints=(decode(Taint, OWN),))
    world.settle()
    assert world.condition("Initialized") == ("True", "Initialized")
    world.objects.pop(kinds.ref(world.node("node-a")))
    world.pass_time(60)
    node = world.join(world.claim())
    world.put(replace(node, metadata=replace(node.metadata, uid="uid-anew", creation_timestamp=world.now)))
    return world


def test_a_node_that_joins_anew_gets_all_that_a_new_one_gets() -> None:
    world = joined_anew()
    world.settle()
    node = world.node("node-a")
    assert [taint.key for taint in node.spec.taints] == ["own", "agent"]
    assert node.metadata.finalizers == (labels.TERMINATION_FINALIZER,)
    assert [owner.name for owner in node.metadata.owner_references] == ["a"]
    assert node.metadata.labels[labels.NODEPOOL] == "default"
    assert world.claim().is_true("Initialized")


def test_a_node_that_joins_anew_is_usable_when_a_new_one_would_be() -> None:
    world = joined_anew()
    world.settle()
    assert (world.node("node-a").registered, world.node("node-a").initialized) == (True, False)
    change(world, "node-a", taints=(decode(Taint, OWN),))
    world.set_ready("node-a", False)
    world.settle()
    assert not world.node("node-a").initialized
    world.set_ready("node-a", True)
    world.settle()
    assert world.node("node-a").initialized
    assert [taint.key for taint in world.node("node-a").spec.taints] == ["own"]
