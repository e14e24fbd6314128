"""Until when the slow half would say the same again although nothing changes."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.disruption.consolidation.pausing import PAUSES, Pause
from kerf.disruption.consolidation.proposals import FRESH
from kerf.disruption.propose import consider
from kerf.model import backoff
from kerf.model.annotations import text_of
from kerf.model.backoff import PoolFailures
from kerf_api import labels
from kerf_api.v1.nodepool import NodePool
from tests.unit.disruption.worlds import MINUTE, NOW, alone, claim, node, on_new_nodes, pod, pool, snapshot

#: In four minutes a window of ten minutes begins; another one has three to go.
AHEAD, OPEN = (NOW + timedelta(minutes=4)), (NOW - timedelta(minutes=7))
SMALLER, DEARER = on_new_nodes("t3.small", price=20_000), on_new_nodes("m5.xlarge", price=200_000)

UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
WAITING = pod("waits", phase="Pending", pod_conditions=[UNSCHEDULABLE])


def pair(name: str, *pods: Any, **more: Any) -> list[Any]:
    one = claim(name, **more)
    return [one, node(one), *(pods or [pod(f"web-{name}", name)])]


def annotated(key: str, value: str) -> NodePool:
    made = pool()
    return replace(made, metadata=replace(made.metadata, annotations={**made.metadata.annotations, key: value}))


FAILED = PoolFailures(count=3, at=NOW - timedelta(seconds=30))
FAILED_POOL = annotated(labels.BACK_OFF, text_of(FAILED))
PAUSED = NOW - 9 * MINUTE + PAUSES.after(1, "default")


def until(*objects: Any, ask: Any = None) -> datetime | None:
    return consider(snapshot([*objects]), ask or alone(DEARER)).until


def window(at: datetime) -> dict[str, str]:
    return {"nodes": "0", "schedule": f"{at.minute} {at.hour} * * *", "duration": "10m"}


def test_of_a_cluster_at_rest_for_ten_minutes() -> None:
    assert until(pool(), *pair("a"), *pair("b")) == NOW + 10 * MINUTE


@pytest.mark.parametrize(
    ("objects", "at"),
    [
        ([pool(budgets=[window(AHEAD)]), *pair("a")], AHEAD),
        ([pool(budgets=[window(OPEN)]), *pair("a")], OPEN + 10 * MINUTE),
        ([pool(budgets=[{"nodes": "nonsense"}]), *pair("a")], NOW + 10 * MINUTE),
        (
            [pool(), *pair("a", pod("p", "a", started=NOW - 8 * MINUTE, annotations={labels.DO_NOT_DISRUPT: "10m"}))],
            NOW + 2 * MINUTE,
        ),
        ([annotated(labels.MINIMUM_AGE, "61m"), *pair("a")], NOW + MINUTE),
        ([annotated(labels.CONSOLIDATION_PAUSE, text_of(Pause(at=NOW - 9 * MINUTE, lost=1000))), *pair("a")], PAUSED),
        ([annotated(labels.BACK_OFF, text_of(FAILED)), *pair("a")], backoff.until(FAILED_POOL, NOW)),
    ],
    ids=[
        "a window begins",
        "a window ends",
        "budgets that cannot be read",
        "the protection of a pod ends",
        "the minimum age is reached",
        "a pause ends",
        "the back-off of a NodePool ends",
    ],
)
def test_what_ends_sooner_counts(objects: list[Any], at: datetime) -> None:
    assert until(*objects) == at


@pytest.mark.parametrize(
    "objects",
    [
        [pool(), *pair("a"), WAITING],
        [pool(), claim("a")],
        [pool(), *(part for number in range(61) for part in pair(f"n{number}"))],
    ],
    ids=["a pod that waits", "a node that starts", "more nodes than one run looks at"],
)
def test_where_something_is_on_its_way_it_may_change_at_any_time(objects: list[Any]) -> None:
    assert until(*objects) is None


def test_a_move_is_proposed_again_before_it_is_too_old() -> None:
    assert until(pool(), *pair("a"), ask=alone(SMALLER)) == NOW + FRESH
