"""Behaviours of the AWS catalogue over the wire: fleets, instances, queue, cluster, many calls (51 to 63, 209, 225)."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.aws.cloud import AwsCloud
from kerf.aws.observe.cluster_facts import ServerFacts
from kerf.aws.observe.types import read_offerings, read_types
from kerf.aws.requests.pace import Pace
from kerf.ec2.instance_types.catalogue import build
from kerf.ec2.pricing import prices as estimates
from kerf.model.aws.cloud import Instance
from kerf.ports import AlreadyGone, Forbidden, Invalid, TemplateMissing, Throttled, Unavailable
from kerf.runtime.inbox import PricesRead, RegionRead
from kerf.runtime.observe import looking
from kerf.runtime.state.state import State
from kerf.telemetry.log.logs import make_logger
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import NetworkInterface
from tests.cluster.moto_aws import MotoAws
from tests.unit.ec2.ec2_facts import SETTINGS
from tests.unit.lifecycle.world import NOW

from .cloud_accounts import MotoAccount, aws_cloud
from .launches import listed, request

#: The SDK tries a call twice.
BOTH = 2
UNKNOWN = "i-0123456789abcdef0"
pytestmark = pytest.mark.only_real("behaviours of the AWS catalogue: codes and calls of AWS's own API")


def test_006_the_instance_has_the_image_that_was_asked_for(real: MotoAccount) -> None:
    wanted = request(real, "image")
    (launched,) = real.cloud.create_fleet(wanted).instances
    assert launched.image_id == wanted.templates[0].image_id
    real.eventually(lambda: listed(real, launched.id) is not None)
    shown = listed(real, launched.id)
    assert shown is not None
    assert shown.image_id == launched.image_id


def test_051_a_template_that_has_vanished_is_made_again_and_the_call_repeated_once(
    aws: MotoAws, real: MotoAccount
) -> None:
    real.cloud.create_fleet(request(real, "before"))
    wanted = request(real, "after")
    aws.client("ec2").delete_launch_template(LaunchTemplateName=wanted.templates[0].name)
    aws.clear_calls()
    launched: tuple[Instance, ...] = ()
    with suppress(TemplateMissing):  # whoever gives up has launched nothing
        launched = real.cloud.create_fleet(wanted).instances
    assert len(launched) == 1
    assert (len(aws.calls("CreateFleet")), len(aws.calls("CreateLaunchTemplate"))) == (2, 1)


def test_052_one_that_has_vanished_again_is_reported(aws: MotoAws, real: MotoAccount) -> None:
    wanted = request(real, "vanishing")
    aws.fail("CreateFleet", "InvalidLaunchTemplateName.NotFoundException", times=2)
    aws.clear_calls()
    with pytest.raises(TemplateMissing):
        real.cloud.create_fleet(wanted)
    assert len(aws.calls("CreateFleet")) == 2


def test_055_only_instances_with_our_tags_are_listed(aws: MotoAws, real: MotoAccount) -> None:
    ours = {labels.TAG_NODEPOOL: "p", labels.TAG_NODECLASS: "c", labels.TAG_EKS_CLUSTER: aws.cluster_name}
    lacking = [{key: ours[key] for key in ours if key != gone} for gone in ours]
    before = len(real.cloud.instances())
    for count, tags in ((20, ours), *((7, tags) for tags in lacking), (7, {**ours, labels.TAG_EKS_CLUSTER: "another"})):
        run(aws, count, tags)
    assert len(real.cloud.instances()) == before + 20


def run(aws: MotoAws, count: int, tags: dict[str, str]) -> list[str]:
    """Instances that somebody starts without a fleet."""
    ec2 = aws.client("ec2")
    image = ec2.describe_images(Filters=[{"Name": "architecture", "Values": ["x86_64"]}])["Images"][0]["ImageId"]
    rows = [{"Key": key, "Value": value} for key, value in tags.items()]
    answer: dict[str, Any] = ec2.run_instances(
        ImageId=image,
        MinCount=count,
        MaxCount=count,
        InstanceType="m5.large",
        TagSpecifications=[{"ResourceType": "instance", "Tags": rows}],
    )
    return [one["InstanceId"] for one in answer["Instances"]]


def test_022_what_was_made_of_interfaces_and_whose_hardware_it_is_are_shown_later(real: MotoAccount) -> None:
    wanted = request(real, "networked")
    cards = tuple(
        NetworkInterface(network_card_index=card, device_index=card, interface_type="efa") for card in range(2)
    )
    template = replace(wanted.templates[0], name="karpenter.k8s.aws/9", network_interfaces=cards, tenancy="dedicated")
    moved = tuple(replace(override, template=template.name) for override in wanted.overrides)
    (told,) = real.cloud.create_fleet(replace(wanted, templates=(template,), overrides=moved)).instances
    real.eventually(lambda: listed(real, told.id) is not None)
    shown = listed(real, told.id)
    assert shown is not None
    assert (told.efa, told.tenancy) == (shown.efa, shown.tenancy) == (2, "dedicated")


def test_062_one_that_is_shutting_down_may_be_ended_and_one_that_is_gone_is_gone(real: MotoAccount) -> None:
    (launched,) = real.cloud.create_fleet(request(real, "ended")).instances
    real.cloud.terminate(launched.id)
    real.cloud.terminate(launched.id)
    real.eventually(lambda: listed(real, launched.id) is None)


def test_an_address_is_free_again_when_its_instance_is_terminated(aws: MotoAws, real: MotoAccount) -> None:
    """Else a new machine joins as a node that is still there."""
    for number in range(5):  # a slow machine may launch the second one when the first is terminated
        (first,) = real.cloud.create_fleet(request(real, f"addressed-{number}")).instances
        real.cloud.terminate(first.id)
        (second,) = real.cloud.create_fleet(request(real, f"beside-{number}")).instances
        found = {one["id"]: one for one in aws.instances()}
        if found[first.id]["state"] == "shutting-down":
            break
    assert found[first.id]["state"] == "shutting-down"
    assert found[first.id]["private_ip"]
    assert found[second.id]["private_ip"] != found[first.id]["private_ip"]


def test_063_what_ec2_does_not_know_is_gone_and_what_it_does_not_say_is_not(aws: MotoAws, real: MotoAccount) -> None:
    with pytest.raises(AlreadyGone):
        real.cloud.terminate(UNKNOWN)
    with pytest.raises(AlreadyGone):
        real.cloud.tag(UNKNOWN, {"a": "b"})
    aws.fail("TerminateInstances", "InternalError", status=500, times=BOTH)
    with pytest.raises(Unavailable):
        real.cloud.terminate(UNKNOWN)
    aws.fail("TerminateInstances", "UnauthorizedOperation", status=403)
    with pytest.raises(Forbidden):
        real.cloud.terminate(UNKNOWN)


def test_209_a_queue_that_is_missing_or_may_not_be_read_is_an_error(aws: MotoAws, real: MotoAccount) -> None:
    sqs = aws.client("sqs")
    sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName=aws.cluster_name)["QueueUrl"])
    with pytest.raises(AlreadyGone):
        real.cloud.receive()
    sqs.create_queue(QueueName=aws.cluster_name)
    assert real.cloud.receive() == ()
    aws.fail("ReceiveMessage", "AccessDeniedException", status=403)
    with pytest.raises(Forbidden):
        real.cloud.receive()


def versioned(aws: MotoAws, version: str, **more: Any) -> AwsCloud:
    return aws_cloud(aws, server=lambda: ServerFacts(kubernetes_version=version), **more)


def test_221_the_version_is_the_api_servers_or_with_an_eks_control_plane_what_eks_says(aws: MotoAws) -> None:
    assert versioned(aws, "1.30").cluster().kubernetes_version == "1.30"
    told = versioned(aws, "1.30", eks_control_plane=True).cluster().kubernetes_version
    assert told == aws.settings.kubernetes_version


def test_221_one_that_is_too_old_is_an_error_and_a_newer_one_is_logged(aws: MotoAws) -> None:
    with pytest.raises(Invalid, match=r"1\.25"):
        versioned(aws, "1.25").cluster()
    stream = io.StringIO()
    log = make_logger("info", stream)
    assert versioned(aws, "1.26", logger=log).cluster().kubernetes_version == "1.26"
    assert stream.getvalue() == ""
    assert versioned(aws, "1.37", logger=log).cluster().kubernetes_version == "1.37"
    assert "1.37" in stream.getvalue()


def test_222_the_endpoint_is_the_one_that_is_set_else_what_eks_says(aws: MotoAws) -> None:
    def cloud(endpoint: str) -> AwsCloud:
        return aws_cloud(aws, cluster_endpoint=endpoint)

    assert cloud("").cluster().endpoint == aws.settings.endpoint
    assert cloud("https://mine.example").cluster().endpoint == "https://mine.example"
    call = f"GET /clusters/{aws.cluster_name}"
    aws.fail(call, "AccessDeniedException", status=403)
    with pytest.raises(Forbidden):
        cloud("").cluster()
    aws.fail(call, "AccessDeniedException", status=403)
    assert cloud("https://mine.example").cluster().endpoint == "https://mine.example"


def test_214_prices_that_cannot_be_read_are_those_known_and_pages_are_read_to_the_end(aws: MotoAws) -> None:
    cloud, state = aws_cloud(aws), State(SETTINGS, build=build, interpret=lambda message: None)
    prices = cloud.on_demand_prices()
    assert len(aws.calls("GetProducts")) >= 2
    state.take(RegionRead(cloud.region(), NOW), NOW)
    state.take(PricesRead("on-demand prices", NOW, prices), NOW)
    aws.fail("GetProducts", "AccessDeniedException", times=2 * BOTH)
    with pytest.raises(Forbidden):
        cloud.on_demand_prices()
    aws.clear_faults()
    assert state.catalogues.region is not None
    assert state.catalogues.region.on_demand == prices


def test_214_a_price_that_aws_gave_once_is_kept_where_there_is_no_estimate_either() -> None:
    kind = "dl2q.24xlarge"
    assert estimates.on_demand_estimate(kind, 96, 786432) is None
    with MotoAws(families=("dl2q", "m5")) as aws:
        cloud, state = aws_cloud(aws), State(SETTINGS, build=build, interpret=lambda message: None)
        prices = cloud.on_demand_prices()
        assert kind in prices
        state.take(RegionRead(cloud.region(), NOW), NOW)
        for told in (prices, {name: price for name, price in prices.items() if name != kind}):
            state.take(PricesRead("on-demand prices", NOW, told), NOW)
            assert state.catalogues.region is not None
            assert state.catalogues.region.on_demand == prices


def test_214_in_an_isolated_vpc_the_price_list_is_not_read_and_spot_is(aws: MotoAws) -> None:
    cloud = aws_cloud(aws, isolated_vpc=True)
    aws.clear_calls()
    known = looking.region(cloud)
    assert aws.calls("GetProducts") == []
    assert aws.calls("DescribeSpotPriceHistory")
    assert known.on_demand["m5.large"] > 0


def test_120_a_region_without_types_is_an_answer_that_went_wrong() -> None:
    with MotoAws(families=("none",)) as empty:
        ec2 = empty.client("ec2")
        with pytest.raises(Unavailable, match="no instance types found"):
            read_types(ec2)
        with pytest.raises(Unavailable, match="no instance types offerings found"):
            read_offerings(ec2)
        with pytest.raises(Unavailable):
            aws_cloud(empty).region()


# --- many at once -----------------------------------------------------------------------------------------------
OURS = {labels.TAG_NODEPOOL: "p", labels.TAG_NODECLASS: "c"}
#: The first call of several is answered so late that the others come meanwhile.
LATE = 0.4


def ended(real: MotoAccount, aws: MotoAws, ids: list[str]) -> list[BaseException | None]:
    """Have all of them ended at once, while another call is under way; what each was told."""
    (other,) = run(aws, 1, {**OURS, labels.TAG_EKS_CLUSTER: aws.cluster_name})
    aws.clear_calls()
    aws.fail("TerminateInstances", "InternalError", status=500, delay=LATE)
    with ThreadPoolExecutor(len(ids) + 1) as pool:
        first = pool.submit(real.cloud.terminate, other)
        real.eventually(lambda: bool(aws.calls("TerminateInstances")))
        others = [pool.submit(real.cloud.terminate, id_) for id_ in ids]
        told = [future.exception() for future in others]
        assert first.exception() is None
    return told


def test_225_what_is_to_end_while_a_call_is_under_way_ends_with_one_call(aws: MotoAws, real: MotoAccount) -> None:
    ids = run(aws, 8, {**OURS, labels.TAG_EKS_CLUSTER: aws.cluster_name})
    assert ended(real, aws, [*ids, ids[0]]) == [None] * 9
    assert len(aws.calls("TerminateInstances")) == 3  # the first one, which the SDK tried twice, and theirs
    real.eventually(lambda: all(listed(real, id_) is None for id_ in ids))


def test_225_who_is_not_known_is_asked_for_alone_and_the_others_end(aws: MotoAws, real: MotoAccount) -> None:
    ids = run(aws, 5, {**OURS, labels.TAG_EKS_CLUSTER: aws.cluster_name})
    told = ended(real, aws, [*ids, UNKNOWN, UNKNOWN])
    assert [type(one) for one in told] == [type(None)] * 5 + [AlreadyGone] * 2
    assert len(aws.calls("TerminateInstances")) == 2 + 3  # theirs, the unknown one, the rest
    real.eventually(lambda: all(listed(real, id_) is None for id_ in ids))


def test_225_instances_are_described_together_so_that_one_that_is_gone_costs_no_call(
    aws: MotoAws, real: MotoAccount
) -> None:
    ids = run(aws, 3, {**OURS, labels.TAG_EKS_CLUSTER: aws.cluster_name})
    real.cloud.terminate(ids[0])
    real.eventually(lambda: listed(real, ids[0]) is None)
    aws.clear_calls()
    assert {ids[1], ids[2]} <= {one.id for one in real.cloud.instances()}
    assert len(aws.calls("DescribeInstances")) == 1


def test_225_where_ec2_is_asked_too_often_that_kind_of_request_alone_waits(aws: MotoAws) -> None:
    slept: list[float] = []
    refused: list[str] = []
    cloud = aws_cloud(aws, pace=Pace(refused=refused.append, elapsed=lambda: sum(slept), sleep=slept.append))
    (id_,) = run(aws, 1, {**OURS, labels.TAG_EKS_CLUSTER: aws.cluster_name})
    aws.fail("CreateTags", "RequestLimitExceeded", status=503, times=BOTH)
    with pytest.raises(Throttled):
        cloud.tag(id_, {"a": "b"})
    assert refused == ["tag"] * BOTH
    cloud.terminate(id_)
    assert cloud.instances() is not None
    assert slept == []
    cloud.tag(id_, {"a": "b"})
    assert slept != []


def test_225_what_ec2_would_refuse_is_not_sent(aws: MotoAws) -> None:
    cloud = aws_cloud(aws, pace=(pace := Pace(elapsed=lambda: 0.0)))
    for _ in range(10):
        pace.throttled("DescribeLaunchTemplates")
    aws.clear_calls()
    with pytest.raises(Throttled) as told:
        cloud.launch_templates()
    assert told.value.retry_after_seconds > 0
    assert aws.calls("DescribeLaunchTemplates") == []
