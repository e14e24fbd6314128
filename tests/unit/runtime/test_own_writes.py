"""What act did shows at once, whatever the watch and Describe still say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kerf.model import kinds
from kerf.model.aws.cloud import (
    FleetError,
    FleetRequest,
    FleetResult,
    HeldReservation,
    Instance,
    LaunchTemplate,
    Override,
)
from kerf.model.aws.interruptions import Interruption, InterruptionKind, Message
from kerf.model.aws.inventory import TEMPLATE, Resource
from kerf.model.kept import dropped, of_use
from kerf.model.kinds import Ref
from kerf.model.kubernetes.objects import Node, Pod, PodCondition, PodSpec, PodStatus
from kerf.model.plan import (
    Action,
    DeleteObject,
    EnsureTemplate,
    EvictPod,
    LaunchInstances,
    PatchObject,
    Reason,
    Source,
    TagInstance,
    TerminateInstance,
)
from kerf.model.settings import Settings
from kerf.ports import AlreadyGone, Conflict, EvictionBlocked, Forbidden, Throttled, Unavailable, WorldChanged
from kerf.runtime.act.results import SETTLES, TEMPLATE_STAYS, absorb, subject
from kerf.runtime.inbox import Changed, Described, Done, Listed, Received, Removed, Withheld
from kerf.runtime.state.promises import NOT_KEPT_FOR
from kerf.runtime.state.state import State
from kerf_api.v1.ec2nodeclass import EC2NodeClass, MetadataOptions
from kerf_api.v1.meta import ObjectMeta, decode
from kerf_api.v1.nodepool import NodePool

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WHY = Reason("Test")
REQUEST = FleetRequest(group="g", capacity_type="spot", members=("a", "b"), templates=(), overrides=())
LAUNCH = LaunchInstances(request=REQUEST, claims=("a", "b"), reason=WHY)


def _spot(message: Message) -> Interruption | None:
    return Interruption(InterruptionKind.SPOT_INTERRUPTED, (message.body,), message) if message.body else None


def state(interpret: Callable[[Message], Interruption | None] = _spot) -> State:
    return State(Settings(cluster_name="c"), build=lambda *_: (), interpret=interpret)


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def instance(id_: str, state_: str = "running") -> Instance:
    return Instance(id_, "m5.large", "us-west-2a", state_, "spot", NOW)


def node(name: str, version: str = "5", finalizers: tuple[str, ...] = ()) -> Node:
    return Node(metadata=ObjectMeta(name=name, uid=f"uid-{name}", resource_version=version, finalizers=finalizers))


def pod(name: str, version: str = "5", **spec: Any) -> Pod:
    meta = ObjectMeta(name=name, namespace="d", uid=f"uid-{name}", resource_version=version)
    return Pod(metadata=meta, spec=PodSpec(node_name="n", **spec))


def done(action: Action, outcome: str = "ok", at: datetime = NOW, value: Any = None, error: Any = None) -> Done:
    return Done(action, outcome, at, value, error)


# --- instances --------------------------------------------------------------------------------------------------
def test_a_launch_shows_before_describe_does() -> None:
    known = state()
    absorb(done(LAUNCH, value=FleetResult((instance("i-1"), instance("i-2")))), known)
    assert list(known.snapshot(NOW).instances) == ["i-1", "i-2"]
    known.take(Described((), after(-1)), after(1))
    known.take(Described((instance("i-1"),), after(30)), after(30))
    assert list(known.snapshot(after(30)).instances) == ["i-1", "i-2"]
    known.take(Described((instance("i-1"),), after(60)), after(60))
    assert list(known.snapshot(after(60)).instances) == ["i-1"]


def test_a_termination_shows_before_describe_does() -> None:
    known = state()
    known.take(Described((instance("i-1"), instance("i-2")), NOW), NOW)
    assert not known.busy
    absorb(done(TerminateInstance(instance_id="i-1", reason=WHY), at=after(1)), known)
    known.take(Described((instance("i-1"), instance("i-2")), after(2)), after(2))
    assert [i.live for i in known.snapshot(after(2)).instances.values()] == [False, True]
    assert known.busy
    known.take(Described((instance("i-2"),), after(20)), after(20))
    assert list(known.snapshot(after(20)).instances) == ["i-2"]
    assert not known.busy


def test_an_instance_that_ec2_does_not_know_is_gone() -> None:
    known = state()
    known.take(Described((instance("i-1"),), NOW), NOW)
    absorb(done(TerminateInstance(instance_id="i-1", reason=WHY), "gone", error=AlreadyGone("x")), known)
    assert not known.snapshot(NOW).instances


def test_own_tags_show_on_instances() -> None:
    known = state()
    known.take(Described((instance("i-1"),), NOW), NOW)
    absorb(done(TagInstance(instance_id="i-1", tags={"Name": "x"}, reason=WHY)), known)
    assert known.snapshot(NOW).instances["i-1"].tags == {"Name": "x"}


def test_what_was_sold_out_is_remembered_for_three_minutes() -> None:
    known = state()
    errors = (
        FleetError("InsufficientInstanceCapacity", "none", "m5.large", "us-west-2a", capacity=True),
        FleetError("UnauthorizedOperation", "no", "m5.large", "us-west-2b"),
    )
    absorb(done(LAUNCH, value=FleetResult((), errors)), known)
    key = ("m5.large", "us-west-2a", "spot")
    seen = known.snapshot(after(179))
    assert list(seen.out_of_stock) == [key]
    assert (seen.launch_failures["g"].errors, seen.launch_failures["g"].attempts) == (errors, 1)
    assert not known.snapshot(after(180)).out_of_stock
    absorb(done(LAUNCH, value=FleetResult((), errors), at=after(200)), known)
    assert known.snapshot(after(200)).launch_failures["g"].attempts == 2
    absorb(done(LAUNCH, value=FleetResult((instance("i-1"), instance("i-2")))), known)
    assert not known.snapshot(after(200)).launch_failures


def test_a_spot_interruption_is_a_stock_out() -> None:
    known = state()
    known.take(Described((instance("i-1"),), NOW), NOW)
    known.take(Received((Message("1", "r", "i-1"), Message("2", "r", "")), NOW), NOW)
    seen = known.snapshot(NOW)
    assert [i.kind for i in seen.interruptions] == ["spot_interrupted", "no_op"]
    assert list(seen.out_of_stock) == [("m5.large", "us-west-2a", "spot")]


def test_a_reservation_that_is_full_or_taken_back_is_a_stock_out_of_its_own() -> None:
    """Of other reservations of the type in the zone nothing is said."""
    kind = InterruptionKind.CAPACITY_RESERVATION_INTERRUPTED
    known = state(lambda message: Interruption(kind, (message.body,), message))
    held = [HeldReservation(id=f"cr-{number}") for number in "12"]
    meta: Any = {"image_id": "ami", "user_data": "", "instance_profile": "", "security_group_ids": ()}
    templates = tuple(
        LaunchTemplate(name=one.id, metadata_options=MetadataOptions(), reservation=one, **meta) for one in held
    )
    override = Override(
        instance_type="m5.large", zone="us-west-2a", subnet_id="subnet-1", image_id="ami", template="cr-1"
    )
    call = FleetRequest(group="g", capacity_type="reserved", members=("a",), templates=templates, overrides=(override,))
    full = FleetError("ReservationCapacityExceeded", "full", "m5.large", "us-west-2a", capacity=True)
    absorb(done(LaunchInstances(request=call, claims=("a",), reason=WHY), value=FleetResult((), (full,))), known)
    assert list(known.snapshot(NOW).out_of_stock) == [("m5.large", "us-west-2a", "cr-1")]
    known.take(Described((replace(instance("i-1"), capacity_type="reserved", reservation=held[1]),), NOW), NOW)
    known.take(Received((Message("1", "r", "i-1"),), NOW), NOW)
    assert list(known.snapshot(NOW).out_of_stock) == [("m5.large", "us-west-2a", f"cr-{n}") for n in "12"]


@pytest.mark.parametrize(
    ("outcome", "error", "failures"),
    [("forbidden", Forbidden("x"), 1), ("unavailable", Unavailable("x"), 0), ("throttled", Throttled("x", 30.0), 0)],
)
def test_only_errors_that_repeating_cannot_cure_are_a_failed_launch(outcome: str, error: Any, failures: int) -> None:
    known = state()
    absorb(done(LAUNCH, outcome, error=error), known)
    seen = known.snapshot(NOW)
    assert len(seen.launch_failures) == failures
    assert seen.not_before["launch/g"] > NOW
    if outcome == "throttled":
        assert seen.not_before["launch/g"] == after(30)


# --- objects ----------------------------------------------------------------------------------------------------
def test_a_watch_that_lags_does_not_undo_a_write() -> None:
    known = state()
    known.take(Changed(kinds.NODE, node("a", "5")), NOW)
    patch = PatchObject(verb="V", ref=Ref("Node", "", "a"), patch={}, reason=WHY)
    absorb(done(patch, value=node("a", "9")), known)
    known.take(Changed(kinds.NODE, node("a", "7")), NOW)
    assert known.snapshot(NOW).nodes["a"].metadata.resource_version == "9"


def test_a_conflict_brings_the_newer_object_and_no_back_off() -> None:
    known = state()
    patch = PatchObject(verb="V", ref=Ref("Node", "", "a"), patch={}, resource_version="1", reason=WHY)
    absorb(done(patch, "conflict", value=node("a", "9"), error=Conflict("x")), known)
    seen = known.snapshot(NOW)
    assert seen.nodes["a"].metadata.resource_version == "9"
    assert not seen.not_before


def test_a_deletion_shows_at_once() -> None:
    known = state()
    for value in (node("kept", finalizers=("f",)), node("bare")):
        known.take(Changed(kinds.NODE, value), NOW)
        absorb(done(DeleteObject(ref=Ref.of(kinds.NODE, value), uid=value.metadata.uid, reason=WHY)), known)
    seen = known.snapshot(NOW)
    assert list(seen.nodes) == ["kept"]
    assert seen.nodes["kept"].metadata.deleting


def test_the_patch_that_takes_the_last_finalizer_ends_the_object() -> None:
    known = state()
    known.take(Changed(kinds.NODE, node("a", finalizers=("f",))), NOW)
    last = Node(metadata=ObjectMeta(name="a", uid="uid-a", resource_version="9", deletion_timestamp=NOW))
    absorb(done(PatchObject(verb="V", ref=Ref("Node", "", "a"), patch={}, reason=WHY), value=last), known)
    known.take(Changed(kinds.NODE, node("a", "8", ("f",))), NOW)
    assert not known.snapshot(NOW).nodes


def test_an_evicted_pod_is_terminating_and_is_not_evicted_again() -> None:
    known = state()
    known.take(Changed(kinds.POD, pod("a", termination_grace_period_seconds=7)), NOW)
    evict = EvictPod(ref=Ref("Pod", "d", "a"), uid="uid-a", reason=WHY)
    absorb(done(evict), known)
    assert known.snapshot(NOW).pods["d/a"].metadata.deletion_timestamp == after(7)
    held = known.held_until(evict.key, "uid-a", (subject(evict),), after(1))
    assert held == NOW + SETTLES
    assert known.held_until(evict.key, "uid-of-its-successor", (subject(evict),), after(1)) is None
    assert known.held_until(evict.key, "uid-a", (subject(evict),), NOW + SETTLES) is None


def test_a_template_that_was_made_ahead_is_not_asked_for_at_every_look() -> None:
    meta: dict[str, Any] = {"image_id": "ami", "user_data": "", "instance_profile": "", "security_group_ids": ()}
    known, template = state(), LaunchTemplate(name="t", metadata_options=MetadataOptions(), **meta)
    ensure = EnsureTemplate(template=template, reason=WHY)
    absorb(done(ensure), known)
    assert known.held_until(ensure.key, "", (subject(ensure),), after(1)) == NOW + TEMPLATE_STAYS
    assert known.held_until(ensure.key, "", (subject(ensure),), NOW + TEMPLATE_STAYS) is None
    known.inventories.listed(TEMPLATE, [Resource(TEMPLATE, "lt-1", "t", after(-7200))], after(-7200))
    assert known.snapshot(after(1)).inventories[TEMPLATE].used == {"t": NOW}


def test_a_blocked_eviction_waits_longer_each_time_and_is_forgotten_on_success() -> None:
    known = state()
    evict = EvictPod(ref=Ref("Pod", "d", "a"), uid="uid-a", reason=WHY)
    waits = []
    for _ in range(12):
        absorb(done(evict, "blocked", error=EvictionBlocked("x")), known)
        waits.append(known.snapshot(NOW).not_before["eviction/d/a"] - NOW)
    assert waits[:7] == sorted(waits[:7])
    assert timedelta(milliseconds=100) <= waits[0] < timedelta(milliseconds=120)
    assert timedelta(seconds=10) <= waits[-1] <= timedelta(seconds=11)
    absorb(done(evict), known)
    assert "eviction/d/a" not in known.snapshot(NOW).not_before


def test_a_deletion_before_which_pods_had_come_is_soon_asked_again() -> None:
    """However often: when they have gone, the next command is about the same object."""
    known, deletion = state(), DeleteObject(ref=Ref("NodeClaim", "", "a"), uid="uid-a", reason=WHY)
    for _ in range(12):
        absorb(done(deletion, "world_changed", error=WorldChanged("d/late was bound to node n")), known)
    (wait,) = known.snapshot(NOW).not_before.values()
    assert timedelta(seconds=10) <= wait - NOW <= timedelta(seconds=11)
    absorb(done(deletion), known)
    assert not known.snapshot(NOW).not_before


def test_a_list_takes_away_what_is_not_in_it_but_not_what_is_newer() -> None:
    known = state()
    known.take(Changed(kinds.NODE, node("old", "5")), NOW)
    known.take(Changed(kinds.NODE, node("new", "12")), NOW)
    known.take(Listed(kinds.NODE, (node("a", "6"),), "10", NOW), NOW)
    assert sorted(known.snapshot(NOW).nodes) == ["a", "new"]


# --- the batch --------------------------------------------------------------------------------------------------
def test_pending_pods_open_the_batch_and_bound_ones_leave_it() -> None:
    known = state()
    refused = PodStatus(conditions=(PodCondition(type="PodScheduled", status="False", reason="Unschedulable"),))
    meta = ObjectMeta(name="p", namespace="d", uid="u", resource_version="1")
    known.take(Changed(kinds.POD, Pod(metadata=meta, status=refused)), NOW)
    batch = known.snapshot(NOW).batch
    assert batch is not None
    assert batch.first == NOW
    known.batch.served(NOW)
    known.take(Removed(kinds.POD, "d", "p", "u"), NOW)
    assert known.snapshot(after(60)).batch is None


def test_freshness_is_when_it_was_asked_not_when_it_was_answered() -> None:
    known = state()
    known.take(Described((), NOW), after(50))
    known.take(Listed(kinds.POD, (), "1", NOW), after(50))
    seen = known.snapshot(after(91))
    assert not any(seen.fresh(source) for source in seen.fresh_at)
    assert all(known.snapshot(after(90)).fresh(source) for source in seen.fresh_at)


def test_what_is_withheld_is_fresh_again_only_after_a_new_list() -> None:
    known = state()
    known.take(Listed(kinds.POD, (), "1", NOW), NOW)
    known.take(Withheld(kinds.POD), after(1))
    assert not known.snapshot(after(1)).fresh(Source.PODS)
    known.take(Listed(kinds.POD, (), "2", after(2)), after(2))
    assert known.snapshot(after(2)).fresh(Source.PODS)


def test_changes_are_collected_for_the_slow_half() -> None:
    known = state()
    known.take(Changed(kinds.NODE, node("a")), NOW)
    known.take(Changed(kinds.NODE, node("b")), NOW)
    known.take(Removed(kinds.NODE, "", "a", "uid-a"), NOW)
    assert known.changes == {Ref("Node", "", "a"): None, Ref("Node", "", "b"): node("b")}


# --- what the API server does not keep --------------------------------------------------------------------------
def status_of(pool_: NodePool, **status: Any) -> PatchObject:
    return PatchObject(
        reason=WHY, verb="UpdatePoolStatus", ref=kinds.ref(pool_), patch={"status": status}, subresource="status"
    )


def pool_with(**status: Any) -> NodePool:
    ref = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    spec = {"template": {"spec": {"nodeClassRef": ref}}}
    meta = {"name": "default", "uid": "uid-default", "resourceVersion": "7"}
    return decode(NodePool, {"metadata": meta, "spec": spec, "status": status})


def test_a_field_that_is_not_kept_is_not_written_again_at_once() -> None:
    known, answer = state(), pool_with(resources={"cpu": "4"})
    action = status_of(answer, nodes=3, resources={"cpu": "4"})
    absorb(Done(action, "ok", NOW, answer), known)
    again = status_of(answer, nodes=3)
    assert of_use([again], known.snapshot(NOW).dropped_fields) == []
    assert of_use([again], known.snapshot(NOW + NOT_KEPT_FOR).dropped_fields) == [again]


@pytest.mark.parametrize(
    "patch", [{"nodes": 4}, {"nodes": 3, "resources": {"cpu": "8"}}, {"resources": {"cpu": "4"}}, {"nodes": None}]
)
def test_another_value_and_other_fields_are_written(patch: Mapping[str, Any]) -> None:
    known, answer = state(), pool_with()
    absorb(Done(status_of(answer, nodes=3), "ok", NOW, answer), known)
    other = status_of(answer, **patch)
    assert of_use([other], known.snapshot(NOW).dropped_fields) == [other]


def test_a_write_that_was_kept_may_be_repeated() -> None:
    """As when somebody else changes the field back. A default may be written or not."""
    known, row = state(), {"type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    action = status_of(pool_with(), nodes=3, conditions=[{**row, "message": "", "reason": ""}])
    absorb(Done(action, "ok", NOW, pool_with(nodes=3, conditions=[row])), known)
    assert of_use([action], known.snapshot(NOW).dropped_fields) == [action]


def test_part_of_a_list_that_is_dropped_is_seen() -> None:
    row = {"id": "cr-0123456789abcdef0", "availabilityZone": "z", "instanceMatchCriteria": "open", "instanceType": "m5"}
    row |= {"ownerID": "1", "reservationType": "default", "state": "active"}
    answer = decode(EC2NodeClass, {"metadata": {"name": "a"}, "status": {"capacityReservations": [row]}})

    def names(**more: Any) -> list[str]:
        patch = {"status": {"capacityReservations": [{**row, **more}]}}
        action = PatchObject(
            reason=WHY, verb="UpdateClassStatus", ref=kinds.ref(answer), patch=patch, subresource="status"
        )
        return [name for _, name, _ in dropped(action, answer)]

    assert names(interruptible=True) == ["status.capacityReservations"]
    assert names() == []
