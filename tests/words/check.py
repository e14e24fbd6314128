"""Finds phrases of `phrases.yaml` in the texts of the repository."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import yaml

from tests.words.texts import Text, of_the_repository

LIST: Final = Path(__file__).with_name("phrases.yaml")
KINDS: Final = frozenset({"docs", "messages", "comments"})


class Phrase(NamedTuple):
    """A regular expression of what is not written, the plain words instead, and the kinds of texts it is about."""

    pattern: re.Pattern[str]
    instead: str
    kinds: frozenset[str]


def phrases(path: Path = LIST) -> list[Phrase]:
    """The rows of the list. Raises ValueError for a kind of text that there is not."""
    found = []
    for row in yaml.safe_load(path.read_text(encoding="utf-8")):
        kinds = frozenset(row.get("in", KINDS))
        if not kinds <= KINDS:
            raise ValueError(f"{path.name}: {row['not']}: no kinds of texts: {', '.join(sorted(kinds - KINDS))}")
        found.append(Phrase(re.compile(rf"\b(?:{row['not']})\b", re.IGNORECASE), row["but"], kinds))
    return found


def found_in(pieces: Iterable[Text], banned: Sequence[Phrase]) -> Iterator[str]:
    """`file:line: phrase: write … instead`, for each place."""
    for piece in pieces:
        for phrase in banned:
            if piece.kind in phrase.kinds:
                for hit in phrase.pattern.finditer(piece.text):
                    line = piece.line + piece.text.count("\n", 0, hit.start())
                    yield f"{piece.file}:{line}: {hit.group()}: write instead: {phrase.instead}"


def hits() -> list[str]:
    """Every place of the repository."""
    return list(found_in(of_the_repository(), phrases()))
