"""Events of the past that a clock ahead has stamped: on claims the creation counts instead, notes of pools are void."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kerf.disruption.command import Failure, failure_of
from kerf.disruption.consolidation.pausing import Pause, pause_of
from kerf.disruption.drift.conditions import Window, consolidation_window
from kerf.model import backoff
from kerf.model.annotations import text_of
from kerf.model.claims import since
from kerf.model.instants import SKEW, is_ahead, rfc3339
from kerf_api import labels
from kerf_api.v1.meta import decode
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool
from tests.unit.disruption.worlds import pool

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
BORN = NOW - timedelta(minutes=3)


def claim(at: datetime, **status: Any) -> NodeClaim:
    row = {"type": "Initialized", "status": "True", "lastTransitionTime": rfc3339(at)}
    meta = {"name": "a", "creationTimestamp": rfc3339(BORN)}
    ref = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "default"}
    body = {"metadata": meta, "spec": {"nodeClassRef": ref}, "status": {"conditions": [row], **status}}
    return decode(NodeClaim, body)


def noted(key: str, value: object) -> NodePool:
    return pool(annotations={key: text_of(value)}, consolidateAfter="2m")


@pytest.mark.parametrize(
    ("at", "counts"),
    [
        (NOW - MINUTE, NOW - MINUTE),
        (NOW, NOW),
        (NOW + SKEW, NOW + SKEW),
        (NOW + SKEW + MINUTE, BORN),
        (NOW + HOUR, BORN),
    ],
)
def test_a_condition_counts_from_its_time_or_from_the_claims_creation(at: datetime, counts: datetime) -> None:
    assert since(claim(at), "Initialized", NOW) == counts
    assert since(claim(at), "Drained", NOW) is None
    assert is_ahead(at, NOW) == (counts == BORN)


def test_a_pod_event_that_is_ahead_keeps_no_node_from_consolidation() -> None:
    empty = pool(consolidateAfter="2m")
    assert consolidation_window(claim(BORN, lastPodEventTime=rfc3339(NOW + HOUR)), empty, NOW) == Window(True)
    assert consolidation_window(claim(NOW + HOUR, lastPodEventTime=rfc3339(NOW + HOUR)), empty, NOW) == Window(True)
    recent = claim(BORN, lastPodEventTime=rfc3339(NOW - MINUTE))
    assert consolidation_window(recent, empty, NOW) == Window(False, NOW + MINUTE)


@pytest.mark.parametrize(("at", "holds"), [(NOW, True), (NOW + SKEW, True), (NOW + HOUR, False)])
def test_a_note_of_a_clock_ahead_holds_nothing_up(at: datetime, holds: bool) -> None:
    failures = noted(labels.BACK_OFF, backoff.PoolFailures(count=1, at=at))
    assert (backoff.until(failures, NOW) is not None) == holds
    paused = noted(labels.CONSOLIDATION_PAUSE, Pause(at=at, lost=1))
    assert (pause_of(paused, NOW) is not None) == holds
    failed = {labels.COMMAND_FAILED: text_of(Failure(at=at))}
    assert (failure_of(failed, NOW) is not None) == holds
    results = noted(labels.REGISTRATIONS, (backoff.Registration(claim="x", at=at),))
    assert bool(backoff.registrations(results, NOW)) == holds
