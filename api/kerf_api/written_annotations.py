"""The annotations in which Kerf keeps its own state, by kind, and the changes of them that others may not make.

Kerf acts on these annotations, so an account with permission to edit an object could steer Kerf by them. The admission
webhook refuses such changes, except by Kerf's own ServiceAccount and by accounts that the chart names. Annotations for
users (`karpenter.sh/do-not-disrupt`, `kerf.sh/allow-deletion`, …) are not listed here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal

from kerf_api import labels

_POOL_HASHES: Final = frozenset({labels.NODEPOOL_HASH, labels.NODEPOOL_HASH_VERSION})
_CLASS_HASHES: Final = frozenset({labels.NODECLASS_HASH, labels.NODECLASS_HASH_VERSION})

#: By kind, each annotation that Kerf writes on objects of the kind.
WRITTEN: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "NodeClaim": labels.WRITTEN_ON_CLAIMS,
        "NodePool": _POOL_HASHES
        | {
            labels.MISMATCHES,
            labels.REGISTRATIONS,
            labels.BACK_OFF,
            labels.ZONAL_SHIFT,
            labels.CONSOLIDATION_PAUSE,
            labels.GARBAGE,
            labels.SEEN_PLAN,
            labels.CANARY,
        },
        "EC2NodeClass": _CLASS_HASHES | {labels.GARBAGE},
    }
)
#: Of these, the annotations that a new object may have: a copy of a live object has its hashes, and Kerf corrects them.
_ON_NEW: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {"NodePool": _POOL_HASHES, "EC2NodeClass": _CLASS_HASHES}
)
#: Of these, the annotations that any account may remove. Kerf only forgets by that, and `kubectl replace` with a
#: manifest from Git removes them. The record of terminated instances stays: it bounds how many more are terminated.
_REMOVABLE: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {kind: WRITTEN[kind] - {labels.GARBAGE} for kind in ("NodePool", "EC2NodeClass")}
)
_NONE: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one annotation that only Kerf may make."""

    key: str
    how: Literal["added", "changed", "removed"]


def refused(kind: str, new: Mapping[str, Any], old: Mapping[str, Any] | None) -> tuple[Change, ...]:
    """The changes that only Kerf may make, by key.

    Args:
        kind: The kind of the object; kinds without such annotations have no such changes.
        new: The annotations as requested.
        old: The annotations before; None for a new object.
    """
    return tuple(_changes(kind, new, old))


def _changes(kind: str, new: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Change]:
    before: Mapping[str, Any] = {} if old is None else old
    for key in sorted(WRITTEN.get(kind, _NONE)):
        if key in new and key not in before:
            if old is not None or key not in _ON_NEW.get(kind, _NONE):
                yield Change(key, "added")
        elif key in before and key not in new:
            if key not in _REMOVABLE.get(kind, _NONE):
                yield Change(key, "removed")
        elif key in new and new[key] != before[key]:
            yield Change(key, "changed")
