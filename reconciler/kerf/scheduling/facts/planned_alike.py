"""Nodes that are planned alike: what comes of one is to be expected of another.

Compared is what their NodePool and their pods require of them, not what they have become. A node that may be of either
architecture and has become arm64 is like the next that may be of either: EC2 chooses alike. A node for pods that
require amd64 is not like it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from kerf.scheduling.answers.solution import NewNode
from kerf_api import labels
from kerf_api.requirements import IN, Requirement, Requirements, requirement
from kerf_api.resources import Resources
from kerf_api.v1.meta import Entry
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import parse_entries

#: Requirements that do not decide whether a node comes up, or that all nodes of a NodePool have in common.
_IGNORED: Final = frozenset(
    {labels.HOSTNAME, labels.CAPACITY_TYPE, labels.INSTANCE_TYPE, labels.NODEPOOL, labels.NODECLASS}
)


@dataclass(frozen=True, slots=True)
class Kind:
    """What is required of a node, without numbers of values: `extended` are the names of the extended resources that
    its pods request, for which it waits before it is initialized."""

    rows: Requirements
    extended: frozenset[str]


def kind_of_new(node: NewNode) -> Kind:
    """The kind of a planned node."""
    return _kind(node.requirements, node.instance_types, node.requests)


def kind_of(claim: NodeClaim) -> Kind | None:
    """The kind of a NodeClaim's node; None when its requirements or requests cannot be read."""
    return _read(claim.spec.requirements, tuple(claim.spec.resources.requests.items()))


def _kind(rows: Requirements, types: Collection[str], requests: Resources) -> Kind:
    """The kind of a node that may be of these instance types. One alone is a requirement; of several one is as good as
    another."""
    own = [replace(row, min_values=None) for key, row in rows.items() if key not in _IGNORED]
    only = (requirement(labels.INSTANCE_TYPE, IN, types),) if len(types) == 1 else ()
    extended = frozenset(name for name, amount in requests.items() if amount and "/" in name)
    return Kind(Requirements((*own, *only)), extended)


@lru_cache(maxsize=1 << 12)
def _read(entries: tuple[Entry, ...], requests: tuple[tuple[str, str | int | float], ...]) -> Kind | None:
    try:
        rows = parse_entries(entries)
        return _kind(rows, rows.allowed(labels.INSTANCE_TYPE).values, Resources.parse(dict(requests)))
    except ValueError:
        return None


def is_of(claim: NodeClaim, wanted: Kind) -> bool:
    """Whether a NodeClaim's node was planned as a node of the kind is, or has become what the kind leaves no choice
    in."""
    own = kind_of(claim)
    if own is None or own.extended != wanted.extended:
        return False
    keys = own.rows.keys() | wanted.rows.keys()
    return all(_alike(own.rows.allowed(key), wanted.rows.allowed(key), claim.metadata.labels.get(key)) for key in keys)


def _alike(own: Requirement, wanted: Requirement, has: str | None) -> bool:
    if own == wanted:
        return True
    only = not wanted.complement and len(wanted.values) == 1
    return only and has in wanted.values
