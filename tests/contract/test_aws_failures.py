"""The real adapter when AWS misbehaves: throttled, lost answers, missing prices, vanished templates."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from api.v1.ec2nodeclass import ConnectionTracking, EC2NodeClass, EC2NodeClassSpec, SelectorTerm
from api.v1.meta import ObjectMeta
from reconciler.aws.cloud import AwsCloud
from reconciler.ports import AlreadyGone, Forbidden, Invalid, Throttled, Unavailable
from tests.cluster.moto_aws import MotoAws

from .cloud_accounts import MotoAccount, aws_cloud
from .launches import node_class, request

#: The SDK tries a call twice.
BOTH = 2


@pytest.fixture(scope="module")
def aws() -> Iterator[MotoAws]:
    with MotoAws(families=("c5", "m5")) as running:
        yield running


@pytest.fixture
def account(aws: MotoAws) -> MotoAccount:
    return MotoAccount(aws)


def image_names(cloud: AwsCloud, account: MotoAccount, alias: str) -> set[str]:
    return {one.name for one in cloud.resolve(node_class(account, alias=alias), cloud.cluster()).images}


def test_a_lost_answer_may_have_worked_and_a_repeat_finds_its_instances(aws: MotoAws, account: MotoAccount) -> None:
    wanted = request(account, "lost-answer", members=("a", "b"))
    aws.fail("CreateFleet", "InternalError", status=500, times=BOTH, after=True)
    with pytest.raises(Unavailable):
        account.cloud.create_fleet(wanted)
    repeated = account.cloud.create_fleet(wanted)
    launched = [one["id"] for one in aws.instances() if one["tags"].get("kerf.sh/launch-group") == "lost-answer"]
    assert sorted(launched) == [one.id for one in repeated.instances]
    assert len(launched) == 2


def test_one_hiccup_is_smoothed_by_the_sdk(aws: MotoAws, account: MotoAccount) -> None:
    aws.fail("CreateFleet", "ServiceUnavailable", status=503)
    assert len(account.cloud.create_fleet(request(account, "hiccup")).instances) == 1


def test_throttling_and_missing_permissions_are_told_apart(aws: MotoAws, account: MotoAccount) -> None:
    aws.fail("DescribeInstances", "RequestLimitExceeded", status=503, times=BOTH)
    with pytest.raises(Throttled):
        account.cloud.instances()
    aws.fail("DescribeInstances", "UnauthorizedOperation", status=403)
    with pytest.raises(Forbidden):
        account.cloud.instances()


def test_nobody_there_is_unavailable(aws: MotoAws) -> None:
    cloud = AwsCloud(cluster_name="x", region="us-west-2", endpoint_url="http://127.0.0.1:9", session=aws.session())
    with pytest.raises(Unavailable):
        cloud.instances()


def test_prices_survive_a_price_list_that_is_out_of_reach(aws: MotoAws) -> None:
    cloud = aws_cloud(aws)
    truth = cloud.region()
    aws.fail("GetProducts", "AccessDeniedException", times=2 * BOTH)
    aws.fail("DescribeSpotPriceHistory", "UnauthorizedOperation", status=403, times=2)
    assert cloud.region() == truth  # what was known is kept
    fresh = aws_cloud(aws).region()  # a new process knows nothing: spot at the on-demand price
    assert fresh.on_demand["m5.large"] > 0
    assert fresh.spot["m5.large", "us-west-2a"] == fresh.on_demand["m5.large"]
    aws.clear_faults()


def test_a_template_that_vanished_is_made_again(aws: MotoAws, account: MotoAccount) -> None:
    account.cloud.create_fleet(request(account, "before"))
    wanted = request(account, "after")
    aws.client("ec2").delete_launch_template(LaunchTemplateName=wanted.templates[0].name)
    assert len(account.cloud.create_fleet(wanted).instances) == 1


def test_everything_of_a_template_reaches_ec2(aws: MotoAws, account: MotoAccount) -> None:
    wanted = request(account, "whole-template")
    template = msgspec.structs.replace(
        wanted.templates[0],
        name="karpenter.k8s.aws/whole",
        ip_prefix_count=3,
        ipv6=True,
        connection_tracking=ConnectionTracking(tcp_established_timeout=432, udp_timeout=45),
        nested_virtualization="disabled",
        capacity_reservations="none",
    )
    overrides = tuple(msgspec.structs.replace(one, template=template.name) for one in wanted.overrides)
    launch = msgspec.structs.replace(wanted, templates=(template,), overrides=overrides)
    (launched,) = account.cloud.create_fleet(launch).instances
    versions = aws.client("ec2").describe_launch_template_versions(LaunchTemplateName=template.name)
    (stored,) = (version["LaunchTemplateData"] for version in versions["LaunchTemplateVersions"])
    (interface,) = stored["NetworkInterfaces"]
    assert interface["Groups"] == list(template.security_group_ids)
    assert (interface["Ipv6PrefixCount"], interface["Ipv6AddressCount"]) == (3, 1)
    assert interface["PrimaryIpv6"] is True
    assert interface["ConnectionTrackingSpecification"] == {"TcpEstablishedTimeout": 432, "UdpTimeout": 45}
    assert stored["CpuOptions"] == {"NestedVirtualization": "disabled"}
    assert stored["CapacityReservationSpecification"] == {"CapacityReservationPreference": "none"}
    listed = next(one for one in account.cloud.instances() if one.id == launched.id)
    assert listed.capacity_type == "on-demand"


def test_known_templates_are_not_made_again(aws: MotoAws, account: MotoAccount) -> None:
    account.cloud.create_fleet(request(account, "known-1"))
    aws.clear_calls()
    account.cloud.create_fleet(request(account, "known-2"))
    assert aws.calls("CreateLaunchTemplate") == []
    another = aws_cloud(aws)  # after a restart: one call, answered with AlreadyExists
    another.create_fleet(request(account, "known-3"))
    assert len(aws.calls("CreateLaunchTemplate")) == 1


def test_deleting_a_class_takes_its_templates_and_spares_others(aws: MotoAws, account: MotoAccount) -> None:
    account.cloud.create_fleet(request(account, "to-delete"))
    account.cloud.delete_class_resources("another-class", "")
    ec2 = aws.client("ec2")
    assert ec2.describe_launch_templates()["LaunchTemplates"]
    account.cloud.delete_class_resources("default", "")
    assert ec2.describe_launch_templates()["LaunchTemplates"] == []
    assert len(account.cloud.create_fleet(request(account, "made-anew")).instances) == 1


def test_a_partial_fleet_gives_what_there_is_and_says_what_is_missing(aws: MotoAws, account: MotoAccount) -> None:
    aws.stock_out()
    aws.stock_out("c5.large", "us-west-2b", left=1)
    result = account.cloud.create_fleet(request(account, "partial", members=("a", "b")))
    assert [(one.instance_type, one.zone) for one in result.instances] == [("c5.large", "us-west-2b")]
    assert len(result.errors) == 6


def test_a_role_that_does_not_exist_is_an_invalid_request(account: MotoAccount) -> None:
    with pytest.raises(Invalid, match="nobody"):
        account.cloud.ensure_instance_profile("of-nobody", "nobody", "/karpenter/", {"a": "b"})


def test_another_role_takes_the_place_of_the_first(aws: MotoAws, account: MotoAccount) -> None:
    iam = aws.client("iam")
    iam.create_role(RoleName="second", AssumeRolePolicyDocument="{}")
    account.cloud.ensure_instance_profile("changing", account.role, "/karpenter/", {"a": "b"})
    account.cloud.ensure_instance_profile("changing", "with/path/second", "/karpenter/", {"a": "b"})
    roles = iam.get_instance_profile(InstanceProfileName="changing")["InstanceProfile"]["Roles"]
    assert [role["RoleName"] for role in roles] == ["second"]


def test_a_missing_queue_is_gone_and_a_new_one_is_found(aws: MotoAws, account: MotoAccount) -> None:
    sqs = aws.client("sqs")
    assert account.cloud.receive() == ()
    sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName=aws.cluster_name)["QueueUrl"])
    with pytest.raises(AlreadyGone):
        account.cloud.receive()
    sqs.create_queue(QueueName=aws.cluster_name)
    assert account.cloud.receive() == ()


def test_latest_images_follow_a_release_and_pinned_ones_stay(aws: MotoAws, account: MotoAccount) -> None:
    cloud = aws_cloud(aws)
    latest, pinned = image_names(cloud, account, "al2023@latest"), image_names(cloud, account, "al2023@v20251001")
    aws.release_images()
    assert image_names(cloud, account, "al2023@latest").isdisjoint(latest)
    assert image_names(cloud, account, "al2023@v20251001") == pinned
    assert len(pinned) == 5


@pytest.mark.parametrize(("alias", "count"), [("bottlerocket@latest", 5), ("windows2022@latest", 1)])
def test_other_families_have_images_too(aws: MotoAws, account: MotoAccount, alias: str, count: int) -> None:
    cloud = aws_cloud(aws)
    assert len(cloud.resolve(node_class(account, alias=alias), cloud.cluster()).images) == count


def test_an_alias_that_does_not_exist_for_this_version_says_so(aws: MotoAws, account: MotoAccount) -> None:
    cloud = aws_cloud(aws)
    reason, message = cloud.resolve(node_class(account, alias="al2@latest"), cloud.cluster()).problems["AMIsReady"]
    assert reason == "UnsupportedAlias"
    assert "1.36" in message


def test_images_by_name_and_by_parameter(aws: MotoAws) -> None:
    aws.client("ssm").put_parameter(Name="/team/image", Value="ami-0000000000000dead", Type="String")
    cloud = aws_cloud(aws)

    def found(*terms: SelectorTerm) -> set[str]:
        spec = EC2NodeClassSpec(ami_selector_terms=terms, instance_profile="p")
        one = EC2NodeClass(metadata=ObjectMeta(name="own", uid="own"), spec=spec)
        return {image.name for image in cloud.resolve(one, cloud.cluster()).images}

    name = "al2023-1.36-x86_64-standard-0"
    by_name = found(SelectorTerm(name="al2023-*-x86_64-standard-0"))
    assert by_name == {name}
    image = aws.client("ec2").describe_images(Filters=[{"Name": "name", "Values": [name]}])["Images"][0]["ImageId"]
    aws.client("ssm").put_parameter(Name="/team/image", Value=image, Type="String", Overwrite=True)
    assert found(SelectorTerm(ssm_parameter="/team/image")) == {name}
    assert found(SelectorTerm(id=image)) == {name}
    assert found(SelectorTerm(ssm_parameter="/team/none")) == set()
    assert found(SelectorTerm(name="al2023-*-x86_64-standard-0", owner="123456789012")) == set()
