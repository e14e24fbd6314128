"""An unquoted word means what go-yaml takes it for, and nothing else."""

from __future__ import annotations

import math
from typing import Any

import pytest

from kerf.manifests import scalars


@pytest.mark.parametrize("word", scalars.TRUE)
def test_words_for_true(word: str) -> None:
    assert scalars.meaning(word) is True


@pytest.mark.parametrize("word", scalars.FALSE)
def test_words_for_false(word: str) -> None:
    assert scalars.meaning(word) is False


@pytest.mark.parametrize("word", ["", "~", "null", "Null", "NULL"])
def test_words_for_nothing(word: str) -> None:
    assert scalars.meaning(word) is None


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("0", 0),
        ("-5", -5),
        ("+5", 5),
        ("010", 8),
        ("-010", -8),
        ("08", 8),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b11", 3),
        ("1_000", 1000),
        ("1e3", 1000),
        ("10.0", 10),
        ("1.", 1),
        ("9223372036854775808", 2**63),
        ("1.5", 1.5),
        (".5", 0.5),
        ("-.5", -0.5),
        (".inf", math.inf),
        ("-.INF", -math.inf),
    ],
)
def test_numbers(word: str, value: float) -> None:
    found = scalars.meaning(word)
    assert (found, type(found)) == (value, type(value))


def test_no_number() -> None:
    assert math.isnan(scalars.meaning(".nan"))


@pytest.mark.parametrize(
    "word",
    [
        *("1:30", "12:30:45", "2026-01-31", "2026-01-31T12:00:00Z", "1e400", "0x", "0xg", "0b2", ".", "+", "-", "<<"),
        *("nUll", "yES", "offline", "on-demand", "10%", "5m", "720h", "1" * 1000, "_1", "True ", "1.2.3", "\u0663"),
    ],
)
def test_everything_else_is_a_text(word: str) -> None:
    assert scalars.meaning(word) == word


@pytest.mark.parametrize(
    ("word", "tag", "value"),
    [
        ("5", "tag:yaml.org,2002:str", "5"),
        ("5", "tag:yaml.org,2002:int", 5),
        ("5", "tag:yaml.org,2002:float", 5.0),
        ("yes", "tag:yaml.org,2002:bool", True),
        ("", "tag:yaml.org,2002:null", None),
        ("2026-01-31", "tag:yaml.org,2002:timestamp", "2026-01-31"),
        ("x", "!vault", "x"),
        ("5", "!", "5"),
    ],
)
def test_tags(word: str, tag: str, value: Any) -> None:
    assert scalars.tagged(word, tag) == value


@pytest.mark.parametrize(("word", "kind"), [("x", "int"), ("1.5", "int"), ("yes", "int"), ("x", "bool"), ("1", "null")])
def test_a_word_that_belies_its_tag(word: str, kind: str) -> None:
    with pytest.raises(ValueError, match=f"is no {kind}"):
        scalars.tagged(word, f"tag:yaml.org,2002:{kind}")


@pytest.mark.parametrize(("value", "text"), [(True, "true"), (8, "8"), (1.5, "1.5"), ("a", "a"), (None, None)])
def test_keys_become_texts(value: Any, text: str | None) -> None:
    assert scalars.key_text(value) == text
