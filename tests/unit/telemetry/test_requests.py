"""Requests to the API server and to AWS are counted by the names that Karpenter's libraries give them."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError, EndpointConnectionError

from kerf.telemetry.series.metrics import Metrics
from kerf.telemetry.series.requests import AwsRequests, KubeRequests


@pytest.mark.parametrize(
    ("method", "path", "labels"),
    [
        ("GET", "/api/v1/pods", ("list", "", "v1", "pods", "")),
        ("GET", "/api/v1/namespaces/d/pods/p", ("get", "", "v1", "pods", "")),
        ("POST", "/api/v1/namespaces/d/pods/p/eviction", ("create", "", "v1", "pods", "eviction")),
        ("GET", "/api/v1/namespaces/d", ("get", "", "v1", "namespaces", "")),
        ("PATCH", "/apis/karpenter.sh/v1/nodeclaims/c/status", ("patch", "karpenter.sh", "v1", "nodeclaims", "status")),
        ("DELETE", "/apis/karpenter.sh/v1/nodeclaims/c", ("delete", "karpenter.sh", "v1", "nodeclaims", "")),
        ("GET", "/version", ("get", "", "", "", "")),
    ],
)
def test_a_request_is_told_of_by_what_it_is_about(method: str, path: str, labels: tuple[str, ...]) -> None:
    metrics = Metrics()
    KubeRequests(metrics).answered(method, path, {}, 200, 0.25)
    named = dict(zip(("verb", "group", "version", "kind", "subresource"), labels, strict=True))
    read = metrics.registry.get_sample_value
    assert read("client_go_request_duration_seconds_sum", named) == 0.25
    assert read("client_go_request_total", {"code": "200", "method": method}) == 1


def test_a_watch_is_counted_and_not_timed_and_one_without_an_answer_is_an_error() -> None:
    metrics = Metrics()
    told = KubeRequests(metrics)
    told.answered("GET", "/api/v1/pods", {"watch": "1"}, 200, 30.0)
    told.answered("GET", "/api/v1/pods", {}, 0, 5.0)
    told.held(0.5)
    found = {s.name: s for family in metrics.registry.collect() for s in family.samples}
    assert found["client_go_request_duration_seconds_count"].value == 1
    read = metrics.registry.get_sample_value
    assert read("client_go_request_total", {"code": "<error>", "method": "GET"}) == 1
    assert read("kerf_api_requests_held_seconds_total") == 0.5


_NONE = b"<DescribeSubnetsResponse/>"
_REFUSED = (
    b"<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>no</Message></Error></Errors></Response>"
)


class Body(BytesIO):
    """What a server answers, as urllib3 would hand it on."""

    def stream(self, *_: Any, **__: Any) -> Any:
        yield self.read()


class Told:
    """A client of EC2 that answers as it is told to, and what was counted of it."""

    def __init__(self) -> None:
        self.metrics, self.seconds = Metrics(), 0.0
        keys: dict[str, Any] = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
        self.client = boto3.session.Session(region_name="us-west-2", **keys).client("ec2")
        AwsRequests(self.metrics, self.clock).install(self.client)

    def clock(self) -> float:
        self.seconds += 1.5
        return self.seconds

    def value(self, name: str, status: str) -> float | None:
        labels = {"service": "EC2", "action": "DescribeSubnets", "status_code": status}
        return self.metrics.registry.get_sample_value(f"aws_sdk_go_{name}", labels)


def test_a_call_of_aws_is_counted_by_its_status_and_timed() -> None:
    told, answers = Told(), [(200, _NONE), (403, _REFUSED)]

    def answered(request: Any, **_: Any) -> AWSResponse:
        status, body = answers.pop(0)
        return AWSResponse(request.url, status, {}, Body(body))

    told.client.meta.events.register("before-send.ec2", answered)
    told.client.describe_subnets()
    with pytest.raises(ClientError):
        told.client.describe_subnets()
    for status in ("200", "403"):
        assert told.value("request_total", status) == 1
        assert told.value("request_attempt_total", status) == 1
        assert told.value("request_duration_seconds_sum", status) == 1.5
        assert told.value("request_retry_count_count", status) == 1


def test_one_without_an_answer_is_counted_too() -> None:
    told = Told()

    def unreachable(**_: Any) -> None:
        raise EndpointConnectionError(endpoint_url="http://nowhere")

    told.client.meta.events.register("before-send.ec2", unreachable)
    with pytest.raises(EndpointConnectionError):
        told.client.describe_subnets()
    assert told.value("request_total", "0") == 1


def test_what_is_never_sent_is_no_request() -> None:
    told = Told()

    def held(**_: Any) -> None:
        raise RuntimeError("too fast")

    told.client.meta.events.register_first("before-call.ec2", held)
    with pytest.raises(RuntimeError):
        told.client.describe_subnets()
    assert told.value("request_total", "0") is None
