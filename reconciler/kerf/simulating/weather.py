"""The weather of a scenario: each event as it happens to EC2 and the nodes of the sandbox."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any, Final

from kerf.model import kinds
from kerf.sandbox.aws.machines import Machine
from kerf.sandbox.nodes.kubelets import NOT_READY
from kerf.simulating import scenario
from kerf.simulating.observing import Observer
from kerf.simulating.world import Stage, changed
from kerf_api import labels

_EVERY: Final = ("*",)


class Happenings:
    """Events on the stage of a scenario; the observer learns of changed prices."""

    def __init__(self, stage: Stage, observer: Observer) -> None:
        self._stage, self._observer = stage, observer
        self._world, self._ec2 = stage.world, stage.world.ec2
        self._kinds: Mapping[str, Callable[[Any], None]] = {
            "spot_interruption": self._interrupt,
            "instance_failure": self._fail,
            "node_not_ready": self._unready,
            "zone_loss": self._lose,
            "stock_out": self._stock_out,
            "price": self._price,
            "quota": self._limit,
            "throttle": self._throttle,
            "nodes": self._slow,
        }

    def happen(self, event: scenario.Weather) -> None:
        """Let the event happen now."""
        for name, act in self._kinds.items():
            given = getattr(event, name)
            if given is not None:
                act(given)

    # --- instances and nodes --------------------------------------------------------------------------------------
    def _interrupt(self, given: scenario.Machines) -> None:
        for machine in self._chosen(given, spot=True):
            self._ec2.reclaim_spot(machine.id)

    def _fail(self, given: scenario.Machines) -> None:
        for machine in self._chosen(given):
            self._ec2.end(machine, at_once=True)

    def _unready(self, given: scenario.Machines) -> None:
        ids = {machine.provider_id for machine in self._chosen(given)}
        for record in list(self._world.server.records(kinds.NODE)):
            if record.value.spec.provider_id in ids:
                patch = {"metadata": {"annotations": {NOT_READY: "true"}}}
                self._world.server.patch(kinds.NODE, *record.key, patch)

    def _lose(self, given: scenario.ZoneLoss) -> None:
        self._ec2.stock_out("*", given.zone, "*", self._world.clock.now() + given.for_.value)
        self._fail(scenario.Machines(zone=given.zone))

    def _slow(self, given: scenario.NodeTimes) -> None:
        self._ec2.weather = changed(self._ec2.weather, given)

    def _chosen(self, given: scenario.Machines, *, spot: bool = False) -> list[Machine]:
        """The live instances that are selected, the oldest first."""
        found = [one for one in self._ec2.instances.values() if one.state in ("pending", "running")]
        found = [one for one in found if _selected(one, given) and (not spot or one.capacity_type == labels.SPOT)]
        return sorted(found, key=lambda one: one.number)[: given.count]

    # --- the account and its API ----------------------------------------------------------------------------------
    def _stock_out(self, given: scenario.StockOut) -> None:
        until = self._world.clock.now() + given.for_.value
        rows = (given.instance_types or _EVERY, given.zones or _EVERY, given.capacity_types or _EVERY)
        for row in product(*rows):
            self._ec2.stock_out(*row, until)

    def _limit(self, given: scenario.Quota) -> None:
        self._ec2.stocks.quotas[given.capacity_type] = given.vcpus

    def _throttle(self, given: scenario.Throttle) -> None:
        self._stage.throttling.begin(given.api, given.calls, self._world.clock.now() + given.for_.value)

    def _price(self, given: scenario.Price) -> None:
        """On-demand prices are those of a region: a selection of zones applies to spot prices."""
        region, kinds_ = self._ec2.region, given.capacity_types or (labels.ON_DEMAND, labels.SPOT)
        on_demand, spot = dict(region.on_demand), dict(region.spot)
        if labels.ON_DEMAND in kinds_:
            on_demand.update(dict(_multiplied(on_demand, given, lambda key: (key, ""))))
        if labels.SPOT in kinds_:
            spot.update(dict(_multiplied(spot, given, lambda key: key)))
        self._ec2.region = replace(region, on_demand=on_demand, spot=spot)
        self._ec2.changes += 1
        for machine in self._ec2.instances.values():
            own = self._ec2.region.price(machine.instance_type, machine.zone, spot=machine.capacity_type == labels.SPOT)
            if machine.price:  # a reservation is paid for already
                machine.price = own or machine.price
        self._observer.priced()


def _selected(machine: Machine, given: scenario.Machines) -> bool:
    own = (machine.zone, machine.instance_type, machine.tags.get(labels.TAG_NODEPOOL, ""))
    wanted = (given.zone, given.instance_type, given.node_pool)
    return all(want in ("", have) for want, have in zip(wanted, own, strict=True))


def _multiplied(
    prices: Mapping[Any, int], given: scenario.Price, place: Callable[[Any], tuple[str, str]]
) -> Iterator[tuple[Any, int]]:
    """The selected prices times the factor, in millionths of a dollar per hour."""
    for key, price in prices.items():
        kind, zone = place(key)
        if kind in (given.instance_types or (kind,)) and (not zone or zone in (given.zones or (zone,))):
            yield key, round(price * given.factor)
