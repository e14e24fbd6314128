"""YAML as a cluster reads it, with places; and text that no cluster would read, with the place that is in the way."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kerf.manifests.documents import LARGEST, Document, read
from kerf.manifests.nodes import MOST_REPEATED, Node, Unreadable, locate, locate_key

DEEP = 100_000
NINE = 9


def values(text: str | bytes) -> list[Any]:
    """The documents' values; a text that cannot be read fails the test."""
    found = list(read(text.encode() if isinstance(text, str) else text))
    assert not [part.message for part in found if isinstance(part, Unreadable)]
    return [part.node.value for part in found if isinstance(part, Document)]


def root(text: str) -> Node:
    (document,) = read(text.encode())
    assert isinstance(document, Document)
    return document.node


def failure(text: str | bytes) -> tuple[str, int, int, str]:
    """Rule, line, column and words of the only thing that is in the way."""
    (found,) = [p for p in read(text.encode() if isinstance(text, str) else text) if isinstance(p, Unreadable)]
    return found.rule, *found.place, f"{found.message}; {found.hint}"


def oddities(text: str) -> list[tuple[str, int, int, str]]:
    return [(o.rule, *o.place, o.message) for p in read(text.encode()) if isinstance(p, Document) for o in p.oddities]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("# only a comment\n", []),
        ("---\n---\n# nothing\n---\n", []),
        ("a: 1\n---\nb: 2\n", [{"a": 1}, {"b": 2}]),
        ("--- {a: 1}\n--- b\n", [{"a": 1}, "b"]),
        ("%YAML 1.1\n# c\n---\na: 1\n...\n---\nb: 2", [{"a": 1}, {"b": 2}]),
        ("a: |\n  x\n   --- no marker\nb: >-\n  c\n  d\n", [{"a": "x\n --- no marker\n", "b": "c d"}]),
        ("a: 1\r\nb:\r\n- c\r\n---\r\nd: 2\r\n", [{"a": 1, "b": ["c"]}, {"d": 2}]),
        ("a: 1\rb: 2", [{"a": 1, "b": 2}]),
        (b"\xef\xbb\xbfa: 1", [{"a": 1}]),
        ("a: &x {b: 1}\nc: *x\nd: [*x, *x]", [{"a": {"b": 1}, "c": {"b": 1}, "d": [{"b": 1}, {"b": 1}]}]),
        ("a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  b: 3", [{"a": {"b": 1, "c": 2}, "d": {"b": 3, "c": 2}}]),
        ("<<: [{a: 1}, {a: 2, b: 3}]\nc: 4", [{"c": 4, "a": 1, "b": 3}]),
        ('"<<": 1', [{"<<": 1}]),
        (
            "a: 'on'\nb: \"010\"\nc: !!str 5\nd: !!binary aGk=\ne: !custom x",
            [dict(zip("abcde", ["on", "010", "5", "hi", "x"], strict=True))],
        ),
        ("1: a\n1.5: b\n", [{"1": "a", "1.5": "b"}]),
        ("- &a k\n- *a : v", [["k", {"k": "v"}]]),
        ('{\n\t"a": 1\n}', [{"a": 1}]),
        ('{"a":1}{"b":2}\n\n[3]', [{"a": 1}, {"b": 2}, [3]]),
        (r'{"a": "\ud83d\ude00 \\ud83d \/"}', [{"a": "😀 \\ud83d /"}]),
        ("{a: 1}\n---\n{b: 2}", [{"a": 1}, {"b": 2}]),
    ],
)
def test_what_a_text_means(text: str | bytes, expected: list[Any]) -> None:
    assert values(text) == expected


@pytest.mark.parametrize(
    ("text", "rule", "line", "column", "words"),
    [
        ("a: b: c", "YAML", 1, 5, "a second colon makes no sense here"),
        ("a: 1\n---\nb:\n\t- c", "YAML", 4, 1, "indent with spaces, not with tabs"),
        ("a: 1\r\nb: @c", "YAML", 2, 4, "in quotes"),
        ("a: 'b\n\n", "YAML", 1, 4, "the quotes that are opened here are never closed"),
        ("a: [1,\n", "YAML", 2, 1, "a value is expected here"),
        ("a: [1 2\nb: c", "YAML", 2, 2, ""),
        ('a: "\\q"', "YAML", 1, 5, "no escape"),
        ("a: *b", "YAML", 1, 4, "nothing above is named so"),
        ("a: &b [*b]", "YAML", 1, 8, "would be endless"),
        ("- a\nb: c", "YAML", 2, 1, "beginning with -"),
        ("? [a]\n: b", "YAML", 1, 3, "the key is a map or a list"),
        ("~: b", "YAML", 1, 1, "the key is empty"),
        ("<<: 1", "YAML", 1, 5, "this is none"),
        ("a: !!int x", "YAML", 1, 4, "'x' is no int"),
        ("a: 1\n...\nb: 2", "YAML", 3, 1, "begin a new one with ---"),
        ("name: {{ .Values.x }}", "TEMPLATE", 1, 7, "helm template"),
        ("# {{ a comment }}\n{{- if .Values.x }}\na: b\n{{- end }}", "TEMPLATE", 2, 1, "no YAML before it is rendered"),
        ("a: 1\nb:\n  {{- toYaml .Values.b | nindent 2 }}", "TEMPLATE", 3, 3, "render it first"),
        (b"a: \xff", "READ", 1, 4, "the byte 0xff is no part of a text in UTF-8; save the file as UTF-8"),
        ("é: 1\nb: \0".encode(), "READ", 2, 4, "the character U+0000"),
        ("a: \x1b[31m", "READ", 1, 4, "the character U+001B"),
        ("a: b".encode("utf-16"), "READ", 1, 1, "the file is written in UTF-16; save it as UTF-8"),
        ("a: b".encode("utf-16-le"), "READ", 1, 2, "the character U+0000"),
        (b"a" * (LARGEST + 1), "LIMIT", 1, 1, "are the most"),
    ],
)  # fmt: skip
def test_what_is_in_the_way(text: str | bytes, rule: str, line: int, column: int, words: str) -> None:
    found = failure(text)
    assert found[:3] == (f"KERF-FILE-{rule}", line, column)
    assert words in found[3]


def laughs(levels: int) -> str:
    """Lists of nine aliases to the list before: nine to the power of `levels` values."""
    lines = ["a0: &a0 [lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * NINE)}]" for n in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "text",
    ["[" * DEEP, '{"a":' * DEEP, "- " * DEEP + "a", "? " * DEEP + "a", "{" * DEEP, laughs(30)],
    ids=["brackets", "braces", "dashes", "questions", "maps", "laughs"],
)
def test_endless_documents_are_stopped_soon(text: str) -> None:
    began = time.process_time()
    assert failure(text)[0] == "KERF-FILE-LIMIT"
    assert time.process_time() - began < 2


def test_what_is_deep_but_finite_is_left_to_the_linter() -> None:
    assert values("[" * 90 + "]" * 90)


def test_merges_count_as_repetitions() -> None:
    wide = f"a: &a {{{', '.join(f'k{n}: 1' for n in range(1000))}}}\n"
    lines = "".join(f"b{n}: {{<<: *a}}\n" for n in range(MOST_REPEATED // 2000 + 1))
    assert failure(wide + lines)[0] == "KERF-FILE-LIMIT"


def test_a_fault_in_one_document_hides_nothing_in_the_next() -> None:
    found = list(read(b"a: b: c\n---\nd: 1\n---\ne: [\n---\nf: 2\n"))
    assert [p.place.line if isinstance(p, Unreadable) else p.node.value for p in found] == [1, {"d": 1}, 6, {"f": 2}]


def test_keys_that_are_read_as_something_else_or_written_twice() -> None:
    text = "a: 1\nb:\n  on: 1\n  'off': 2\n  010: 3\n  7: 4\nb: 5\n"
    assert oddities(text) == [
        ("KERF-FILE-KEY", 3, 3, 'the key on is read as "true"'),
        ("KERF-FILE-KEY", 5, 3, 'the key 010 is read as "8"'),
        ("KERF-FILE-TWICE", 7, 1, "the key b is written twice in one map, first in line 2"),
    ]


@pytest.mark.parametrize(
    ("steps", "place"),
    [
        ((), (1, 1, 1, 2)),
        (("spec",), (1, 1, 1, 5)),
        (("spec", "weight"), (2, 11, 2, 13)),
        (("spec", "missing", "deeper"), (1, 1, 1, 5)),
        (("spec", "list"), (3, 3, 3, 7)),
        (("spec", "list", 0), (4, 5, 4, 6)),
        (("spec", "list", 0, "b"), (5, 8, 5, 11)),
        (("spec", "list", 1), (6, 5, 6, 14)),
        (("spec", "list", 1, "c"), (6, 12, 6, 13)),
        (("spec", "list", 2), (3, 3, 3, 7)),
        (("spec", "text"), (7, 9, 7, 10)),
        (("spec", "nothing"), (9, 3, 9, 10)),
        (("spec", "again"), (10, 3, 10, 8)),
        (("spec", "again", "c"), (6, 12, 6, 13)),
    ],
)  # fmt: skip
def test_where_a_path_is_written(steps: tuple[str | int, ...], place: tuple[int, int, int, int]) -> None:
    node = root(
        """spec:
  weight: 10
  list:
  - a: 1
    b: "x"
  - &c {c: 2}
  text: |
    some
  nothing:
  again: *c
"""
    )
    start, end = locate(node, steps)
    assert (*start, *end) == place


def test_where_a_key_is_written() -> None:
    node = root("a:\n- {b: 1}\n")
    found = locate_key(node, ("a", 0, "b"))
    assert found is not None
    assert found[0] == (2, 4)
    assert locate_key(node, ("a", 0, "c")) is None
    assert locate_key(node, ("x", "y", "z")) is None
    assert locate_key(node, ("a", 0)) is None


def test_places_in_json_and_in_later_documents() -> None:
    documents = [part for part in read(b'{"a": 1}\n{\n  "b": {"c": 2}}') if isinstance(part, Document)]
    assert locate(documents[1].node, ("b", "c"))[0] == (3, 14)
    documents = [part for part in read(b"# x\n---\na: 1\n---\n\nb: 2\n") if isinstance(part, Document)]
    assert locate(documents[1].node, ("b",))[0] == (6, 4)
