"""EC2 in memory: fleets, instances and their states, stock-outs, spot reclaims and the interruption queue.

A test steers it (`stock_out`, `reclaim_spot`, `send`) and inspects it (`instances`, `calls`); the Cloud port in
cloud.py is what the controller sees of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import product
from math import log

from kerf.ec2.errors import SUBNET_CODE
from kerf.model.aws.cloud import (
    SYSTEM_CHECK,
    CapacityReservation,
    FleetError,
    FleetRequest,
    FleetResult,
    HeldReservation,
    Impairment,
    Instance,
    Override,
    Region,
    Subnet,
    ZonalShift,
)
from kerf.model.aws.interruptions import Message
from kerf.ports import AlreadyGone, IdempotencyMismatch, Invalid
from kerf.sandbox.api.manifests import chance, digest, timestamp
from kerf.sandbox.aws.account import Tagged, select
from kerf.sandbox.aws.machines import Machine
from kerf.sandbox.aws.placement import PlacementGroups
from kerf.sandbox.aws.stocks import Stocks
from kerf.sandbox.clock import Agenda
from kerf.sandbox.weather import Weather
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import SelectorTerm

#: How long a received message stays hidden from the next receive.
VISIBILITY = timedelta(seconds=20)
_BATCH = 10
SPOT_NOTICE = timedelta(minutes=2)
#: So long after its end an instance can still be named.
REMEMBERED = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Logged:
    """One call that reached EC2."""

    at: datetime
    verb: str
    subject: str


@dataclass(slots=True)
class _Queued:
    message: Message
    hidden_until: datetime | None = None


@dataclass(slots=True)
class _Fleet:
    request: FleetRequest
    result: FleetResult = field(default_factory=FleetResult)


class Ec2:
    """The cloud's own side. `watch` callbacks hear of every state change of an instance."""

    def __init__(
        self,
        now: Callable[[], datetime],
        agenda: Agenda,
        region: Region,
        subnets: tuple[Subnet, ...],
        weather: Weather,
        seed: int,
    ) -> None:
        self._now, self._agenda, self._seed = now, agenda, seed
        self.region, self.weather = region, weather
        #: Every instance that ever was, by ID, terminated ones included.
        self.instances: dict[str, Machine] = {}
        self.placement_groups = PlacementGroups(self.instances.values())
        self.calls: list[Logged] = []
        self.subnets = {subnet.id: subnet for subnet in subnets}
        self.used_addresses: dict[str, int] = {}
        self.changes = 0
        #: Zones (by ID) that traffic is shifted away from, until when.
        self.shifts: dict[str, datetime] = {}
        self._reservations: dict[str, Tagged] = {}
        self.stocks = Stocks()
        self._left: dict[tuple[str, str, str], int] = {}
        self._fleets: dict[str, _Fleet] = {}
        self._queue: dict[str, _Queued] = {}
        self._sent = 0
        self._impairments: list[Impairment] = []
        self._listeners: list[Callable[[Machine], None]] = []

    # --- steering -------------------------------------------------------------------------------------------------
    def adopt(self, machine: Machine) -> None:
        """An instance that another cloud launched."""
        self.instances[machine.id] = machine
        self.used_addresses.setdefault(machine.subnet_id, 0)
        self.changes += 1

    def boot(self, machine: Machine) -> None:
        """Let an adopted instance that has no node yet start as if it had been launched now."""
        machine.state = "pending"
        self._agenda.after(self.weather.launch_seconds, lambda: self._start(machine))

    def left(self, reservation_id: str) -> int:
        """How many more machines may be launched into a reservation; 0 when there is none."""
        known = self._reservations.get(reservation_id)
        one = known.thing if known is not None else None
        return self._left_of(one) if isinstance(one, CapacityReservation) else 0

    def stock_out(self, instance_type: str, zone: str, capacity_type: str, until: datetime) -> None:
        """Nothing to have of this type there until then; `*` stands for every type, zone or capacity type."""
        self.stocks.outs[(instance_type, zone, capacity_type)] = until

    def leave(self, instance_type: str, zone: str, capacity_type: str, count: int) -> None:
        """Only so many more are to be had of this type there; `*` as above."""
        self._left[(instance_type, zone, capacity_type)] = count

    def reserve(self, reservation: CapacityReservation, tags: Mapping[str, str]) -> None:
        """The account has this capacity reservation now; `left` is what it has in all. Again: it is changed."""
        self._reservations[reservation.id] = Tagged(reservation, tags)

    def cancel_reservation(self, id_: str) -> None:
        """Instances in it run on, and are on demand from now on."""
        del self._reservations[id_]
        for machine in self.instances.values():
            if machine.reservation is not None and machine.reservation.id == id_:
                machine.reservation, machine.capacity_type = None, labels.ON_DEMAND
        self.changes += 1

    def reclaim_spot(self, instance_id: str) -> None:
        """Announce the end of a spot instance now; it ends two minutes later. Nothing if it is ending already."""
        machine = self.instances[instance_id]
        if machine.state not in ("pending", "running"):
            return
        action = {"instance-id": instance_id, "instance-action": "terminate"}
        self.send("aws.ec2", "EC2 Spot Instance Interruption Warning", action)
        self._agenda.at(self._now() + SPOT_NOTICE, lambda: self.end(machine, at_once=True))

    def impair(self, instance_id: str, category: str = SYSTEM_CHECK) -> None:
        """From now on EC2 says so of this instance, until it is ended or `recover`ed."""
        self._impairments.append(Impairment(instance_id, category, self._now(), "reachability failed"))
        self.changes += 1

    def recover(self, instance_id: str) -> None:
        self._impairments = [one for one in self._impairments if one.instance_id != instance_id]
        self.changes += 1

    def shift_away(self, zone_id: str, until: datetime) -> None:
        """Traffic is shifted away from this zone until then; again: for longer, or for shorter."""
        self.shifts[zone_id] = until
        self.changes += 1

    def zonal_shifts(self) -> tuple[ZonalShift, ...]:
        """Those that are not over."""
        return tuple(ZonalShift(id_, until) for id_, until in sorted(self.shifts.items()) if until > self._now())

    def impairments(self) -> tuple[Impairment, ...]:
        """Of instances that run."""
        return tuple(one for one in self._impairments if self.instances[one.instance_id].state == "running")

    def send(self, source: str, detail_type: str, detail: Mapping[str, object]) -> None:
        """Put an EventBridge event into the interruption queue."""
        self._sent += 1
        body = {
            "version": "0",
            "id": digest("event", self._sent)[:32],
            "source": source,
            "detail-type": detail_type,
            "time": timestamp(self._now()),
            "region": self.region.name,
            "detail": detail,
        }
        name = f"message-{self._sent:06d}"
        self._queue[name] = _Queued(Message(name, f"receipt-{name}", json.dumps(body), self._now()))
        self.changes += 1

    def listen(self, listener: Callable[[Machine], None]) -> None:
        self._listeners.append(listener)

    # --- what the port needs --------------------------------------------------------------------------------------
    def log(self, verb: str, subject: str) -> None:
        self.calls.append(Logged(self._now(), verb, subject))

    def describe(self) -> list[Instance]:
        """What DescribeInstances shows now: not the newest launches, and nothing that has terminated."""
        alive = (m for m in self.instances.values() if m.state != "terminated" and m.visible_at <= self._now())
        return [machine.shown() for machine in alive]

    def reserved(self, terms: Iterable[SelectorTerm]) -> tuple[CapacityReservation, ...]:
        """The reservations that these terms select, by ID, with the machines that are left of each."""
        found = (one.thing for one in select(self._reservations.values(), terms))
        rows = [replace(one, left=self._left_of(one)) for one in found if isinstance(one, CapacityReservation)]
        return tuple(sorted(rows, key=lambda one: one.id))

    def _left_of(self, one: CapacityReservation) -> int:
        alive = (m for m in self.instances.values() if m.state in ("pending", "running"))
        return one.left - sum(m.reservation is not None and m.reservation.id == one.id for m in alive)

    def fleet(self, request: FleetRequest) -> FleetResult:
        """CreateFleet of type instant. Raises IdempotencyMismatch, Invalid (a pool named twice)."""
        pools = [(one.instance_type, one.zone) for one in request.overrides]
        if len(set(pools)) < len(pools):
            raise Invalid("InvalidFleetConfig: The fleet configuration contains duplicate instance pools.")
        known = self._fleets.get(request.group)
        if known is not None:
            if known.request != request:
                raise IdempotencyMismatch(f"client token {request.group} was used with another request")
            return known.result
        errors: dict[tuple[str, str], FleetError] = {}
        launched = [m for _ in request.members if (m := self._launch_one(request, errors)) is not None]
        result = FleetResult(tuple(machine.shown() for machine in launched), tuple(errors.values()))
        self._fleets[request.group] = _Fleet(request, result)
        self.changes += 1
        return result

    def end(self, machine: Machine, *, at_once: bool = False) -> None:
        """Shut an instance down; what is shutting down already goes on as it was."""
        if machine.state in ("shutting-down", "terminated"):
            return
        machine.ended = self._now()
        self._turn(machine, "shutting-down")
        seconds = 0.0 if at_once else self.weather.shutdown_seconds
        self._agenda.after(seconds, lambda: self._turn(machine, "terminated"))

    def terminate(self, instance_id: str) -> None:
        """Raises AlreadyGone."""
        self.end(self._known(instance_id))

    def tag(self, instance_id: str, tags: Mapping[str, str]) -> None:
        """Raises AlreadyGone."""
        self._known(instance_id).tags.update(tags)
        self.changes += 1

    def receive(self) -> list[Message]:
        """Up to ten messages that no other reader holds."""
        now = self._now()
        free = [q for q in self._queue.values() if q.hidden_until is None or q.hidden_until <= now][:_BATCH]
        for queued in free:
            queued.hidden_until = now + VISIBILITY
        return [queued.message for queued in free]

    def delete_message(self, message: Message) -> None:
        self._queue.pop(message.id, None)

    # --- launching ------------------------------------------------------------------------------------------------
    def _launch_one(self, request: FleetRequest, errors: dict[tuple[str, str], FleetError]) -> Machine | None:
        """The first override that can be had, by the request's order or else by price; what could not is noted."""
        ordered = sorted(request.overrides, key=lambda o: (self._rank(request, o), o.instance_type, o.zone))
        for override in ordered:
            fault = self._fault(request, override)
            if fault is None:
                return self._launch(request, override)
            errors[(override.instance_type, override.zone)] = fault
        return None

    def _rank(self, request: FleetRequest, override: Override) -> int:
        """What EC2 itself asks for an override, unless the request says in which order to try."""
        kind, own = override.instance_type, override.price
        if request.prioritized:
            return own
        asked = self.region.price(kind, override.zone, spot=request.capacity_type == labels.SPOT)
        return own if asked is None else asked

    def _fault(self, request: FleetRequest, override: Override) -> FleetError | None:
        kind, zone, capacity_type = override.instance_type, override.zone, request.capacity_type
        held, group = request.reservation(override), request.placement_group
        if kind not in self.region.types or zone not in self.region.zones_by_type[kind]:
            return FleetError("Unsupported", f"{kind} is not supported in {zone}", kind, zone, True)
        subnet = self.subnets.get(override.subnet_id)
        if subnet is None:
            return FleetError("InvalidSubnetID.NotFound", f"{override.subnet_id} does not exist", kind, zone)
        if self.used_addresses.get(subnet.id, 0) >= subnet.free_addresses:
            text = f"{subnet.id} has no free addresses"
            return FleetError(SUBNET_CODE, text, kind, zone, True, subnet.id)
        if group and (fault := self.placement_groups.fault(group, kind, zone)) is not None:
            return fault
        if held is not None:
            return self._full(held, kind, zone)
        if self.out_of_stock(kind, zone, capacity_type):
            code = "UnfulfillableCapacity" if capacity_type == labels.SPOT else "InsufficientInstanceCapacity"
            return FleetError(code, f"no {capacity_type} capacity of {kind} in {zone}", kind, zone, True)
        return self._over_quota(kind, zone, capacity_type)

    def _over_quota(self, kind: str, zone: str, capacity_type: str) -> FleetError | None:
        """Why the account may not run one more instance of a type."""
        found = self.stocks.over_quota(self.instances.values(), self.region.types, kind, capacity_type)
        if found is None:
            return None
        used, most = found
        code = "MaxSpotInstanceCountExceeded" if capacity_type == labels.SPOT else "VcpuLimitExceeded"
        return FleetError(code, f"{used} of {most} {capacity_type} vCPUs are in use", kind, zone, True)

    def _full(self, held: HeldReservation, kind: str, zone: str) -> FleetError | None:
        """Why nothing can be launched into a reservation; a reservation with one left is never out of stock."""
        known = self._reservations.get(held.id)
        one = known.thing if known is not None else None
        if not isinstance(one, CapacityReservation) or (one.instance_type, one.zone) != (kind, zone):
            text = f"{held.id} is no reservation of {kind} in {zone}"
            return FleetError("InvalidCapacityReservationId.NotFound", text, kind, zone)
        if self._left_of(one) > 0:
            return None
        return FleetError("ReservationCapacityExceeded", f"{held.id} has no machine left", kind, zone, True)

    def out_of_stock(self, instance_type: str, zone: str, capacity_type: str) -> bool:
        for row in _rows(instance_type, zone, capacity_type):
            until = self.stocks.outs.get(row)
            if (until is not None and until > self._now()) or self._left.get(row) == 0:
                return True
        hour = int(self._now().timestamp()) // 3600
        die = chance("stock", self._seed, instance_type, zone, capacity_type, hour)
        return die < self.weather.stock_out_rate

    def _launch(self, request: FleetRequest, override: Override) -> Machine:
        number = len(self.instances) + 1
        template = next(t for t in request.templates if t.name == override.template)
        now, kind, zone = self._now(), override.instance_type, override.zone
        spot, held = request.capacity_type == labels.SPOT, template.reservation
        bought = self.region.spot[(kind, zone)] if spot else self.region.on_demand[kind]
        machine = Machine(
            id=f"i-{digest('instance', self._seed, number)[:17]}",
            number=number,
            instance_type=kind,
            zone=zone,
            zone_id=self.subnets[override.subnet_id].zone_id,
            capacity_type=request.capacity_type,
            image_id=override.image_id or template.image_id,
            subnet_id=override.subnet_id,
            security_group_ids=template.security_group_ids,
            user_data=template.user_data,
            volumes=template.block_device_mappings,
            launched=now,
            visible_at=now + timedelta(seconds=self.weather.describe_lag_seconds),
            tags=dict(request.tags),
            price=bought if held is None else 0,  # what is reserved is paid for already
            reservation=held,
            placement_group=template.placement_group,
            partition=self.placement_groups.partition(template, zone),
            profile=template.instance_profile,
            boots=chance("boot", self._seed, number) >= self.weather.boot_failure_rate,
            fit=chance("fit", self._seed, number) >= self.weather.ready_failure_rate,
        )
        self.instances[machine.id] = machine
        self.used_addresses[machine.subnet_id] = self.used_addresses.get(machine.subnet_id, 0) + 1
        for row in _rows(kind, zone, request.capacity_type):
            if row in self._left:
                self._left[row] -= 1
        self._agenda.after(self.weather.launch_seconds, lambda: self._start(machine))
        self._agenda.at(machine.visible_at, self._count)
        if spot and self.weather.spot_reclaim_per_hour > 0:
            hours = -log(1 - chance("reclaim", self._seed, number)) / self.weather.spot_reclaim_per_hour
            self._agenda.after(hours * 3600, lambda: self._reclaim_by_weather(machine))
        return machine

    def _reclaim_by_weather(self, machine: Machine) -> None:
        """Unless the weather has changed since the launch."""
        if self.weather.spot_reclaim_per_hour > 0:
            self.reclaim_spot(machine.id)

    def _start(self, machine: Machine) -> None:
        if machine.state == "pending":
            self._turn(machine, "running")

    def _turn(self, machine: Machine, state: str) -> None:
        machine.state = state
        if state == "terminated":
            self.used_addresses[machine.subnet_id] = self.used_addresses.get(machine.subnet_id, 0) - 1
        detail = {"instance-id": machine.id, "state": state}
        self.send("aws.ec2", "EC2 Instance State-change Notification", detail)
        for listener in self._listeners:
            listener(machine)

    def _count(self) -> None:
        self.changes += 1

    def _known(self, instance_id: str) -> Machine:
        """EC2 knows a terminated instance for a while yet."""
        machine = self.instances.get(instance_id)
        forgotten = machine is not None and machine.ended is not None and machine.ended + REMEMBERED <= self._now()
        if machine is None or forgotten:
            raise AlreadyGone(f"InvalidInstanceID.NotFound: {instance_id}")
        return machine


def _rows(instance_type: str, zone: str, capacity_type: str) -> Iterator[tuple[str, str, str]]:
    """The ways to say a part of the stock that an instance comes from."""
    return product((instance_type, "*"), (zone, "*"), (capacity_type, "*"))
