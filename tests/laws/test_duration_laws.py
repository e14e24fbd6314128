"""Durations: a text is the sum of its parts, and what is written reads back."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf_api import durations

SECONDS = {"h": 3600, "m": 60, "s": 1}
parts = st.lists(st.tuples(st.integers(0, 10**5), st.sampled_from("hms")), min_size=1, max_size=6)


@given(parts)
def test_a_text_is_the_sum_of_its_parts(found: list[tuple[int, str]]) -> None:
    text = "".join(f"{number}{unit}" for number, unit in found)
    assert durations.parse(text) == timedelta(seconds=sum(number * SECONDS[unit] for number, unit in found))
    assert durations.parse_nillable(text) == durations.parse(text)


@given(st.integers(0, durations.LONGEST_SECONDS))
def test_what_is_written_reads_back(seconds: int) -> None:
    text = durations.go_text(timedelta(seconds=seconds))
    assert durations.parse(text) == timedelta(seconds=seconds)
    if seconds and seconds < 10**9:
        assert durations.parse_go(text) == timedelta(seconds=seconds)


@given(st.integers(durations.LONGEST_SECONDS + 1, 10**30))
def test_what_go_cannot_hold_is_refused(seconds: int) -> None:
    with pytest.raises(ValueError, match="longest"):
        durations.parse(f"{seconds}s")


@given(st.text("0123456789hms. -+dNever", max_size=8))
def test_a_text_is_read_or_refused(text: str) -> None:
    if re.fullmatch("([0-9]+[hms])+", text):
        assert durations.parse(text) >= timedelta()
    else:
        with pytest.raises(ValueError, match=re.escape(repr(text))):
            durations.parse(text)
