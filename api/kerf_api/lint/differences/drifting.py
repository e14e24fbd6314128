"""Which of an object's changed fields make its nodes drift: those that change the hash that nodes are compared by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kerf_api.lint.problem import Steps

Hash = Callable[[Mapping[str, Any]], str]


def drifting(hashed: Hash, before: Mapping[str, Any], after: Mapping[str, Any], places: Iterable[Steps]) -> list[Steps]:
    """The places that change the hash, each by itself; none where the hash stays, or one of the two has none.

    `hashed` gives an object's hash and raises ValueError where there is none. Where only several changes together
    change it, the answer is the object's spec.
    """
    try:
        was = hashed(before)
        if hashed(after) == was:
            return []
        found = [place for place in places if hashed(_moved(before, after, place)) != was]
    except ValueError:  # msgspec's errors are such, too
        return []
    return found or [("spec",)]


def _moved(before: Mapping[str, Any], after: Mapping[str, Any], place: Steps) -> dict[str, Any]:
    """The old object with what the new one has at a place."""
    step, *rest = place
    key = str(step)
    changed = dict(before)
    if rest:
        inner, other = (side.get(key) for side in (before, after))
        inner, other = (side if isinstance(side, dict) else {} for side in (inner, other))
        changed[key] = _moved(inner, other, tuple(rest))
    elif key in after:
        changed[key] = after[key]
    else:
        changed.pop(key, None)
    return changed
