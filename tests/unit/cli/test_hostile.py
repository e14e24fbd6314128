"""Whatever a file holds, the answer is a report with places in the file, soon: never a crash."""

from __future__ import annotations

import random
import time

import pytest

from kerf.cli.reports import formats
from kerf.cli.rewriting.filling import filled
from kerf.manifests import file_rules
from kerf.manifests.checking import Content, Wish, check
from kerf.manifests.documents import lines
from kerf.manifests.nodes import Unreadable
from tests.sources import ROOT

TEXTS = [path.read_text() for path in sorted((ROOT / "manifests" / "examples").glob("*.yaml"))]
PIECES = [
    *("{", "}", "[", "]", ":", "- ", "? ", ", ", "#", "&a ", "*a", "<<: *a", "!!int ", "!x ", "|", ">", "'", '"', "%"),
    *(
        "\t",
        "\r",
        "\n",
        "\n---\n",
        "\n...\n",
        " ",
        "  ",
        "@",
        "\0",
        "\x1b",
        "\ufeff",
        "\u2028",
        "\x85",
        "😀",
        "{{",
        "}}",
    ),
    *("on", "010", "~", ".nan", ".inf", "1e999", "9" * 50, "# kerf:ignore ", "kerf:ignore KERF-NP-001 x", "\\"),
]
CASES = 250


def broken(number: int) -> str:
    """An example with a few pieces put in, taken out or repeated."""
    luck = random.Random(number)
    text = luck.choice(TEXTS)
    for _ in range(luck.randint(1, 6)):
        at = luck.randrange(len(text))
        to = min(len(text), at + luck.choice((0, 1, 2, 10, 200)))
        text = text[:at] + luck.choice((luck.choice(PIECES), "", text[at:to] * 2)) + text[to:]
    return text


@pytest.mark.parametrize("first", range(0, CASES, 50))
def test_broken_files_are_reported_with_places_that_they_have(first: int) -> None:
    for number in range(first, first + 50):
        text = broken(number)
        began = time.process_time()
        report = check([Content("a.yaml", text.encode())], Wish(), file_rules.known)
        assert time.process_time() - began < 2, number
        rows = lines(text)
        for finding in report.findings:
            assert 1 <= finding.start.line <= len(rows), number
            assert 1 <= finding.start.column <= len(rows[finding.start.line - 1]) + 1, number
        assert all(form(report) for form in formats.FORMATS.values())


def test_broken_files_are_filled_in_or_refused() -> None:
    for number in (*range(CASES), 1208, 2255):
        try:
            text = filled(broken(number).encode())
        except Unreadable:
            continue
        assert filled(text.encode()) == text, number


@pytest.mark.parametrize("number", range(20))
def test_random_bytes(number: int) -> None:
    data = random.Random(number).randbytes(2000)
    report = check([Content("a.yaml", data)], Wish(), file_rules.known)
    assert report.unreadable


def test_a_large_file_is_read_in_good_time() -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\ndata:\n" + "".join(f"  k{n}: v\n" for n in range(50))
    began = time.process_time()
    report = check([Content("a.yaml", "---\n".join([secret] * 1000).encode())], Wish(), file_rules.known)
    assert report.skipped == 1000
    assert time.process_time() - began < 15
