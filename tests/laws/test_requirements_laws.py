"""The label algebra is exact: an intersection holds what both hold, and compatibility follows its truth table."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf_api.requirements import OPERATORS, Requirement, Requirements, requirement
from kerf_api.v1.meta import Entry, decode
from kerf_api.v1.nodepool import parse_entries

VALUES = ("a", "b", "1", "2", "3", "5", "8", "-1", "x y")
BOUNDS = ("-1", "0", "1", "2", "3", "5", "8", "9223372036854775807")


@st.composite
def requirements(draw: st.DrawFn, key: str = "k") -> Requirement:
    operator = draw(st.sampled_from(OPERATORS))
    if operator in ("Gt", "Lt", "Gte", "Lte"):
        values = [draw(st.sampled_from(BOUNDS))]
    elif operator in ("Exists", "DoesNotExist"):
        values = []
    else:
        values = draw(st.lists(st.sampled_from(VALUES), max_size=4))
    return requirement(key, operator, values, draw(st.none() | st.integers(1, 5)))


@st.composite
def combined(draw: st.DrawFn) -> Requirement:
    """One requirement, or the intersection of some."""
    result = draw(requirements())
    for other in draw(st.lists(requirements(), max_size=3)):
        result = result.intersection(other)
    return result


@given(combined(), combined(), st.sampled_from(VALUES + BOUNDS))
def test_an_intersection_has_what_both_have(a: Requirement, b: Requirement, value: str) -> None:
    assert a.intersection(b).has(value) == (a.has(value) and b.has(value))


@given(combined(), combined())
def test_intersection_commutes(a: Requirement, b: Requirement) -> None:
    assert a.intersection(b) == b.intersection(a)


@given(combined(), combined(), combined())
def test_intersection_associates(a: Requirement, b: Requirement, c: Requirement) -> None:
    assert a.intersection(b).intersection(c) == a.intersection(b.intersection(c))


@given(combined())
def test_intersection_with_itself_changes_nothing(a: Requirement) -> None:
    assert a.intersection(a) == a


@given(combined(), combined())
def test_intersects_means_a_non_empty_intersection(a: Requirement, b: Requirement) -> None:
    assert a.intersects(b) == (a.intersection(b).operator != "DoesNotExist")


@given(combined())
def test_any_value_is_one_of_them(a: Requirement) -> None:
    value = a.any_value()
    assert value is None or a.has(value)
    if a.operator in ("In", "NotIn") and a.gte is None and a.lte is None:
        assert value is not None


@given(combined())
def test_manifest_entries_read_back_as_the_same(a: Requirement) -> None:
    """But for a lower bound of 0 or less: every integer that is a label's value is above it."""
    entries = tuple(decode(Entry, e) for e in a.entries())
    wanted = replace(a, gte=None) if a.gte is not None and a.gte <= 0 else a
    assert parse_entries(entries) == Requirements([wanted])
    assert not {"Gte", "Lte"} & {entry.operator for entry in entries}


@given(st.lists(combined(), min_size=1, max_size=4))
def test_a_map_is_the_intersection_of_its_rows(rows: list[Requirement]) -> None:
    together = Requirements(rows)["k"]
    assert all(together.has(v) == all(r.has(v) for r in rows) for v in VALUES)


@given(combined(), combined())
def test_conflict_is_symmetric(a: Requirement, b: Requirement) -> None:
    assert Requirements([a]).conflict(Requirements([b])) == Requirements([b]).conflict(Requirements([a]))


@given(combined(), combined())
def test_equal_maps_hash_alike(a: Requirement, b: Requirement) -> None:
    one, other = Requirements([a, b]), Requirements([b, a])
    assert one == other
    assert hash(one) == hash(other)


#: Rows: what the pool's side says; columns: what the pod's side wants. Source: scheduling reference §2.4.
SIDES = {
    "undefined": (),
    "Exists": (requirement("k", "Exists"),),
    "DoesNotExist": (requirement("k", "DoesNotExist"),),
    "In [3 5]": (requirement("k", "In", ("3", "5")),),
    "Gt 4": (requirement("k", "Gt", ("4",)),),
    "NotIn [3]": (requirement("k", "NotIn", ("3",)),),
}
WANTED = {
    "Exists": requirement("k", "Exists"),
    "DoesNotExist": requirement("k", "DoesNotExist"),
    "In [3]": requirement("k", "In", ("3",)),
    "In [7]": requirement("k", "In", ("7",)),
    "NotIn [3]": requirement("k", "NotIn", ("3",)),
    "NotIn [3 5]": requirement("k", "NotIn", ("3", "5")),
    "Gt 4": requirement("k", "Gt", ("4",)),
    "Lt 3": requirement("k", "Lt", ("3",)),
}
COMPATIBLE = {
    "undefined": {"DoesNotExist", "NotIn [3]", "NotIn [3 5]"},
    "Exists": {"Exists", "In [3]", "In [7]", "NotIn [3]", "NotIn [3 5]", "Gt 4", "Lt 3"},
    "DoesNotExist": {"DoesNotExist", "NotIn [3]", "NotIn [3 5]"},
    "In [3 5]": {"Exists", "In [3]", "NotIn [3]", "Gt 4"},
    "Gt 4": {"Exists", "In [7]", "NotIn [3]", "NotIn [3 5]", "Gt 4"},
    "NotIn [3]": {"Exists", "DoesNotExist", "In [7]", "NotIn [3]", "NotIn [3 5]", "Gt 4", "Lt 3"},
}


@pytest.mark.parametrize(("side", "wanted"), list(product(SIDES, WANTED)))
def test_the_truth_table(side: str, wanted: str) -> None:
    serves = Requirements(SIDES[side]).compatible(Requirements([WANTED[wanted]]))
    assert serves == (wanted in COMPATIBLE[side])


def test_a_well_known_key_may_be_undefined() -> None:
    wanted = Requirements([requirement("k", "In", ("a",))])
    assert Requirements().compatible(wanted, frozenset({"k"}))
    assert Requirements().incompatible(wanted) == "k"


# --- a brute-force model: which labels satisfy a row, absence (None) being one of them ---------------------------
PRESENT = ("a", "b", "x y", *(str(number) for number in range(-3, 13)))
UNIVERSE = (None, *PRESENT)


def satisfies(value: str | None, operator: str, values: tuple[str, ...]) -> bool:
    """Whether a node whose label has this value (None: has no such label) meets a row, by the words of the API."""
    if operator in ("NotIn", "DoesNotExist"):
        return value is None or (operator == "NotIn" and value not in values)
    if value is None:
        return False
    if operator in ("In", "Exists"):
        return operator == "Exists" or value in values
    if not value.lstrip("-").isdigit():
        return False
    number, bound = int(value), int(values[0])
    return {"Gt": number > bound, "Gte": number >= bound, "Lt": number < bound, "Lte": number <= bound}[operator]


Plain = tuple[str, tuple[str, ...]]


@st.composite
def plain_rows(draw: st.DrawFn) -> Plain:
    operator = draw(st.sampled_from(OPERATORS))
    if operator in ("Gt", "Gte", "Lt", "Lte"):
        return operator, (str(draw(st.integers(-1, 9))),)
    if operator in ("Exists", "DoesNotExist"):
        return operator, ()
    return operator, tuple(draw(st.lists(st.sampled_from(PRESENT), min_size=1, max_size=4)))


@given(plain_rows(), plain_rows())
def test_values_are_those_of_the_words(one: Plain, two: Plain) -> None:
    first, second = requirement("k", *one), requirement("k", *two)
    both = {value for value in PRESENT if satisfies(value, *one) and satisfies(value, *two)}
    assert {value for value in PRESENT if first.has(value)} == {v for v in PRESENT if satisfies(v, *one)}
    assert {value for value in PRESENT if first.intersection(second).has(value)} == both
    assert not both or first.intersects(second)
    assert not both or Requirements([first]).compatible(Requirements([second]))


@given(plain_rows())
def test_a_key_that_nobody_defines_serves_those_who_accept_its_absence(row: Plain) -> None:
    assert Requirements().compatible(Requirements([requirement("k", *row)])) == satisfies(None, *row)
