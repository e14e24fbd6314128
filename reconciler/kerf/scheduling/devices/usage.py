"""What of devices is taken: whole ones, amounts of those that may be had several times, and counters that some share.

A device that allows several allocations is shared by the amounts of its capacity: a request that names none gets the
default, one that names some is rounded up to what the device's policy admits.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil

from kerf.model.kubernetes.devices import DeviceCapacity, RequestPolicy, SliceDevice
from kerf.model.kubernetes.objects import Quantities
from kerf.scheduling.devices.pools import Device, DeviceId
from kerf_api import quantity

#: What is taken of a device that is shared, by capacity; any other is absent, for all of it is taken.
Share = Mapping[str, Fraction]


class Usage:
    """What is taken of some devices. Everything that was taken can be given back."""

    def __init__(self) -> None:
        self._holders: dict[DeviceId, int] = {}
        self._amounts: dict[tuple[DeviceId, str], Fraction] = {}
        self._counters: dict[tuple[str, str, str, str], Fraction] = {}

    def admits(self, device: Device, share: Share) -> bool:
        """Whether so much more of the device may be taken."""
        held = self._holders.get(device.id, 0)
        if not held:
            return self._within_budget(device)
        if not device.spec.allow_multiple_allocations:
            return False
        return all(
            self._amounts.get((device.id, name), Fraction(0)) + amount
            <= quantity.parse(device.spec.capacity[name].value)
            for name, amount in share.items()
        )

    def _within_budget(self, device: Device) -> bool:
        for need in device.spec.consumes_counters:
            for name, counter in need.counters.items():
                taken = self._counters.get((device.driver, device.pool, need.counter_set, name), Fraction(0))
                if taken + quantity.parse(counter.value) > device.budgets[need.counter_set, name]:
                    return False
        return True

    def take(self, device: Device, share: Share) -> None:
        self._count(device, share, 1)

    def give_back(self, device: Device, share: Share) -> None:
        self._count(device, share, -1)

    def _count(self, device: Device, share: Share, sign: int) -> None:
        before = self._holders.get(device.id, 0)
        self._holders[device.id] = before + sign
        for name, amount in share.items():
            key = (device.id, name)
            self._amounts[key] = self._amounts.get(key, Fraction(0)) + sign * amount
        if not before or not before + sign:  # the counters are the device's, however many share it
            for need in device.spec.consumes_counters:
                for name, counter in need.counters.items():
                    place = (device.driver, device.pool, need.counter_set, name)
                    amount = sign * quantity.parse(counter.value)
                    self._counters[place] = self._counters.get(place, Fraction(0)) + amount


def share_of(device: SliceDevice, asked: Quantities) -> Share | None:
    """What a request for these amounts takes of the device; None when it has not so much, or nothing of the kind."""
    if any(name not in device.capacity for name in asked):
        return None
    if not device.allow_multiple_allocations:
        enough = all(quantity.parse(device.capacity[n].value) >= quantity.parse(text) for n, text in asked.items())
        return {} if enough else None
    found: dict[str, Fraction] = {}
    for name, capacity in device.capacity.items():
        amount = _amount(capacity, asked.get(name))
        if amount is None or amount > quantity.parse(capacity.value):
            return None
        found[name] = amount
    return found


def _amount(capacity: DeviceCapacity, asked: str | int | float | None) -> Fraction | None:
    policy = capacity.request_policy
    if asked is None:
        default = None if policy is None else policy.default
        return quantity.parse(capacity.value if default is None else default)
    return quantity.parse(asked) if policy is None else _rounded(quantity.parse(asked), policy)


def _rounded(wanted: Fraction, policy: RequestPolicy) -> Fraction | None:
    """The least amount that the policy admits and that is enough; None when there is none."""
    if policy.valid_values:
        return min((v for v in map(quantity.parse, policy.valid_values) if v >= wanted), default=None)
    if policy.valid_range is None:
        return wanted
    least = quantity.parse(policy.valid_range.min)
    if wanted <= least:
        return least
    if policy.valid_range.step is not None:
        step = quantity.parse(policy.valid_range.step)
        wanted = least + ceil((wanted - least) / step) * step if step > 0 else wanted
    most = policy.valid_range.max
    return wanted if most is None or wanted <= quantity.parse(most) else None
