"""`spec.userData` of an EC2NodeClass: a text whose form depends on the AMI family, and that the API server never reads.

The linter imports this package only for a class that has such a text: readers of MIME, TOML and YAML start slowly.
"""

from __future__ import annotations

from typing import Final

_LONGEST: Final = 100


def shown(text: str) -> str:
    """A piece of a user's text for a message: cut, and without what a terminal would obey."""
    cut = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in cut)
