"""Accepts an answer of AWS only if it is the answer of the operation.

A proxy or a broken endpoint may answer 200 with a page of HTML, an error document, or nothing. The SDK reads such a
body as an answer in which every list is empty. Kerf acts on an empty list of instances, so such an answer is a failure.

Two checks, on every call of every client. Before the SDK parses a body: its outermost element is the operation's own,
or it is a JSON object that is no error and has the types of the service's model. After that: the fields that AWS always
sends are there, if empty, and each object has its name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final
from xml.etree.ElementTree import XML, Element, ParseError, XMLPullParser

from botocore.exceptions import BotoCoreError

#: The outermost element is within so many bytes.
_BEGIN: Final = 4096
#: By protocol of XML, an error document that says nothing.
_NO_ERROR: Final[Mapping[str, bytes]] = MappingProxyType(
    {
        "ec2": b"<Response><Errors><Error><Code/></Error></Errors></Response>",
        "rest-xml": b"",  # then the SDK reads the status
        "query": b"<ErrorResponse><Error><Code/></Error></ErrorResponse>",
    }
)
#: By operation, the field that every answer has. An operation that is not here has none that matters.
ALWAYS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "CreateFleet": "FleetId",
        "DescribeAccessEntry": "accessEntry",
        "DescribeCapacityReservations": "CapacityReservations",
        "DescribeCluster": "cluster",
        "DescribeImages": "Images",
        "DescribeInstanceStatus": "InstanceStatuses",
        "DescribeInstanceTypeOfferings": "InstanceTypeOfferings",
        "DescribeInstanceTypes": "InstanceTypes",
        "DescribeInstances": "Reservations",
        "DescribeLaunchTemplates": "LaunchTemplates",
        "DescribePlacementGroups": "PlacementGroups",
        "DescribePodIdentityAssociation": "association",
        "DescribeRule": "Name",
        "DescribeSecurityGroups": "SecurityGroups",
        "DescribeSpotPriceHistory": "SpotPriceHistory",
        "DescribeSubnets": "Subnets",
        "DescribeVpcEndpoints": "VpcEndpoints",
        "GetCallerIdentity": "Arn",
        "GetInstanceProfile": "InstanceProfile",
        "GetManagedResource": "zonalShifts",
        "GetParameter": "Parameter",
        "GetProducts": "PriceList",
        "GetQueueUrl": "QueueUrl",
        "GetRole": "Role",
        "GetServiceQuota": "Quota",
        "ListClusters": "clusters",
        "ListInstanceProfiles": "InstanceProfiles",
        "ListPodIdentityAssociations": "associations",
        "ListRuleNamesByTarget": "RuleNames",
        "TerminateInstances": "TerminatingInstances",
    }
)

#: By operation, a list that is in an answer only if it has objects.
_SOMETIMES: Final[Mapping[str, str]] = MappingProxyType(
    {"DeleteMessageBatch": "Successful", "ReceiveMessage": "Messages"}
)
#: By operation, the name or ID that each object of its field has.
NAMED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "DeleteMessageBatch": "Id",
        "DescribeAccessEntry": "principalArn",
        "DescribeCapacityReservations": "CapacityReservationId",
        "DescribeCluster": "name",
        "DescribeImages": "ImageId",
        "DescribeInstanceStatus": "InstanceId",
        "DescribeInstanceTypeOfferings": "InstanceType",
        "DescribeInstanceTypes": "InstanceType",
        "DescribeLaunchTemplates": "LaunchTemplateName",
        "DescribePlacementGroups": "GroupId",
        "DescribePodIdentityAssociation": "associationId",
        "DescribeSecurityGroups": "GroupId",
        "DescribeSpotPriceHistory": "InstanceType",
        "DescribeSubnets": "SubnetId",
        "DescribeVpcEndpoints": "ServiceName",
        "GetInstanceProfile": "InstanceProfileName",
        "GetManagedResource": "appliedStatus",
        "GetParameter": "Value",
        "GetRole": "RoleName",
        "GetServiceQuota": "QuotaCode",
        "ListInstanceProfiles": "InstanceProfileName",
        "ListPodIdentityAssociations": "associationId",
        "ReceiveMessage": "MessageId",
        "TerminateInstances": "InstanceId",
    }
)
#: By type of a JSON answer's shape, the type of its value. Times and fractions have several.
_TYPES: Final[Mapping[str, type]] = MappingProxyType(
    {"boolean": bool, "integer": int, "list": list, "long": int, "map": dict, "string": str, "structure": dict}
)


class UnexpectedAnswer(BotoCoreError):  # type: ignore[misc]  # botocore has no types
    """AWS, or something in its place, answered 200 with something else than the answer of the operation."""

    fmt = "{operation}: the answer is not one of this operation: {problem}; a proxy may have sent it"


def install(client: Any) -> None:
    """Have every answer to a client checked. Repeating it changes nothing."""
    client.meta.events.register("before-parse", _before, unique_id="kerf-answer-body")
    client.meta.events.register("after-call", _after, unique_id="kerf-answer-fields")


def check_root(operation: str, tag: str) -> None:
    """Raises UnexpectedAnswer if the outermost element of an XML answer is not the operation's."""
    name = tag.rpartition("}")[2]
    if name != f"{operation}Response":
        raise UnexpectedAnswer(operation=operation, problem=f"its outermost element is {name!r}")


def _before(operation_model: Any, response_dict: dict[str, Any], **_: Any) -> None:
    operation, body = operation_model.name, response_dict["body"]
    protocol = operation_model.service_model.resolved_protocol
    if response_dict["status_code"] >= 300:
        if not _is_error(protocol, body):  # the SDK breaks on some; then the status alone says what went wrong
            response_dict["body"] = _NO_ERROR.get(protocol, b"{}")
    elif protocol in ("ec2", "query"):
        check_root(operation, _root(operation, body))
        if protocol == "query" and operation_model.output_shape is not None:
            _check_result(operation, body, str(operation_model.output_shape.serialization.get("resultWrapper", "")))
    elif protocol in ("json", "rest-json"):
        shape = operation_model.output_shape
        if body or _fields(shape):  # where an answer can have content, also an empty answer is an object
            _check_object(operation, body, shape)


def _is_error(protocol: str, body: bytes) -> bool:
    """Whether a body is an error document of the protocol."""
    if protocol in _NO_ERROR:
        try:
            errors = [one for one in XML(body).iter() if _name(one) == "Error"]
        except ParseError:
            return False
        return any(_name(part) == "Code" for error in errors for part in error)
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(content, dict) and isinstance(content.get("__type", ""), str)


def _name(element: Element) -> str:
    """The name without its namespace."""
    return element.tag.rpartition("}")[2]


def _root(operation: str, body: bytes) -> str:
    parser: Any = XMLPullParser(["start"])
    try:
        parser.feed(body[:_BEGIN])
        return next((str(element.tag) for _, element in parser.read_events()), "")
    except ParseError as error:
        raise UnexpectedAnswer(operation=operation, problem=str(error)) from error


def _check_result(operation: str, body: bytes, wrapper: str) -> None:
    """The element around the result of IAM and STS."""
    try:
        names = {_name(part) for part in XML(body)}
    except ParseError as error:
        raise UnexpectedAnswer(operation=operation, problem=str(error)) from error
    if wrapper and wrapper not in names:
        raise UnexpectedAnswer(operation=operation, problem=f"it has no {wrapper}")


def _fields(shape: Any) -> Mapping[str, Any]:
    """The shapes of the fields of a structure, by name; None has none."""
    members = shape.members if shape is not None else {}
    return {one.serialization.get("name", name): one for name, one in members.items()}


def _check_object(operation: str, body: bytes, shape: Any) -> None:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UnexpectedAnswer(operation=operation, problem=f"it is not JSON: {error}") from error
    if not isinstance(content, dict) or "__type" in content:
        raise UnexpectedAnswer(operation=operation, problem="it is no JSON object, or an error")
    fields = _fields(shape)
    if content and not fields.keys() & content.keys():
        raise UnexpectedAnswer(operation=operation, problem=f"it has no field of the answer, but {min(content)!r}")
    wrong = next((name for name, one in fields.items() if not _fits(content.get(name), one)), None)
    if wrong is not None:
        raise UnexpectedAnswer(operation=operation, problem=f"its {wrong} has another type than in the service's model")


def _fits(value: Any, shape: Any) -> bool:
    """Whether a JSON value, and all within it, has the type of a shape; null stands for a field that is not there."""
    if value is None:
        return True
    has_type = isinstance(value, _TYPES.get(shape.type_name, object))
    if not has_type:
        return False
    if shape.type_name == "list":
        return all(one is not None and _fits(one, shape.member) for one in value)
    if shape.type_name == "map":
        return all(_fits(one, shape.value) for one in value.values())
    return shape.type_name != "structure" or all(_fits(value.get(name), one) for name, one in _fields(shape).items())


def _after(http_response: Any, parsed: Mapping[str, Any], model: Any, **_: Any) -> None:
    operation = model.name
    if http_response.status_code >= 300:
        return
    always, field = ALWAYS.get(operation), ALWAYS.get(operation) or _SOMETIMES.get(operation, "")
    found = parsed.get(field)
    if always is not None and found in (None, ""):
        raise UnexpectedAnswer(operation=operation, problem=f"it has no {always}")
    name, objects = NAMED.get(operation), found if isinstance(found, list) else [found]
    if name is not None and not all(one.get(name) for one in objects if one is not None):
        raise UnexpectedAnswer(operation=operation, problem=f"one of its {field} has no {name}")
