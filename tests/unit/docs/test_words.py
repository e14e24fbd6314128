"""No text of the repository has a phrase of tests/words/phrases.yaml, and the check finds one wherever it is."""

from __future__ import annotations

import re
from pathlib import Path

from tests.sources import FOLDERS
from tests.words.check import Phrase, found_in, hits
from tests.words.texts import Text, comments, messages, prose, texts

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


def test_docstrings_and_comments_are_read_and_strings_are_not() -> None:
    source = '"""Anew it is."""\n\nX = "do anew"  # begin anew\n\n\ndef do():\n    """Do it anew, `anew`."""\n'
    assert [(line, text.split()) for line, text in comments(source)] == [
        (1, ["Anew", "it", "is."]),
        (7, ["Do", "it", "anew,", "."]),
        (3, ["#", "begin", "anew"]),
    ]


def test_comments_of_charts_are_read(tmp_path: Path) -> None:
    for folder in FOLDERS.values():
        (tmp_path / folder).mkdir()
    (tmp_path / "charts/kerf/templates").mkdir(parents=True)
    (tmp_path / "charts/kerf/values.yaml").write_text("a: 1\n# begin anew\nb: anew\n")
    (tmp_path / "charts/kerf/templates/_x.tpl").write_text("x\n{{/* anew\nanew */}}\nanew\n")
    banned = [Phrase(BANNED[0].pattern, "again", frozenset({"comments"}))]
    assert [hit.partition(": Anew")[0].partition(": anew")[0] for hit in found_in(texts(tmp_path), banned)] == [
        "charts/kerf/values.yaml:2",
        "charts/kerf/templates/_x.tpl:2",
        "charts/kerf/templates/_x.tpl:3",
    ]
