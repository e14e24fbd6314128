"""How many nodes may be removed when something is deleted that they depend on: few without a word, more with a
person's.

The word is an annotation that says for how many nodes it is meant, so that it fits what was looked at: a NodePool that
has grown since needs another one. It can be committed to Git and reviewed there like any other line.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

from kerf_api import labels

#: So many nodes are removed without a question.
FEW: Final = 3
#: The word for however many there are.
ALL: Final = "all"


def allowance(annotations: Mapping[str, str]) -> int:
    """For how many nodes a person has given leave with these annotations; 0 without a word."""
    return allowed_by(annotations.get(labels.ALLOW_DELETION, ""))


def allowed_by(word: str) -> int:
    """For how many nodes the word is meant; 0 when it is neither a number nor `all`."""
    if word == ALL:
        return sys.maxsize
    return int(word) if word.isascii() and word.isdigit() and len(word) < 10 else 0


def how_to_allow(kind: str, name: str, word: object) -> str:
    """What a person types to give the word; `kind` as kubectl takes it."""
    return f"kubectl annotate {kind} {name} {labels.ALLOW_DELETION}={word}"
