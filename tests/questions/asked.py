"""The questions, from questions.yaml beside this module."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from tests import references

FILE: Final = Path(__file__).with_name("questions.yaml")


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question, its answer in a sentence or two, and the places that have it, as tests/references.py names them."""

    question: str
    answer: str
    places: tuple[str, ...]


def questions() -> tuple[Question, ...]:
    """All of them, in their order. Raises msgspec.ValidationError for a file of another form."""
    return msgspec.yaml.decode(FILE.read_bytes(), type=tuple[Question, ...])


def missing(one: Question) -> list[str]:
    """The places of an answer that are not there."""
    return [place for place in one.places if not references.exists(place)]
