"""Registration, initialisation, liveness, tags and pod events: every condition with each of its reasons."""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from api import labels
from api.v1.meta import Taint, decode
from reconciler.model import kinds
from reconciler.model.devices import ResourceSlice
from reconciler.model.objects import Node
from reconciler.model.plan import DeleteObject, Plan, Source, TagInstance
from tests.unit.lifecycle.world import NOW, World, node_claim, pod, prepared, running, text


def launched(*, spec: dict[str, Any] | None = None) -> World:
    world = prepared(node_claim("a", **(spec or {})))
    world.settle()
    world.deeds.clear()
    return world


def change(world: World, name: str, **spec: Any) -> None:
    node = world.node(name)
    world.put(replace(node, spec=replace(node.spec, **spec)))


# --- Registered -------------------------------------------------------------------------------------------------
def test_no_node_yet() -> None:
    assert launched().condition("Registered") == ("Unknown", "NodeNotFound")


def test_several_nodes_of_one_instance() -> None:
    world = launched()
    first = world.join(world.claim())
    world.put(replace(first, metadata=replace(first.metadata, name="twin", uid="uid-twin")))
    world.settle()
    assert world.condition("Registered") == ("False", "MultipleNodesFound")
    assert world.condition("Ready") == ("False", "UnhealthyDependents")
    assert not world.node("node-a").registered


def test_registered() -> None:
    world = launched()
    world.join(world.claim(), ready=False)
    world.settle()
    assert world.condition("Registered") == ("True", "Registered")
    assert world.claim().status.node_name == "node-a"


def test_the_condition_follows_the_node_and_never_leads() -> None:
    world = launched()
    world.join(world.claim())
    world.obey(world.decide())
    assert world.node("node-a").registered
    assert world.condition("Registered") == ("Unknown", "NodeNotFound")


def test_a_node_without_the_unregistered_taint_registers_with_a_warning() -> None:
    world = launched()
    world.join(world.claim(), taints=[])
    assert [(e.type, e.reason) for e in world.decide().events] == [("Warning", "UnregisteredTaintMissing")]
    world.settle()
    assert world.condition("Registered") == ("True", "Registered")


def test_a_node_that_calls_itself_registered_is_synced_all_the_same() -> None:
    world = launched()
    node = world.join(world.claim())
    world.put(replace(node, metadata=replace(node.metadata, labels={labels.REGISTERED: "true"})))
    world.settle()
    assert world.node("node-a").metadata.finalizers == (labels.TERMINATION_FINALIZER,)
    assert world.node("node-a").metadata.labels[labels.NODEPOOL] == "default"


def test_a_node_that_is_going_does_not_register() -> None:
    world = launched()
    node = world.join(world.claim())
    world.put(replace(node, metadata=replace(node.metadata, finalizers=("x/y",), deletion_timestamp=NOW)))
    world.settle()
    assert world.condition("Registered") == ("Unknown", "NodeNotFound")
    assert world.node("node-a").metadata.finalizers == ("x/y",)


@pytest.mark.parametrize(("value", "synced"), [("true", False), ("false", True)])
def test_taints_are_synced_unless_the_node_opts_out(value: str, synced: bool) -> None:
    world = launched(spec={"taints": [{"key": "own", "effect": "NoSchedule"}]})
    node = world.join(world.claim())
    world.put(replace(node, metadata=replace(node.metadata, labels={labels.DO_NOT_SYNC_TAINTS: value})))
    world.settle()
    assert [t.key for t in world.node("node-a").spec.taints] == (["own"] if synced else [])


def test_a_taint_that_the_node_has_is_kept_as_it_is() -> None:
    world = launched(spec={"taints": [{"key": "own", "value": "claim", "effect": "NoSchedule"}]})
    world.join(world.claim(), taints=[{"key": "own", "value": "node", "effect": "NoSchedule"}])
    world.settle()
    assert [t.value for t in world.node("node-a").spec.taints] == ["node"]


def test_a_startup_taint_that_was_removed_does_not_come_back() -> None:
    world = launched(spec={"startupTaints": [{"key": "agent", "effect": "NoSchedule"}]})
    world.join(world.claim())
    world.settle()
    change(world, "node-a", taints=())
    world.settle()
    assert world.node("node-a").spec.taints == ()


def test_the_label_of_the_node_class_is_added_where_it_lacks() -> None:
    world = running(node_claim("a"))
    claim, node = world.claim(), world.node("node-a")
    for value in (claim, node):
        kept = {key: text for key, text in value.metadata.labels.items() if key != labels.NODECLASS}
        world.put(replace(value, metadata=replace(value.metadata, labels=kept)))
    world.settle()
    assert world.claim().metadata.labels[labels.NODECLASS] == "default"
    assert world.node("node-a").metadata.labels[labels.NODECLASS] == "default"


# --- Initialized ------------------------------------------------------------------------------------------------
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


def measured(memory: str) -> World:
    """A usable node with this much memory, whose claim asks for some of it and was promised 8Gi."""
    world = launched(spec={"resources": {"requests": {"memory": "1Gi", "ephemeral-storage": "1Gi"}}})
    node = world.join(world.claim())
    capacity = {**node.status.capacity, "memory": memory, "cpu": "1"}
    world.put(replace(node, status=replace(node.status, capacity=capacity)))
    return world


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


# --- time limits ------------------------------------------------------------------------------------------------
def deletions(plan: Plan) -> list[str]:
    return [action.reason.code for action in plan.actions if isinstance(action, DeleteObject)]


def test_not_registered_in_time() -> None:
    world = launched()
    world.pass_time(899)
    assert deletions(world.decide()) == []
    assert world.decide().next_due == NOW + timedelta(minutes=15)
    world.pass_time(1)
    assert deletions(world.decide()) == ["RegistrationTimeout"]


def test_the_clock_of_registration_starts_when_its_status_changed() -> None:
    world = launched()
    world.pass_time(600)
    first = world.join(world.claim())
    world.put(replace(first, metadata=replace(first.metadata, name="twin", uid="uid-twin")))
    world.settle()
    world.pass_time(899)
    assert deletions(world.decide()) == []
    world.pass_time(1)
    assert deletions(world.decide()) == ["RegistrationTimeout"]


def test_a_registered_node_may_take_as_long_as_it_likes_to_initialise() -> None:
    world = launched()
    world.join(world.claim(), ready=False)
    world.settle()
    world.pass_time(100_000)
    assert deletions(world.decide()) == []


@pytest.mark.parametrize("missing", [Source.NODES, Source.NODE_CLAIMS])
def test_that_no_node_joined_is_for_complete_lists_to_say(missing: Source) -> None:
    """Nodes that may not be listed any more have not failed to join."""
    world = launched()
    world.pass_time(901)
    world.facts["fresh_at"] = {source: world.now for source in Source if source is not missing}
    plan = world.decide()
    assert deletions(plan) == []
    assert [(r.subject, r.reason.code) for r in plan.refusals] == [("nodeclaim/a", "StaleSource")]
    world.settle()
    assert labels.BACK_OFF not in world.get(kinds.NODE_POOL, "default").metadata.annotations
    del world.facts["fresh_at"]
    assert deletions(world.decide()) == ["RegistrationTimeout"]


def late() -> World:
    """Everybody was down while the Node joined; now the time is over."""
    world = launched()
    world.join(world.claim())
    world.pass_time(2000)
    return world


def test_a_node_that_joined_while_nobody_looked_is_registered_however_late() -> None:
    world = late()
    world.settle()
    assert world.condition("Registered") == ("True", "Registered")
    assert labels.BACK_OFF not in world.get(kinds.NODE_POOL, "default").metadata.annotations


def test_a_node_that_is_late_and_cannot_be_registered_has_its_own_fifteen_minutes() -> None:
    world = late()

    def look() -> list[str]:
        plan = world.decide()
        world.obey(changed(plan, actions=tuple(a for a in plan.actions if a.lane != "node/node-a")))
        return deletions(plan)

    assert [look() for _ in range(3)] == [[], [], []]
    assert world.condition("Registered") == ("False", "NodeJoinedLate")
    world.pass_time(899)
    assert look() == []
    world.pass_time(1)
    assert look() == ["RegistrationTimeout"]


# --- tags -------------------------------------------------------------------------------------------------------
def test_an_instance_is_tagged_once() -> None:
    world = launched()
    world.join(world.claim())
    world.settle()
    tags = world.instances[world.claim().instance_id].tags
    assert (tags["Name"], tags[labels.TAG_NODECLAIM]) == ("node-a", "a")
    assert len(world.done(TagInstance)) == 1
    assert world.claim().metadata.annotations[labels.TAGGED] == "true"
    assert world.claim().metadata.annotations[labels.CLUSTER_NAME_TAGGED] == "true"


def test_the_note_about_tags_does_not_hold_up_initialization() -> None:
    world = launched()
    world.join(world.claim())
    while not world.claim().is_true("Initialized"):
        assert labels.TAGGED not in world.claim().metadata.annotations
        world.obey(world.decide())


def test_a_name_that_somebody_gave_is_kept() -> None:
    world = launched()
    world.add_instance(world.claim().instance_id, {"Name": "mine"})
    world.join(world.claim())
    world.settle()
    assert [sorted(a.tags) for a in world.done(TagInstance)] == [[labels.TAG_EKS_CLUSTER, labels.TAG_NODECLAIM]]


def test_an_instance_that_is_not_seen_is_not_tagged() -> None:
    world = launched()
    world.join(world.claim())
    world.instances.clear()
    world.facts["fresh_at"] = {}
    world.settle()
    assert not world.done(TagInstance)
    assert labels.TAGGED not in world.claim().metadata.annotations


# --- pod events -------------------------------------------------------------------------------------------------
def bound_at(seconds: int) -> dict[str, Any]:
    when = text(NOW + timedelta(seconds=seconds))
    return {"startTime": when}


def test_the_newest_pod_event_is_noted() -> None:
    world = running(node_claim("a"))
    world.pass_time(100)
    world.put(pod("one", "node-a", status=bound_at(20)))
    world.put(pod("two", "node-a", status=bound_at(40)))
    world.settle()
    assert world.claim().status.last_pod_event_time == NOW + timedelta(seconds=40)


def test_a_pod_that_no_kubelet_has_taken_up_counts_from_its_binding() -> None:
    world = running(node_claim("a"))
    world.pass_time(100)
    when = text(NOW + timedelta(seconds=50))
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": when}
    world.put(pod("one", "node-a", status={"startTime": None, "conditions": [bound]}))
    world.settle()
    assert world.claim().status.last_pod_event_time == NOW + timedelta(seconds=50)


def test_events_within_ten_seconds_are_one() -> None:
    world = running(node_claim("a"))
    world.pass_time(100)
    world.put(pod("one", "node-a", status=bound_at(20)))
    world.settle()
    world.put(pod("two", "node-a", status=bound_at(29)))
    assert world.decide() == Plan()
    world.put(pod("three", "node-a", status=bound_at(30)))
    world.settle()
    assert world.claim().status.last_pod_event_time == NOW + timedelta(seconds=30)


def test_a_pod_that_is_going_counts_from_now_not_from_its_end() -> None:
    world = running(node_claim("a"))
    world.pass_time(100)
    world.put(pod("one", "node-a", meta={"deletionTimestamp": text(NOW + timedelta(seconds=700))}))
    world.settle()
    assert world.claim().status.last_pod_event_time == world.now


# --- adopted nodes ----------------------------------------------------------------------------------------------
def test_a_node_of_somebody_else_is_left_alone() -> None:
    world = running(node_claim("a"))
    body = {"metadata": {"name": "other", "uid": "u", "finalizers": ["x/y"]}, "spec": {"providerID": "aws:///z/i-9"}}
    world.put(decode(Node, body))
    assert world.decide() == Plan()
    world.delete(kinds.ref(world.node("other")))
    assert world.decide() == Plan()


@pytest.mark.parametrize("ready", [True, False])
def test_a_node_that_was_deleted_under_our_finalizer_is_given_up_after_five_minutes(ready: bool) -> None:
    world = launched()
    node = world.join(world.claim(), ready=ready)
    world.settle()
    world.objects.pop(kinds.ref(node))
    world.settle()
    assert world.condition("ConsistentStateFound") == ("False", "NodeNotFound")
    world.pass_time(299)
    world.settle()
    assert not world.claim().metadata.deleting
    world.pass_time(1)
    first = world.decide()  # what is to be ended is written down first
    assert deletions(first) == []
    world.obey(first)
    assert deletions(world.decide()) == ["NodeLost"]


def test_a_node_that_came_back_in_time_is_kept() -> None:
    world = running(node_claim("a"))
    node = world.node("node-a")
    world.objects.pop(kinds.ref(node))
    world.settle()
    world.pass_time(200)
    world.put(node)
    world.settle()
    assert world.condition("ConsistentStateFound") == ("True", "ConsistentStateFound")
    world.pass_time(1000)
    assert deletions(world.decide()) == []


def taken_away(world: World) -> Node:
    """The claim's Node, which is not there any more."""
    node = world.node("node-a")
    world.objects.pop(kinds.ref(node))
    world.settle()
    return node


@pytest.mark.parametrize("usable", [True, False])
def test_a_node_that_goes_twice_has_its_five_minutes_twice(usable: bool) -> None:
    world = launched()
    world.join(world.claim(), ready=usable)
    world.settle()
    for _ in range(2):
        node = taken_away(world)
        world.pass_time(200)
        world.put(node)
        world.settle()
        assert world.condition("ConsistentStateFound") == (("True", "ConsistentStateFound") if usable else None)
    taken_away(world)
    world.pass_time(299)
    world.settle()
    assert not world.claim().metadata.deleting
    world.pass_time(1)
    world.settle()
    assert world.claim().metadata.deleting


def test_a_node_that_is_too_small_has_its_five_minutes_when_it_goes() -> None:
    world = measured("4Gi")
    world.settle()
    world.pass_time(3600)
    node = taken_away(world)
    assert world.condition("ConsistentStateFound") == ("False", "NodeNotFound")
    world.pass_time(10)
    world.settle()
    assert not world.claim().metadata.deleting
    world.put(node)
    world.settle()
    assert world.condition("ConsistentStateFound") == ("False", "ConsistencyCheckFailed")
    world.pass_time(1000)
    world.settle()
    assert not world.claim().metadata.deleting


# --- reservations -------------------------------------------------------------------------------------------------
RESERVED = {labels.CAPACITY_TYPE: "reserved", labels.RESERVATION_ID: "cr-1", labels.RESERVATION_TYPE: "default"}


@pytest.mark.parametrize("stale", [("claim", "node"), ("node",), ("claim",)])
@pytest.mark.parametrize(("paid", "expected"), [("on-demand", "on-demand"), ("reserved", "reserved")])
def test_what_ec2_calls_on_demand_is_called_so(stale: tuple[str, ...], paid: str, expected: str) -> None:
    """When its reservation has ended; whoever still says otherwise is corrected, and keeps all other labels."""
    world = running(node_claim("a"))
    (id_,) = world.instances
    world.instances[id_] = changed(world.instances[id_], capacity_type=paid)
    before = {"claim": world.claim(), "node": world.node("node-a")}
    for name in stale:
        meta = before[name].metadata
        before[name] = world.put(replace(before[name], metadata=replace(meta, labels={**meta.labels, **RESERVED})))
    world.settle()
    after = {"claim": world.claim(), "node": world.node("node-a")}
    for name in stale:
        own = dict(before[name].metadata.labels)
        if expected == "on-demand":
            own = {k: v for k, v in own.items() if k not in labels.RESERVATION_LABELS} | {labels.CAPACITY_TYPE: paid}
        assert dict(after[name].metadata.labels) == own
