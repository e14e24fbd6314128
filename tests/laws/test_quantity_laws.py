"""Quantities are exact: reading, writing and adding lose nothing."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import quantity
from api.resources import Resources, total

NAMES = ("cpu", "memory", "ephemeral-storage", "pods", "nvidia.com/gpu", "hugepages-2Mi")
SUFFIXES = ("", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-3", "e+2")
amounts = st.integers(0, 2**60)
bags = st.dictionaries(st.sampled_from(NAMES), amounts, max_size=5).map(Resources)


@given(st.sampled_from(NAMES), amounts)
def test_what_is_written_reads_back(name: str, amount: int) -> None:
    assert quantity.amount(name, quantity.text(name, amount)) == amount


@given(st.integers(0, 10**9), st.integers(0, 999), st.sampled_from(SUFFIXES))
def test_a_decimal_is_its_parts(whole: int, thousandths: int, suffix: str) -> None:
    unit = quantity.parse(f"1{suffix}")
    assert quantity.parse(f"{whole}.{thousandths:03}{suffix}") == (whole + Fraction(thousandths, 1000)) * unit


@given(st.integers(0, 10**9), st.sampled_from(SUFFIXES))
def test_a_sign_negates(number: int, suffix: str) -> None:
    assert quantity.parse(f"-{number}{suffix}") == -quantity.parse(f"+{number}{suffix}")


@given(st.sampled_from(NAMES), st.integers(0, 10**12), st.sampled_from(("n", "u", "m", "", "k", "Ki")))
def test_amounts_round_up(name: str, number: int, suffix: str) -> None:
    exact = quantity.parse(f"{number}{suffix}") * (1000 if name == "cpu" else 1)
    assert quantity.amount(name, f"{number}{suffix}") == ceil(exact)


@pytest.mark.parametrize("text", ["", "m", "1 Gi", "1gi", "1Kib", "0x10", "1e", "1e99", "--1", "1.2.3", "NaN", "1K"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"quantity|exponent"):
        quantity.parse(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("100m", Fraction(1, 10)), ("1.5Gi", 1610612736), (".5", Fraction(1, 2)), ("5.", 5), ("1e3", 1000), (2, 2)],
)
def test_examples(text: str | int, value: Fraction | int) -> None:
    assert quantity.parse(text) == value


@given(bags, bags, bags)
def test_adding_bags_is_commutative_and_associative(a: Resources, b: Resources, c: Resources) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c) == total([a, b, c])


@given(bags, bags)
def test_subtracting_undoes_adding(a: Resources, b: Resources) -> None:
    assert all(((a + b) - b)[name] == a[name] for name in NAMES)


@given(bags, bags)
def test_what_is_added_to_room_fits(a: Resources, b: Resources) -> None:
    assert a.fits(a + b)
    assert (a + b).fits(a) == all(b[name] == 0 for name in NAMES)


@given(bags, bags)
def test_the_maximum_holds_both(a: Resources, b: Resources) -> None:
    assert a.fits(a.maximum(b))
    assert b.fits(a.maximum(b))


@given(bags)
def test_a_bag_reads_back_from_its_texts(a: Resources) -> None:
    assert Resources.parse(a.texts()) == a
