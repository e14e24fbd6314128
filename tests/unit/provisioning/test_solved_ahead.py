"""While a batch waits for more pods, those that are there are solved for: at its close nobody waits for that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from kerf.model import kinds
from kerf.model.backoff import PoolFailures, ends
from kerf.model.cluster import Cluster
from kerf.model.memory import Memory
from kerf.model.mismatches import FACTS_KEPT, Mismatches, Trait
from kerf.model.plan import CreateNodeClaim, Nomination, Plan, Source
from kerf.model.settings import Settings
from kerf.model.snapshot import Batch
from kerf.provisioning import provision as room
from kerf.provisioning.boundary import solve_apart
from kerf.provisioning.expecting import BINDS
from kerf.provisioning.waiting import LAUNCH
from kerf.scheduling.facts.joining import INITIALIZES
from kerf_api import labels
from kerf_api.v1.meta import Condition
from tests.unit.scheduling import worlds as w
from tests.unit.scheduling.worlds import NOW

Facts = dict[str, Any]
changed = msgspec.structs.replace
SECOND = timedelta(seconds=1)


class Loop:
    """Looks at a cluster, with a memory; `solved` is when, in seconds after the start, anything was solved for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cluster, self.memory, self.solved, self.facts = Cluster(), Memory(), list[float](), Facts()
        self.batch, self._now = Batch(NOW, NOW), NOW

        def noted(*args: Any, **options: Any) -> Any:
            self.solved.append(self.seconds)
            return solve_apart(*args, **options)

        monkeypatch.setattr(room, "solve_apart", noted)
        for value in (w.pool(), *w.replicas(9, "p", "900m")):
            self.apply(value)

    @property
    def seconds(self) -> float:
        """Of the latest look, after the start."""
        return (self._now - NOW) / SECOND

    def apply(self, value: Any) -> None:
        self.cluster.apply(kinds.BY_NAME[kinds.ref(value).kind], value)

    def look(self, seconds: float, memory: Memory | None = None) -> Plan:
        self._now = NOW + seconds * SECOND
        facts = {"catalogues": {"default": w.CATALOGUE}, "batch": self.batch, **self.facts}
        snapshot = self.cluster.snapshot(now=self._now, settings=Settings("test", early_orders=False), **facts)
        plan = room.provision(snapshot, (self.memory if memory is None else memory).turn(snapshot))
        if plan.ahead:
            self.batch = replace(self.batch, ahead_at=self._now)
        return plan


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
    assert early.ahead
    assert loop.look(0.39) == loop.look(0.5) == Plan(next_due=early.next_due)
    loop.facts = {"fresh_at": {Source.NODES: NOW}}
    plan = loop.look(1.0)
    assert loop.solved == [0.3]
    assert claims(plan) == len(early.foreseen) > 0
    assert plan == loop.look(1.0, Memory())
    assert loop.solved == [0.3, 1.0]


def test_a_solution_that_does_not_hold_any_more_is_not_made_again_before_the_close(loop: Loop) -> None:
    loop.look(0.3)
    for number in range(31, 100):
        a_node_changes(loop)
        loop.look(number / 100)
    assert loop.solved == [0.3]
    assert claims(loop.look(1.0))
    assert loop.solved == [0.3, 1.0]


@pytest.mark.parametrize(("ends", "solved"), [(0.62, [0.62]), (0.7, [1.0])])
def test_a_reconcile_that_lasts_past_the_likely_instant_is_followed_by_a_solution(
    loop: Loop, ends: float, solved: list[float]
) -> None:
    """But not when it ends shortly before the close: pods that came meanwhile would wait for the loop."""
    loop.look(0.29)
    loop.look(ends)
    assert claims(loop.look(1.0))
    assert loop.solved == solved


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
    loop.batch = Batch(NOW, NOW)
    loop.look(0.3)
    change(loop)
    plan = loop.look(1.0)
    assert plan == loop.look(1.0, Memory())
    assert plan != before


@pytest.mark.parametrize(("late", "served"), [(-0.05, True), (0.05, False)])
def test_what_ends_before_the_close_has_ended(loop: Loop, late: float, *, served: bool) -> None:
    """A reconcile shortly after the close decides as of the close, with a solution from before it and without."""
    pool, close = w.pool(), NOW + SECOND
    back_off = PoolFailures(count=1, at=NOW)
    back_off = PoolFailures(count=1, at=close + late * SECOND - (ends(back_off, pool) - NOW))
    noted = {labels.BACK_OFF: msgspec.json.encode(back_off).decode()}
    loop.apply(changed(pool, metadata=changed(pool.metadata, annotations=noted)))
    loop.look(0.3)
    plan = loop.look(1.1)
    assert bool(claims(plan)) is served
    assert loop.solved == [0.3]
    assert plan == loop.look(1.1, Memory())


@pytest.mark.parametrize("late", [0.6, 1.05])
def test_a_node_that_is_given_up_meanwhile_gets_no_pods(loop: Loop, late: float) -> None:
    world = w.world(w.pool(), *w.replicas(1, "x", "900m"))
    (claim,) = w.claims(world, w.solved(w.pool(), *w.replicas(1, "x", "3")))
    claim = w.launched(claim, world)
    since = NOW + late * SECOND - INITIALIZES
    conditions = [Condition(type=t, status="True", last_transition_time=since) for t in ("Launched", "Registered")]
    loop.apply(changed(claim, status=changed(claim.status, conditions=tuple(conditions), node_name="n")))
    node = w.node("n", cpu="64", memory="64Gi")
    names = {**{k: v for k, v in node.metadata.labels.items() if k != labels.INITIALIZED}, labels.NODEPOOL: "default"}
    spec = changed(node.spec, provider_id=claim.status.provider_id)
    loop.apply(changed(node, metadata=changed(node.metadata, labels=names), spec=spec))
    assert loop.look(0.3).ahead
    plan = loop.look(1.1)
    assert claims(plan)
    assert plan == loop.look(1.1, Memory())


def test_a_pod_whose_protection_ends_before_the_close_has_a_place_like_any_other(loop: Loop) -> None:
    node = w.node("leaves", cpu="4")
    loop.apply(changed(node, metadata=changed(node.metadata, deletion_timestamp=NOW, finalizers=("x/y",))))
    pod = w.pod("protected", "3", node="leaves", annotations={labels.DO_NOT_DISRUPT: "1h"})
    started = NOW + 0.95 * SECOND - timedelta(hours=1)
    loop.apply(changed(pod, status=changed(pod.status, start_time=started, phase="Running")))
    assert loop.look(0.3).ahead
    plan = loop.look(1.1)
    assert plan == loop.look(1.1, Memory())
    assert any("protected" in nomination.pod_uid for nomination in plan.nominations)


def a_pod_that_is_gone_soon(loop: Loop, at: datetime) -> None:
    """From then on it is gone before a new node is there, so that others wait for its capacity."""
    loop.apply(w.node("n", cpu="9", memory="64Gi"))
    pod = w.pod("going", "8.5", node="n")
    ends = {"deletion_timestamp": at + LAUNCH, "deletion_grace_period_seconds": 3600}
    loop.apply(changed(pod, metadata=changed(pod.metadata, **ends)))


def expectations_that_end(loop: Loop, at: datetime) -> None:
    loop.apply(w.node("n", cpu="64", memory="64Gi"))
    snapshot = loop.cluster.snapshot(now=NOW, settings=Settings("test"))
    (target,) = snapshot.state_nodes
    until = NOW + timedelta(minutes=10)
    uids = (pod.metadata.uid for pod in snapshot.pods.pending.values())
    loop.facts = {"nominations": tuple(Nomination(uid, target, until, at - BINDS) for uid in uids)}


def a_taint_that_is_forgotten(loop: Loop, at: datetime) -> None:
    """A learned one, of a NodePool that is preferred without it."""
    taint = Trait(kind="taint", text="x=y:NoSchedule", hash="h", nodes=("a", "b"), at=at - FACTS_KEPT)
    notes = {
        labels.MISMATCHES: msgspec.json.encode(Mismatches(traits=(taint,))).decode(),
        labels.NODEPOOL_HASH: "h",
    }
    pool = w.pool("preferred", weight=100)
    loop.apply(changed(pool, metadata=changed(pool.metadata, annotations=notes)))


ENDS = [a_pod_that_is_gone_soon, expectations_that_end, a_taint_that_is_forgotten]


@pytest.mark.parametrize("ends", ENDS)
def test_a_prompt_reconcile_decides_as_of_the_close(loop: Loop, ends: Callable[[Loop, datetime], None]) -> None:
    ends(loop, NOW + 1.05 * SECOND)
    assert loop.look(0.3).ahead
    before = loop.look(1.0, Memory())
    plan = loop.look(1.1)
    assert plan == loop.look(1.1, Memory())
    assert plan == before
    assert loop.solved == [0.3, 1.0, 1.1]


@pytest.mark.parametrize("ends", ENDS)
def test_a_late_reconcile_decides_as_of_now(loop: Loop, ends: Callable[[Loop, datetime], None]) -> None:
    ends(loop, NOW + 1.05 * SECOND)
    assert loop.look(0.3).ahead
    plan = loop.look(2.1)
    assert plan == loop.look(2.1, Memory())
    assert decided(plan) != decided(loop.look(1.0, Memory()))


def decided(plan: Plan) -> Any:
    """What pods are expected where, new nodes and what is said, without instants."""
    pools = sorted(action.claim.pool_name for action in plan.actions if isinstance(action, CreateNodeClaim))
    homes = [(one.pod_uid, one.target, one.over) for one in plan.nominations]
    return pools, homes, [event.message for event in plan.events], [refusal.reason.code for refusal in plan.refusals]


def test_while_an_order_has_no_answer_nothing_is_solved_ahead(loop: Loop) -> None:
    ordered = loop.look(1.0, Memory()).actions[:1]
    loop.solved.clear()
    loop.facts = {"under_way": ordered}
    assert not loop.look(0.3).ahead
    loop.facts = {}
    assert loop.look(0.5).ahead
    assert claims(loop.look(1.0))
    assert loop.solved == [0.5]


def test_a_solution_ahead_that_fails_is_reported_and_not_tried_again(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any, **__: Any) -> Any:
        loop.solved.append(loop.seconds)
        raise KeyError("a bug")

    solved = room._solved
    monkeypatch.setattr(room, "_solved", failing)
    found = loop.look(0.3)
    assert [refusal.subject for refusal in found.refusals] == ["provisioning"]
    loop.look(0.4)
    monkeypatch.setattr(room, "_solved", solved)
    assert claims(loop.look(1.0))
    assert loop.solved == [0.3, 1.0]


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
