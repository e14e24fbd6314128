"""DescribeInstances read from its XML directly: only what is used, in small steps.

The SDK builds every field of every instance in Python: 0.8 ms for each, which is four seconds of a core for 5,000, once
a minute. Here the XML goes through the C parser a piece at a time, and a tenth of its elements become values (0.1 ms
for each instance), in steps of about a millisecond, before each of which other threads may go first. What the SDK is
then left to parse is the page's token.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final
from xml.etree.ElementTree import Element, ParseError, XMLParser

from kerf.aws.requests.answer_checks import UnexpectedAnswer, check_root
from kerf.telemetry.precedence import GiveWay, at_once, in_steps

_OPERATION: Final = "DescribeInstances"
EVENT: Final = f"before-parse.ec2.{_OPERATION}"
#: Bytes that are parsed in one step, and instances that are read in one: about a millisecond.
PIECE: Final = 32 * 1024
ROWS: Final = 10
_PLAIN: Final = {
    "instanceId": "InstanceId",
    "instanceType": "InstanceType",
    "imageId": "ImageId",
    "subnetId": "SubnetId",
    "instanceLifecycle": "InstanceLifecycle",
    "spotInstanceRequestId": "SpotInstanceRequestId",
    "capacityReservationId": "CapacityReservationId",
}
_PLACED: Final = {
    "AvailabilityZone": "availabilityZone",
    "AvailabilityZoneId": "availabilityZoneId",
    "Tenancy": "tenancy",
    "GroupId": "groupId",
    "PartitionNumber": "partitionNumber",
}
#: Fields that every instance has.
_ALWAYS: Final = ("InstanceId", "InstanceType", "State", "LaunchTime")

Row = dict[str, Any]


def install(ec2: Any, give_way: GiveWay = at_once) -> None:
    """Have a client's DescribeInstances read this way. Repeating it changes nothing."""
    ec2.meta.events.register(EVENT, partial(_read, give_way), unique_id="kerf-instance-rows")


def _read(
    give_way: GiveWay, /, response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any
) -> None:
    """Called by the SDK before it parses an answer; what the second dictionary has replaces the SDK's findings."""
    if response_dict["status_code"] != 200:
        return
    rows, token = parse(response_dict["body"], give_way)
    if rows is not None:
        customized_response_dict["Reservations"] = [{"Instances": rows}]
    if token:
        customized_response_dict["NextToken"] = token
    response_dict["body"] = b"<DescribeInstancesResponse/>"


def parse(body: bytes, give_way: GiveWay = at_once) -> tuple[list[Row] | None, str]:
    """The instances of a page, shaped as the SDK shapes them, and the token of the next page (empty: none).

    None: the page has no list of instances. Raises UnexpectedAnswer for a body that is no answer of DescribeInstances.
    """
    page = _page(body, give_way)
    check_root(_OPERATION, page.tag)
    rows: list[Row] | None = None
    token = ""
    for part in page:
        if _name(part) == "nextToken":
            token = part.text or ""
        elif _name(part) == "reservationSet":
            items = (item for reservation in part for item in _instances(reservation))
            rows = [*(rows or ()), *(_complete(item) for item in in_steps(items, give_way, ROWS))]
    return rows, token


def _page(body: bytes, give_way: GiveWay) -> Element:
    parser = XMLParser()
    try:
        for start in range(0, len(body), PIECE):
            give_way()
            parser.feed(body[start : start + PIECE])
        page: Element = parser.close()
    except ParseError as error:
        raise UnexpectedAnswer(operation=_OPERATION, problem=str(error)) from error
    return page


def _instances(reservation: Element) -> list[Element]:
    sets = [part for part in reservation if _name(part) == "instancesSet"]
    if not sets:
        raise UnexpectedAnswer(operation=_OPERATION, problem="one of its reservations has no instancesSet")
    return [item for part in sets for item in part]


def _complete(item: Element) -> Row:
    try:
        row = _row(item)
    except ValueError as error:
        raise UnexpectedAnswer(operation=_OPERATION, problem=str(error)) from error
    if missing := [name for name in _ALWAYS if not row.get(name)]:
        raise UnexpectedAnswer(operation=_OPERATION, problem=f"one of its instances has no {missing[0]}")
    return row


def _row(item: Element) -> Row:
    row: Row = {}
    for part in item:
        name = _name(part)
        if name in _PLAIN:
            row[_PLAIN[name]] = part.text or ""
        elif name in _STRUCTURED:
            field, read = _STRUCTURED[name]
            row[field] = read(part)
    return row


def _placement(part: Element) -> Row:
    found = _texts(part)
    return {key: found[own] for key, own in _PLACED.items() if own in found}


def _tags(part: Element) -> list[Row]:
    return [{"Key": tag.get("key", ""), "Value": tag.get("value", "")} for tag in map(_texts, part)]


def _each(own: str, field: str) -> Callable[[Element], list[Row]]:
    """One field of each entry of a list."""
    return lambda part: [{field: _texts(entry).get(own, "")} for entry in part]


def _one(own: str, field: str) -> Callable[[Element], Row]:
    """One field of a structure."""
    return lambda part: {field: _texts(part).get(own, "")}


def _texts(element: Element) -> dict[str, str]:
    return {_name(part): part.text or "" for part in element}


def _name(element: Element) -> str:
    """Without the API version's namespace."""
    return element.tag.rpartition("}")[2]


#: What has an inner structure: the field that it becomes, and how it is read.
_STRUCTURED: Final[Mapping[str, tuple[str, Callable[[Element], Any]]]] = {
    "placement": ("Placement", _placement),
    "instanceState": ("State", _one("name", "Name")),
    "launchTime": ("LaunchTime", lambda part: datetime.fromisoformat(part.text or "")),
    "groupSet": ("SecurityGroups", _each("groupId", "GroupId")),
    "tagSet": ("Tags", _tags),
    "networkInterfaceSet": ("NetworkInterfaces", _each("interfaceType", "InterfaceType")),
    "iamInstanceProfile": ("IamInstanceProfile", _one("arn", "Arn")),
    "capacityReservationSpecification": (
        "CapacityReservationSpecification",
        _one("capacityReservationPreference", "CapacityReservationPreference"),
    ),
}
