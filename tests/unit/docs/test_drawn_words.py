"""The draw of texts for people to judge: the same seed gives the same draw, and no use is left out of it."""

from __future__ import annotations

import pytest
import yaml

from tests.words.draw import WORDS, complete_messages, draw, main, uses
from tests.words.texts import Text

PIECES = [
    Text("messages", "a.py", 3, "node … goes at the end of the drain"),
    Text("messages", "a.py", 9, "too short"),
    Text("messages", "a.py", 10, "… must be greater than …"),
    Text("messages", "a.py", 11, "| … | the | … | cells |"),
    Text("messages", "a.py", 12, "aws ec2 create-tags --tags Key=a,Value=b --resources subnet in account"),
    Text("messages", "a.py", 13, "*/5 * * * 1-5 UTC"),
    Text("messages", "a.py", 14, "kubectl reads the lines before --- as a document"),
    Text("comments", "a.py", 1, "it goes on and on, and on again"),
    Text("docs", "docs/page.md", 1, "# Title\n\nThe list ends here, and the Backend is no use of it."),
    Text("docs", "docs/reference/rules.md", 1, "the list ends here"),
    Text("docs", "rulebook/file.yaml", 1, "KERF-1:\n  wrong: [end]\n  fix: Use {{ end }}."),
]


def test_a_use_is_a_whole_word_of_a_message_or_a_page_with_its_line() -> None:
    assert list(uses(PIECES, ["ends?", "goes"])) == [
        "a.py:3: [goes] node … goes at the end of the drain",
        "a.py:3: [end] node … goes at the end of the drain",
        "docs/page.md:3: [ends] # Title The list ends here, and the Backend is no use of it.",
    ]


def test_few_words_rows_of_tables_and_command_lines_are_no_texts_of_their_own() -> None:
    assert complete_messages(PIECES) == [
        "a.py:3: node … goes at the end of the drain",
        "a.py:10: … must be greater than …",
        "a.py:14: kubectl reads the lines before --- as a document",
    ]


def test_a_draw_depends_on_the_seed_alone() -> None:
    found = [str(number) for number in range(100)]
    assert draw(found, 7, 10) == draw(reversed(found), 7, 10)
    assert draw(found, 7, 10) != draw(found, 8, 10)
    assert draw(found, 7, 1000) == sorted(found)


def test_every_ambiguous_word_has_its_right_meaning() -> None:
    rows = yaml.safe_load(WORDS.read_text(encoding="utf-8"))
    assert [row for row in rows if set(row) != {"word", "right"} or not row["right"]] == []


def test_the_command_prints_as_many_as_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "1", "--texts", "3"]) == 0
    assert main(["--seed", "1", "--uses", "2"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 5
