"""Devices that a claim does not select cost its search nothing but one look each."""

from __future__ import annotations

import pytest

from kerf.model.kubernetes.devices import SliceDevice
from kerf.scheduling.devices.asks import Asked, Choice
from kerf.scheduling.devices.pools import ANYWHERE, Device
from kerf.scheduling.devices.search import MOST_STEPS, Matching, Search
from kerf.scheduling.devices.usage import Share, Usage
from kerf_api.requirements import EMPTY
from kerf_api.v1.meta import decode


class _Counted(Matching):
    looks = 0

    def share(self, choice: Choice, device: Device) -> Share | None:
        self.looks += 1
        return super().share(choice, device)


def _devices(driver: str, number: int) -> list[Device]:
    return [Device(driver, "p", decode(SliceDevice, {"name": f"d{n}"}), (ANYWHERE,)) for n in range(number)]


@pytest.mark.parametrize("others", [0, 500])
def test_each_device_is_looked_at_once_for_each_request(others: int) -> None:
    devices = [*_devices("a.example.com", 18), *_devices("z.example.com", others)]
    choices = [
        Choice(name, ('device.driver == "a.example.com"',), n, False, (), {}) for name, n in (("r", 9), ("s", 10))
    ]
    asked = [Asked("default/c", b"", tuple((choice,) for choice in choices), ())]
    matching, usage = _Counted(), Usage()
    search = Search(asked, devices, {}, lambda _: usage, lambda requirements, _: requirements, matching)
    assert search.run(EMPTY) is None
    assert search.steps >= MOST_STEPS
    assert matching.looks == 2 * len(devices)
