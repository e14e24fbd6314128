"""A JSON merge patch as the API server applies it (RFC 7386), for worlds of tests that obey plans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merged(data: Any, patch: Any) -> Any:
    """The data after the patch; neither is changed."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(data) if isinstance(data, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result
