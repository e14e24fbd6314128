"""The work budget of simulations: which candidates have their turn, which wait, and that none waits for ever."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from msgspec import structs

from kerf.disruption import asking, share
from kerf.disruption.asking import Manner, Question, Scheduler
from kerf.disruption.consolidation import search
from kerf.disruption.consolidation.moves import DELETE
from kerf.disruption.consolidation.proposals import versions
from kerf.disruption.disrupt import disrupt
from kerf.disruption.methods.retirement import EXPIRING
from kerf.disruption.propose import consider
from kerf.disruption.share import NEXT_TIME, Share, longest_turn, turn_of
from kerf.judgement.judge import why
from kerf.model.kubernetes.objects import Pod
from kerf.model.plan import DeleteObject, Plan
from kerf.model.snapshot import Proposal, Snapshot
from kerf.runtime.state.promises import Promises
from kerf.scheduling.answers.solution import Solution
from kerf.scheduling.solve import solve
from kerf.scheduling.work import WORK_BUDGET, Work
from kerf_api.v1.budgets import UNDERUTILIZED
from kerf_api.v1.meta import Condition, decode
from tests.unit.disruption.worlds import (
    HOUR,
    MINUTE,
    NOW,
    claim,
    condition,
    drifted,
    never,
    node,
    nowhere,
    pairs,
    pod,
    pool,
    refusals,
    rolling,
    snapshot,
    started,
)

#: A budget that is soon used: about ten pods with constraints of their own.
FEW = 2000
SECOND = timedelta(seconds=1)


def hostile(on: str, number: int, **more: Any) -> list[Pod]:
    """Pods of which each keeps away from another value of a label."""

    def affinity(i: int) -> dict[str, Any]:
        row = {"key": "example.com/x", "operator": "NotIn", "values": [f"{on}-{i}"]}
        required = {"nodeSelectorTerms": [{"matchExpressions": [row]}]}
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}

    return [pod(f"{on}-{i}", on, affinity=affinity(i), **more) for i in range(number)]


def world(sizes: dict[str, int]) -> list[Any]:
    """Drifted nodes with so many hostile pods each."""
    return [rolling(), *drifted(*sizes), *(one for name, number in sizes.items() for one in hostile(name, number))]


def after(plan: Plan, before: Snapshot) -> Snapshot:
    """The next pass over the same cluster, ten seconds later."""
    return replace(
        before, now=before.now + before.settings.disruption_period, candidates_left_over=plan.candidates_left_over
    )


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share, "_STEPS", FEW)
    monkeypatch.setattr(share, "_STEPS_A_POD", 0)


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The candidates that have had a turn, in order."""
    found: list[str] = []
    original = Share.begins

    def begins(self: Share, keys: Iterable[str] = (), others: Iterable[str] = ()) -> bool:
        granted = original(self, keys, others)
        found.extend(keys if granted else ())
        return granted

    monkeypatch.setattr(Share, "begins", begins)
    return found


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps of each solve."""
    found: list[int] = []
    original = Scheduler.within

    def within(self: Scheduler, work: Work, *given: Any) -> Any:
        try:
            return original(self, work, *given)
        finally:
            found.append(work.whole)

    monkeypatch.setattr(Scheduler, "within", within)
    return found


def test_a_question_that_is_asked_again_is_solved_once_and_takes_the_same_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen, solved, real = snapshot(world({"a": 3})), list[int](), solve

    def counted(found: Snapshot, pods: Sequence[Pod], *given: Any, **more: Any) -> Solution:
        solved.append(len(pods))
        return real(found, pods, *given, **more)

    monkeypatch.setattr(asking, "solve", counted)
    ask, pods = Scheduler(seen), list(seen.pods.by_key.values())
    asked = [(exclude, manner) for exclude in ("a", "b") for manner in (Manner.FREELY, Manner.SPARING)]
    works = [[Work(1000), Work(1000), Work(2000)] for _ in asked]
    for (exclude, manner), own in zip(asked, works, strict=True):
        answers = [ask.within(work, Question(list(pods), frozenset({exclude}), manner)) for work in own]
        assert answers[0] is answers[1]
        assert answers[0] == answers[2]
        assert own[0].whole == own[1].whole > 0
    assert len(solved) == 2 * len(asked)


# --- one candidate ----------------------------------------------------------------------------------------------
@pytest.mark.usefixtures("few")
def test_a_candidate_that_takes_too_much_work_stays_with_the_reason(steps: list[int]) -> None:
    plan = disrupt(snapshot(world({"a": 60})))
    (refusal,) = [one for one in plan.refusals if one.subject == "node/node-a"]
    assert refusal.reason.code == WORK_BUDGET
    assert "needs more work than the limit for one node" in refusal.reason.text
    assert any(event.reason == "DisruptionBlocked" and refusal.reason.text in event.message for event in plan.events)
    assert sum(steps) < 2 * FEW
    assert not started(plan)


@pytest.mark.usefixtures("few")
def test_why_node_gives_the_same_reason() -> None:
    seen = snapshot(world({"a": 60}))
    assert WORK_BUDGET in {hold.code for end in why(seen, "node-a").ends for hold in end.holds}


@pytest.mark.usefixtures("few")
def test_a_candidate_that_takes_too_much_work_does_not_stop_the_others() -> None:
    seen = snapshot([*world({"a": 60, "b": 1}), *pairs("z")])
    first = disrupt(seen)
    then = disrupt(after(first, seen))
    assert (started(first), started(then)) == ([], ["b"])


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("namespace", ["shop", "other"])
def test_pending_pods_do_not_keep_a_node_from_its_turn(namespace: str) -> None:
    waits = ({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"},)
    pending = [
        structs.replace(one, metadata=structs.replace(one.metadata, namespace=namespace))
        for one in hostile("", 60, phase="Pending", pod_conditions=waits)
    ]
    seen = snapshot([*world({"a": 1}), *pairs("z"), *pending])
    assert len(seen.pods.pending) == 60
    assert started(disrupt(seen)) == ["a"]


def test_a_turn_is_longer_where_very_many_pods_take_part() -> None:
    assert turn_of(10) == turn_of(100) < turn_of(10_000)


def test_a_node_with_many_different_pods_has_its_turn() -> None:
    assert started(disrupt(snapshot([*world({"a": 200}), *pairs("z")]))) == ["a"]


def test_a_candidate_may_take_more_than_a_share_where_many_pods_take_part() -> None:
    assert turn_of(1) <= longest_turn(1) < longest_turn(200) < longest_turn(240) == longest_turn(300) < 3 * turn_of(300)


# --- who waits --------------------------------------------------------------------------------------------------
@pytest.mark.usefixtures("few")
def test_a_candidate_that_did_not_get_its_turn_comes_first(turns: list[str]) -> None:
    seen = snapshot(world({"a": 60, "b": 60}))
    first = disrupt(seen)
    assert turns == ["a"]
    assert first.candidates_left_over == {("drift", "b")}
    (waits,) = [one for one in first.refusals if one.subject == "node/node-b"]
    assert (waits.reason.code, waits.reason.text) == (NEXT_TIME.code, NEXT_TIME.text)
    assert not [one for one in first.events if one.dedupe == f"uid-b/{WORK_BUDGET}"]
    then = disrupt(after(first, seen))
    assert turns == ["a", "b"]
    assert not then.candidates_left_over


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("seed", range(4))
def test_each_candidate_has_its_turn_and_a_pass_its_bound(seed: int, turns: list[str], steps: list[int]) -> None:
    dice = Random(seed)
    sizes = {f"n{i}": dice.choice((20, 40, 60)) for i in range(dice.randint(3, 7))}
    seen = snapshot(world(sizes))
    passes = 0
    while set(turns) != set(sizes):
        del steps[:]
        plan = disrupt(seen)
        assert plan == disrupt(seen)
        assert sum(steps) // 2 <= FEW + 2 * FEW
        seen, passes = after(plan, seen), passes + 1
        assert passes <= len(sizes) + 1


@pytest.mark.usefixtures("few")
def test_candidates_wait_on_while_a_method_begins_nothing() -> None:
    seen = snapshot(world({"a": 60, "b": 60}))
    first = disrupt(seen)
    blind = disrupt(replace(after(first, seen), fresh_at={}))
    assert blind.candidates_left_over == first.candidates_left_over


def test_a_node_that_is_gone_waits_no_longer() -> None:
    left = frozenset({("drift", "gone"), ("drift", "a"), ("no method", "a")})
    plan = disrupt(snapshot([rolling(), *pairs("a"), pod("1", "a")], candidates_left_over=left), never)
    assert plan.candidates_left_over == {("drift", "a")}


def test_a_plan_hands_the_candidates_that_wait_to_the_next_pass() -> None:
    kept, left = Promises(), frozenset({("drift", "a")})
    kept.planned(Plan(candidates_left_over=left))
    assert kept.facts["candidates_left_over"] == left
    kept.planned(Plan())
    assert not kept.facts["candidates_left_over"]


def test_another_scheduler_takes_no_steps() -> None:
    own = Share(nowhere)
    own([], frozenset(), Manner.FREELY)
    assert own.used == 0


def proposals(seen: Snapshot, *names: str) -> tuple[Proposal, ...]:
    """Deletions of these nodes that have stood their time."""
    return tuple(
        Proposal(
            id=name,
            reason=UNDERUTILIZED,
            kind=DELETE,
            candidates=(name,),
            replacements=(),
            saving=1,
            versions=versions(seen, [f"nodeclaim/{name}", f"node/node-{name}"]),
            pods=frozenset(one.metadata.uid for one in seen.pods.on(f"node-{name}")),
            made_at=NOW - MINUTE,
        )
        for name in names
    )


@pytest.mark.usefixtures("few")
def test_proposals_that_did_not_get_their_turn_come_first_one_by_one(turns: list[str]) -> None:
    sizes = {"a": 60, "b": 60}
    objects = [pool(), *pairs(*sizes), *(one for name, number in sizes.items() for one in hostile(name, number))]
    seen = snapshot(objects)
    seen = replace(seen, proposals=proposals(seen, *sizes))
    passes = []
    for _ in range(3):
        plan = disrupt(seen)
        seen = replace(after(plan, seen), now=seen.now + SECOND)
        passes.append((list(turns), {key for _, key in plan.candidates_left_over}))
        turns.clear()
    assert passes == [([], {"a", "b"}), (["a"], {"b"}), (["b"], set())]
    assert refusals(plan)["node/node-b"] == "ConsolidationRejected"


@pytest.mark.usefixtures("few")
def test_an_end_whose_successor_takes_too_much_work_to_find_is_decided_without_one() -> None:
    announced = condition(EXPIRING, NOW, EXPIRING)
    old = claim("old", since=NOW - 49 * MINUTE, expireAfter="50m")
    old = structs.replace(
        old,
        status=structs.replace(old.status, conditions=(*old.status.conditions, decode(Condition, announced))),
    )
    plan = disrupt(snapshot([pool(), old, node(old), *hostile("old", 60)]))
    (patch,) = [one for one in plan.actions if one.key.startswith("SetConditions")]
    assert "more work than the limit for one node" in patch.reason.text


@pytest.mark.usefixtures("few")
def test_the_search_for_proposals_ends_however_much_work_there_is(
    steps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_TURNS", 20)
    names = [f"n{i}" for i in range(8)]
    seen = snapshot([pool(), *pairs(*names), *(one for name in names for one in hostile(name, 20))])
    assert consider(seen).proposals == ()
    assert 20 * FEW <= sum(steps) <= 30 * FEW
    assert len(steps) > 2


# --- the other methods ------------------------------------------------------------------------------------------
@pytest.mark.usefixtures("few")
def test_interruptions_and_ends_are_decided_however_much_work_there_is() -> None:
    expires = claim("old", since=NOW - 2 * HOUR, expireAfter="1h")
    plan = disrupt(snapshot([*world({"a": 60, "b": 60}), expires, node(expires)]))
    assert [action.ref.name for action in plan.actions if isinstance(action, DeleteObject)] == ["old"]


class _Nodes(dict[str, None]):
    """Nodes that may be looked up and not gone through."""

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("each node of the cluster is looked at in each plan")


def test_candidates_that_are_left_over_are_looked_up_among_the_nodes() -> None:
    def nothing(*_: object) -> Solution:
        return Solution()

    unread = Share(nothing, frozenset({"a", "gone"}))
    assert unread.left_over(_Nodes(a=None, b=None)) == {"a"}
    assert not Share(nothing).left_over(_Nodes(a=None))
