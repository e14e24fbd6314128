"""Calls of the cloud are counted and timed, and nothing else changes."""

from __future__ import annotations

import itertools

import pytest

from kerf.ports import Throttled
from kerf.telemetry.series.clouds import MeasuredCloud
from kerf.telemetry.series.metrics import Metrics


class Stub:
    """A cloud that describes no instances, and may not terminate."""

    def instances(self) -> tuple[()]:
        return ()

    def receive(self) -> tuple[()]:
        return ()

    def terminate(self, instance_id: str) -> None:
        raise Throttled(f"slower, {instance_id}")


def test_calls_are_timed_and_errors_counted() -> None:
    metrics = Metrics()
    cloud = MeasuredCloud(Stub(), metrics, clock=itertools.count(0.0, 2.0).__next__)  # type: ignore[arg-type]
    assert cloud.instances() == ()
    assert cloud.receive() == ()
    with pytest.raises(Throttled, match="i-1"):
        cloud.terminate("i-1")

    def value(name: str, method: str, **more: str) -> float | None:
        row = {"controller": "", "method": method, "provider": "aws", **more}
        return metrics.registry.get_sample_value(f"karpenter_cloudprovider_{name}", row)

    assert value("duration_seconds_sum", "List") == 2
    assert value("duration_seconds_count", "Delete") == 1
    assert value("duration_seconds_count", "Receive") is None
    assert value("errors_total", "Delete", error="Throttled") == 1
    assert value("errors_total", "List", error="Throttled") is None
