"""What every adapter of the Cloud port promises, tried on EC2 in memory and on the real adapter with moto behind it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from api import labels
from api.v1.ec2nodeclass import EC2NodeClass, EC2NodeClassSpec, SelectorTerm
from api.v1.meta import ObjectMeta
from reconciler.ec2 import interruptions
from reconciler.model.cloud import ONLY_RESERVED, HeldReservation, Instance, Message
from reconciler.ports import AlreadyGone, IdempotencyMismatch, Invalid, NotLeading
from tests.cluster.moto_aws import MotoAws

from .cloud_accounts import OWNER, Account, MotoAccount, SandboxAccount
from .launches import node_class, request, resolved

UNKNOWN = "i-0123456789abcdef0"
ZONES = ("us-west-2a", "us-west-2b", "us-west-2c")


@pytest.fixture(scope="module")
def moto() -> Iterator[MotoAws]:
    with MotoAws() as running:
        yield running


@pytest.fixture(params=["sandbox", "aws"])
def account(request: pytest.FixtureRequest) -> Account:
    if request.param == "sandbox":
        return SandboxAccount()
    return MotoAccount(request.getfixturevalue("moto"))


@pytest.fixture
def group(request: pytest.FixtureRequest) -> str:
    """A launch group that no other test uses; a client token has at most 64 characters."""
    name: str = request.node.originalname
    return name[5:60]


def listed(account: Account, instance_id: str) -> Instance | None:
    return next((one for one in account.cloud.instances() if one.id == instance_id), None)


# --- what there is --------------------------------------------------------------------------------------------------
def test_the_region_says_what_is_offered_where_and_for_how_much(account: Account) -> None:
    region = account.cloud.region()
    info = region.types["m5.large"]
    assert (info.name, info.architectures[0], info.vcpus, info.memory_mib) == ("m5.large", "x86_64", 2, 8192)
    assert (info.max_interfaces, info.ipv4_per_interface) == (3, 10)
    assert set(ZONES) <= set(region.zones)
    assert region.zones_by_type["m5.large"] >= set(ZONES)
    assert 50_000 < region.on_demand["m5.large"] < 200_000
    assert 0 < region.spot["m5.large", "us-west-2a"] < region.on_demand["m5.large"]


def test_every_offered_type_is_described(account: Account) -> None:
    region = account.cloud.region()
    assert set(region.zones_by_type) == set(region.types)
    assert {zone for zones in region.zones_by_type.values() for zone in zones} == set(region.zones)


def test_the_cluster_is_known(account: Account) -> None:
    facts = account.cloud.cluster()
    assert facts.name == account.cluster_name
    assert facts.endpoint.startswith("https://")
    assert facts.service_cidr
    assert facts.kubernetes_version.startswith("1.")
    assert facts.region == "us-west-2"


def test_selectors_resolve_to_subnets_groups_and_images(account: Account) -> None:
    facts = resolved(account)
    assert facts.problems == {}
    assert facts.generation == 3
    assert sorted(one.zone for one in facts.subnets) == list(ZONES)
    assert all(one.free_addresses > 0 and one.zone_id for one in facts.subnets)
    assert [one.name for one in facts.security_groups] == [f"{account.cluster_name}-node"]
    kinds = {(one.architecture, one.variant) for one in facts.images}
    assert {("amd64", "standard"), ("arm64", "standard"), ("amd64", "nvidia"), ("amd64", "neuron")} <= kinds
    assert all(one.id.startswith("ami-") and one.created for one in facts.images)


def test_selectors_that_match_nothing_are_problems(account: Account) -> None:
    nowhere = (SelectorTerm(tags={"karpenter.sh/discovery": "elsewhere"}),)
    spec = EC2NodeClassSpec(
        subnet_selector_terms=nowhere,
        security_group_selector_terms=nowhere,
        ami_selector_terms=(SelectorTerm(id="ami-0123456789abcdef0"),),
        instance_profile="theirs",
    )
    lost = EC2NodeClass(metadata=ObjectMeta(name="lost", uid="lost"), spec=spec)
    facts = account.cloud.resolve(lost, account.cloud.cluster())
    assert {condition: reason for condition, (reason, _) in facts.problems.items()} == {
        "SubnetsReady": "SubnetsNotFound",
        "SecurityGroupsReady": "SecurityGroupsNotFound",
        "AMIsReady": "AMINotFound",
    }
    assert (facts.subnets, facts.security_groups, facts.images) == ((), (), ())
    assert facts.instance_profile == "theirs"


def test_a_roles_profile_appears_when_made_and_goes_with_its_class(account: Account) -> None:
    cloud, mine = account.cloud, node_class(account, uid="uid-of-profile-test")
    path = f"/karpenter/us-west-2/{account.cluster_name}/{mine.metadata.uid}/"
    assert cloud.resolve(mine, cloud.cluster()).instance_profile == ""
    for _ in range(2):
        cloud.ensure_instance_profile("profile-of-class", account.role, path, {labels.TAG_NODECLASS: "other"})
    assert cloud.resolve(mine, cloud.cluster()).instance_profile == "profile-of-class"
    cloud.delete_class_resources("other", path)
    assert cloud.resolve(mine, cloud.cluster()).instance_profile == ""


def test_a_class_without_anything_of_its_own_is_deleted_all_the_same(account: Account) -> None:
    account.cloud.delete_class_resources("never-there", "/karpenter/us-west-2/never-there/")


def test_instances_take_addresses_of_their_subnet(account: Account, group: str) -> None:
    before = {one.id: one.free_addresses for one in resolved(account).subnets}
    launched = account.cloud.create_fleet(request(account, group, members=("a", "b"))).instances
    taken = {one.id: before[one.id] - one.free_addresses for one in resolved(account).subnets}
    used = [one.subnet_id for one in launched]
    assert {subnet: count for subnet, count in taken.items() if count} == {one: used.count(one) for one in used}


# --- fleets ---------------------------------------------------------------------------------------------------------
def test_a_fleet_that_may_not_be_asked_for_any_more_makes_nothing(account: Account, group: str) -> None:
    wanted = request(account, group)
    with pytest.raises(NotLeading):
        account.cloud.create_fleet(wanted, lambda: False)
    (launched,) = account.cloud.create_fleet(wanted, lambda: True).instances
    account.eventually(lambda: listed(account, launched.id) is not None)
    assert [one.id for one in account.cloud.instances() if one.tags[labels.LAUNCH_GROUP] == group] == [launched.id]


def test_a_fleet_gives_one_instance_per_member_of_the_cheapest_type(account: Account, group: str) -> None:
    wanted = request(account, group, members=("a", "b", "c"))
    result = account.cloud.create_fleet(wanted)
    assert len({one.id for one in result.instances}) == 3
    assert result.errors == ()
    chosen = {(one.instance_type, one.zone): one for one in wanted.overrides}
    for one in result.instances:
        override = chosen["c5.large", one.zone]
        assert (one.instance_type, one.subnet_id, one.image_id) == ("c5.large", override.subnet_id, override.image_id)
        assert one.capacity_type == labels.ON_DEMAND
        assert one.live
        assert one.tags[labels.LAUNCH_GROUP] == group
        assert one.security_group_ids == wanted.templates[0].security_group_ids
        assert one.launched.utcoffset() is not None


@pytest.mark.parametrize("capacity_type", [labels.ON_DEMAND, labels.SPOT])
@pytest.mark.parametrize("prioritized", [False, True])
def test_a_fleet_goes_by_ec2s_prices_unless_it_is_told_to_go_by_those_of_the_request(
    account: Account, group: str, capacity_type: str, prioritized: bool
) -> None:
    """Which a NodeOverlay may have made others."""
    asked = request(account, f"{group[:40]}-{capacity_type}-{prioritized}", capacity_type=capacity_type)
    turned = tuple(msgspec.structs.replace(o, price=1 if o.instance_type == "m5.large" else 2) for o in asked.overrides)
    wanted = msgspec.structs.replace(asked, overrides=turned, prioritized=prioritized)
    (launched,) = account.cloud.create_fleet(wanted).instances
    assert launched.instance_type == ("m5.large" if prioritized else "c5.large")


def test_what_a_fleet_says_of_an_instance_is_what_is_listed_later(account: Account, group: str) -> None:
    told = account.cloud.create_fleet(request(account, group)).instances[0]
    account.eventually(lambda: listed(account, told.id) is not None)
    shown = listed(account, told.id)
    assert shown is not None
    for field in ("instance_type", "zone", "subnet_id", "image_id", "capacity_type", "security_group_ids"):
        assert getattr(shown, field) == getattr(told, field), field
    assert told.tags.items() <= shown.tags.items()
    assert abs((shown.launched - told.launched).total_seconds()) < 5
    assert shown.provider_id == f"aws:///{told.zone}/{told.id}"


def test_the_same_request_twice_launches_once(account: Account, group: str) -> None:
    wanted = request(account, group, members=("a", "b"))
    first, second = account.cloud.create_fleet(wanted), account.cloud.create_fleet(wanted)
    assert [one.id for one in first.instances] == [one.id for one in second.instances]


def test_another_request_of_the_same_group_is_refused(account: Account, group: str) -> None:
    wanted = request(account, group)
    account.cloud.create_fleet(wanted)
    with pytest.raises(IdempotencyMismatch):
        account.cloud.create_fleet(msgspec.structs.replace(wanted, members=("a", "b")))


def test_what_is_out_of_stock_is_an_error_and_the_next_type_is_taken(account: Account, group: str) -> None:
    account.stock_out("c5.large", "*", labels.ON_DEMAND)
    result = account.cloud.create_fleet(request(account, group))
    assert [one.instance_type for one in result.instances] == ["m5.large"]
    assert {(one.instance_type, one.zone) for one in result.errors} == {("c5.large", zone) for zone in ZONES}
    assert all(one.capacity and one.code for one in result.errors)


def test_when_nothing_is_to_be_had_every_override_is_an_error(account: Account, group: str) -> None:
    account.stock_out("*", "*", labels.ON_DEMAND)
    wanted = request(account, group)
    result = account.cloud.create_fleet(wanted)
    assert result.instances == ()
    found = {(one.instance_type, one.zone) for one in result.errors}
    assert found == {(one.instance_type, one.zone) for one in wanted.overrides}


def test_a_stock_out_of_one_zone_spares_the_others(account: Account, group: str) -> None:
    account.stock_out("c5.large", "us-west-2a", "*")
    account.stock_out("c5.large", "us-west-2b", "*")
    result = account.cloud.create_fleet(request(account, group, members=("a", "b")))
    assert [(one.instance_type, one.zone) for one in result.instances] == [("c5.large", "us-west-2c")] * 2


def test_a_partial_fleet_gives_what_there_is_and_says_what_is_missing(account: Account, group: str) -> None:
    account.stock_out("m5.large", "*", labels.ON_DEMAND)
    account.stock_out("c5.large", "us-west-2a", labels.ON_DEMAND)
    account.stock_out("c5.large", "us-west-2b", labels.ON_DEMAND, left=1)
    account.stock_out("c5.large", "us-west-2c", labels.ON_DEMAND)
    wanted = request(account, group, members=("a", "b"))
    result = account.cloud.create_fleet(wanted)
    assert [(one.instance_type, one.zone) for one in result.instances] == [("c5.large", "us-west-2b")]
    found = {(one.instance_type, one.zone) for one in result.errors}
    assert found == {(one.instance_type, one.zone) for one in wanted.overrides}
    assert all(one.capacity for one in result.errors)
    again = account.cloud.create_fleet(wanted)  # the same call gets the same answer, not the rest
    assert [one.id for one in again.instances] == [one.id for one in result.instances]


def reservations(account: Account, *terms: SelectorTerm) -> dict[str, int]:
    """What a class with these terms selects: how many machines are left, by ID."""
    plain = node_class(account)
    wanted = msgspec.structs.replace(plain.spec, capacity_reservation_selector_terms=terms)
    facts = account.cloud.resolve(msgspec.structs.replace(plain, spec=wanted), account.cloud.cluster())
    assert all(
        (one.instance_type, one.zone, one.type) == ("m5.large", ZONES[0], "default") for one in facts.reservations
    )
    return {one.id: one.left for one in facts.reservations}


def test_capacity_reservations_are_selected(account: Account) -> None:
    """By ID, tags, owner, criteria; a term's conditions together, terms as alternatives; by ID in order."""
    for id_, team in (("cr-2a", "red"), ("cr-1a", "blue")):
        account.reserve(id_, "m5.large", ZONES[0], 3, {"team": team, "group": "selected"})
    both = {"cr-1a": 3, "cr-2a": 3}
    assert reservations(account) == {}
    assert reservations(account, SelectorTerm(tags={"team": "red"})) == {"cr-2a": 3}
    assert list(reservations(account, SelectorTerm(tags={"team": "*", "group": "selected"})).items()) == list(
        both.items()
    )
    assert reservations(account, SelectorTerm(id="cr-1a"), SelectorTerm(tags={"team": "red"})) == both
    assert reservations(account, SelectorTerm(id="cr-0")) == {}
    tags = {"group": "selected"}
    assert reservations(account, SelectorTerm(tags=tags, owner_id=OWNER, instance_match_criteria="targeted")) == both
    assert reservations(account, SelectorTerm(tags=tags, instance_match_criteria="open")) == {}
    assert reservations(account, SelectorTerm(tags=tags, owner_id="210987654321")) == {}


def test_a_reservation_gives_what_it_has_and_its_machines_say_so(account: Account, group: str) -> None:
    """It is not out of stock when others are; one machine too many is an error of its type and zone."""
    term, held = SelectorTerm(id="cr-full"), HeldReservation(id="cr-full")
    account.reserve(held.id, "m5.large", ZONES[0], 2, {})
    account.stock_out("*", "*", "*")
    plain = request(account, group, members=("a", "b", "c"), capacity_type=labels.RESERVED, types=("m5.large",))
    (template,) = plain.templates
    wanted = msgspec.structs.replace(
        plain,
        templates=(msgspec.structs.replace(template, capacity_reservations=ONLY_RESERVED, reservation=held),),
        overrides=tuple(one for one in plain.overrides if one.zone == ZONES[0]),
    )
    result = account.cloud.create_fleet(wanted)
    assert [(one.capacity_type, one.reservation, one.zone) for one in result.instances] == [
        (labels.RESERVED, held, ZONES[0])
    ] * 2
    (error,) = result.errors
    assert (error.code, error.capacity) == ("ReservationCapacityExceeded", True)
    assert (error.instance_type, error.zone) == ("m5.large", ZONES[0])
    one, other = result.instances
    account.eventually(lambda: listed(account, one.id) is not None and listed(account, other.id) is not None)
    shown = listed(account, one.id)
    assert shown is not None
    assert (shown.capacity_type, shown.reservation) == (labels.RESERVED, held)
    assert reservations(account, term) == {"cr-full": 0}
    account.cloud.terminate(other.id)
    assert reservations(account, term) == {"cr-full": 1}


def test_what_is_not_offered_is_an_error_and_the_next_type_is_taken(account: Account, group: str) -> None:
    wanted = request(account, group)
    strange = [msgspec.structs.replace(one, instance_type="z1d.large", price=1) for one in wanted.overrides[:3]]
    result = account.cloud.create_fleet(msgspec.structs.replace(wanted, overrides=(*strange, *wanted.overrides)))
    assert [one.instance_type for one in result.instances] == ["c5.large"]


def test_a_pool_that_is_named_twice_spoils_the_request(account: Account, group: str) -> None:
    wanted = request(account, group)
    with pytest.raises(Invalid):
        account.cloud.create_fleet(msgspec.structs.replace(wanted, overrides=(*wanted.overrides, wanted.overrides[0])))


def test_spot_is_spot_and_has_a_stock_of_its_own(account: Account, group: str) -> None:
    account.stock_out("*", "*", labels.ON_DEMAND)
    told = account.cloud.create_fleet(request(account, group, capacity_type=labels.SPOT)).instances[0]
    assert told.capacity_type == labels.SPOT
    account.eventually(lambda: listed(account, told.id) is not None)
    shown = listed(account, told.id)
    assert shown is not None
    assert shown.capacity_type == labels.SPOT


# --- instances ------------------------------------------------------------------------------------------------------
def test_a_new_instance_may_be_listed_late(account: Account, group: str) -> None:
    account.hide_new_instances()
    told = account.cloud.create_fleet(request(account, group)).instances[0]
    assert listed(account, told.id) is None
    account.eventually(lambda: listed(account, told.id) is not None)


def test_an_instance_starts_running(account: Account, group: str) -> None:
    told = account.cloud.create_fleet(request(account, group)).instances[0]
    account.eventually(lambda: getattr(listed(account, told.id), "state", "") == "running")


def test_a_terminated_instance_shuts_down_and_is_gone(account: Account, group: str) -> None:
    told = account.cloud.create_fleet(request(account, group)).instances[0]
    account.eventually(lambda: listed(account, told.id) is not None)
    account.cloud.terminate(told.id)
    account.cloud.terminate(told.id)  # a repeat does no harm while it shuts down
    shown = listed(account, told.id)
    assert shown is None or not shown.live
    account.eventually(lambda: listed(account, told.id) is None)


def test_tags_are_added_to_those_there(account: Account, group: str) -> None:
    told = account.cloud.create_fleet(request(account, group)).instances[0]
    account.cloud.tag(told.id, {labels.TAG_NAME: "node-1", labels.TAG_NODECLAIM: "claim-1"})
    account.eventually(lambda: listed(account, told.id) is not None)
    shown = listed(account, told.id)
    assert shown is not None
    assert shown.tags[labels.TAG_NAME] == "node-1"
    assert shown.tags[labels.TAG_NODEPOOL] == "default"


def test_a_tag_of_the_same_key_is_overwritten(account: Account, group: str) -> None:
    told = account.cloud.create_fleet(request(account, group)).instances[0]
    for name in ("first", "second"):
        account.cloud.tag(told.id, {labels.TAG_NAME: name})
    account.eventually(lambda: getattr(listed(account, told.id), "tags", {}).get(labels.TAG_NAME) == "second")


def test_an_instance_that_has_ended_can_be_ended_again(account: Account, group: str) -> None:
    told = account.cloud.create_fleet(request(account, group)).instances[0]
    account.eventually(lambda: listed(account, told.id) is not None)
    account.cloud.terminate(told.id)
    account.eventually(lambda: listed(account, told.id) is None)
    account.cloud.terminate(told.id)
    assert listed(account, told.id) is None


def test_instances_of_another_cluster_are_not_listed(account: Account, group: str) -> None:
    theirs = account.cloud.create_fleet(request(account, f"{group}-1", cluster_name="another")).instances[0]
    ours = account.cloud.create_fleet(request(account, f"{group}-2")).instances[0]
    account.eventually(lambda: listed(account, ours.id) is not None)
    assert listed(account, theirs.id) is None


def test_a_zone_has_an_id_that_instances_and_subnets_share(account: Account, group: str) -> None:
    told = account.cloud.create_fleet(request(account, group)).instances[0]
    account.eventually(lambda: listed(account, told.id) is not None)
    shown = listed(account, told.id)
    assert shown is not None
    assert shown.zone_id == next(one.zone_id for one in resolved(account).subnets if one.id == shown.subnet_id)


def test_an_unknown_instance_is_gone_already(account: Account) -> None:
    with pytest.raises(AlreadyGone):
        account.cloud.terminate(UNKNOWN)
    with pytest.raises(AlreadyGone):
        account.cloud.tag(UNKNOWN, {labels.TAG_NAME: "nobody"})


# --- the queue ------------------------------------------------------------------------------------------------------
def test_an_interruption_arrives_and_stays_away_once_deleted(account: Account, group: str) -> None:
    told = account.cloud.create_fleet(request(account, group, capacity_type=labels.SPOT)).instances[0]
    account.interrupt(told.id)
    parsed = [interruptions.parse(message) for message in account.cloud.receive()]
    mine = [one for one in parsed if one and one.kind == "spot_interrupted" and told.id in one.instance_ids]
    assert len(mine) == 1
    assert mine[0].message.receipt
    assert mine[0].message.sent is not None
    account.cloud.delete_message(mine[0].message)
    assert mine[0].message.id not in {message.id for message in account.cloud.receive()}


def mine(account: Account, instance_id: str) -> list[Message]:
    """What the queue gives now about the interruption of an instance."""
    parsed = [interruptions.parse(message) for message in account.cloud.receive()]
    found = [one for one in parsed if one and one.kind == "spot_interrupted" and instance_id in one.instance_ids]
    return [one.message for one in found]


def empty_queue(account: Account) -> None:
    while messages := account.cloud.receive():
        for message in messages:
            account.cloud.delete_message(message)


def test_a_message_that_nobody_deletes_is_hidden_and_comes_again(account: Account, group: str) -> None:
    told = account.cloud.create_fleet(request(account, group, capacity_type=labels.SPOT)).instances[0]
    empty_queue(account)
    account.interrupt(told.id)
    (first,) = mine(account, told.id)
    assert mine(account, told.id) == []
    account.time_out(first)
    (second,) = mine(account, told.id)
    assert (second.id, second.body) == (first.id, first.body)
    account.cloud.delete_message(second)


def test_messages_come_ten_at_a_time_until_there_are_no_more(account: Account, group: str) -> None:
    told = account.cloud.create_fleet(request(account, group, capacity_type=labels.SPOT)).instances[0]
    empty_queue(account)
    for _ in range(12):
        account.interrupt(told.id)
    seen = set[str]()
    while found := mine(account, told.id):
        assert len(found) <= 10
        assert not seen & {message.id for message in found}
        seen |= {message.id for message in found}
    assert len(seen) == 12
