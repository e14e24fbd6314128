"""What ails instances is told once each, and forgotten when nobody looks any more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kerf.model.aws.cloud import INSTANCE_CHECK, SYSTEM_CHECK, Impairment
from kerf.runtime.state.impairments import KEPT, Impairments
from kerf.runtime.state.notices import ImpairmentFound, Notices

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SYSTEM, OTHER = Impairment("i-1", SYSTEM_CHECK, NOW), Impairment("i-2", SYSTEM_CHECK, NOW)
INSTANCE = Impairment("i-1", INSTANCE_CHECK, NOW)
OURS = {"i-1", "i-2"}


def test_211_an_impairment_is_counted_once_until_the_instance_recovers() -> None:
    notices = Notices()
    impairments = Impairments(notices)
    impairments.examined([SYSTEM], OURS, NOW)
    impairments.examined([SYSTEM], OURS, NOW)
    assert notices.drain() == [ImpairmentFound(SYSTEM_CHECK)]
    impairments.examined([SYSTEM, INSTANCE, OTHER], OURS, NOW)
    assert notices.drain() == [ImpairmentFound(INSTANCE_CHECK), ImpairmentFound(SYSTEM_CHECK)]
    impairments.examined([], OURS, NOW)
    impairments.examined([SYSTEM], OURS, NOW)
    assert notices.drain() == [ImpairmentFound(SYSTEM_CHECK)]


def test_instances_of_others_are_passed_over() -> None:
    notices = Notices()
    impairments = Impairments(notices)
    impairments.examined([SYSTEM, OTHER], {"i-2"}, NOW)
    assert (notices.drain(), dict(impairments.at(NOW))) == ([ImpairmentFound(SYSTEM_CHECK)], {"i-2": (OTHER,)})


def test_what_was_seen_long_ago_or_later_than_now_is_no_ground_for_anything() -> None:
    impairments = Impairments(Notices())
    assert impairments.at(NOW) == {}
    impairments.examined([SYSTEM], OURS, NOW)
    assert set(impairments.at(NOW + KEPT)) == {"i-1"}
    assert impairments.at(NOW + KEPT + timedelta(seconds=1)) == {}
    assert impairments.at(NOW - timedelta(seconds=1)) == {}
