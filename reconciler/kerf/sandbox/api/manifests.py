"""JSON-ready data as the API server treats it: copied at the door, merged by RFC 7386, never changed in place.

A stored manifest is shared by the store, its history and every reader inside the sandbox. A write makes a new one
that shares the untouched parts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

Manifest = Mapping[str, Any]


def copied(manifest: Manifest) -> dict[str, Any]:
    """A deep copy as plain JSON data."""
    data: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(manifest))
    return data


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386: objects merge, null removes, everything else replaces. Neither argument is changed."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def timestamp(instant: datetime) -> str:
    """RFC 3339 in whole seconds, as Kubernetes writes times."""
    return instant.astimezone(UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z")


def micro_timestamp(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def digest(*parts: object) -> str:
    """64 hexadecimal digits that follow from the parts alone."""
    return hashlib.sha256("\x00".join(str(part) for part in parts).encode()).hexdigest()


def chance(*parts: object) -> float:
    """A number in [0, 1) that follows from the parts alone: a die that does not care in which order it is thrown."""
    return int(digest(*parts)[:13], 16) / 16**13


def suffix(*parts: object) -> str:
    """Five letters and digits of the kind that Kubernetes puts behind a generated name."""
    alphabet = "bcdfghjklmnpqrstvwxz2456789"
    number = int(digest(*parts)[:12], 16)
    return "".join(alphabet[number // len(alphabet) ** place % len(alphabet)] for place in range(5))
