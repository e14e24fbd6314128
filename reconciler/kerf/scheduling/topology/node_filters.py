"""The node filters of spreads beside nodes that exist or are on their way, each asked once a node."""

from __future__ import annotations

from typing import Protocol

from kerf.pods.topology_constraints import ANTI, SPREAD, TopologyGroup, named_labels
from kerf_api.requirements import Requirements
from kerf_api.v1.meta import Taint


class FilteredNode(Protocol):
    """What a node filter looks at: `possible` holds each label's possible values."""

    @property
    def possible(self) -> Requirements: ...
    @property
    def taints(self) -> tuple[Taint, ...]: ...
    def domains(self, key: str) -> tuple[str | None, ...]:
        """The values that a label may have; `(None,)` when the node has none."""


#: Groups with the domains in which they count a pod.
_Counting = tuple[tuple[TopologyGroup, tuple[str | None, ...]], ...]


class NodeFilters:
    """Remembers the answers of a solve. Thousands of pods may each bring a filter, and most leave out no node."""

    def __init__(self) -> None:
        self._named: dict[FilteredNode, frozenset[str]] = {}
        self._known: dict[tuple[FilteredNode, object], bool] = {}
        self._counting: dict[tuple[FilteredNode, tuple[TopologyGroup, ...]], _Counting] = {}

    def admit(self, group: TopologyGroup, node: FilteredNode) -> bool:
        """`TopologyGroup.admits_node`."""
        named = self._named.get(node)
        if named is None:
            named = self._named[node] = named_labels(node.possible)
        key = node, group.filter_name(named)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = group.admits_node(node.possible, node.taints)
        return known

    def counting(self, groups: tuple[TopologyGroup, ...], node: FilteredNode) -> _Counting:
        """Those of the groups that count pods on the node, with its domains.

        Where the domain is not certain, only anti-affinity counts: in each of them.
        """
        key = node, groups
        known = self._counting.get(key)
        if known is None:
            found = [(group, node.domains(group.key)) for group in groups]
            known = self._counting[key] = tuple(
                [
                    (group, domains)
                    for group, domains in found
                    if group.kind == ANTI or (len(domains) == 1 and (group.kind != SPREAD or self.admit(group, node)))
                ]
            )
        return known
