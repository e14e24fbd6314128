"""The troubles of supply: pods and static NodePools that lack nodes although no decision stands against them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final

from kerf.ec2.errors import LACKS_OF_ACCOUNT, REFUSED_WITHIN, lacks_capacity
from kerf.judgement.troubles import (
    LAUNCH_REFUSED,
    NOT_READY,
    PODS_UNSCHEDULABLE,
    SERVES_WITHIN,
    UNSCHEDULABLE_AFTER,
    Trouble,
    named_pods,
)
from kerf.model.snapshot import LaunchFailure
from kerf_api.texts import counted, shortened
from kerf_api.v1.nodepool import NodePool

_MORE_OFFERINGS: Final = (
    "allow more instance types, zones or capacity types in the NodePool; Kerf tries again by itself"
)
_NAMED: Final = 3


def unserved(
    waiting: Mapping[str, datetime], launches: Iterable[LaunchFailure], now: datetime, *, coming: bool
) -> Iterator[Trouble]:
    """The pods (`namespace/name`, since when they wait) that no pass has refused and that have no node yet.

    EC2 has no capacity for them, as far as no node is `coming`; or they have waited for `SERVES_WITHIN`.
    """
    rows = sorted((since, pod) for pod, since in waiting.items() if now - since >= UNSCHEDULABLE_AFTER)
    if rows and not coming and (refusals := _sold_out(launches, now)):
        text = f"has no capacity for {named_pods(rows)}: {refusals[-1][1]}"
        yield Trouble(LAUNCH_REFUSED, "aws/ec2", text, _MORE_OFFERINGS, rows[0][0], len(rows))
        return
    if late := [row for row in rows if now - row[0] >= SERVES_WITHIN]:
        since, first = late[0]
        others = (
            f" (and {len(late) - 1} more: {shortened(sorted(pod for _, pod in late[1:]), _NAMED)})" if late[1:] else ""
        )
        words = f"has no node yet, though a NodePool accepts it{others}"
        fix = f"kerf why pod {first} names its node and the state of that"
        yield Trouble(PODS_UNSCHEDULABLE, f"pod/{first}", words, fix, since, len(late))


def incomplete(lacking: Mapping[str, int], launches: Iterable[LaunchFailure], now: datetime) -> Iterator[Trouble]:
    """Static NodePools, by the number of nodes that they are `lacking`, while EC2 has no capacity."""
    refusals = _sold_out(launches, now)
    for pool, number in sorted(lacking.items()) if refusals else ():
        nodes = f"{counted(number, 'node')} of its replicas"
        text = f"lacks {nodes}: EC2 has no capacity: {refusals[-1][1]}"
        yield Trouble(LAUNCH_REFUSED, f"nodepool/{pool}", text, _MORE_OFFERINGS, None, number)


def without_gate(pools: Iterable[NodePool]) -> Iterator[Trouble]:
    """The static NodePools, while the feature gate is off: Kerf launches no node for them."""
    for pool in pools:
        if pool.managed and not pool.metadata.deleting and pool.spec.replicas:
            text = "has spec.replicas, and gets no nodes: the feature gate StaticCapacity is off"
            fix = "switch it on (settings.featureGates.staticCapacity), or remove spec.replicas"
            yield Trouble(NOT_READY, f"nodepool/{pool.name}", text, fix, pool.metadata.creation_timestamp)


def _sold_out(launches: Iterable[LaunchFailure], now: datetime) -> list[tuple[datetime, str]]:
    """When EC2 refused launches lately for want of capacity, and its words, the latest last."""
    return sorted(
        (one.at, f"{error.code}: {error.message}")
        for one in launches
        for error in one.errors
        if now - one.at < REFUSED_WITHIN and error.code not in LACKS_OF_ACCOUNT
        if lacks_capacity(error.code, error.message)
    )
