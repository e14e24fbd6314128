"""EC2NodeClasses: what is found and listed, instance profiles, their end, validation, hashes (169 to 197)."""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.aws.observe.networks import questions as network_questions
from kerf.aws.observe.reservations import of_rows, questions
from kerf.ec2.nodeclass import nodeclass
from kerf.model import kinds
from kerf.model.aws.cloud import SecurityGroup, Subnet
from kerf.model.plan import DeleteClassResources, EnsureInstanceProfile
from kerf_api import labels
from kerf_api.v1 import hashes
from kerf_api.v1.conditions import READY
from kerf_api.v1.ec2nodeclass import SelectorTerm
from kerf_api.v1.meta import Condition
from tests.unit.aws.test_aws_reservations import ACTIVE, row
from tests.unit.aws.test_aws_reservations import NOW as THEN
from tests.unit.ec2.ec2_facts import CLUSTER, NOW, facts, node_class
from tests.unit.ec2.test_nodeclass import NO_RESERVED, status, verdict
from tests.unit.lifecycle.world import FACTS, World, node_claim, node_pool, prepared, running
from tests.unit.lifecycle.world import node_class as stored


# --- selectors --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("field", "condition", "reason"),
    [
        ("subnets", "SubnetsReady", "SubnetsNotFound"),
        ("security_groups", "SecurityGroupsReady", "SecurityGroupsNotFound"),
        ("images", "AMIsReady", "AMINotFound"),
    ],
)
def test_169_what_is_selected_no_more_is_not_listed_any_more(field: str, condition: str, reason: str) -> None:
    of = node_class()
    before = status(of, facts())
    listed = {"images": "amis"}.get(field, field)
    assert getattr(before, listed)
    after = status(replace(of, status=before), facts(**{field: ()}))
    assert (getattr(after, listed), verdict(after, condition)) == ((), ("False", reason))
    assert verdict(after, READY)[0] == "False"


def test_169_another_selection_is_listed_with_the_next_look() -> None:
    of = node_class()
    before = replace(of, status=status(of, facts()))
    groups, subnets = (SecurityGroup("sg-9", "other"),), (Subnet("subnet-z", "us-west-2a", "", 7),)
    after = status(before, facts(security_groups=groups, subnets=subnets))
    assert [one.id for one in after.security_groups] == ["sg-9"]
    assert [one.id for one in after.subnets] == ["subnet-z"]


def test_170_subnets_are_listed_by_free_addresses_and_groups_by_id() -> None:
    free = {"subnet-c": 9, "subnet-a": 5, "subnet-b": 5, "subnet-d": 20}
    found = status(
        node_class(),
        facts(
            subnets=tuple(Subnet(id_, f"zone-{id_}", "", count) for id_, count in free.items()),
            security_groups=(SecurityGroup("sg-2"), SecurityGroup("sg-1")),
        ),
    )
    assert [one.id for one in found.subnets] == ["subnet-d", "subnet-c", "subnet-a", "subnet-b"]
    assert [one.id for one in found.security_groups] == ["sg-1", "sg-2"]


def test_171_terms_are_alternatives_and_the_tags_of_one_belong_together() -> None:
    terms = (SelectorTerm(id="sg-1"), SelectorTerm(tags={"a": "1", "b": "*"}), SelectorTerm(id="sg-2"))
    assert network_questions(terms, {"id": "group-id", "name": "group-name"}) == [
        [{"Name": "group-id", "Values": ["sg-1", "sg-2"]}],
        [{"Name": "tag:a", "Values": ["1"]}, {"Name": "tag-key", "Values": ["b"]}],
    ]


# --- instance profiles ------------------------------------------------------------------------------------------
def unprofiled(**spec: Any) -> World:
    """A class whose facts show no profile."""
    world = World(stored(**spec), node_pool())
    world.class_facts["default"] = changed(FACTS, instance_profile="")
    for _ in range(3):
        world.obey(world.decide())
    return world


def test_172_a_role_gets_a_profile_with_tags_and_the_status_has_its_name() -> None:
    world = unprofiled(tags={"team": "x"})
    made = world.done(EnsureInstanceProfile)[0]
    assert (made.role, made.path) == ("node-role", "/karpenter/us-west-2/demo/uid-default/")
    assert made.tags == {
        "eks:eks-cluster-name": "demo",
        "karpenter.k8s.aws/ec2nodeclass": "default",
        "kubernetes.io/cluster/demo": "owned",
        "team": "x",
        "topology.kubernetes.io/region": "us-west-2",
    }
    world.class_facts["default"] = changed(FACTS, instance_profile=made.profile)
    world.settle()
    assert world.get(kinds.NODE_CLASS, "default").status.instance_profile == made.profile


def test_174_a_profile_with_the_right_role_is_left_as_it_is() -> None:
    assert prepared().done(EnsureInstanceProfile) == []


def test_176_classes_with_one_role_have_a_profile_each() -> None:
    other = replace(node_class(), metadata=replace(node_class().metadata, name="other", uid="other-uid"))
    assert nodeclass.profile_for(node_class(), CLUSTER)[0] != nodeclass.profile_for(other, CLUSTER)[0]
    assert nodeclass.profile_path(node_class(), CLUSTER) != nodeclass.profile_path(other, CLUSTER)


def test_177_a_profile_whose_name_was_not_written_is_found_again() -> None:
    """Its name follows from the class and the role, so that no second one is made, unless one of them is another."""
    first = unprofiled().done(EnsureInstanceProfile)
    assert len({action.profile for action in first}) == 1
    name = nodeclass.profile_for(node_class(), CLUSTER)[0]
    reborn = replace(node_class(), metadata=replace(node_class().metadata, uid="reborn"))
    others = {nodeclass.profile_for(of, CLUSTER)[0] for of in (reborn, node_class(role="Other"))}
    assert len({name, *others}) == 3
    assert nodeclass.profile_for(node_class(role="a/path/NodeRole"), CLUSTER)[0] == name


def test_182_a_class_stays_while_claims_have_it_and_takes_its_resources_with_it() -> None:
    world = running(node_claim("a"))
    world.delete(kinds.ref(world.get(kinds.NODE_CLASS, "default")))
    plan = world.decide()
    assert [(e.reason, "a" in e.message) for e in plan.events if e.ref.kind == "EC2NodeClass"] == [
        ("WaitingOnNodeClaimTermination", True)
    ]
    assert world.done(DeleteClassResources) == []
    world.delete(kinds.ref(world.claim()))
    for _ in range(5):
        world.settle()
        world.pass_time(30)
    (ended,) = world.done(DeleteClassResources)
    assert (ended.class_name, ended.profile_path) == ("default", "/karpenter/us-west-2/demo/uid-default/")
    assert world.get(kinds.NODE_CLASS, "default") is None


@pytest.mark.parametrize(("spec", "isolated"), [({"role": None, "instanceProfile": "mine"}, False), ({}, True)])
def test_181_a_given_profile_or_an_isolated_vpc_asks_nothing_of_iam(spec: dict[str, Any], isolated: bool) -> None:
    world = World(stored(**spec), node_pool())
    world.settings = changed(world.settings, isolated_vpc=isolated)
    world.class_facts["default"] = changed(FACTS, instance_profile="mine")
    world.settle()
    assert world.get(kinds.NODE_CLASS, "default").status.instance_profile == "mine"
    world.delete(kinds.ref(world.get(kinds.NODE_CLASS, "default")))
    world.settle()
    assert world.done(EnsureInstanceProfile) == []
    assert [ended.profile_path for ended in world.done(DeleteClassResources)] == [""]


# --- kubelet, hashes --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("family", "reason"),
    [
        *((family, "UnsupportedKubeletConfiguration") for family in ("AL2", "Bottlerocket", "Windows2022")),
        ("AL2023", ""),
        ("Custom", ""),
    ],
)
def test_193_most_families_take_one_name_server_only(family: str, reason: str) -> None:
    found = status(node_class(family, kubelet={"clusterDNS": ["10.0.0.1", "10.0.0.2"]}), facts())
    assert verdict(found, "ValidationSucceeded") == (("False", reason) if reason else ("True", "ValidationSucceeded"))


TERM = [{"tags": {"other": "x"}}]


@pytest.mark.parametrize(
    ("spec", "same"),
    [
        *(({key: TERM}, True) for key in ("subnetSelectorTerms", "securityGroupSelectorTerms", "amiSelectorTerms")),
        ({"capacityReservationSelectorTerms": TERM}, True),
        ({"userData": "#!/bin/bash"}, False),
        ({"tags": {"a": "b"}}, False),
        ({"detailedMonitoring": True}, False),
        ({"kubelet": {"maxPods": 1}}, False),
        ({"role": "Other"}, False),
    ],
)
def test_194_static_fields_are_hashed_and_selectors_are_not(spec: dict[str, Any], same: bool) -> None:
    assert (hashes.nodeclass_hash(node_class(**spec), "Q0E=") == hashes.nodeclass_hash(node_class(), "Q0E=")) is same


def test_194_so_is_the_ca_bundle() -> None:
    assert hashes.nodeclass_hash(node_class(), "Q0E=") != hashes.nodeclass_hash(node_class(), "Q0I=")


def versioned(world: World, kind: kinds.Kind, name: str, hash_: str, version: str) -> None:
    value = world.get(kind, name)
    notes = {labels.NODECLASS_HASH: hash_, labels.NODECLASS_HASH_VERSION: version}
    meta = replace(value.metadata, annotations={**value.metadata.annotations, **notes})
    world.put(replace(value, metadata=meta))


@pytest.mark.parametrize("old", ["v5", "v7", "v1"])
def test_195_with_another_version_claims_are_hashed_again_but_those_that_have_drifted(old: str) -> None:
    world = running(node_claim("a"), node_claim("b"))
    current = world.get(kinds.NODE_CLASS, "default").metadata.annotations[labels.NODECLASS_HASH]
    for kind, name in ((kinds.NODE_CLASS, "default"), (kinds.NODE_CLAIM, "a"), (kinds.NODE_CLAIM, "b")):
        versioned(world, kind, name, "1", old)
    b = world.claim("b")
    gone = (*b.status.conditions, Condition(type="Drifted", status="True", reason="x", last_transition_time=NOW))
    world.put(replace(b, status=replace(b.status, conditions=gone)))
    world.settle()
    found = {name: world.claim(name).metadata.annotations for name in "ab"}
    assert [found[name][labels.NODECLASS_HASH] for name in "ab"] == [current, "1"]
    assert {notes[labels.NODECLASS_HASH_VERSION] for notes in found.values()} == {hashes.NODECLASS_HASH_VERSION}


def test_195_with_our_own_version_claims_keep_their_hash() -> None:
    world = running(node_claim("a"))
    versioned(world, kinds.NODE_CLAIM, "a", "1", hashes.NODECLASS_HASH_VERSION)
    versioned(world, kinds.NODE_CLASS, "default", "2", hashes.NODECLASS_HASH_VERSION)
    world.settle()
    assert world.claim().metadata.annotations[labels.NODECLASS_HASH] == "1"


# --- capacity reservations --------------------------------------------------------------------------------------
def test_196_terms_for_reservations_are_ids_or_filters_and_only_active_ones_are_asked_for() -> None:
    terms = (SelectorTerm(id="cr-1"), SelectorTerm(tags={"a": "1"}, owner_id="1" * 12, instance_match_criteria="open"))
    assert questions(terms) == [
        {"CapacityReservationIds": ["cr-1"], "Filters": [ACTIVE]},
        {
            "Filters": [
                {"Name": "tag:a", "Values": ["1"]},
                {"Name": "owner-id", "Values": ["1" * 12]},
                {"Name": "instance-match-criteria", "Values": ["open"]},
                ACTIVE,
            ]
        },
    ]


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, "active"),
        ({"EndDate": THEN}, None),
        ({"State": "cancelled"}, None),
        ({"ReservationType": "capacity-block", "EndDate": THEN + timedelta(minutes=40)}, "expiring"),
        ({"ReservationType": "capacity-block", "EndDate": THEN + timedelta(minutes=41)}, "active"),
        ({"EndDate": THEN + timedelta(minutes=1)}, "active"),
    ],
)
def test_196_the_reported_state_of_a_reservation(changes: dict[str, Any], state: str | None) -> None:
    rows = nodeclass.reservations(of_rows([row(**changes)], THEN))
    assert [(one.id, one.interruptible, one.state) for one in rows] == ([("cr-1", False, state)] if state else [])


def test_197_without_the_gate_reservations_are_not_reported() -> None:
    of, (one,) = node_class(), of_rows([row()], THEN)
    open_ = status(of, facts(reservations=(one,)))
    assert verdict(open_, "CapacityReservationsReady") == ("True", "CapacityReservationsReady")
    assert [found.id for found in open_.capacity_reservations] == ["cr-1"]
    shut = status(replace(of, status=open_), facts(reservations=(one,)), settings=NO_RESERVED)
    assert shut.capacity_reservations == ()
    assert "CapacityReservationsReady" not in {condition.type for condition in shut.conditions}
    assert verdict(shut, READY) == ("True", READY)
