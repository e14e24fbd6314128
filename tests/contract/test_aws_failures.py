"""The real adapter when AWS misbehaves: throttled, lost answers, missing prices, vanished templates."""

from __future__ import annotations

import msgspec
import pytest

from kerf.aws.cloud import AwsCloud, AwsOptions
from kerf.ports import Forbidden, Invalid, Throttled, Unavailable
from kerf.runtime.observe import looking
from kerf_api.v1.ec2nodeclass import ConnectionTracking, EC2NodeClass, EC2NodeClassSpec, SelectorTerm
from kerf_api.v1.meta import ObjectMeta
from tests.cluster.moto_aws import MotoAws

from .cloud_accounts import MotoAccount, aws_cloud
from .launches import node_class, request

#: The SDK tries a call twice.
BOTH = 2
# Why these have no twin.
WIRE = "AWS's error codes, lost answers and the SDK's repeats (in the sandbox a test raises the port's errors)"
PAGES = "answers in pages (the sandbox answers in one piece)"
TEMPLATES = "launch templates in EC2 (the sandbox launches from the request)"
PRICES = "prices that cannot be read (the sandbox knows its own)"
IAM = "roles in IAM (the sandbox believes every role)"
IMAGES = "how images are published and named (the sandbox has a few releases by alias, name, ID and tag)"


@pytest.mark.only_real(WIRE)
def test_a_lost_answer_may_have_worked_and_a_repeat_finds_its_instances(aws: MotoAws, real: MotoAccount) -> None:
    wanted = request(real, "lost-answer", members=("a", "b"))
    aws.fail("CreateFleet", "InternalError", status=500, times=BOTH, after=True)
    with pytest.raises(Unavailable):
        real.cloud.create_fleet(wanted)
    repeated = real.cloud.create_fleet(wanted)
    launched = [one["id"] for one in aws.instances() if one["tags"].get("kerf.sh/launch-group") == "lost-answer"]
    assert sorted(launched) == [one.id for one in repeated.instances]
    assert len(launched) == 2


@pytest.mark.only_real(WIRE)
def test_one_hiccup_is_smoothed_by_the_sdk(aws: MotoAws, real: MotoAccount) -> None:
    aws.fail("CreateFleet", "ServiceUnavailable", status=503)
    assert len(real.cloud.create_fleet(request(real, "hiccup")).instances) == 1


@pytest.mark.only_real(WIRE)
def test_throttling_and_missing_permissions_are_told_apart(aws: MotoAws, real: MotoAccount) -> None:
    aws.fail("DescribeInstances", "RequestLimitExceeded", status=503, times=BOTH)
    with pytest.raises(Throttled):
        real.cloud.instances()
    aws.fail("DescribeInstances", "UnauthorizedOperation", status=403)
    with pytest.raises(Forbidden):
        real.cloud.instances()


@pytest.mark.only_real(WIRE)
def test_nobody_there_is_unavailable(aws: MotoAws) -> None:
    cloud = AwsCloud(
        AwsOptions(cluster_name="x", region="us-west-2", session=aws.session(), endpoint_url="http://127.0.0.1:9")
    )
    with pytest.raises(Unavailable):
        cloud.instances()


@pytest.mark.only_real(PAGES)
def test_instances_are_listed_over_all_pages(aws: MotoAws, real: MotoAccount) -> None:
    launched = real.cloud.create_fleet(request(real, "pages", members=tuple("abcde"))).instances
    aws.set_describe_page(2)
    found = [one.id for one in real.cloud.instances()]
    aws.set_describe_page(1000)
    assert {one.id for one in launched} <= set(found)
    assert found == sorted(set(found))


@pytest.mark.only_real(PRICES)
def test_prices_that_cannot_be_read_are_an_error_and_estimated_meanwhile(aws: MotoAws) -> None:
    cloud = aws_cloud(aws)
    for _ in range(2):
        aws.fail("GetProducts", "AccessDeniedException", times=BOTH)
        aws.fail("DescribeSpotPriceHistory", "UnauthorizedOperation", status=403)
    with pytest.raises(Forbidden):
        cloud.on_demand_prices()
    with pytest.raises(Forbidden):
        cloud.spot_prices()
    fresh = looking.region(cloud)  # spot at the on-demand price
    assert fresh.on_demand["m5.large"] > 0
    assert fresh.spot["m5.large", "us-west-2a"] == fresh.on_demand["m5.large"]
    aws.clear_faults()


@pytest.mark.only_real(TEMPLATES)
def test_everything_of_a_template_reaches_ec2(aws: MotoAws, real: MotoAccount) -> None:
    wanted = request(real, "whole-template")
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
    (launched,) = real.cloud.create_fleet(launch).instances
    versions = aws.client("ec2").describe_launch_template_versions(LaunchTemplateName=template.name)
    (stored,) = (version["LaunchTemplateData"] for version in versions["LaunchTemplateVersions"])
    (interface,) = stored["NetworkInterfaces"]
    assert interface["Groups"] == list(template.security_group_ids)
    assert interface["Ipv6PrefixCount"] == 3
    assert not {"Ipv6AddressCount", "PrimaryIpv6"} & interface.keys()
    assert interface["ConnectionTrackingSpecification"] == {"TcpEstablishedTimeout": 432, "UdpTimeout": 45}
    assert stored["CpuOptions"] == {"NestedVirtualization": "disabled"}
    assert stored["CapacityReservationSpecification"] == {"CapacityReservationPreference": "none"}
    listed = next(one for one in real.cloud.instances() if one.id == launched.id)
    assert listed.capacity_type == "on-demand"


@pytest.mark.only_real(TEMPLATES)
def test_known_templates_are_not_made_again(aws: MotoAws, real: MotoAccount) -> None:
    real.cloud.create_fleet(request(real, "known-1"))
    aws.clear_calls()
    real.cloud.create_fleet(request(real, "known-2"))
    assert aws.calls("CreateLaunchTemplate") == []
    another = aws_cloud(aws)  # after a restart: one call, answered with AlreadyExists
    another.create_fleet(request(real, "known-3"))
    assert len(aws.calls("CreateLaunchTemplate")) == 1


@pytest.mark.only_real(TEMPLATES)
def test_deleting_a_class_takes_its_templates_and_spares_others(aws: MotoAws, real: MotoAccount) -> None:
    real.cloud.create_fleet(request(real, "to-delete"))
    real.cloud.delete_class_resources("another-class", "")
    ec2 = aws.client("ec2")
    assert ec2.describe_launch_templates()["LaunchTemplates"]
    real.cloud.delete_class_resources("default", "")
    assert ec2.describe_launch_templates()["LaunchTemplates"] == []
    assert len(real.cloud.create_fleet(request(real, "made-anew")).instances) == 1


@pytest.mark.only_real(IAM)
def test_a_role_that_does_not_exist_is_an_invalid_request(real: MotoAccount) -> None:
    with pytest.raises(Invalid, match="nobody"):
        real.cloud.ensure_instance_profile("of-nobody", "nobody", "/karpenter/", {"a": "b"})


@pytest.mark.only_real(IAM)
def test_another_role_takes_the_place_of_the_first(aws: MotoAws, real: MotoAccount) -> None:
    iam = aws.client("iam")
    iam.create_role(RoleName="second", AssumeRolePolicyDocument="{}")
    real.cloud.ensure_instance_profile("changing", real.role, "/karpenter/", {"a": "b"})
    real.cloud.ensure_instance_profile("changing", "with/path/second", "/karpenter/", {"a": "b"})
    roles = iam.get_instance_profile(InstanceProfileName="changing")["InstanceProfile"]["Roles"]
    assert [role["RoleName"] for role in roles] == ["second"]


@pytest.mark.only_real(IMAGES)
@pytest.mark.parametrize(("alias", "count"), [("bottlerocket@latest", 5), ("windows2022@latest", 1)])
def test_other_families_have_images_too(aws: MotoAws, real: MotoAccount, alias: str, count: int) -> None:
    cloud = aws_cloud(aws)
    assert len(cloud.resolve(node_class(real, alias=alias), cloud.cluster()).images) == count


@pytest.mark.only_real(IMAGES)
def test_an_alias_that_does_not_exist_for_this_version_says_so(aws: MotoAws, real: MotoAccount) -> None:
    cloud = aws_cloud(aws)
    reason, message = cloud.resolve(node_class(real, alias="al2@latest"), cloud.cluster()).problems["AMIsReady"]
    assert reason == "UnsupportedAlias"
    assert "1.36" in message


@pytest.mark.only_real(IMAGES)
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
