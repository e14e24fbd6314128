"""The troubles of nodes that were well once: their kubelet is silent, or a condition says that a part has failed.

Without the feature gate NodeRepair such a node stays until a person sees to it; with it, until the end of its
toleration, and longer where too many nodes of the NodePool are unhealthy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from kerf.disruption.forced.repair import Sickness, sickness_of, sicknesses
from kerf.judgement.troubles import JOINS_WITHIN, NOT_READY, Trouble
from kerf.model.kubernetes.objects import Node
from kerf_api.texts import shortened
from kerf_api.v1.nodeclaim import NodeClaim

_NAMED = 3
_BY_HAND = "restart or delete the node; with the feature gate NodeRepair Kerf replaces such nodes"


def unhealthy(
    claims: Iterable[NodeClaim], nodes: Iterable[Node], now: datetime, *, repaired: bool | None = None
) -> Iterator[Trouble]:
    """The nodes of these NodeClaims that are unhealthy for `JOINS_WITHIN`, by condition and status; `repaired` is
    whether the gate NodeRepair is on, None when that is not known."""
    own = {claim.status.node_name for claim in claims if not claim.metadata.deleting and claim.is_true("Initialized")}
    groups: dict[tuple[str, str], list[tuple[datetime, str]]] = {}
    for node in nodes:
        sickness = _first(node, repaired=bool(repaired)) if node.name in own and not node.metadata.deleting else None
        if sickness is not None and now >= (sickness.until if repaired else sickness.since + JOINS_WITHIN):
            groups.setdefault((sickness.condition, sickness.status), []).append((sickness.since, node.name))
    for (condition, status), rows in sorted(groups.items()):
        since, first = min(rows)
        others = shortened(sorted(name for _, name in rows if name != first), _NAMED)
        text = f"is unhealthy: {condition} is {status}" + (f" (and {len(rows) - 1} more: {others})" if others else "")
        fix = _BY_HAND if repaired is False else f"kerf why node {first} shows the cause"
        yield Trouble(NOT_READY, f"node/{first}", text, fix, since, len(rows))


def _first(node: Node, *, repaired: bool) -> Sickness | None:
    """The condition for which the node is replaced, or the one that it has had longest."""
    return sickness_of(node) if repaired else min(sicknesses(node), key=lambda one: one.since, default=None)
