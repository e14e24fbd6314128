"""Values of ours as an object's annotations hold them, in JSON. A person may have edited one: its times are bounded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from kerf_api.bounds import bounded
from kerf_api.decoders import decoder_of

T = TypeVar("T")


def read(annotations: Mapping[str, str], key: str, kind: type[T]) -> T | None:
    """What stands there; None when nothing does, or when it cannot be read."""
    text = annotations.get(key)
    try:
        return None if text is None else bounded(decoder_of(kind).decode(text), kind)
    except (ValueError, RecursionError):  # the latter of values nested too deeply
        return None


def text_of(value: object) -> str:
    """As `read` takes it."""
    return msgspec.json.encode(value).decode()
