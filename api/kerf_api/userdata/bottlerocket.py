"""Bottlerocket: a user's settings in TOML, which keep their place beside those that make the node join.

Source: AWS provider reference §5.4.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any, Final

#: Deeper than any settings, and shallow enough for every recursion.
DEEPEST: Final = 64
_WHOLE: Final = range(-(2**63), 2**63)


def settings(text: str) -> dict[str, Any]:
    """The text as a tree. Raises ValueError when it is no TOML, or has something else where our settings must go."""
    try:
        tree = tomllib.loads(text)
    except RecursionError:
        raise ValueError(f"user data is not valid TOML: nested more than {DEEPEST} levels deep") from None
    except ValueError as error:
        raise ValueError(f"user data is not valid TOML: {error}") from error
    _bounded(tree)
    table(table(tree, "settings"), "kubernetes")
    return tree


def table(parent: dict[str, Any], key: str) -> dict[str, Any]:
    """The table of a name within another, made when it is missing. Raises ValueError when it is something else."""
    found = parent.setdefault(key, {})
    if not isinstance(found, dict):
        raise ValueError(f"user data: {key} is not a table")
    return found


def _bounded(tree: dict[str, Any]) -> None:
    """TOML's own bound on whole numbers, and one on depth, without which the tree could not be written again."""
    level: list[Any] = [tree]
    for _ in range(DEEPEST):
        level = [inner for value in level for inner in _within(value)]
        if any(isinstance(value, int) and value not in _WHOLE for value in level):
            raise ValueError("user data is not valid TOML: a whole number has more than 64 bits")
    if level:
        raise ValueError(f"user data is not valid TOML: nested more than {DEEPEST} levels deep")


def _within(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else []
