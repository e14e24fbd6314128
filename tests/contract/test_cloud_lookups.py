"""What every adapter of the Cloud port promises of what there is: region, cluster, what selectors resolve to."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.runtime.observe import looking
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import EC2NodeClass, EC2NodeClassSpec, SelectorTerm
from kerf_api.v1.meta import ObjectMeta

from .cloud_accounts import Account
from .launches import ZONES, node_class, request, resolved


def test_the_region_says_what_is_offered_where_and_for_how_much(account: Account) -> None:
    region = looking.region(account.cloud)
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


def test_images_are_complete_when_each_term_selects_one(account: Account) -> None:
    cloud, known = account.cloud, resolved(account)
    assert known.images_complete
    amd = next(one.id for one in known.images if one.architecture == "amd64")
    for ids, complete in (((amd,), True), ((amd, "ami-0123456789abcdef0"), False), (("ami-0123456789abcdef0",), False)):
        plain = node_class(account)
        terms = tuple(SelectorTerm(id=id_) for id_ in ids)
        of = replace(plain, spec=replace(plain.spec, ami_selector_terms=terms))
        assert cloud.resolve(of, cloud.cluster()).images_complete is complete


def test_selectors_that_match_nothing_are_problems(account: Account) -> None:
    nowhere = (SelectorTerm(tags={"karpenter.sh/discovery": "elsewhere"}),)
    spec = EC2NodeClassSpec(
        subnet_selector_terms=nowhere,
        security_group_selector_terms=nowhere,
        ami_selector_terms=(SelectorTerm(id="ami-0123456789abcdef0"),),
        instance_profile="theirs",
    )
    lost = EC2NodeClass(metadata=ObjectMeta(name="lost", uid="lost"), spec=spec)
    account.cloud.ensure_instance_profile("theirs", account.role, "/theirs/", {labels.TAG_NODECLASS: "theirs"})
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
