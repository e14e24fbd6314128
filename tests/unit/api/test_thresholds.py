"""What consolidation has to bring, as people write it."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction
from itertools import pairwise

import pytest

from kerf_api import labels, thresholds
from kerf_api.thresholds import Saving, Thresholds, saving

ASKED = Thresholds(saving("10%"), timedelta(hours=1), timedelta(minutes=30))


@pytest.mark.parametrize(
    ("text", "share", "micro"),
    [
        ("5%", Fraction(1, 20), 0),
        ("2.5%", Fraction(1, 40), 0),
        ("100%", Fraction(1), 0),
        ("0.02", 0, 20_000),
        ("1", 0, 1_000_000),
        ("0.0000001", 0, 1),
        ("0", 0, 0),
        ("0%", 0, 0),
    ],
)
def test_a_saving_is_a_share_or_dollars(text: str, share: Fraction | int, micro: int) -> None:
    assert saving(text) == Saving(Fraction(share), micro)


@pytest.mark.parametrize("text", ["", "5 %", "%", "-1", "1e3", "$1", "0,5", "100.1%", "five", "\u0665%", "1.", ".5"])
def test_what_is_neither_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        saving(text)


@pytest.mark.parametrize("text", ["5%", "0.02", "0", "12.5%", "3", "0.000001"])
def test_it_is_shown_as_it_is_written(text: str) -> None:
    assert str(saving(text)) == text


def test_what_has_to_be_saved_is_never_rounded_down() -> None:
    assert [saving("10%").least(price) for price in (0, 1, 10, 11)] == [0, 1, 1, 2]
    assert [saving("0.5").least(price) for price in (0, 10)] == [500_000, 500_000]
    assert all(one <= two for one, two in pairwise(saving("7%").least(p) for p in range(50)))


def test_an_annotation_beats_the_setting_and_nothing_asks_for_nothing() -> None:
    own = {labels.MINIMUM_SAVING: "0", labels.MINIMUM_AGE: "1h"}
    assert thresholds.of(own, ASKED) == Thresholds(Saving(), timedelta(hours=1), timedelta(hours=1))
    assert thresholds.of({"a": "b"}, ASKED) is ASKED


def test_what_cannot_be_read_is_named_with_what_would_be_right() -> None:
    own = {labels.PAYBACK_TIME: "1d", labels.MINIMUM_SAVING: "5%"}
    with pytest.raises(ValueError, match=r"annotation kerf.sh/consolidation-payback-time must be a duration.*'1d'"):
        thresholds.of(own, ASKED)
    assert [key for key, _ in thresholds.faults(own)] == [labels.PAYBACK_TIME]
