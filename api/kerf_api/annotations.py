"""Annotations that users write, with a function for each that reads its text or raises ValueError."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any


def unreadable(
    readers: Mapping[str, Callable[[str], object]], annotations: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """The annotations that cannot be read, with the right form. Values that are no text are left out."""
    for key, read in readers.items():
        text = annotations.get(key)
        if isinstance(text, str):
            try:
                read(text)
            except ValueError as error:
                yield key, str(error)
