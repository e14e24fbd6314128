"""An answer of 200 that is not the answer of the operation is a failure, whatever was asked."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import boto3
import pytest

from kerf.aws import probes
from kerf.aws.cloud import AwsCloud, AwsOptions
from kerf.aws.observe import instance_rows
from kerf.aws.requests import clients as clients_module
from kerf.aws.requests.answer_checks import ALWAYS, NAMED, UnexpectedAnswer
from kerf.aws.requests.clients import Clients, pages
from kerf.aws.requests.errors import translated
from kerf.model.aws.interruptions import Message
from kerf.ports import Forbidden, Invalid, PortError, Throttled, Unavailable
from tests.sources import ROOT

AWS = ROOT / "reconciler" / "kerf" / "aws"
REGION = "us-west-2"
#: By operation: the service, and parameters that it cannot do without.
ASKED: Final[dict[str, tuple[str, Mapping[str, Any]]]] = {
    "CreateFleet": ("ec2", {"LaunchTemplateConfigs": [], "TargetCapacitySpecification": {"TotalTargetCapacity": 1}}),
    "DescribeAccessEntry": ("eks", {"clusterName": "c", "principalArn": "arn:aws:iam::1:role/r"}),
    "DescribeCapacityReservations": ("ec2", {}),
    "DescribeCluster": ("eks", {"name": "c"}),
    "DescribeImages": ("ec2", {}),
    "DescribeInstanceStatus": ("ec2", {}),
    "DescribeInstanceTypeOfferings": ("ec2", {}),
    "DescribeInstanceTypes": ("ec2", {}),
    "DescribeInstances": ("ec2", {}),
    "DescribeLaunchTemplates": ("ec2", {}),
    "DescribePlacementGroups": ("ec2", {}),
    "DescribePodIdentityAssociation": ("eks", {"clusterName": "c", "associationId": "a-1"}),
    "DescribeRule": ("events", {"Name": "r"}),
    "DescribeSecurityGroups": ("ec2", {}),
    "DescribeSpotPriceHistory": ("ec2", {}),
    "DescribeSubnets": ("ec2", {}),
    "DescribeVpcEndpoints": ("ec2", {}),
    "GetCallerIdentity": ("sts", {}),
    "GetInstanceProfile": ("iam", {"InstanceProfileName": "p"}),
    "GetManagedResource": ("arc-zonal-shift", {"resourceIdentifier": "arn:aws:eks:us-west-2:1:cluster/c"}),
    "GetParameter": ("ssm", {"Name": "p"}),
    "GetProducts": ("pricing", {"ServiceCode": "AmazonEC2"}),
    "GetQueueUrl": ("sqs", {"QueueName": "q"}),
    "GetRole": ("iam", {"RoleName": "r"}),
    "GetServiceQuota": ("service-quotas", {"ServiceCode": "ec2", "QuotaCode": "L-1"}),
    "ListClusters": ("eks", {}),
    "ListInstanceProfiles": ("iam", {}),
    "ListPodIdentityAssociations": ("eks", {"clusterName": "c"}),
    "ListRuleNamesByTarget": ("events", {"TargetArn": "arn:aws:sqs:us-west-2:1:q"}),
    "TerminateInstances": ("ec2", {"InstanceIds": ["i-0123456789abcdef0"]}),
}
#: Operations that answer in one piece.
ONE_PAGE: Final = frozenset(
    {
        *("CreateFleet", "DescribeAccessEntry", "DescribeCluster", "DescribePlacementGroups", "GetCallerIdentity"),
        *("DescribePodIdentityAssociation", "DescribeRule", "GetInstanceProfile", "GetServiceQuota"),
        *("GetManagedResource", "GetParameter", "GetQueueUrl", "GetRole", "TerminateInstances"),
    }
)
WRONG: Final = {
    "HTML": b"<html><head><title>Sign in</title></head><body>Proxy</body></html>",
    "HTML that is no XML": b"<!DOCTYPE html><html><br><p>Sign in",
    "an error document": b"<Response><Errors><Error><Code>InternalError</Code></Error></Errors></Response>",
    "errors": b"<Errors><Error><Code>InternalError</Code></Error></Errors>",
    "nothing": b"",
    "spaces": b"  \n",
    "text": b"OK",
    "an empty object": b"{}",
    "an error object": b'{"__type": "InternalFailure", "message": "no"}',
    "an error of a gateway": b'{"message": "Forbidden"}',
    "a list": b"[]",
    "null": b"null",
    "too deep an object": b"[" * 200_000,
    "another operation": b"<DescribeVolumesResponse><volumeSet/></DescribeVolumesResponse>",
}

#: Error documents that the SDK cannot read.
BROKEN: Final = (
    b"<Response><Errors/></Response>",
    b"<Response><Errors>text</Errors></Response>",
    b"<ErrorResponse><Error>text</Error></ErrorResponse>",
    b'{"__type": 5}',
    b'"text"',
    b"5",
    b"\xff\xfe",
    b"[" * 200_000,
)


class Endpoint:
    """Answers everything with 200 and the same body, or with the next of several."""

    def __init__(self) -> None:
        endpoint, self.bodies, self.asked, self.status = self, [b""], 0, 200

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 65536  # head and body in one packet

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                body = endpoint.bodies[endpoint.asked % len(endpoint.bodies)]
                endpoint.asked += 1
                self.send_response(endpoint.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self) -> None:
                self.do_POST()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    yield made
    made.server.shutdown()
    made.server.server_close()


def session() -> Any:
    return boto3.session.Session(aws_access_key_id="a", aws_secret_access_key="b", region_name=REGION)


@pytest.fixture(scope="module")
def clients(endpoint: Endpoint) -> Clients:
    return Clients(REGION, session(), endpoint.url)


def method(operation: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", operation).lower()


def failure(client: Any, operation: str, service: str, parameters: Mapping[str, Any]) -> str:
    """How a call fails; empty when it does not."""
    try:
        with translated(f"{service}:{operation}"):
            getattr(client, method(operation))(**parameters)
    except Unavailable as error:
        return str(error)
    return ""


def test_every_question_of_the_adapter_is_checked() -> None:
    texts = "\n".join(path.read_text() for path in AWS.rglob("*.py") if path.name != "probes.py")
    own = {"get_paginator", "get_partition_for_region", "get_available_regions", "get_config_variable"}  # no calls
    own |= {"get_object"}  # any bytes are the content of an object
    named = set(re.findall(r"""["'.]((?:describe|list|get)_[a-z_]+)["'(]""", texts)) - own
    assert {method(operation) for operation in ALWAYS} >= named
    assert ASKED.keys() == ALWAYS.keys()


@pytest.mark.parametrize("operation", sorted(ASKED))
def test_a_wrong_answer_is_a_failure(endpoint: Endpoint, clients: Clients, operation: str) -> None:
    service, parameters = ASKED[operation]
    client = clients.get(service)
    own = f"<{operation}Response xmlns='http://x/'><requestId>1</requestId></{operation}Response>".encode()
    for name, body in {**WRONG, "no list": own, "cut": own[:-9], "an empty root": own.split()[0] + b"/>"}.items():
        endpoint.bodies = [body]
        assert operation in failure(client, operation, service, parameters), name


#: Operations whose answer has no field that is always there.
SPARSE: Final[dict[str, Mapping[str, Any]]] = {
    "ReceiveMessage": {"QueueUrl": "https://q"},
    "DeleteMessageBatch": {"QueueUrl": "https://q", "Entries": [{"Id": "0", "ReceiptHandle": "r"}]},
}


@pytest.mark.parametrize("operation", sorted(SPARSE))
def test_a_wrong_answer_of_the_queue_is_a_failure(endpoint: Endpoint, clients: Clients, operation: str) -> None:
    client = clients.get("sqs")
    for name, body in {**WRONG, "cut": b'{"Messages": [{"MessageId": "1"'}.items():
        endpoint.bodies = [body]
        wrong = failure(client, operation, "sqs", SPARSE[operation])
        assert (operation in wrong) == (name != "an empty object"), name


@pytest.mark.parametrize("operation", sorted({**ASKED, **SPARSE}))
def test_a_body_that_is_cut_short_is_a_failure(endpoint: Endpoint, clients: Clients, operation: str) -> None:
    service, parameters = ASKED.get(operation) or ("sqs", SPARSE[operation])
    client = clients.get(service)
    body = complete(client, operation)
    for length in (1, len(body) // 3, len(body) // 2, len(body) - 2, len(body) - 1):
        endpoint.bodies = [body[:length]]
        assert operation in failure(client, operation, service, parameters), body[:length]


def complete(client: Any, operation: str, token: str = "") -> bytes:
    """An answer of an operation in which every list is empty; with a token there is a next page."""
    model = client.meta.service_model.operation_model(operation)
    protocol, members = model.service_model.resolved_protocol, model.output_shape.members
    if protocol in ("json", "rest-json"):
        lists: dict[str, list[Any]] = {name: [] for name, one in members.items() if one.type_name == "list"}
        return json.dumps({**lists, **({name: token for name in ("NextToken", "nextToken") if token})}).encode()
    if protocol == "query":
        more = f"<IsTruncated>true</IsTruncated><Marker>{token}</Marker>" if token else ""
        lists_ = "".join(f"<{name}/>" for name, one in members.items() if one.type_name == "list")
        return (
            f"<{operation}Response><{operation}Result>{lists_}{more}</{operation}Result></{operation}Response>".encode()
        )
    elements = (one.serialization.get("name", name) for name, one in members.items() if one.type_name == "list")
    more = f"<nextToken>{token}</nextToken>" if token else ""
    return f"<{operation}Response>{''.join(f'<{name}/>' for name in elements)}{more}</{operation}Response>".encode()


@pytest.mark.parametrize("operation", sorted(NAMED))
def test_an_object_without_its_name_is_a_failure(endpoint: Endpoint, clients: Clients, operation: str) -> None:
    service, parameters = ASKED.get(operation) or ("sqs", SPARSE[operation])
    client = clients.get(service)
    endpoint.bodies = [unnamed(client, operation)]
    assert f"has no {NAMED[operation]}" in failure(client, operation, service, parameters)


def unnamed(client: Any, operation: str) -> bytes:
    """An answer whose lists have one empty object each, and whose other objects are empty."""
    model = client.meta.service_model.operation_model(operation)
    members = {one.serialization.get("name", name): one for name, one in model.output_shape.members.items()}
    if model.service_model.resolved_protocol in ("json", "rest-json"):
        empty: dict[str, Any] = {"list": [{}], "structure": {}}
        return json.dumps(
            {name: empty[one.type_name] for name, one in members.items() if one.type_name in empty}
        ).encode()
    item = "<member/>" if service_of(model) == "iam" else "<item/>"
    rows = {"list": item, "structure": ""}
    text = "".join(f"<{k}>{rows[one.type_name]}</{k}>" for k, one in members.items() if one.type_name in rows)
    wrapped = f"<{operation}Result>{text}</{operation}Result>" if service_of(model) == "iam" else text
    return f"<{operation}Response>{wrapped}</{operation}Response>".encode()


def service_of(model: Any) -> str:
    return str(model.service_model.service_name)


@pytest.mark.parametrize("value", ["text", 5, [None], {"a": "b"}, [["a"]]], ids=str)
@pytest.mark.parametrize(
    "operation", ["DescribeCluster", "GetManagedResource", "GetParameter", "GetProducts", "ReceiveMessage"]
)
def test_a_value_of_another_type_is_a_failure(endpoint: Endpoint, clients: Clients, operation: str, value: Any) -> None:
    service, parameters = ASKED.get(operation) or ("sqs", SPARSE[operation])
    client = clients.get(service)
    field = ALWAYS.get(operation, "Messages")
    endpoint.bodies = [json.dumps({field: value}).encode()]
    assert operation in failure(client, operation, service, parameters)


@pytest.mark.parametrize(
    "product",
    ["<html>", "null", "[]", '{"product": null}', '{"product": {}, "terms": []}', '{"terms": {"OnDemand": 5}}'],
)
def test_a_product_that_is_none_is_a_failure(endpoint: Endpoint, product: str) -> None:
    cloud = AwsCloud(AwsOptions(cluster_name="c", region=REGION, session=session(), endpoint_url=endpoint.url))
    endpoint.bodies = [json.dumps({"PriceList": [product]}).encode()]
    with pytest.raises(Unavailable, match="GetProducts"):
        cloud.on_demand_prices()


@pytest.mark.parametrize(
    "reservation",
    [
        "<item/>",
        "<item><instancesSet><item/></instancesSet></item>",
        "<item><instancesSet><item><instanceId>i-0123456789abcdef0</instanceId></item></instancesSet></item>",
        "<item><instancesSet><item><launchTime>soon</launchTime></item></instancesSet></item>",
    ],
)
def test_an_instance_without_what_all_have_is_a_failure(reservation: str) -> None:
    body = f"<DescribeInstancesResponse><reservationSet>{reservation}</reservationSet></DescribeInstancesResponse>"
    with pytest.raises(UnexpectedAnswer, match="DescribeInstances"):
        instance_rows.parse(body.encode())


def test_an_answer_that_does_not_name_the_instance_terminates_nothing(endpoint: Endpoint) -> None:
    cloud = AwsCloud(AwsOptions(cluster_name="c", region=REGION, session=session(), endpoint_url=endpoint.url))
    endpoint.bodies = [b"<TerminateInstancesResponse><instancesSet/></TerminateInstancesResponse>"]
    with pytest.raises(Unavailable, match="does not terminate i-0123456789abcdef0"):
        cloud.terminate("i-0123456789abcdef0")


def test_an_answer_that_does_not_name_the_message_deletes_nothing(endpoint: Endpoint) -> None:
    cloud = AwsCloud(
        AwsOptions(
            cluster_name="c", region=REGION, interruption_queue="q", session=session(), endpoint_url=endpoint.url
        )
    )
    endpoint.bodies, endpoint.asked = [json.dumps({"QueueUrl": endpoint.url}).encode(), b"{}"], 0
    with pytest.raises(Unavailable, match="does not name the message"):
        cloud.delete_message(Message("m", "receipt", "", None))


def test_preflight_reports_an_answer_that_is_cut_short(endpoint: Endpoint, clients: Clients) -> None:
    endpoint.bodies = [b"<DescribeSubnetsResponse><subnetSet>"]
    probe = probes.reads(clients, "c", isolated_vpc=True)["ec2:DescribeSubnets"]
    assert isinstance(probes.outcome("ec2:DescribeSubnets", probe), Unavailable)
    endpoint.bodies = [b"<GetCallerIdentityResponse><GetCallerIdentityResult>"]
    with pytest.raises(Unavailable):
        probes.caller(clients)


@pytest.mark.parametrize("operation", ["DescribeInstances", "GetQueueUrl", "ListInstanceProfiles"])
@pytest.mark.parametrize(
    ("status", "kind"),
    [(302, Invalid), (403, Forbidden), (404, Invalid), (407, Invalid), (429, Throttled), (503, Unavailable)],
)
def test_an_error_that_is_not_one_of_aws_goes_by_its_status(
    endpoint: Endpoint, clients: Clients, status: int, kind: type[PortError], operation: str
) -> None:
    service, parameters = ASKED[operation]
    client = clients.get(service, attempts=1)
    endpoint.status = status
    try:
        for body in (*WRONG.values(), *BROKEN):
            endpoint.bodies = [body]
            with pytest.raises((kind, Unavailable)), translated(f"{service}:{operation}"):
                getattr(client, method(operation))(**parameters)
    finally:
        endpoint.status = 200


@pytest.mark.parametrize("operation", ["DescribeInstances", "DescribeSubnets"])
def test_an_empty_list_is_an_answer(endpoint: Endpoint, clients: Clients, operation: str) -> None:
    element = {"DescribeInstances": "reservationSet", "DescribeSubnets": "subnetSet"}[operation]
    endpoint.bodies = [f"<{operation}Response><requestId>1</requestId><{element}/></{operation}Response>".encode()]
    assert pages(clients.get("ec2"), method(operation), ALWAYS[operation]) in ([], [{"Instances": []}])


def test_no_wrong_answer_makes_the_list_of_instances_empty(endpoint: Endpoint) -> None:
    cloud = AwsCloud(AwsOptions(cluster_name="c", region=REGION, session=session(), endpoint_url=endpoint.url))
    good = b"<DescribeInstancesResponse><reservationSet/></DescribeInstancesResponse>"
    first = b"<DescribeInstancesResponse><reservationSet/><nextToken>2</nextToken></DescribeInstancesResponse>"
    endpoint.bodies, endpoint.asked = [good], 0
    assert cloud.instances() == ()
    for body in (*WRONG.values(), b"<DescribeInstancesResponse/>", good[:-5]):
        for bodies in ([body], [first, body]):  # also as the second page
            endpoint.bodies, endpoint.asked = bodies, 0
            with pytest.raises(Unavailable, match="DescribeInstances"):
                cloud.instances()


@pytest.mark.parametrize("tokens", [("2",), ("2", "3"), tuple(map(str, range(60)))])
@pytest.mark.parametrize("operation", sorted(ASKED))
def test_pages_that_do_not_end_are_a_failure(
    endpoint: Endpoint, clients: Clients, monkeypatch: pytest.MonkeyPatch, tokens: tuple[str, ...], operation: str
) -> None:
    service, parameters = ASKED[operation]
    client = clients.get(service)
    if not client.can_paginate(method(operation)):
        assert operation in ONE_PAGE
        return
    monkeypatch.setattr(clients_module, "MOST_PAGES", 50)
    endpoint.bodies, endpoint.asked = [complete(client, operation, token) for token in tokens], 0
    with pytest.raises(Unavailable, match=operation), translated(f"{service}:{operation}"):
        pages(client, method(operation), ALWAYS[operation], **parameters)
    assert 1 < endpoint.asked <= 50


def test_pages_that_take_too_long_are_a_failure(
    endpoint: Endpoint, clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients_module, "PAGES_SECONDS", -1.0)
    endpoint.bodies = [b"<DescribeSubnetsResponse><subnetSet/><nextToken>2</nextToken></DescribeSubnetsResponse>"]
    with pytest.raises(Unavailable, match="do not end"), translated("ec2:DescribeSubnets"):
        pages(clients.get("ec2"), "describe_subnets", "Subnets")
