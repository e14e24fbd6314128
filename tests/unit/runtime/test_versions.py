"""Which Kubernetes version counts while a control plane is upgraded, and for which replica."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kerf.runtime.state.versions import KubernetesVersion
from tests.unit.lifecycle.world import NOW


def after(*answers: tuple[int, str]) -> KubernetesVersion:
    """Answers by the second at which they came."""
    made = KubernetesVersion()
    for second, version in answers:
        made.answered(version, NOW + timedelta(seconds=second))
    return made


@pytest.mark.parametrize(
    ("answers", "counted", "settled"),
    [
        ([(0, "1.35")], "1.35", False),
        ([(0, "1.35"), (60, "1.35")], "1.35", True),
        ([(0, "1.35"), (60, "1.35"), (360, "1.36")], "1.35", False),
        ([(0, "1.35"), (60, "1.35"), (360, "1.36"), (419, "1.36")], "1.35", False),
        ([(0, "1.35"), (60, "1.35"), (360, "1.36"), (420, "1.36")], "1.36", True),
        ([(0, "1.35"), (60, "1.35"), (360, "1.36"), (390, "1.35"), (420, "1.36")], "1.35", False),
        ([(0, "1.35"), (60, "1.35"), (360, "1.36"), (390, "1.35"), (420, "1.35")], "1.35", True),
        ([(0, "1.36"), (60, "1.36"), (360, "1.35"), (500, "1.35"), (900, "1.35")], "1.36", False),
        ([(0, "1.36"), (30, "1.35"), (90, "1.35")], "1.35", True),
        ([(0, "1.9"), (60, "1.9"), (70, "1.10"), (130, "1.10")], "1.10", True),
        ([(0, "")], "", False),
        ([(0, "1.35"), (60, "1.35"), (90, "")], "1.35", True),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else None,
)
def test_two_equal_answers_a_minute_apart_count_and_a_confirmed_version_never_goes_down(
    answers: list[tuple[int, str]], counted: str, settled: bool
) -> None:
    found = after(*answers)
    assert (found.counted, found.settled) == (counted, settled)


def test_a_clock_that_is_set_back_confirms_nothing() -> None:
    found = after((0, "1.35"), (60, "1.35"), (3600, "1.36"), (10, "1.36"))
    assert found.counted == "1.35"
    assert found.answered("1.36", NOW + timedelta(seconds=70)) == "1.36"


@pytest.mark.parametrize(
    ("leaders", "counted"),
    [("1.36", "1.36"), ("1.35", "1.35"), ("1.34", "1.35"), ("1.37", "1.35"), ("", "1.35"), ("1.x", "1.35")],
)
def test_another_replica_takes_the_next_version_from_the_leader(leaders: str, counted: str) -> None:
    found = after((0, "1.35"), (60, "1.35"))
    assert found.noted(leaders) == counted
    assert found.answered("1.35", NOW + timedelta(seconds=300)) == counted


def test_the_version_on_a_lease_that_was_left_behind_gives_way_to_two_answers() -> None:
    found = after((0, "1.35"))
    assert found.noted("1.36") == "1.36"
    assert found.noted("") == "1.36"
    assert found.answered("1.35", NOW + timedelta(seconds=61)) == "1.35"


def test_a_replica_that_started_in_the_middle_agrees_with_the_leader() -> None:
    """Its answers come from an API server that is not upgraded yet."""
    found = KubernetesVersion()
    found.noted("1.36")
    for second in (0, 61, 122):
        assert found.answered("1.35", NOW + timedelta(seconds=second)) == "1.36"
    assert found.answered("1.36", NOW + timedelta(seconds=200)) == "1.36"
    assert not found.settled
    assert found.answered("1.36", NOW + timedelta(seconds=261)) == "1.36"
    assert found.settled


def test_a_version_without_numbers_stays_without_a_leader() -> None:
    found = after((0, "latest"))
    assert found.noted("1.36") == "latest"
    assert found.noted("") == "latest"


def test_the_leaders_version_waits_for_the_first_answer() -> None:
    found = KubernetesVersion()
    assert found.noted("1.36") == ""
    assert found.answered("1.35", NOW) == "1.36"
