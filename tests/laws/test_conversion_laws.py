"""Conversion: comments change nothing and none is lost; twice is the same as once; nothing makes it fail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from math import isnan
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kerf.cli.rewriting.converting import Converted, convert_files
from kerf.manifests.checking import Content
from kerf.manifests.documents import Document, read
from kerf_api.conversion import Wish, convert
from tests.fuzz.wild import SCALARS, TEXTS
from tests.unit.conversion.cases import CASES, Case

WISH = Wish(role="nodes")
#: Texts in which a comment may be put between any two lines, and at the end of each.
PLAIN = [case for case in CASES if not any(mark in case.before for mark in ("|\n", "{\n", ",\n", '{"'))]
comments = st.lists(st.tuples(st.integers(0, 200), st.booleans(), st.integers(0, 10)), min_size=1, max_size=8)
wild: st.SearchStrategy[Any] = st.sampled_from([*SCALARS, *TEXTS, [], {}, [{}], {"a": {}}, [[1]]])


def converted(text: str) -> Converted:
    (file,) = convert_files([Content("f", text.encode())], WISH)
    return file


def values(text: str) -> list[Any]:
    return [found.node.value for found in read(text.encode()) if isinstance(found, Document)]


def commented(text: str, places: list[tuple[int, bool, int]]) -> str:
    """The text with numbered comments, on lines of their own or at the ends of lines."""
    lines = text.splitlines()
    for number, (place, alone, indent) in enumerate(places):
        at = place % len(lines)
        if alone:
            lines.insert(at, f"{' ' * indent}# number {number}.")
        elif "#" not in lines[at]:
            lines[at] += f"  # number {number}."
    return "\n".join(lines) + "\n"


@given(st.sampled_from(PLAIN), comments)
def test_comments_change_nothing_and_none_is_lost(case: Case, places: list[tuple[int, bool, int]]) -> None:
    text = commented(case.before, places)
    file = converted(text)
    assert values(file.after) == values(converted(case.before).after)
    for number in range(len(places)):
        assert (f"# number {number}." in file.after) == (f"# number {number}." in text)


@given(st.sampled_from(PLAIN), comments)
def test_what_was_converted_is_not_converted_again(case: Case, places: list[tuple[int, bool, int]]) -> None:
    file = converted(commented(case.before, places))
    if file.whole:
        assert converted(file.after).after == file.after


def paths(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every path within a value, but for its kind and version."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, entry in entries:
        if (*above, step) not in (("kind",), ("apiVersion",)):
            yield (*above, step)
            yield from paths(entry, (*above, step))


@given(st.sampled_from(CASES), st.randoms(use_true_random=False), wild)
def test_whatever_stands_there_it_is_converted_or_told(case: Case, luck: Any, value: Any) -> None:
    manifests: list[Any] = deepcopy([found for found in values(case.before) if isinstance(found, Mapping)])
    everywhere = [(index, path) for index, manifest in enumerate(manifests) for path in paths(manifest)]
    index, path = luck.choice(everywhere)
    inside = manifests[index]
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = value
    before = deepcopy(manifests)
    found = convert(manifests, WISH)
    assert manifests == before or (isinstance(value, float) and isnan(value))
    after = [draft.values for result in found.results for draft in result or ()]
    again = convert(after, WISH)
    assert [result for result in again.results if result is not None] == []
