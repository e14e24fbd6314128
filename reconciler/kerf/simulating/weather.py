"""The weather of a scenario: each event as it happens to EC2 and the nodes of the sandbox."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Set
from dataclasses import replace
from datetime import datetime
from itertools import product
from typing import Any, Final

from kerf.model import kinds
from kerf.sandbox.aws.machines import Machine
from kerf.sandbox.nodes.kubelets import NOT_READY
from kerf.simulating import effects, scenario
from kerf.simulating.observing import Observer
from kerf.simulating.reading import camel
from kerf.simulating.shortages import QUOTA, STOCK, Shortage
from kerf.simulating.throttling import Window
from kerf.simulating.world import Stage, changed
from kerf_api import labels

_EVERY: Final = ("*",)


class Happenings:
    """Events on the stage of a scenario; the observer learns of changed prices."""

    def __init__(self, stage: Stage, observer: Observer) -> None:
        self._stage, self._observer = stage, observer
        self._world, self._ec2 = stage.world, stage.world.ec2
        self._path, self._windows = "", list[tuple[str, Window]]()
        self._prices: list[tuple[str, scenario.Price]] = []
        self._behaviours: list[tuple[str, scenario.NodeTimes, datetime]] = []
        #: Events that hit nothing, or less than they select.
        self.misses: list[str] = []
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

    def happen(self, number: int, event: scenario.Weather) -> None:
        """Let the event with this index happen now."""
        for name, act in self._kinds.items():
            given = getattr(event, name)
            if given is not None:
                self._path = f"weather[{number}].{camel(name)} at {event.at}"
                act(given)

    def end(self) -> None:
        """Note the weather that had no effect until now."""
        for path, window in self._windows:
            if not window.refused:
                self._no_effect(path, "no request was refused, because Kerf made none in this time")
        for one in self._stage.shortages.all:
            if not one.refused:
                stock = "no launch in this time tried one of these offerings"
                self._no_effect(one.path, stock if one.codes == STOCK else "no launch reached the quota")
        pools = [record.value for record in self._world.server.records(kinds.NODE_POOL)]
        for path, price in self._prices:
            if not effects.is_usable(price, self._ec2.region, pools):
                self._no_effect(path, "no NodePool allows one of these offerings")
        for path, times, since in self._behaviours:
            if not effects.is_met(times, self._ec2.instances.values(), since):
                self._no_effect(path, "no instance was launched afterwards")

    def _no_effect(self, path: str, why: str) -> None:
        self.misses.append(f"{path}: no effect: {why}")

    # --- instances and nodes --------------------------------------------------------------------------------------
    def _interrupt(self, given: scenario.Machines) -> None:
        for machine in self._chosen(given, spot=True):
            self._ec2.reclaim_spot(machine.id)

    def _fail(self, given: scenario.Machines) -> None:
        for machine in self._chosen(given):
            self._ec2.end(machine, at_once=True)

    def _missed(self, given: scenario.Machines, found: int, kind: str, zones: Set[str]) -> None:
        """Note a selection without an instance, or with less than its `count`."""
        wanted = (("in", given.zone), ("of type", given.instance_type), ("of NodePool", given.node_pool))
        which = "".join(f" {word} {value}" for word, value in wanted if value)
        if not found:
            others = f"; there were some in {', '.join(sorted(zones))}" if zones else ""
            self.misses.append(f"{self._path}: there was no {kind}{which}{others}")
        elif given.count is not None and found < given.count:
            have = f"only {found} {kind}{'' if found == 1 else 's'}{which}"
            self.misses.append(
                f"{self._path}: count is {given.count}, but there {'was' if found == 1 else 'were'} {have}"
            )

    def _unready(self, given: scenario.Machines) -> None:
        nodes = {record.value.spec.provider_id: record.key for record in self._world.server.records(kinds.NODE)}
        for machine in self._chosen(given, among=nodes):
            patch = {"metadata": {"annotations": {NOT_READY: "true"}}}
            self._world.server.patch(kinds.NODE, *nodes[machine.provider_id], patch)

    def _lose(self, given: scenario.ZoneLoss) -> None:
        self._close((_EVERY[0], given.zone, _EVERY[0]), self._world.clock.now() + given.for_.value)
        self._fail(scenario.Machines(zone=given.zone))

    def _slow(self, given: scenario.NodeTimes) -> None:
        before, self._ec2.weather = self._ec2.weather, changed(self._ec2.weather, given)
        if self._ec2.weather == before:
            self._no_effect(self._path, "new instances already have these values")
        else:
            self._behaviours.append((self._path, given, self._world.clock.now()))

    def _chosen(
        self, given: scenario.Machines, *, spot: bool = False, among: Container[str] | None = None
    ) -> list[Machine]:
        """The live instances that are selected, the oldest first; `among` are the provider IDs of those with a node."""
        found = [one for one in self._ec2.instances.values() if one.state in ("pending", "running")]
        found = [one for one in found if not spot or one.capacity_type == labels.SPOT]
        found = [one for one in found if among is None or one.provider_id in among]
        zones = {one.zone for one in found}
        found = [one for one in found if _selected(one, given)]
        self._missed(given, len(found), "spot instance" if spot else "instance" if among is None else "node", zones)
        return sorted(found, key=lambda one: one.number)[: given.count]

    # --- the account and its API ----------------------------------------------------------------------------------
    def _stock_out(self, given: scenario.StockOut) -> None:
        until = self._world.clock.now() + given.for_.value
        self._stage.shortages.all.append(Shortage(self._path, STOCK, given, until))
        rows = (given.instance_types or _EVERY, given.zones or _EVERY, given.capacity_types or _EVERY)
        for row in product(*rows):
            self._close(row, until)

    def _close(self, row: tuple[str, str, str], until: datetime) -> None:
        """A shorter stock-out does not end a longer one."""
        self._ec2.stock_out(*row, max(until, self._ec2.stocks.outs.get(row, until)))

    def _limit(self, given: scenario.Quota) -> None:
        of, shortages = scenario.Offerings(capacity_types=(given.capacity_type,)), self._stage.shortages.all
        for one in shortages:  # a later quota of the same capacity type replaces an earlier one
            if one.codes == QUOTA and one.of == of and one.until is None:
                one.until = self._world.clock.now()
        shortages.append(Shortage(self._path, QUOTA, of))
        self._ec2.stocks.quotas[given.capacity_type] = given.vcpus

    def _throttle(self, given: scenario.Throttle) -> None:
        until = self._world.clock.now() + given.for_.value
        self._windows.append((self._path, self._stage.throttling.begin(given.api, given.calls, until)))

    def _price(self, given: scenario.Price) -> None:
        """On-demand prices are those of a region: a selection of zones applies to spot prices."""
        region, kinds_ = self._ec2.region, given.capacity_types or (labels.ON_DEMAND, labels.SPOT)
        on_demand, spot = dict(region.on_demand), dict(region.spot)
        if labels.ON_DEMAND in kinds_:
            on_demand.update(dict(_multiplied(on_demand, given, lambda key: (key, ""))))
        if labels.SPOT in kinds_:
            spot.update(dict(_multiplied(spot, given, lambda key: key)))
        if (on_demand, spot) == (region.on_demand, region.spot):
            self._no_effect(self._path, f"factor {given.factor:g} changes no price")
        else:
            self._prices.append((self._path, given))
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
