"""Draw texts and uses of ambiguous words by seed, for people to judge.

python -m tests.words.draw --seed 36                # 40 messages, each to be understood alone
python -m tests.words.draw --seed 36 --uses 200     # 200 uses of the words of ambiguous.yaml, in messages and pages

The same repository and seed give the same draw.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import yaml

from tests.words.texts import Text, of_the_repository

WORDS: Final = Path(__file__).with_name("ambiguous.yaml")
#: Pages that repeat texts of other files: the rule book, the schemas of the CRDs, and the names of tests.
_REPEATED: Final = frozenset({"docs/reference/rules.md", "docs/reference/api.md", "docs/behaviours.md"})
#: Code in a text: templates of charts, and the examples of the rule book.
_CODE: Final = re.compile(r"\{\{.*?\}\}|^ +(?:wrong|right|old)\w*:.*$", re.MULTILINE)
#: Shorter texts are parts of messages; longer ones are pages of help and generated documents.
_FEWEST, _MOST = 5, 60
#: A word of prose. Values (`…`), cells of tables and the fields of cron lines are none.
_WORD: Final = re.compile(r"(?<![^\s(\[{'\"…])[A-Za-z][A-Za-z'-]*")
_FEWEST_OF_PROSE: Final = 3
#: The row of a table; a command line with a flag, which a fix prints to be copied. A sentence may begin with the name
#: of a command, too.
_NO_SENTENCE: Final = re.compile(r"\||(?:aws|eksctl|helm|kerf|kubectl) (?:[a-z0-9-]+ )+--?[a-z]")
#: Characters on each side of a word.
_AROUND: Final = 100


def complete_messages(pieces: Iterable[Text]) -> list[str]:
    """`file:line: text` of messages that are long enough to be understood alone, no command line and not a page."""
    return [
        f"{one.file}:{one.line}: {' '.join(one.text.split())}"
        for one in pieces
        if one.kind == "messages" and _FEWEST <= len(one.text.split()) <= _MOST
        if len(_WORD.findall(one.text)) >= _FEWEST_OF_PROSE and not _NO_SENTENCE.match(one.text)
    ]


def uses(pieces: Iterable[Text], words: Sequence[str]) -> Iterator[str]:
    """`file:line: [word] the text around it` for each use in messages and pages."""
    pattern = re.compile(rf"\b(?:{'|'.join(words)})\b", re.IGNORECASE)
    for one in pieces:
        if one.kind == "comments" or one.file in _REPEATED:
            continue
        text = _CODE.sub(lambda found: " " * len(found.group()), one.text)
        for hit in pattern.finditer(text):
            line = one.line + text.count("\n", 0, hit.start())
            around = text[max(0, hit.start() - _AROUND) : hit.end() + _AROUND]
            yield f"{one.file}:{line}: [{hit.group()}] {' '.join(around.split())}"


def draw(found: Iterable[str], seed: int, count: int) -> list[str]:
    """At most so many of them, in the order of the files; each one is as likely as every other."""
    ordered = sorted(set(found))
    return sorted(random.Random(seed).sample(ordered, min(count, len(ordered))))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.words.draw")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--texts", type=int, default=40, help="number of messages")
    parser.add_argument("--uses", type=int, help="number of uses of ambiguous words, instead of messages")
    asked = parser.parse_args(arguments)
    if asked.uses is None:
        drawn = draw(complete_messages(of_the_repository()), asked.seed, asked.texts)
    else:
        rows = yaml.safe_load(WORDS.read_text(encoding="utf-8"))
        drawn = draw(uses(of_the_repository(), [row["word"] for row in rows]), asked.seed, asked.uses)
    print(*drawn, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
