"""No text of the repository has a phrase of tests/words/phrases.yaml, and the check finds one wherever it is."""

from __future__ import annotations

import re

from tests.words.check import Phrase, found_in, hits
from tests.words.texts import Text, messages, prose

BANNED = [Phrase(re.compile(r"\banew\b", re.IGNORECASE), "again", frozenset({"docs", "messages"}))]


def test_no_text_has_a_phrase_of_the_list() -> None:
    assert hits() == []


def test_prose_is_read_with_its_lines_and_code_is_not() -> None:
    page = "# Title\n\n```yaml\nanew: true\n```\n\nIt starts `anew` and [again](anew.md).\nAnew it starts.\n"
    found = list(found_in([Text("docs", "page.md", 1, prose(page))], BANNED))
    assert found == ["page.md:8: Anew: write instead: again"]


def test_strings_of_a_program_are_read_and_docstrings_are_not() -> None:
    source = '"""Anew it is."""\n\n\ndef do(x):\n    """Do it anew."""\n    return f"{x} anew", "anew", "do anew"\n'
    assert list(messages(source)) == [(6, "… anew"), (6, "do anew")]
