"""While a batch waits for more pods, those that are there are solved for: at its close nobody waits for that."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from kerf.model import kinds
from kerf.model.backoff import PoolFailures, ends
from kerf.model.cluster import Cluster
from kerf.model.memory import Memory
from kerf.model.plan import CreateNodeClaim, Plan, Source
from kerf.model.settings import Settings
from kerf.model.snapshot import Batch
from kerf.provisioning import provision as room
from kerf.provisioning.boundary import solve_apart
from kerf_api import labels
from tests.unit.scheduling import worlds as w
from tests.unit.scheduling.worlds import NOW

Facts = dict[str, Any]
SECOND = timedelta(seconds=1)


class Loop:
    """Looks at a cluster, with a memory; `solved` is when, in seconds after the start, anything was solved for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cluster, self.memory, self.solved, self.facts = Cluster(), Memory(), list[float](), Facts()
        self.batch, self._now = Batch(NOW, NOW), NOW

        def noted(*args: Any, **options: Any) -> Any:
            self.solved.append((self._now - NOW) / SECOND)
            return solve_apart(*args, **options)

        monkeypatch.setattr(room, "solve_apart", noted)
        for value in (w.pool(), *w.replicas(9, "p", "900m")):
            self.apply(value)

    def apply(self, value: Any) -> None:
        self.cluster.apply(kinds.BY_NAME[kinds.ref(value).kind], value)

    def look(self, seconds: float, memory: Memory | None = None) -> Plan:
        self._now = NOW + seconds * SECOND
        facts = {"catalogues": {"default": w.CATALOGUE}, "batch": self.batch, **self.facts}
        snapshot = self.cluster.snapshot(now=self._now, settings=Settings("test", early_orders=False), **facts)
        return room.provision(snapshot, (self.memory if memory is None else memory).turn(snapshot))


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Loop:
    return Loop(monkeypatch)


def after(plan: Plan) -> float | None:
    return None if plan.next_due is None else (plan.next_due - NOW) / SECOND


def claims(plan: Plan) -> int:
    return sum(isinstance(action, CreateNodeClaim) for action in plan.actions)


def test_what_is_likely_all_is_solved_for_at_once_and_served_when_the_batch_closes(loop: Loop) -> None:
    assert after(loop.look(0)) == 0.3
    early = loop.look(0.3)
    assert (after(early), early.actions, early.provisioned) == (1.0, (), False)
    assert loop.look(0.39) == early
    assert loop.look(0.5) == Plan(next_due=early.next_due)
    loop.facts = {"fresh_at": {Source.NODES: NOW}}
    plan = loop.look(1.0)
    assert loop.solved == [0.3]
    assert claims(plan)
    assert plan == loop.look(1.0, Memory())
    assert loop.solved == [0.3, 1.0]


def test_a_solution_that_does_not_hold_any_more_is_not_made_again_before_the_close(loop: Loop) -> None:
    for number in range(4, 10):
        loop.look(number / 10)
        a_node_changes(loop)
    assert loop.solved == []
    loop.look(0.3)
    for number in range(4, 10):
        a_node_changes(loop)
        loop.look(number / 10)
    assert loop.solved == [0.3]
    assert claims(loop.look(1.0))
    assert loop.solved == [0.3, 1.0]


def a_node_changes(loop: Loop) -> None:
    loop.apply(w.node("other", cpu="1"))


def another_node(loop: Loop) -> None:
    loop.apply(w.node("n", cpu="64", memory="64Gi"))


def no_stock(loop: Loop) -> None:
    every = {key: NOW + 60 * SECOND for one in w.CATALOGUE for o in one.offerings for key in o.keys if o.zone != "z3"}
    loop.facts = {"out_of_stock": every}


def other_types(loop: Loop) -> None:
    loop.facts = {"catalogues": {"default": w.ladder(3)}}


def a_pool_held(loop: Loop) -> None:
    loop.facts = {"not_before": {"nodepool/default": NOW + 60 * SECOND}}


def a_pod_less(loop: Loop) -> None:
    loop.cluster.remove(kinds.POD, "default", "p-0")


@pytest.mark.parametrize("change", [another_node, no_stock, other_types, a_pool_held, a_pod_less])
def test_what_has_changed_since_is_reckoned_with(loop: Loop, change: Callable[[Loop], None]) -> None:
    loop.look(0.3)
    before = loop.look(1.0)
    loop.look(0.3)
    change(loop)
    plan = loop.look(1.0)
    assert plan == loop.look(1.0, Memory())
    assert plan != before


def test_what_ends_between_the_close_and_the_reconcile_after_it_has_ended(loop: Loop) -> None:
    pool, close = w.pool(), NOW + SECOND
    back_off = PoolFailures(count=1, at=NOW)
    back_off = PoolFailures(count=1, at=close + 0.05 * SECOND - (ends(back_off, pool) - NOW))
    noted = {labels.BACK_OFF: msgspec.json.encode(back_off).decode()}
    loop.apply(msgspec.structs.replace(pool, metadata=msgspec.structs.replace(pool.metadata, annotations=noted)))
    loop.look(0.3)
    plan = loop.look(1.1)
    assert claims(plan)
    assert plan == loop.look(1.1, Memory())


def test_what_is_over_when_the_batch_closes_is_over_ahead(loop: Loop) -> None:
    loop.facts = {"not_before": {"nodepool/default": NOW + 0.8 * SECOND}}
    loop.look(0.3)
    assert claims(loop.look(1.0))
    assert loop.solved == [0.3]


@pytest.mark.parametrize(("first", "due", "then"), [(-2.0, 0.6, 1.0), (-4.0, 1.0, None), (-9.5, 0.5, None)])
def test_pods_that_kept_coming_are_waited_for_longer(loop: Loop, first: float, due: float, then: float | None) -> None:
    loop.batch = Batch(NOW + first * SECOND, NOW)
    assert after(loop.look(0)) == due
    assert loop.solved == []
    if then is not None:
        assert after(loop.look(due)) == then
        assert loop.solved == [due]


def test_another_pod_prolongs_the_batch_and_is_served_with_it(loop: Loop) -> None:
    loop.look(0.3)
    loop.apply(w.pod("late", "3"))
    at: datetime = NOW + 0.5 * SECOND
    loop.batch = Batch(NOW, at)
    assert after(loop.look(0.5)) == 0.8
    loop.look(0.8)
    plan = loop.look(1.5)
    assert loop.solved == [0.3, 0.8]
    assert plan == loop.look(1.5, Memory())
    assert any("late" in nomination.pod_uid for nomination in plan.nominations)


def test_pods_that_wait_in_vain_are_solved_for_once_a_time(loop: Loop) -> None:
    loop.batch = Batch(NOW, NOW, again=True)
    assert after(loop.look(0)) == 1.0
    loop.look(0.5)
    loop.look(1.0)
    assert loop.solved == [1.0]
