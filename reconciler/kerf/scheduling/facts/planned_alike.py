"""Whether what has become of one node is to be expected of the next one of its NodePool.

A node that did not come up bears on the next one if that may become like it. A node that came up answers for it, on
behalf of the next one, only if it was planned as the next one is: a node that may be of either architecture becomes
what EC2 chooses, and a node for pods that require amd64 says nothing of that choice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from kerf.model.claims import marks_of
from kerf.scheduling.answers.solution import NewNode
from kerf_api import labels
from kerf_api.requirements import Requirement, Requirements
from kerf_api.resources import Resources
from kerf_api.v1.meta import Entry
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import parse_entries

#: Requirements that do not decide whether a node comes up, or that all nodes of a NodePool have in common.
_IGNORED: Final = frozenset({labels.HOSTNAME, labels.CAPACITY_TYPE, labels.NODEPOOL, labels.NODECLASS})


@dataclass(frozen=True, slots=True)
class Kind:
    """What is required of a node: `rows` but for its instance type, the `types` that it may be of (any, when there are
    none), and what it waits for before it is initialized (`awaits`): extended resources and drivers of devices."""

    rows: Requirements
    types: frozenset[str]
    awaits: frozenset[str]


def kind_of_new(node: NewNode) -> Kind:
    """The kind of a planned node."""
    return _kind(node.requirements, node.instance_types, node.requests, node.drivers)


def bears_on(claim: NodeClaim, kind: Kind) -> bool:
    """Whether a node of the kind may become like that of a NodeClaim, which had as much choice or more.

    One for pods of one zone says nothing of one that may be in any. Requirements that cannot be read bear on nothing.
    """
    own = _kind_of(claim)
    if own is None or not (own.awaits <= kind.awaits or own.awaits & kind.awaits):
        return False
    has, keys = claim.metadata.labels, own.rows.keys() | kind.rows.keys()
    return _in_types(own, kind, has.get(labels.INSTANCE_TYPE)) and all(
        _in_row(own.rows.allowed(key), kind.rows.allowed(key), has.get(key)) for key in keys
    )


def _in_row(own: Requirement, wanted: Requirement, has: str | None) -> bool:
    return wanted.intersection(own) == wanted and (has is None or wanted.has(has))


def _in_types(own: Kind, wanted: Kind, has: str | None) -> bool:
    """Not the whole set is compared: that depends on the sizes of pods."""
    if len(own.types) == 1 < len(wanted.types):
        return False
    types = own.types if has is None else frozenset({has})
    return not wanted.types or not types or not wanted.types.isdisjoint(types)


def answers(claim: NodeClaim, late: NodeClaim, kind: Kind) -> bool:
    """Whether the node of a NodeClaim, which came up, answers for a late one, on behalf of a node of the kind."""
    own, other = _kind_of(claim), _kind_of(late)
    if own is None or other is None or not own.awaits >= kind.awaits:
        return False
    keys, has = own.rows.keys() | kind.rows.keys(), claim.metadata.labels
    if not all(_alike(own.rows.allowed(key), kind.rows.allowed(key), has.get(key)) for key in keys):
        return False
    became, failed = has.get(labels.INSTANCE_TYPE), late.metadata.labels.get(labels.INSTANCE_TYPE)
    return became == failed or (_may_be_of(own, failed) and _may_be_of(other, became))


def _may_be_of(kind: Kind, type_: str | None) -> bool:
    return not kind.types or type_ in kind.types


def _alike(own: Requirement, wanted: Requirement, has: str | None) -> bool:
    """Whether a requirement is the same, or leaves no choice and is met."""
    only = not wanted.complement and len(wanted.values) == 1
    return own == wanted or (only and has in wanted.values)


def _kind_of(claim: NodeClaim) -> Kind | None:
    drivers = marks_of(claim, labels.REQUESTED_DRIVERS)
    return _read(claim.spec.requirements, tuple(claim.spec.resources.requests.items()), drivers)


@lru_cache(maxsize=1 << 12)
def _read(
    entries: tuple[Entry, ...], requests: tuple[tuple[str, str | int | float], ...], drivers: frozenset[str]
) -> Kind | None:
    try:
        rows = parse_entries(entries)
        return _kind(rows, rows.allowed(labels.INSTANCE_TYPE).values, Resources.parse(dict(requests)), drivers)
    except ValueError:
        return None


def _kind(rows: Requirements, types: Collection[str], requests: Resources, drivers: Iterable[str]) -> Kind:
    own = (_bare(row) for key, row in rows.items() if key not in _IGNORED and key != labels.INSTANCE_TYPE)
    extended = (name for name, amount in requests.items() if amount and "/" in name)
    return Kind(Requirements(own), frozenset(types), frozenset((*extended, *drivers)))


def _bare(row: Requirement) -> Requirement:
    """Without what a NodeClaim does not store, or what decides on nothing: a lower bound that each value is above."""
    low = row.gte if row.gte is not None and row.gte > 0 else None
    return replace(row, min_values=None, gte=low)
