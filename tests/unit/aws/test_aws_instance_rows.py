"""Our own reading of DescribeInstances against the SDK's."""

from __future__ import annotations

from typing import Any

import botocore.session
import pytest
from botocore.parsers import EC2QueryParser

from kerf.aws.observe import instance_rows
from kerf.aws.observe.instances import instance

_PLAIN = """
<item>
  <reservationId>r-1</reservationId><ownerId>1</ownerId>
  <groupSet><item><groupId>sg-of-the-reservation</groupId></item></groupSet>
  <instancesSet>
    <item>
      <instanceId>i-1</instanceId><imageId>ami-1</imageId>
      <instanceState><code>16</code><name>running</name></instanceState>
      <instanceType>m5.large</instanceType><launchTime>2026-01-02T03:04:05.000Z</launchTime>
      <placement><availabilityZone>us-west-2a</availabilityZone>
        <availabilityZoneId>usw2-az1</availabilityZoneId><tenancy>default</tenancy></placement>
      <subnetId>subnet-1</subnetId>
      <groupSet><item><groupId>sg-2</groupId><groupName>b</groupName></item>
        <item><groupId>sg-1</groupId><groupName>a</groupName></item></groupSet>
      <tagSet><item><key>a</key><value>1 &amp; 2</value></item><item><key>empty</key><value/></item></tagSet>
      <networkInterfaceSet><item><subnetId>subnet-of-the-interface</subnetId>
        <groupSet><item><groupId>sg-of-the-interface</groupId></item></groupSet>
        <interfaceType>interface</interfaceType></item><item><interfaceType>efa</interfaceType></item>
        <item><interfaceType>efa-only</interfaceType></item></networkInterfaceSet>
      <capacityReservationSpecification><capacityReservationPreference>open</capacityReservationPreference>
      </capacityReservationSpecification>
    </item>
    <item>
      <instanceId>i-2</instanceId><imageId>ami-1</imageId>
      <instanceState><code>0</code><name>pending</name></instanceState>
      <instanceType>m5.xlarge</instanceType><launchTime>2026-01-02T03:04:06.000Z</launchTime>
      <placement><availabilityZone>us-west-2b</availabilityZone><tenancy>dedicated</tenancy></placement>
      <instanceLifecycle>spot</instanceLifecycle><spotInstanceRequestId>sir-1</spotInstanceRequestId>
    </item>
  </instancesSet>
</item>
"""
_RESERVED = """
<item><instancesSet><item>
  <instanceId>i-3</instanceId><instanceType>m5.large</instanceType>
  <instanceState><code>32</code><name>shutting-down</name></instanceState>
  <launchTime>2026-01-02T03:04:05.000Z</launchTime>
  <capacityReservationId>cr-1</capacityReservationId>
  <capacityReservationSpecification>
    <capacityReservationPreference>capacity-reservations-only</capacityReservationPreference>
  </capacityReservationSpecification>
</item></instancesSet></item>
"""


def page(*reservations: str, token: str = "") -> bytes:
    following = f"<nextToken>{token}</nextToken>" if token else ""
    inner = f"<requestId>r</requestId><reservationSet>{''.join(reservations)}</reservationSet>{following}"
    name = "DescribeInstancesResponse"
    return f'<?xml version="1.0"?><{name} xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">{inner}</{name}>'.encode()


def by_the_sdk(body: bytes) -> dict[str, Any]:
    shape = botocore.session.get_session().get_service_model("ec2").operation_model("DescribeInstances").output_shape
    found: dict[str, Any] = EC2QueryParser().parse({"body": body, "headers": {}, "status_code": 200}, shape)
    return found


@pytest.mark.parametrize(
    "body",
    [page(), page(_PLAIN), page(_PLAIN, _RESERVED, token="next"), page(*[_PLAIN] * 40)],
    ids=["nothing", "one reservation", "two and a token", "longer than a piece"],
)
def test_the_same_instances_as_the_sdk_finds(body: bytes) -> None:
    theirs = by_the_sdk(body)
    rows, token = instance_rows.parse(body)
    assert rows is not None
    assert [instance(row) for row in rows] == [instance(row) for r in theirs["Reservations"] for row in r["Instances"]]
    assert token == theirs.get("NextToken", "")


def test_what_is_read_of_interfaces_and_tenancy() -> None:
    rows, _ = instance_rows.parse(page(_PLAIN))
    assert rows is not None
    first, second = (instance(row) for row in rows)
    assert (first.efa, first.tenancy) == (2, "default")
    assert (second.efa, second.tenancy) == (0, "dedicated")


def test_a_long_page_is_read_in_steps_before_each_of_which_others_may_go_first() -> None:
    body, steps = page(*[_PLAIN] * 40), list[int]()
    rows, _ = instance_rows.parse(body, lambda: steps.append(1))
    assert rows is not None
    assert len(rows) == 80
    assert len(steps) == -(-len(body) // instance_rows.PIECE) + -(-80 // instance_rows.ROWS)
