"""Turns of the loop, as they are told one by one."""

from __future__ import annotations

import msgspec

from kerf.model import kinds
from kerf.model.kubernetes.objects import Pod
from kerf.sandbox.clock import VirtualClock
from kerf.sandbox.world import World
from kerf.telemetry.events import EventWriter
from kerf.telemetry.log.logs import silent
from kerf.telemetry.series.metrics import Metrics
from kerf.telemetry.telemetry import Telemetry
from kerf.telemetry.turns import Turn, Turns
from kerf_api.v1.meta import ObjectMeta


def test_the_latest_turns_are_kept_as_json() -> None:
    turns = Turns(kept=2)
    for seconds in (1.0, 2.0, 0.0):
        with turns.timed():
            if seconds:
                turns.decided(seconds)
    told = msgspec.json.decode(turns.as_json(), type=list[Turn])
    assert [turn.deciding_seconds for turn in told] == [2.0, 0.0]
    assert all(turn.seconds >= 0 and turn.cpu_seconds >= 0 and turn.ended > 0 for turn in told)


def test_a_turn_names_the_newest_pod_that_was_seen() -> None:
    kube, clock = World().kube, VirtualClock()
    told = Telemetry(silent(), Metrics(), EventWriter(kube, clock), clock, turns_kept=1)
    for version in ("9", "12", "10", "opaque"):
        pod = Pod(metadata=ObjectMeta(name="p", namespace="d", resource_version=version))
        told.object_changed(kinds.POD, None, pod)
    with told.turns.timed():
        pass
    assert told.turns.latest()[-1].newest_pod == 12


def test_where_nobody_profiles_none_is_kept() -> None:
    told = Telemetry.quiet(World().kube, VirtualClock())
    with told.turns.timed():
        pass
    assert told.turns.latest() == []
