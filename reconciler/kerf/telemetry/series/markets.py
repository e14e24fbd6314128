"""What EC2 sells and what it refused, in numbers: offerings and types as they are, launches and ends that failed.

Types in zones are many: their series are written at a scrape, from what the last look saw, a piece at a time.
Source: AWS provider reference §2.8, §2.11, §4.1, §10.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kerf.ec2 import errors
from kerf.model.aws.cloud import FleetResult, Instance, LaunchTemplate
from kerf.model.aws.instance_type import Catalogue, InstanceType, Offering, OfferingKey
from kerf.model.plan import Action, EnsureTemplate, LaunchInstances, TerminateInstance
from kerf.model.snapshot import Snapshot
from kerf.telemetry.catalogue.names import METRICS
from kerf.telemetry.precedence import GiveWay, in_steps
from kerf.telemetry.series.exposition import head, line
from kerf.telemetry.series.metrics import Metrics
from kerf_api import labels

_TYPE = "karpenter_cloudprovider_instance_type"
_CPU, _MEMORY = f"{_TYPE}_cpu_cores", f"{_TYPE}_memory_bytes"
_AVAILABLE, _PRICE = f"{_TYPE}_offering_available", f"{_TYPE}_offering_price_estimate"
#: Series that are written in one step.
_STEP = 200
_MICRO = 1_000_000
#: Type, zone and capacity type; whether it can be had of any class, and at what price (0: not known).
_Market = tuple[str, str, str]
_State = tuple[bool, int]


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a look saw of offerings, by node class, and which of them are out of stock."""

    catalogues: Mapping[str, Catalogue] = field(default_factory=dict)
    closed: frozenset[OfferingKey] = frozenset()
    reserved_capacity: bool = False


class Markets:
    """`seen` and `done` are for the loop's thread; any may ask for the text."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._instances: Mapping[str, Instance] = {}
        self._seen = _Seen()

    def seen(self, snapshot: Snapshot) -> None:
        """The series are those of this reconcile."""
        closed = frozenset(key for key, until in snapshot.out_of_stock.items() if until > snapshot.now)
        self._instances = snapshot.instances
        self._seen = _Seen(snapshot.catalogues, closed, snapshot.settings.gates.reserved_capacity)

    def done(self, action: Action, value: object, error: Exception | None) -> None:
        """For how many a launch was, and what gave less than was asked for."""
        if isinstance(action, EnsureTemplate) and error is None:
            self._user_data(action.template)
        if isinstance(action, LaunchInstances):
            for template in action.request.templates if error is None else ():
                self._user_data(template)
            self._metrics.batch_size.labels("create_fleet").observe(len(action.claims))
        if isinstance(action, LaunchInstances) and isinstance(value, FleetResult):
            zone_ids = {override.zone: override.zone_id for override in action.request.overrides}
            for failure in value.errors:
                reason, _ = errors.classify(f"{failure.code}: {failure.message}")
                where = failure.zone, zone_ids.get(failure.zone, ""), action.request.capacity_type
                self._metrics.launch_failures.labels(*where, reason).inc()
        elif isinstance(action, TerminateInstance) and error is not None:
            known = self._instances.get(action.instance_id)
            where_from = ("", "") if known is None else (known.zone, known.zone_id)
            self._metrics.termination_failures.labels(*where_from).inc()

    def _user_data(self, template: LaunchTemplate) -> None:
        if node_class := template.tags.get(labels.TAG_NODECLASS):
            self._metrics.user_data.labels(node_class).set(len(template.user_data.encode()))

    def text(self, give_way: GiveWay) -> bytes:
        """All series, in Prometheus' text format."""
        return "".join(in_steps(_lines(self._seen), give_way, _STEP)).encode()


def _lines(seen: _Seen) -> Iterator[str]:
    if not seen.catalogues:
        return
    types = [kind for _, catalogue in sorted(seen.catalogues.items()) for kind in catalogue]
    by_name = {kind.name: kind for kind in types}
    yield from _sizes(_CPU, by_name, "cpu", 1000)
    yield from _sizes(_MEMORY, by_name, "memory", 1)
    states = _states(seen, types)
    yield head(_AVAILABLE, METRICS[_AVAILABLE].about)
    for market, (available, _) in states.items():
        yield line(_AVAILABLE, _labels(market), float(available))
    yield head(_PRICE, METRICS[_PRICE].about)
    for market, (_, price) in states.items():
        yield line(_PRICE, _labels(market), price / _MICRO)


def _sizes(name: str, types: Mapping[str, InstanceType], resource: str, unit: int) -> Iterator[str]:
    yield head(name, METRICS[name].about)
    for type_name, kind in sorted(types.items()):
        yield line(name, (("instance_type", type_name),), kind.capacity[resource] / unit)


def _states(seen: _Seen, types: Iterable[InstanceType]) -> dict[_Market, _State]:
    """Every market once. With the gate for them there is a reserved one in each zone, though nothing is reserved."""
    found: dict[_Market, _State] = {}
    for kind in types:
        for offering in kind.offerings:
            _put(found, offering, offering.available and seen.closed.isdisjoint(offering.keys))
            if seen.reserved_capacity:
                found.setdefault((kind.name, offering.zone, labels.RESERVED), (False, 0))
    return found


def _put(found: dict[_Market, _State], offering: Offering, available: bool) -> None:
    market = (offering.instance_type, offering.zone, offering.capacity_type)
    before, price = found.get(market, (False, 0))
    found[market] = (before or available, offering.price or price)


def _labels(market: _Market) -> tuple[tuple[str, str], ...]:
    name, zone, capacity_type = market
    return (("instance_type", name), ("capacity_type", capacity_type), ("zone", zone))
