"""An instance that was ended before Describe ever showed it is believed in a little longer, not a minute."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kerf.model.aws.cloud import FleetRequest, FleetResult, Instance
from kerf.runtime.state.fleet import ENDED_UNSEEN, SHOWN_AFTER, Fleet

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
REQUEST = FleetRequest(group="g", capacity_type="spot", members=("a",), templates=(), overrides=())


def launched() -> Fleet:
    fleet = Fleet()
    instance = Instance("i-1", "m5.large", "z", "pending", "spot", NOW)
    fleet.launched(REQUEST, FleetResult((instance,)), NOW)
    return fleet


def test_ended_before_it_was_shown() -> None:
    fleet = launched()
    fleet.terminated("i-1", NOW + SECOND)
    fleet.described((), NOW + ENDED_UNSEEN)
    assert fleet.instances["i-1"].state == "shutting-down"
    fleet.described((), NOW + SECOND + ENDED_UNSEEN)
    assert not fleet.instances


def test_one_that_nobody_ended_is_waited_for() -> None:
    fleet = launched()
    fleet.described((), NOW + SECOND + ENDED_UNSEEN)
    assert fleet.instances["i-1"].state == "pending"
    fleet.described((), NOW + SHOWN_AFTER)
    assert not fleet.instances
