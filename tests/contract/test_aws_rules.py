"""The emulated AWS refuses what AWS refuses, also from programs other than the tests."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from urllib.parse import urlencode

import pytest

from tests.aws_calls import LEDGER
from tests.cluster.moto_aws import MotoAws

pytestmark = pytest.mark.only_real("requests as they are on the wire (the sandbox has none)")
FORM = "application/x-www-form-urlencoded; charset=utf-8"


def send(aws: MotoAws, service: str, body: bytes, path: str = "/", target: str = "", method: str = "POST") -> str:
    """Send a request as a program of its own would; return the answer, of an error too."""
    headers = {
        "Authorization": f"AWS4-HMAC-SHA256 Credential=kerf/20261126/{aws.region}/{service}/aws4_request, Signature=0",
        "Content-Type": "application/x-amz-json-1.0" if target else FORM,
        **({"X-Amz-Target": target} if target else {}),
    }
    request = urllib.request.Request(f"{aws.endpoint_url}{path}", data=body or None, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        return error.read().decode()


def form(action: str, **parameters: str) -> bytes:
    return urlencode({"Action": action, "Version": "2016-11-15", **parameters}).encode()


@pytest.mark.refused("instance_id_form")
def test_a_wrong_form_is_refused_with_the_code_of_aws(aws: MotoAws) -> None:
    answer = send(aws, "ec2", form("TerminateInstances", **{"InstanceId.1": "i-1"}))
    assert "<Code>InvalidInstanceID.Malformed</Code>" in answer


@pytest.mark.refused("ipv6_of_interface")
def test_the_parameters_of_a_template_are_read_whole(aws: MotoAws) -> None:
    interface = "LaunchTemplateData.NetworkInterface.1"
    both = {f"{interface}.Ipv6AddressCount": "1", f"{interface}.Ipv6PrefixCount": "1", f"{interface}.DeviceIndex": "0"}
    assert "InvalidParameterCombination" in send(
        aws, "ec2", form("CreateLaunchTemplate", LaunchTemplateName="abc", **both)
    )


@pytest.mark.refused("receive_wait")
def test_json_is_refused(aws: MotoAws) -> None:
    body = {"QueueUrl": f"{aws.endpoint_url}/123456789012/{aws.cluster_name}", "WaitTimeSeconds": 21}
    answer = send(aws, "sqs", json.dumps(body).encode(), target="AmazonSQS.ReceiveMessage")
    assert json.loads(answer)["__type"] == "InvalidParameterValue"


@pytest.mark.refused("cluster_name")
def test_a_path_is_refused(aws: MotoAws) -> None:
    assert "InvalidParameterException" in send(aws, "eks", b"", path="/clusters/-c", method="GET")


@pytest.mark.refused("service_model")
def test_the_service_model_is_checked_too(aws: MotoAws) -> None:
    answer = send(aws, "iam", form("ListInstanceProfiles", MaxItems="1001"))
    assert "InvalidParameterValue" in answer


def test_a_valid_request_of_another_program_is_judged_and_accepted(aws: MotoAws) -> None:
    aws.judged()
    before = LEDGER.take()
    answer = send(aws, "ec2", form("DescribeSubnets", MaxResults="5"))
    aws.judged()
    after = LEDGER.take()
    LEDGER.add(before)
    LEDGER.add(after)
    assert "<subnetSet>" in answer
    assert after.calls == {"emulated AWS": 1}
    assert {"filter_name", "filter_values"} <= after.rules.keys()
