"""Impairment: what EC2's status checks have found failing for two minutes, or has been scheduled for, ends the node.

A failing check means that pods there do not work: the drain of such a node has no time, as in a repair. What is only
scheduled is drained as usual. As with interruptions no budget holds it up. Source: AWS provider reference §8.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from kerf.disruption.forced.interruption import goes, states_of
from kerf.disruption.on_nodes import leaving, node_events, over_at_once, tried
from kerf.model import kinds
from kerf.model.aws.cloud import SCHEDULED, Impairment
from kerf.model.plan import NOTHING, DeleteObject, Event, Plan, Reason, Source, joined
from kerf.model.snapshot import Snapshot, StateNode

#: A check has failed for so long when it counts.
BORNE: Final = timedelta(minutes=2)


def impaired(snapshot: Snapshot, ending: frozenset[str] = frozenset()) -> Plan:
    """What the status of instances calls for; `ending` are claims that this very plan deletes."""
    return joined(
        tried(snapshot, f"node/{state.name}", partial(_one, snapshot, state, found, ending))
        for instance_id, found in snapshot.impairments.items()
        for state in states_of(snapshot, instance_id)
    )


def _one(snapshot: Snapshot, state: StateNode, found: tuple[Impairment, ...], ending: frozenset[str]) -> Plan:
    claim = state.claim
    if claim is None or not claim.managed or claim.metadata.unreadable or claim.name in ending:
        return NOTHING
    failed = [one for one in found if _for_too_long(one, snapshot.examined_at)]
    reason = _reason(failed or [one for one in found if one.category == SCHEDULED])
    if reason is None:
        return NOTHING
    if claim.metadata.deleting:
        return over_at_once(snapshot, claim, reason) if failed else NOTHING
    deletion = DeleteObject(
        reason=reason,
        sources=frozenset({Source.NODE_CLAIMS}),
        ref=kinds.ref(claim),
        uid=claim.metadata.uid,
        moved=leaving(snapshot, state),
    )
    return Plan(actions=(deletion,), events=tuple(_events(state, reason)))


def _for_too_long(one: Impairment, seen_at: datetime | None) -> bool:
    """When EC2 was asked, not now: since then the instance may have recovered."""
    if one.category == SCHEDULED or one.since is None or seen_at is None:
        return False
    return one.since + BORNE <= seen_at


def _reason(found: list[Impairment]) -> Reason | None:
    if not found:
        return None
    first = min(found, key=lambda one: (one.category, one.text))
    return Reason("ScheduledChange" if first.category == SCHEDULED else "InstanceStatusFailed", first.text)


def _events(state: StateNode, reason: Reason) -> Iterator[Event]:
    yield from node_events(state, "InstanceUnhealthy", f"EC2 reports: {reason.text}", type_="Warning")
    yield from goes(state, reason.text)
