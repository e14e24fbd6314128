"""What this AWS knows beyond moto: stock-outs, faults, tokens of fleets, states that change with time, the call log."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

import msgspec

from .ailments import Ailment
from .entitlements import QUOTAS, Association
from .placement import Group
from .reservations import Reserved
from .settings import ACCOUNT, MotoSettings
from .shifts import Shift

ANY = "*"


class StockOut(msgspec.Struct):
    """Only `left` more instances can be had of what this matches; `*` matches everything."""

    instance_type: str = ANY
    zone: str = ANY
    capacity_type: str = ANY
    left: int = 0
    code: str = "InsufficientInstanceCapacity"

    def matches(self, instance_type: str, zone: str, capacity_type: str) -> bool:
        pairs = ((self.instance_type, instance_type), (self.zone, zone), (self.capacity_type, capacity_type))
        return all(wanted in (ANY, found) for wanted, found in pairs)


class Fault(msgspec.Struct):
    """The next `times` calls of an action fail so; with `after` they first take effect, and only the answer is lost."""

    action: str
    code: str
    message: str = "injected"
    status: int = 400
    times: int = 1
    delay: float = 0.0
    after: bool = False


class CallRecord(msgspec.Struct, frozen=True):
    """One API call: when it came (seconds since the epoch), a digest of its parameters, and the caller's access key."""

    service: str
    action: str
    region: str
    time: float
    digest: str
    caller: str


class FleetRecord(msgspec.Struct, frozen=True):
    """One CreateFleet that was no dry run: when it came and was answered (seconds since the epoch), and its outcome."""

    asked: float
    answered: float
    instances: tuple[str, ...]
    errors: tuple[str, ...]


@dataclass
class World:
    """The extension's state. Its lock guards everything here and moto's instances."""

    settings: MotoSettings
    describe_delay: float = 0.0
    #: The longest page of DescribeInstances.
    describe_page: int = 1000
    stock_outs: list[StockOut] = field(default_factory=list)
    #: Capacity reservations by ID.
    reservations: dict[str, Reserved] = field(default_factory=dict)
    #: Placement groups by ID.
    placement_groups: dict[str, Group] = field(default_factory=dict)
    shifts: list[Shift] = field(default_factory=list)
    associations: dict[str, Association] = field(default_factory=dict)
    quotas: dict[str, float] = field(default_factory=lambda: dict(QUOTAS))
    ailments: list[Ailment] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    calls: list[CallRecord] = field(default_factory=list)
    fleets: list[FleetRecord] = field(default_factory=list)
    #: Client token → (digest of the request, result).
    tokens: dict[str, tuple[str, Any]] = field(default_factory=dict)
    #: Instance ID → when it becomes visible; and (when, next state name, code) of those about to change.
    visible_at: dict[str, float] = field(default_factory=dict)
    changes: dict[str, tuple[float, Any, str, int]] = field(default_factory=dict)
    #: Instance ID → subnet and address of each interface of an instance that shuts down.
    addresses: dict[str, list[tuple[Any, str]]] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def record(self, call: tuple[str, str, str], body: bytes, caller: str) -> None:
        """Add a call, given as service, region and action, to the log."""
        service, region, action = call
        digest = hashlib.sha256(body).hexdigest()[:12]
        self.calls.append(CallRecord(service, action, region, time.time(), digest, caller))

    def record_fleet(self, asked: float, answer: dict[str, Any]) -> None:
        instances = tuple(id_ for row in answer["Instances"] for id_ in row["InstanceIds"])
        errors = tuple(row["ErrorCode"] for row in answer["Errors"])
        self.fleets.append(FleetRecord(asked, time.time(), instances, errors))

    def fault(self, action: str) -> Fault | None:
        """The fault that this call meets, used up by it."""
        with self.lock:
            for fault in self.faults:
                if fault.action == action and fault.times > 0:
                    fault.times -= 1
                    return fault
        return None

    def stock(self, instance_type: str, zone: str, capacity_type: str) -> StockOut | None:
        return next((out for out in self.stock_outs if out.matches(instance_type, zone, capacity_type)), None)

    def later(self, instance: Any, seconds: float, state: str, code: int) -> None:
        """Let an instance's state change after a while."""
        self.changes[instance.id] = (time.monotonic() + seconds, instance, state, code)

    def end(self, instance: Any) -> dict[str, Any]:
        """Terminate an instance, which is `shutting-down` for a while first; what TerminateInstances says of it.

        It has its addresses until it is terminated. Source: EC2 user guide, "Instance lifecycle".
        """
        before = {"Code": instance.state_code, "Name": instance.state}
        if instance.state not in ("shutting-down", "terminated"):
            addresses = [
                (nic.subnet, one["PrivateIpAddress"])
                for nic in instance.nics.values()
                for one in nic.private_ip_addresses
                if ip_address(one["PrivateIpAddress"]) in nic.subnet.cidr  # not of one whose subnet moto made up
            ]
            instance.ec2_backend.terminate_instances([instance.id])
            for subnet, address in addresses:
                subnet.del_subnet_ip(address)
                subnet.request_ip(address, instance)
            self.addresses[instance.id] = addresses
            instance._state.name, instance._state.code = "shutting-down", 32
            instance.ended = time.time()
            self.later(instance, self.settings.shutting_down, "terminated", 48)
        after = {"Code": instance.state_code, "Name": instance.state}
        return {"InstanceId": instance.id, "PreviousState": before, "CurrentState": after}

    @contextmanager
    def settled(self) -> Iterator[None]:
        """Within this block all states are those of now, and nobody else changes them."""
        with self.lock:
            now = time.monotonic()
            for instance_id, (due, instance, state, code) in list(self.changes.items()):
                if due <= now:
                    instance._state.name, instance._state.code = state, code
                    del self.changes[instance_id]
                    if state == "terminated":
                        self._release(instance_id)
            yield

    def _release(self, instance_id: str) -> None:
        for subnet, address in self.addresses.pop(instance_id, ()):
            subnet.del_subnet_ip(address)

    def hidden(self) -> set[str]:
        """Instances that DescribeInstances does not show yet."""
        now = time.monotonic()
        self.visible_at = {id_: at for id_, at in self.visible_at.items() if at > now}
        return set(self.visible_at)


def backend(service: str, region: str) -> Any:
    """moto's data of one service and region."""
    from moto import backends

    data: Any = backends.get_backend
    return data(service)[ACCOUNT][region]
