"""What `kerf preflight` finds in an account: by dry runs and reads, and by what AWS has for a node class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from kerf.aws import probes
from kerf.aws.requests.clients import Clients
from kerf.runtime.preflight.account import look, look_at_classes
from kerf.runtime.preflight.findings import DOUBTFUL, GOOD, UNCHECKED, WRONG, Finding
from kerf.runtime.settings.options import Options
from kerf_api.v1.ec2nodeclass import EC2NodeClass, SelectorTerm
from tests.cluster.moto_aws import MotoAws
from tests.unit.aws.policies import allowed

from .cloud_accounts import MotoAccount, aws_cloud
from .launches import node_class

#: Only of an installation with a record in S3, whose status and metric report each upload that fails.
OF_THE_RECORD = {"s3:GetObject", "s3:ListBucket"}

pytestmark = pytest.mark.only_real("dry runs and permissions (in the sandbox there are none)")
#: The SDK tries a call twice that may succeed.
BOTH = 2


@pytest.fixture
def clients(aws: MotoAws) -> Clients:
    return Clients(aws.region, aws.session(), aws.endpoint_url)


@pytest.fixture
def options(aws: MotoAws) -> Options:
    return Options(cluster_name=aws.cluster_name, interruption_queue=aws.cluster_name)


@pytest.fixture
def real(aws: MotoAws) -> MotoAccount:
    return MotoAccount(aws)


def amiss(findings: Iterator[Finding]) -> list[Finding]:
    return [one for one in findings if one.how != GOOD]


def test_a_whole_account(clients: Clients, options: Options) -> None:
    found = list(look(clients, options))
    assert amiss(iter(found)) == []
    assert found[0].what == "AWS"
    assert found[0].seen.startswith("arn:aws:")


def test_every_read_that_the_policies_allow_is_tried(clients: Clients, aws: MotoAws) -> None:
    tried = {*probes.reads(clients, aws.cluster_name, isolated_vpc=False), *probes.queue_reads(clients, "q")}
    tried |= {*probes.shift_reads(clients, aws.cluster_name)}
    reads = {one for one in allowed() if one.partition(":")[2].startswith(("Describe", "Get", "List", "Receive"))}
    assert tried == reads - OF_THE_RECORD


def test_what_is_not_allowed_is_named_with_the_fix(aws: MotoAws, clients: Clients, options: Options) -> None:
    aws.fail("DescribeSubnets", "UnauthorizedOperation", status=403)
    (found,) = amiss(look(clients, options))
    assert (found.what, found.how) == ("ec2:DescribeSubnets", WRONG)
    assert "UnauthorizedOperation" in found.seen
    assert "manifests/aws/policies" in found.fix


def test_what_could_not_be_asked_is_not_checked(aws: MotoAws, clients: Clients, options: Options) -> None:
    aws.fail("DescribeImages", "InternalError", status=500, times=BOTH)
    (found,) = amiss(look(clients, options))
    assert (found.what, found.how) == ("ec2:DescribeImages", UNCHECKED)


@pytest.mark.parametrize(("queue", "how"), [("", DOUBTFUL), ("nobody-made-it", WRONG)])
def test_a_queue_that_is_not_named_or_not_there(clients: Clients, options: Options, queue: str, how: str) -> None:
    (found,) = amiss(look(clients, replace(options, interruption_queue=queue)))
    assert (found.what, found.how) == ("interruption queue", how)


def test_a_cluster_that_takes_no_part_in_zonal_shifts(aws: MotoAws, clients: Clients, options: Options) -> None:
    wanted = replace(options, enable_zonal_shift=True)
    assert amiss(look(clients, wanted)) == []
    aws.fail("GetManagedResource", "ResourceNotFoundException", status=404)
    (found,) = amiss(look(clients, wanted))
    assert (found.what, found.how, "zonalShiftConfig" in found.fix) == ("zonal shift", WRONG, True)


def test_a_message_that_is_seen_stays_for_the_controller(aws: MotoAws, clients: Clients, options: Options) -> None:
    sqs = aws.client("sqs")
    address = sqs.get_queue_url(QueueName=aws.cluster_name)["QueueUrl"]
    sqs.send_message(QueueUrl=address, MessageBody="{}")
    assert amiss(look(clients, options)) == []
    assert len(sqs.receive_message(QueueUrl=address, WaitTimeSeconds=1)["Messages"]) == 1


def test_without_credentials_nothing_more_is_asked(aws: MotoAws, clients: Clients, options: Options) -> None:
    aws.fail("GetCallerIdentity", "InvalidClientTokenId", status=403)
    (found,) = look(clients, options)
    assert (found.what, found.how) == ("AWS", WRONG)


def test_without_an_endpoint_of_sts_the_rest_is_looked_at(aws: MotoAws, clients: Clients, options: Options) -> None:
    aws.fail("GetCallerIdentity", "ServiceUnavailable", status=503, times=BOTH)
    rest = len(list(look(clients, options)))
    assert rest > BOTH
    aws.fail("GetCallerIdentity", "ServiceUnavailable", status=503, times=BOTH)
    (found,) = amiss(look(clients, options))
    assert (found.what, found.how, "not checked: needs an STS endpoint" in found.seen) == ("AWS", UNCHECKED, True)


# --- node classes -----------------------------------------------------------------------------------------------
def test_a_class_for_which_everything_is_there(real: MotoAccount) -> None:
    cluster, found = look_at_classes(real.cloud, [node_class(real)])
    assert (cluster.how, found.how) == (GOOD, GOOD)
    assert "subnets in" in found.seen
    assert "images" in found.seen


def test_what_a_class_does_not_find_is_named_with_the_fix(real: MotoAccount) -> None:
    lost = _selecting(node_class(real), SelectorTerm(tags={"karpenter.sh/discovery": "another"}))
    _, found = look_at_classes(real.cloud, [lost])
    assert (found.how, found.what) == (WRONG, f"EC2NodeClass {lost.name}")
    assert found.seen.startswith("SubnetsNotFound")
    assert "karpenter.sh/discovery" in found.fix


def test_a_role_that_does_not_exist_is_wrong(real: MotoAccount) -> None:
    found = of_class(real, role="no-such-role")
    assert [(one.how, one.seen.partition(":")[0]) for one in found] == [(GOOD, found[0].seen), (WRONG, "RoleNotFound")]
    assert "no-such-role" in found[1].seen
    assert "spec.role" in found[1].fix


def test_a_role_that_may_not_be_asked_for_is_not_checked(aws: MotoAws, real: MotoAccount) -> None:
    aws.fail("GetRole", "AccessDenied", status=403)
    (_, found) = of_class(real, role="hidden")
    assert (found.how, found.seen) == (UNCHECKED, "role hidden not checked: needs iam:GetRole")
    aws.fail("GetRole", "ServiceFailure", status=500, times=BOTH)
    (_, found) = of_class(real, role="hidden")
    assert (found.how, "needs an IAM endpoint" in found.seen) == (UNCHECKED, True)


def test_a_role_is_not_checked_without_an_endpoint_of_iam(aws: MotoAws, real: MotoAccount) -> None:
    aws.fail("ListInstanceProfiles", "ServiceFailure", status=500, times=BOTH)
    (found,) = of_class(real)
    assert found.how == UNCHECKED
    assert found.seen.startswith(f"role {real.role} not checked: needs an IAM endpoint: ")


def test_a_profile_that_does_not_exist_or_has_no_role_is_wrong(aws: MotoAws, real: MotoAccount) -> None:
    (found,) = of_class(real, role=None, instance_profile="not-there")
    assert (found.how, found.seen.partition(":")[0]) == (WRONG, "InstanceProfileNotFound")
    aws.client("iam").create_instance_profile(InstanceProfileName="bare")
    (found,) = of_class(real, role=None, instance_profile="bare")
    assert (found.how, found.seen.partition(":")[0]) == (WRONG, "InstanceProfileWithoutRole")


def test_a_role_in_an_isolated_vpc_is_wrong(aws: MotoAws, real: MotoAccount) -> None:
    aws.clear_calls()
    _, found = look_at_classes(aws_cloud(aws, isolated_vpc=True), [node_class(real)])
    assert (found.how, found.seen.partition(":")[0]) == (WRONG, "IsolatedVPC")
    assert [call for call in aws.calls() if call.service == "iam"] == []


def of_class(real: MotoAccount, **spec: Any) -> list[Finding]:
    """The findings about one class with these fields of its spec."""
    plain = node_class(real, uid="looked-at")
    one = msgspec.structs.replace(plain, spec=msgspec.structs.replace(plain.spec, **spec))
    return list(look_at_classes(real.cloud, [one]))[1:]


def _selecting(one: EC2NodeClass, term: SelectorTerm) -> EC2NodeClass:
    return msgspec.structs.replace(one, spec=msgspec.structs.replace(one.spec, subnet_selector_terms=(term,)))
