"""From a claim to its instance: what holds a launch back, and what the call and the claim say (1 to 30)."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.aws.launch.fleets import parameters
from kerf.disruption.drift.drift import drift_reason
from kerf.disruption.view import view
from kerf.ec2.instances import claim_labels
from kerf.ec2.launch import fleet
from kerf.model import kinds
from kerf.model.aws.cloud import CapacityReservation, HeldReservation, Instance, Subnet
from kerf.model.plan import DeleteObject, LaunchInstances
from kerf.scheduling.offerings.reservations import machines_left
from kerf_api import labels
from kerf_api.v1 import hashes
from kerf_api.v1.conditions import put
from tests.unit.aws.catalogue.pods import BOUGHT, FAMILY, TYPE, asked, pod, row
from tests.unit.ec2 import ec2_facts
from tests.unit.ec2.ec2_facts import NOW, ZONES, catalogue, claim, facts, node_class, ready
from tests.unit.ec2.fleet_requests import CLASS, problem, request, typed
from tests.unit.lifecycle.world import CLUSTER, FACTS, World, node_claim, prepared
from tests.unit.lifecycle.world import node_class as stored_class


def with_ready(status: str, *, generation: int = 1, message: str = "") -> World:
    """A claim that waits to be launched, and what its class says of itself."""
    world = prepared(node_claim("a"))
    known = world.get(kinds.NODE_CLASS, "default")
    rows = put(known.status.conditions, "Ready", status, "Because", generation=generation, now=NOW, message=message)
    world.put(replace(known, status=replace(known.status, conditions=rows)))
    return world


def one_look(world: World) -> list[DeleteObject]:
    """What is deleted in the first look, in which nothing may be launched."""
    plan = world.decide()
    assert not [action for action in plan.actions if isinstance(action, LaunchInstances)]
    ended = [a for a in plan.actions if isinstance(a, DeleteObject)]
    world.obey(changed(plan, actions=tuple(a for a in plan.actions if a.lane.startswith("nodeclaim/"))))
    return ended


# --- what holds a launch back -----------------------------------------------------------------------------------
def test_001_a_class_that_is_not_known_to_be_ready_is_waited_for() -> None:
    world = with_ready("Unknown")
    assert one_look(world) == []
    assert world.condition("Launched") == ("Unknown", "NodeClassReadinessUnknown")
    assert labels.LAUNCH_GROUP not in world.claim().metadata.annotations
    assert problem(node_class=replace(CLASS, status=replace(CLASS.status, conditions=()))).kind == fleet.CREATE


def test_002_the_claim_of_a_class_that_is_not_ready_is_given_up_with_its_words() -> None:
    (ended,) = one_look(with_ready("False", message="SubnetsReady=False"))
    assert (ended.ref.name, str(ended.reason)) == ("a", "NodeClassNotReady: SubnetsReady=False")


@pytest.mark.parametrize("key", ["karpenter.sh/nodepool", "eks:eks-cluster-name", "kubernetes.io/cluster/other"])
def test_003_tags_that_are_ours_to_set_hold_a_launch_back_though_the_class_says_ready(key: str) -> None:
    found = problem(node_class=replace(CLASS, spec=replace(CLASS.spec, tags={key: "x"})))
    assert found.kind == fleet.NOT_READY
    assert key in found.message


def test_004_a_readiness_of_an_older_generation_is_waited_for() -> None:
    """Karpenter gives the claim up; here it is kept, since the class will have been looked at in a moment."""
    world = with_ready("True", generation=0)
    assert one_look(world) == []
    assert world.condition("Launched") == ("Unknown", "NodeClassReadinessUnknown")
    assert labels.LAUNCH_GROUP not in world.claim().metadata.annotations


def test_005_what_no_type_fits_is_a_lack_of_capacity() -> None:
    world = prepared(node_claim("a", resources={"requests": {"cpu": "64"}}))
    (ended,) = one_look(world)
    assert (ended.ref.name, ended.reason.code) == ("a", "InsufficientCapacity")
    assert world.calls == {}


def instance(name: str = "m5.large", **more: Any) -> Instance:
    given = {"capacity_type": labels.ON_DEMAND, "tags": {labels.NODEPOOL: "default"}, **more}
    return Instance("i-1", name, ZONES[1], "running", launched=NOW, **given)


# --- what the claim says afterwards -----------------------------------------------------------------------------
def test_006_the_image_is_the_one_that_the_instance_was_launched_from() -> None:
    world = prepared(node_claim("a"))
    for _ in range(2):
        world.obey(world.decide())
    (launched,) = world.instances.values()
    world.instances[launched.id] = changed(launched, image_id="ami-x")
    world.settle()
    assert world.claim().status.image_id == "ami-x"


def test_007_the_zone_id_is_that_of_the_classs_subnet() -> None:
    found = claim_labels(instance(), ec2_facts.one("m5.large"), CLASS)
    assert found["topology.k8s.aws/zone-id"] == "usw2-az2"
    nameless = ready(node_class(), facts(subnets=(Subnet("subnet-b", ZONES[1]),)))
    assert "topology.k8s.aws/zone-id" not in claim_labels(instance(), None, nameless)


def launched() -> World:
    world = prepared(node_claim("a"))
    world.settle()
    return world


def test_008_three_annotations_say_what_it_was_launched_with() -> None:
    """Beside them are Kerf's own."""
    notes = launched().claim().metadata.annotations
    assert {key for key in notes if not key.startswith("kerf.sh/")} == {
        "karpenter.k8s.aws/ec2nodeclass-hash",
        "karpenter.k8s.aws/ec2nodeclass-hash-version",
        "karpenter.k8s.aws/instance-profile-name",
    }
    assert notes["karpenter.k8s.aws/instance-profile-name"] == FACTS.instance_profile


def test_009_the_hash_is_that_of_the_class_in_our_version() -> None:
    world = launched()
    of, notes = world.get(kinds.NODE_CLASS, "default"), world.claim().metadata.annotations
    assert notes[labels.NODECLASS_HASH] == hashes.nodeclass_hash(of, CLUSTER.ca_bundle)
    assert notes[labels.NODECLASS_HASH] == of.metadata.annotations[labels.NODECLASS_HASH]
    assert notes[labels.NODECLASS_HASH_VERSION] == hashes.NODECLASS_HASH_VERSION


# --- the call ---------------------------------------------------------------------------------------------------
def context(of: Any, **annotations: str) -> Any:
    call = parameters(request(claim("a", typed("m5.large"), annotations=annotations), node_class=of))
    return call.get("Context", "absent")


def test_010_the_context_of_the_class_goes_into_the_call() -> None:
    assert context(ready(node_class(context="ctx"))) == "ctx"


def test_011_there_is_no_context_when_min_values_were_relaxed() -> None:
    of = ready(node_class(context="ctx"))
    assert context(of, **{labels.MIN_VALUES_RELAXED: "true"}) == "absent"
    assert context(of, **{labels.MIN_VALUES_RELAXED: "false"}) == "ctx"


def test_012_without_a_context_the_field_is_absent() -> None:
    assert context(CLASS) == "absent"
    assert context(ready(node_class(context=""))) == "absent"


def test_013_as_many_types_as_min_values_says_are_named_though_one_is_cheaper() -> None:
    found = asked(pod(), rows=[BOUGHT, row(TYPE, "In", "c5.large", "m5.large", "m5.xlarge", least=2)])
    assert found.types[0] == "c5.large"
    assert len(found.types) >= 2


def test_014_so_many_families_are_named() -> None:
    found = asked(pod(), rows=[BOUGHT, row(FAMILY, "Exists", least=4)])
    assert len({name.partition(".")[0] for name in found.types}) >= 4


def test_015_all_keys_are_satisfied_together() -> None:
    cpus = "karpenter.k8s.aws/instance-cpu"
    found = asked(pod(), rows=[BOUGHT, row(FAMILY, "Exists", least=3), row(cpus, "In", "2", "4", least=2)])
    assert len({name.partition(".")[0] for name in found.types}) >= 3
    assert {ec2_facts.info(name).vcpus for name in found.types} == {2, 4}


def test_016_each_zone_that_offers_the_type_is_named_with_the_price_as_priority() -> None:
    call = parameters(request(claim("a", typed("m5.large"))))
    rows = [row for config in call["LaunchTemplateConfigs"] for row in config["Overrides"]]
    assert [(r["AvailabilityZone"], r["SubnetId"], r["Priority"]) for r in rows] == [
        (zone, f"subnet-{zone[-1]}", 0.096) for zone in ZONES
    ]
    assert {(r["InstanceType"], r["ImageId"]) for r in rows} == {("m5.large", "ami-1")}


def test_017_the_subnet_with_most_free_addresses_is_named() -> None:
    rows = tuple(Subnet(f"subnet-{free}", ZONES[0], free_addresses=free) for free in (10, 100))
    found = request(claim("a", typed("m5.large")), node_class=ready(node_class(), facts(subnets=rows)))
    assert [override.subnet_id for override in found.overrides] == ["subnet-100"]


def test_020_what_one_class_leaves_out_another_may_use() -> None:
    both = tuple(Subnet(f"subnet-{letter}", ZONES[0], free_addresses=9) for letter in "xy")
    wide, narrow = ready(node_class(), facts(subnets=both)), ready(node_class(), facts(subnets=both[1:]))
    assert {o.subnet_id for o in request(claim(), node_class=wide).overrides} == {"subnet-x"}
    assert {o.subnet_id for o in request(claim(), node_class=narrow).overrides} == {"subnet-y"}


@pytest.mark.parametrize("missing", ["subnets", "security_groups", "images"])
def test_021_a_class_that_selects_nothing_holds_up_its_own_claims_only(missing: str) -> None:
    sound, empty = node_claim("a"), node_claim("b", nodeClassRef=OTHER)
    world = prepared()
    nothing: dict[str, Any] = {missing: ()}
    world.class_facts["other"] = changed(FACTS, **nothing)
    world.facts["catalogues"] = {name: world.snapshot().catalogues["default"] for name in ("default", "other")}
    world.put(stored_class("other"))
    world.settle()
    for value in (sound, empty):
        world.put(value)
    world.settle()
    assert world.claim("a").is_true("Launched")
    assert world.get(kinds.NODE_CLAIM, "b") is None


OTHER = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "other"}


# --- reservations -----------------------------------------------------------------------------------------------
def test_026_what_was_launched_into_a_reservation_is_not_free_any_more() -> None:
    """Before EC2 has been asked again."""
    held = HeldReservation(id="cr-1")
    world = prepared(node_claim("a"))
    world.settle()
    (launched,) = world.instances.values()
    world.facts["resolved_at"] = {"default": launched.launched}
    assert machines_left(world.snapshot(), [{"cr-1": 2}]) == {"cr-1": 2}
    world.instances[launched.id] = changed(launched, reservation=held, capacity_type=labels.RESERVED)
    assert machines_left(world.snapshot(), [{"cr-1": 2}]) == {"cr-1": 1}


def test_027_a_machine_that_has_gone_is_free_again() -> None:
    held = HeldReservation(id="cr-1")
    world = prepared(node_claim("a"))
    world.settle()
    (launched,) = world.instances.values()
    world.facts["resolved_at"] = {"default": launched.launched}
    world.instances[launched.id] = changed(launched, reservation=held, capacity_type=labels.RESERVED)
    assert machines_left(world.snapshot(), [{"cr-1": 1}]) == {"cr-1": 0}
    world.delete(kinds.ref(world.claim()))
    world.settle()
    for _ in range(4):
        world.pass_time(30)
        world.settle()
    assert world.get(kinds.NODE_CLAIM, "a") is None
    assert machines_left(world.snapshot(), [{"cr-1": 1}]) == {"cr-1": 1}


@pytest.mark.parametrize("gone", [True, False])
def test_028_without_its_class_the_claim_is_given_up_and_an_event_reports_it(gone: bool) -> None:
    world = prepared(node_claim("a"))
    known = world.get(kinds.NODE_CLASS, "default")
    if gone:
        world.objects.pop(kinds.ref(known))
    else:
        world.delete(kinds.ref(known))
    plan = world.decide()
    ended = [action for action in plan.actions if isinstance(action, DeleteObject)]
    assert [(a.ref.name, a.reason.code) for a in ended] == [("a", "InsufficientCapacity")]
    assert [(e.type, e.ref.name) for e in plan.events if e.ref.kind == "NodeClaim"] == [("Warning", "a")]
    assert world.calls == {}


@pytest.mark.parametrize(("kind", "interruptible"), [("default", False), ("default", True), ("capacity-block", False)])
def test_029_the_labels_name_the_reservation_and_its_kind(kind: str, interruptible: bool) -> None:
    one = CapacityReservation("cr-1", "m5.large", ZONES[1], 1, type=kind, interruptible=interruptible)
    types = catalogue("m5.large", reservations=(one,))
    found = request(claim("a", (labels.CAPACITY_TYPE, "In", ["reserved"])), types=types)
    (override,) = found.overrides
    told = instance(capacity_type=found.capacity_type, reservation=found.reservation(override))
    rows = claim_labels(told, types[0], CLASS)
    assert rows[labels.CAPACITY_TYPE] == "reserved"
    assert {key.rpartition("-")[2]: rows[key] for key in labels.RESERVATION_LABELS} == {
        "id": "cr-1",
        "type": kind,
        "interruptible": "true" if interruptible else "false",
    }


def test_030_without_its_class_a_pool_has_no_types_and_nothing_has_drifted() -> None:
    world = launched()
    world.objects.pop(kinds.ref(world.get(kinds.NODE_CLASS, "default")))
    world.facts["catalogues"] = {}
    assert world.snapshot().types_for("default", "default") == ()
    world.settle()
    assert drift_reason(view(world.snapshot()), world.claim(), world.get(kinds.NODE_POOL, "default")) == ""
