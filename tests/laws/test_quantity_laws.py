"""Quantities are exact: reading, writing, comparing and adding lose nothing.

The model beside them reads a quantity from its parts and knows nothing of how the project does it: digits are counted
by hand, the suffixes are written out as fractions.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf_api import quantity
from kerf_api.resources import Resources, total

NAMES = ("cpu", "memory", "ephemeral-storage", "pods", "nvidia.com/gpu", "hugepages-2Mi")
#: Every suffix that there is, with what it stands for.
UNITS = {
    "": Fraction(1),
    "n": Fraction(1, 1_000_000_000),
    "u": Fraction(1, 1_000_000),
    "m": Fraction(1, 1_000),
    "k": Fraction(1_000),
    "M": Fraction(1_000_000),
    "G": Fraction(1_000_000_000),
    "T": Fraction(1_000_000_000_000),
    "P": Fraction(1_000_000_000_000_000),
    "E": Fraction(1_000_000_000_000_000_000),
    "Ki": Fraction(1_024),
    "Mi": Fraction(1_048_576),
    "Gi": Fraction(1_073_741_824),
    "Ti": Fraction(1_099_511_627_776),
    "Pi": Fraction(1_125_899_906_842_624),
    "Ei": Fraction(1_152_921_504_606_846_976),
}
MOST_ENDURED = 2.0
digits = st.text("0123456789", max_size=30)
amounts = st.integers(0, 2**60)
bags = st.dictionaries(st.sampled_from(NAMES), amounts, max_size=5).map(Resources)


@dataclass(frozen=True)
class Written:
    """A quantity in parts: `sign`, digits before and after the point (None for no point), and what follows."""

    sign: str
    whole: str
    decimals: str | None
    suffix: str
    scale: Fraction

    @property
    def text(self) -> str:
        point = "" if self.decimals is None else f".{self.decimals}"
        return f"{self.sign}{self.whole}{point}{self.suffix}"

    @property
    def value(self) -> Fraction:
        """The model: each digit by its place."""
        size = Fraction(0)
        for digit in self.whole:
            size = size * 10 + "0123456789".index(digit)
        for place, digit in enumerate(self.decimals or "", start=1):
            size += Fraction("0123456789".index(digit), 10**place)
        return size * self.scale * (-1 if self.sign == "-" else 1)


@st.composite
def suffixes(draw: st.DrawFn) -> tuple[str, Fraction]:
    if draw(st.booleans()):
        return draw(st.sampled_from(sorted(UNITS.items())))
    power, sign, letter = draw(st.integers(0, 30)), draw(st.sampled_from(("", "+", "-"))), draw(st.sampled_from("eE"))
    zeros = draw(st.sampled_from(("", "0", "000")))
    scale = Fraction(1, 10**power) if sign == "-" else Fraction(10**power)
    return f"{letter}{sign}{zeros}{power}", scale


@st.composite
def quantities(draw: st.DrawFn) -> Written:
    whole, decimals = draw(digits), draw(st.none() | digits)
    if not whole and not decimals:
        whole = draw(st.text("0123456789", min_size=1, max_size=30))
    suffix, scale = draw(suffixes())
    return Written(draw(st.sampled_from(("", "+", "-"))), whole, decimals, suffix, scale)


@given(quantities())
def test_a_quantity_is_worth_what_its_parts_are(written: Written) -> None:
    assert quantity.parse(written.text) == written.value


@given(quantities(), quantities())
def test_quantities_compare_as_numbers(one: Written, two: Written) -> None:
    left, right = quantity.parse(one.text), quantity.parse(two.text)
    assert (left < right, left == right, left > right) == (
        one.value < two.value,
        one.value == two.value,
        one.value > two.value,
    )


@pytest.mark.parametrize(("suffix", "unit"), UNITS.items())
def test_every_suffix(suffix: str, unit: Fraction) -> None:
    assert quantity.parse(f"1{suffix}") == unit
    assert quantity.parse(f"-2.50{suffix}") == unit * Fraction(-5, 2)


@given(st.sampled_from(NAMES), quantities())
def test_amounts_are_whole_and_round_up(name: str, written: Written) -> None:
    scaled = written.value * (1000 if name == "cpu" else 1)
    found = quantity.amount(name, written.text)
    assert type(found) is int
    assert found == max(-quantity.LARGEST, min(ceil(scaled), quantity.LARGEST))
    assert 0 <= found - scaled < 1 or abs(scaled) > quantity.LARGEST


@given(st.sampled_from(NAMES), quantities())
def test_the_amount_of_an_amount_is_itself(name: str, written: Written) -> None:
    found = quantity.amount(name, written.text)
    assert quantity.amount(name, quantity.text(name, found)) == found


@given(st.sampled_from(NAMES), st.integers(-quantity.LARGEST, quantity.LARGEST))
def test_what_is_written_reads_back(name: str, amount: int) -> None:
    text = quantity.text(name, amount)
    assert quantity.parse(text) * (1000 if name == "cpu" else 1) == amount
    assert quantity.text(name, quantity.amount(name, text)) == text


@given(st.sampled_from(NAMES), st.integers(0, 2**62))
def test_what_is_written_is_the_same_for_the_same_amount(name: str, amount: int) -> None:
    plain = f"{amount}m" if name == "cpu" else str(amount)
    assert quantity.text(name, quantity.amount(name, plain)) == quantity.text(name, amount)


@given(st.integers(-(2**80), 2**80))
def test_whole_numbers_are_quantities(number: int) -> None:
    assert quantity.parse(number) == quantity.parse(str(number)) == number


@given(quantities(), st.sampled_from((" ", "\n", "\t", "\r", "\u00a0", "\u2003", "\x00")), st.data())
def test_white_space_is_refused_wherever_it_stands(written: Written, space: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(written.text)))
    with pytest.raises(ValueError, match="is not a quantity"):
        quantity.parse(written.text[:place] + space + written.text[place:])


@given(st.integers(31, 10**40), st.sampled_from(("", "+", "-")))
def test_absurd_exponents_are_refused_and_never_worked_out(power: int, sign: str) -> None:
    with pytest.raises(ValueError, match="exponent beyond"):
        quantity.parse(f"1e{sign}{power}")


@given(
    st.sampled_from(NAMES), st.integers(31, 10**40), st.sampled_from(("1", "0.5", "9" * 900, "0." + "0" * 900 + "1"))
)
def test_an_amount_of_an_absurd_exponent_is_the_largest_or_next_to_nothing(name: str, power: int, digits: str) -> None:
    power += len(digits)
    assert quantity.amount(name, f"{digits}e{power}") == quantity.LARGEST
    assert quantity.amount(name, f"-{digits}e{power}") == -quantity.LARGEST
    assert quantity.amount(name, f"{digits}e-{power}") == 1
    assert quantity.amount(name, f"0e{power}") == 0


@pytest.mark.parametrize("text", ["1" * 1001, "0." + "1" * 100_000, "9" * 5000, "1e" + "0" * 5000 + "1", "x" * 10**6])
def test_absurd_lengths_are_refused_in_few_words_at_once(text: str) -> None:
    began = process_time()
    with pytest.raises(ValueError, match="is not a quantity: it has") as refusal:
        quantity.parse(text)
    assert process_time() - began < MOST_ENDURED
    assert len(str(refusal.value)) < 100


def test_a_thousand_digits_are_read() -> None:
    assert quantity.parse("9" * 1000) == 10**1000 - 1
    assert quantity.parse("0." + "0" * 997 + "1") == Fraction(1, 10**998)


@pytest.mark.parametrize(
    "text",
    [
        *("", "m", "Ki", ".", "-", "+", "-.", ".m", "e3", "-e3", "--1", "+-1", "1-", "1+1"),
        *("1 Gi", " 1", "1 ", "1\n", "1,5", "1_000", "1'000", "1.2.3", "1..2"),
        *("1K", "1ki", "1KI", "1kI", "1gi", "1Kib", "1KB", "1B", "1i", "1N", "1U", "1g", "1t", "1p", "1mi", "1ni"),
        *("1e", "1e+", "1e1.5", "1e 3", "1e3m", "1e3Ki", "1Kie3", "1EE3", "1e--3", "1Ee3", "1mm"),
        *("0x10", "0b1", "0o7", "1/2", "50%", "NaN", "nan", "inf", "-inf", "Infinity", "None", "True", "one"),
        *("\u0661", "\uff11", "1\u00b2", "\u22121", "1\u00b5", "\u00bd"),
    ],
)
def test_what_is_no_quantity_is_refused_by_its_text(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity") as refusal:
        quantity.parse(text)
    assert repr(text) in str(refusal.value)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf"), 1e31, 1e-31])
def test_floats_that_are_no_quantity_are_refused(number: float) -> None:
    with pytest.raises(ValueError, match=r"quantity|exponent"):
        quantity.parse(number)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("100m", Fraction(1, 10)),
        ("1.5Gi", 1610612736),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1E", 10**18),
        ("1Ei", 2**60),
        ("-0", 0),
        ("+1.5", Fraction(3, 2)),
        ("007", 7),
        (2, 2),
        (0.5, Fraction(1, 2)),
    ],
)
def test_examples(text: str | float, value: Fraction | int) -> None:
    assert quantity.parse(text) == value


@pytest.mark.parametrize(
    ("name", "text", "amount"),
    [
        ("cpu", "1", 1000),
        ("cpu", "1n", 1),
        ("cpu", "1.0001", 1001),
        ("cpu", "-1.0001", -1000),
        ("memory", "1", 1),
        ("memory", "1m", 1),
        ("memory", "1.5", 2),
        ("memory", "-1.5", -1),
        ("memory", "0.1Ki", 103),
        ("pods", "0.9", 1),
    ],
)
def test_rounding_is_up_also_below_nothing(name: str, text: str, amount: int) -> None:
    assert quantity.amount(name, text) == amount


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
