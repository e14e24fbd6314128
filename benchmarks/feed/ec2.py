"""EC2 for the feed: a proxy before moto that knows thousands of instances more than moto does.

DescribeInstances answers with the stamped instances in pages of XML made beforehand, and moto's own on the last page.
Tags and terminations of stamped instances are accepted and counted. Everything else is moto's.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit
from xml.sax.saxutils import escape

from kerf.sandbox.api.manifests import timestamp
from kerf.sandbox.aws.machines import Machine

PAGE: Final = 1000
_NAMESPACE: Final = "http://ec2.amazonaws.com/doc/2016-11-15/"
#: The token of the page that is moto's.
_REST: Final = "rest"


class Ec2Proxy:
    """See the module. `machines` are instances with their private addresses."""

    def __init__(self, moto_url: str, machines: Iterable[tuple[Machine, str]]) -> None:
        parts = urlsplit(moto_url)
        self._moto = (str(parts.hostname), int(parts.port or 80))
        self._rows = {machine.id: _reservation(machine, address) for machine, address in machines}
        ordered = [self._rows[id_] for id_ in sorted(self._rows)]
        self._pages = [b"".join(ordered[start : start + PAGE]) for start in range(0, len(ordered), PAGE)]
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[Any] | None] = set()
        self.calls: Counter[str] = Counter()
        #: Client tokens of CreateFleet calls with a digest of the rest, in the order in which they came.
        self.fleets: list[dict[str, str]] = []

    async def serve(self) -> int:
        """Begin to serve on loopback; the port."""
        self._server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        address: tuple[str, int] = self._server.sockets[0].getsockname()
        return address[1]

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(asyncio.current_task())  # the loop itself holds tasks weakly
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(_length(head))
                own = self._own(body)
                if own is None:
                    await self._forward(head, body, writer)
                    break
                writer.write(_answer(own))
                await writer.drain()
        with contextlib.suppress(ConnectionError):
            writer.close()
        self._open.discard(asyncio.current_task())

    # --- what is known here -------------------------------------------------------------------------------------------
    def _own(self, body: bytes) -> bytes | None:
        """The XML of an answer, or None for a call that is moto's."""
        if not body.startswith(b"Action="):
            return None
        given = dict(parse_qsl(body.decode()))
        action = given["Action"]
        self.calls[action] += 1
        if action == "CreateFleet" and given.get("DryRun") != "true":
            self.fleets.append(given)
        ids = [value for name, value in given.items() if name.startswith(("InstanceId.", "ResourceId."))]
        if ids and all(id_ in self._rows for id_ in ids):
            return self._about(action, ids)
        token = given.get("NextToken", "")
        if action != "DescribeInstances" or ids or token == _REST or not self._pages:
            return None
        number = int(token.rpartition("-")[2]) if token else 0
        following = f"page-{number + 1}" if number + 1 < len(self._pages) else _REST
        return _wrapped(action, b"<reservationSet>" + self._pages[number] + b"</reservationSet>", following)

    def _about(self, action: str, ids: list[str]) -> bytes:
        if action == "DescribeInstances":
            found = b"".join(self._rows[id_] for id_ in ids)
            return _wrapped(action, b"<reservationSet>" + found + b"</reservationSet>")
        if action == "DescribeInstanceStatus":  # none of them is impaired
            return _wrapped(action, b"<instanceStatusSet/>")
        if action == "TerminateInstances":
            return _wrapped(action, b"<instancesSet/>")
        return _wrapped(action, b"<return>true</return>")

    # --- what is moto's -----------------------------------------------------------------------------------------------
    async def _forward(self, head: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
        if body.startswith(b"Action=DescribeInstances&"):
            rest = [(name, value) for name, value in parse_qsl(body.decode()) if (name, value) != ("NextToken", _REST)]
            body = urlencode(rest).encode()
        rows = [row for row in head.split(b"\r\n") if row]
        kept = [row for row in rows if not row.lower().startswith((b"connection:", b"content-length:"))]
        kept += [b"Connection: close", b"Content-Length: " + str(len(body)).encode()]
        reader, onward = await asyncio.open_connection(*self._moto)
        onward.write(b"\r\n".join(kept) + b"\r\n\r\n" + body)
        while not writer.is_closing() and (chunk := await reader.read(65536)):
            writer.write(chunk)
            await writer.drain()
        onward.close()


def _length(head: bytes) -> int:
    for row in head.lower().split(b"\r\n"):
        if row.startswith(b"content-length:"):
            return int(row.partition(b":")[2])
    return 0


def _answer(xml: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/xml;charset=UTF-8\r\nContent-Length: {len(xml)}\r\n\r\n"
    return head.encode() + xml


def _wrapped(action: str, inner: bytes, token: str = "") -> bytes:
    name = f"{action}Response"
    following = f"<nextToken>{token}</nextToken>" if token else ""
    return (
        f'<{name} xmlns="{_NAMESPACE}"><requestId>feed</requestId>'.encode() + inner + f"{following}</{name}>".encode()
    )


# --- an instance as EC2 writes it -------------------------------------------------------------------------------------
def _reservation(machine: Machine, address: str) -> bytes:
    """Source: EC2 API reference, DescribeInstances, an instance as EKS nodes have it."""
    owner = {"reservationId": "r-" + machine.id[2:], "ownerId": "123456789012"}
    groups = "".join(
        f"<item>{_tags({'groupId': g, 'groupName': 'feed-node'})}</item>" for g in machine.security_group_ids
    )
    inner = f"{_tags(owner)}<groupSet/><instancesSet><item>{_instance(machine, address, groups)}</item></instancesSet>"
    return f"<item>{inner}</item>".encode()


def _instance(machine: Machine, address: str, groups: str) -> str:
    launched = timestamp(machine.launched).replace("Z", ".000Z")
    name = f"ip-{address.replace('.', '-')}.us-west-2.compute.internal"
    spot = {"instanceLifecycle": "spot", "spotInstanceRequestId": f"sir-{machine.id[2:10]}"}
    plain = {
        "instanceId": machine.id,
        "imageId": machine.image_id,
        "privateDnsName": name,
        "amiLaunchIndex": "0",
        "instanceType": machine.instance_type,
        "launchTime": launched,
        "subnetId": machine.subnet_id,
        "vpcId": "vpc-0feed0feed0feed00",
        "privateIpAddress": address,
        "sourceDestCheck": "true",
        "architecture": "arm64" if "g." in machine.instance_type else "x86_64",
        "rootDeviceType": "ebs",
        "rootDeviceName": "/dev/xvda",
        "virtualizationType": "hvm",
        "hypervisor": "xen",
        "ebsOptimized": "true",
        "enaSupport": "true",
        "platformDetails": "Linux/UNIX",
        "usageOperation": "RunInstances",
        "bootMode": "uefi-preferred",
        **(spot if machine.capacity_type == "spot" else {}),
    }
    placement = {"availabilityZone": machine.zone, "availabilityZoneId": machine.zone_id, "tenancy": "default"}
    metadata = {"state": "applied", "httpTokens": "required", "httpPutResponseHopLimit": "1", "httpEndpoint": "enabled"}
    volume = {"volumeId": "vol-" + machine.id[2:], "status": "attached", "attachTime": launched}
    parts = {
        "instanceState": _tags({"code": "16", "name": "running"}),
        "placement": _tags(placement),
        "monitoring": _tags({"state": "disabled"}),
        "groupSet": groups,
        "blockDeviceMapping": f"<item><deviceName>/dev/xvda</deviceName><ebs>{_tags(volume)}</ebs></item>",
        "tagSet": "".join(f"<item>{_tags({'key': k, 'value': v})}</item>" for k, v in sorted(machine.tags.items())),
        "networkInterfaceSet": f"<item>{_interface(machine, address, groups, name)}</item>",
        "cpuOptions": _tags({"coreCount": "4", "threadsPerCore": "2"}),
        "capacityReservationSpecification": _tags({"capacityReservationPreference": "open"}),
        "metadataOptions": _tags(metadata),
    }
    return _tags(plain) + "".join(f"<{tag}>{inner}</{tag}>" for tag, inner in parts.items())


def _interface(machine: Machine, address: str, groups: str, name: str) -> str:
    plain = {
        "networkInterfaceId": "eni-" + machine.id[2:],
        "subnetId": machine.subnet_id,
        "vpcId": "vpc-0feed0feed0feed00",
        "ownerId": "123456789012",
        "status": "in-use",
        "macAddress": ":".join(machine.id[2 + 2 * i : 4 + 2 * i] for i in range(6)),
        "privateIpAddress": address,
        "privateDnsName": name,
        "sourceDestCheck": "true",
        "interfaceType": "interface",
    }
    return f"{_tags(plain)}<groupSet>{groups}</groupSet>"


def _tags(values: Mapping[str, str]) -> str:
    return "".join(f"<{tag}>{escape(text)}</{tag}>" for tag, text in values.items())
