"""What ails instances is told once each, and forgotten when nobody looks any more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kerf.model.aws.cloud import INSTANCE_CHECK, SYSTEM_CHECK, Impairment
from kerf.runtime.state.ailments import KEPT, Ailments
from kerf.runtime.state.notices import AilmentFound, Notices

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SYSTEM, OTHER = Impairment("i-1", SYSTEM_CHECK, NOW), Impairment("i-2", SYSTEM_CHECK, NOW)
INSTANCE = Impairment("i-1", INSTANCE_CHECK, NOW)
OURS = {"i-1", "i-2"}


def test_211_an_ailment_is_counted_once_until_the_instance_recovers() -> None:
    notices = Notices()
    ailments = Ailments(notices)
    ailments.examined([SYSTEM], OURS, NOW)
    ailments.examined([SYSTEM], OURS, NOW)
    assert notices.drain() == [AilmentFound(SYSTEM_CHECK)]
    ailments.examined([SYSTEM, INSTANCE, OTHER], OURS, NOW)
    assert notices.drain() == [AilmentFound(INSTANCE_CHECK), AilmentFound(SYSTEM_CHECK)]
    ailments.examined([], OURS, NOW)
    ailments.examined([SYSTEM], OURS, NOW)
    assert notices.drain() == [AilmentFound(SYSTEM_CHECK)]


def test_instances_of_others_are_passed_over() -> None:
    notices = Notices()
    ailments = Ailments(notices)
    ailments.examined([SYSTEM, OTHER], {"i-2"}, NOW)
    assert (notices.drain(), dict(ailments.at(NOW))) == ([AilmentFound(SYSTEM_CHECK)], {"i-2": (OTHER,)})


def test_what_was_seen_long_ago_or_later_than_now_is_no_ground_for_anything() -> None:
    ailments = Ailments(Notices())
    assert ailments.at(NOW) == {}
    ailments.examined([SYSTEM], OURS, NOW)
    assert set(ailments.at(NOW + KEPT)) == {"i-1"}
    assert ailments.at(NOW + KEPT + timedelta(seconds=1)) == {}
    assert ailments.at(NOW - timedelta(seconds=1)) == {}
