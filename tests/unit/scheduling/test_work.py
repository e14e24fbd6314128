"""A pass whose work is used up: who is served, who waits for the next one, and that the next one goes on from there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from msgspec import structs

from kerf.model.kubernetes.objects import Pod
from kerf.model.plan import CreateNodeClaim, Nomination, Plan
from kerf.model.snapshot import Batch, Snapshot
from kerf.provisioning import boundary
from kerf.provisioning.provision import provision
from kerf.runtime.state.batching import BatchWindow
from kerf.scheduling.answers.solution import Solution
from kerf.scheduling.placing import routes
from kerf.scheduling.solve import SolveOptions, solve
from kerf.scheduling.work import WORK_BUDGET, Turns, Work
from kerf_api import labels
from tests.unit.scheduling import worlds as w
from tests.unit.scheduling.test_hostile_pods import not_in

_KEYS = (labels.ZONE, labels.INSTANCE_TYPE)
EARLIER = w.NOW - timedelta(minutes=1)


def _solved(pods: Sequence[Pod], limit: int, **facts: Any) -> Solution:
    return solve(w.world(w.pool(), list(pods), **facts), pods, work=Work(limit))


def _left_over(solution: Solution) -> set[str]:
    return {key for key, why in solution.unplaced.items() if why.code == WORK_BUDGET}


def _of(namespace: str, number: int, priority: int = 0) -> list[Pod]:
    return [
        w.pod(
            f"p{i}",
            namespace=namespace,
            priority=priority,
            affinity=w.node_affinity([("example.com/x", "NotIn", [f"{namespace}{i}"])]),
        )
        for i in range(number)
    ]


def test_classes_for_which_no_work_is_left_wait() -> None:
    pods = not_in(60)
    done = _solved(pods, 1000)
    left = _left_over(done)
    assert 0 < len(left) < 60
    assert left == set(done.unplaced)
    assert {key for node in done.new_nodes for key in node.pods} == {pod.key for pod in pods} - left
    assert not _solved(pods, 1_000_000).unplaced


def test_the_same_pods_are_served_each_time() -> None:
    one, other = (_solved(not_in(60), 1000) for _ in range(2))
    assert (one.new_nodes, one.unplaced) == (other.new_nodes, other.unplaced)


def test_one_class_is_served_however_much_work_it_is() -> None:
    assert len(_solved(not_in(3), 0).unplaced) == 2


def test_priorities_come_first_then_namespaces_share() -> None:
    many, few, important = _of("many", 60), _of("few", 3), _of("important", 3, priority=10)
    left = _left_over(_solved([*many, *few, *important], 1000))
    assert left
    assert not left & {pod.key for pod in (*few, *important)}


def test_pods_that_were_left_over_come_first() -> None:
    pods = not_in(60)
    left = _left_over(_solved(pods, 1000))
    uids = frozenset(pod.metadata.uid for pod in pods if pod.key in left)
    then = _left_over(_solved(pods, 1000, left_over=uids))
    assert len(then & left) < len(left)


def test_turns_of_pods() -> None:
    pods = [*_of("a", 3), *_of("b", 1), *_of("c", 1, priority=1)]
    turns = Turns(frozenset({"uid-a-p2"}), lambda pod: pod.key == "a/p0")
    found = [pod.key for pod in turns.fairly(pods, lambda one: [one])]
    assert found == ["c/p0", "a/p2", "b/p0", "a/p1", "a/p0"]


def test_within_a_turn_pods_that_were_left_over_come_first_and_those_with_a_place_last() -> None:
    pods = [*_of("a", 1), *_of("b", 1), *_of("c", 1)]
    turns = Turns(frozenset({"uid-c-p0"}), lambda pod: pod.key == "a/p0")
    found = [pod.key for pod in turns.fairly(pods, lambda one: [one])]
    assert found == ["c/p0", "b/p0", "a/p0"]


def test_a_pod_of_more_alternatives_than_a_pass_can_read_keeps_no_other_from_its_turn() -> None:
    """The large pod has its place; the small one, of a namespace that sorts later, comes first."""
    large = w.pod("p", affinity=w.node_affinity(*([("example.com/x", "NotIn", [f"v{i}"])] for i in range(200))))
    small = w.pod("p", namespace="zz")
    first = _solved([large], 1000)
    (claim,) = w.claims(w.world(w.pool(), [large]), first)
    nominations = (Nomination("uid-default-p", claim.name, w.NOW, w.NOW),)
    world = w.world(w.pool(), [large, small], [claim], left_over=frozenset({"uid-zz-p"}), nominations=nominations)
    then = solve(world, [large, small], work=Work(1000))
    assert not then.unplaced
    assert then.placed[large.key] == claim.name


def test_pods_in_a_chain_of_affinity_are_read_in_one_pass() -> None:
    """Each must be near the next one, by a label that only one pod has: the terms meet few pods."""
    last = w.pod("p399", labels={"app": "a399"})
    chain = [
        w.pod(f"p{i:03}", labels={"app": f"a{i}"}, affinity=w.between("podAffinity", app=f"a{i + 1}"))
        for i in range(399)
    ]
    assert not _left_over(_solved([*chain, last], 30_000))


def test_the_bound_of_the_price_is_not_worked_out_when_no_work_is_left() -> None:
    pods = [w.pod(f"p{i}", affinity=w.node_affinity([("example.com/x", "NotIn", [f"v{i}"])])) for i in range(5)]
    known, unknown = (
        solve(w.world(w.pool(), pods), pods, SolveOptions(improve=timedelta(seconds=1)), work=Work(limit)).bound
        for limit in (1_000_000, 350)
    )
    assert known is not None
    assert unknown is None


def test_pods_of_several_namespaces_have_the_turn_of_the_smallest() -> None:
    many = [[one] for one in _of("many", 5)]
    shared = [*_of("many", 6)[5:], *_of("few", 1)]
    found = Turns().fairly([*many, shared], lambda one: one)
    assert shared in found[:2]


def test_passes_follow_each_other_until_all_pods_have_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pod gets two nodes, and none of those that have one is left over again."""
    monkeypatch.setattr(boundary, "budget", lambda pods: 1000)
    pods, claims, plan, served = not_in(60), list[Any](), Plan(), 0
    for _ in range(20):
        snapshot: Snapshot = w.world(w.pool(), pods, claims)
        batch = Batch(EARLIER, EARLIER)
        plan = provision(replace(snapshot, batch=batch, left_over=plan.left_over, nominations=plan.nominations))
        made = [action.claim for action in plan.actions if isinstance(action, CreateNodeClaim)]
        claims += [
            structs.replace(one, metadata=structs.replace(one.metadata, uid=f"c{len(claims) + i}"))
            for i, one in enumerate(made)
        ]
        assert len(plan.nominations) + len(plan.left_over) == 60
        assert len(plan.nominations) > served
        served = len(plan.nominations)
        if not plan.left_over:
            break
    assert served == 60
    assert len(claims) < 30


def _apart(number: int) -> list[Pod]:
    """Each keeps away from all others, by a term of its own."""

    def term(i: int) -> dict[str, Any]:
        row = {"key": "app", "operator": "NotIn", "values": [f"other{i}"]}
        return {"topologyKey": labels.HOSTNAME, "labelSelector": {"matchExpressions": [row]}}

    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return [
        w.pod(f"p{i}", labels={"app": f"a{i}"}, affinity={"podAntiAffinity": {required: [term(i)]}})
        for i in range(number)
    ]


def _long(number: int) -> list[Pod]:
    """Each keeps away from 100 values of its own."""
    return [
        w.pod(f"p{i}", affinity=w.node_affinity([("example.com/x", "NotIn", [f"{i}-{j}" for j in range(100)])]))
        for i in range(number)
    ]


@pytest.mark.parametrize(("made", "number", "limit"), [(_apart, 300, 40_000), (_long, 360, 36_000)])
def test_a_round_takes_on_no_more_classes_than_it_can_pack(
    made: Callable[[int], list[Pod]], number: int, limit: int
) -> None:
    pods, work = made(number), Work(limit)
    done = solve(w.world(w.pool(), pods), pods, work=work)
    assert 0 < len(_left_over(done)) == len(done.unplaced)
    assert done.new_nodes
    assert work.whole < 5 * limit


def test_terms_that_rungs_repeat_are_counted_before_they_are_read() -> None:
    """Each rung gives up one preference and has all others once more."""
    pods = [w.pod(f"p{i}", cpu=f"{100 + i}m", affinity=w.preferences(60, first=i)) for i in range(60)]
    work = Work(20_000)
    assert len(_left_over(solve(w.world(w.pool(), pods), pods, work=work))) > 40
    assert work.whole < 22_000


def test_domains_that_are_chosen_key_by_key_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    pods = [
        w.pod(f"p{i}", labels={"app": f"a{i}"}, topologySpreadConstraints=[w.spread(key, app=f"a{i}") for key in _KEYS])
        for i in range(40)
    ]
    steps = []
    for most in (1024, 1):
        monkeypatch.setattr(routes, "_MOST_ROUTES", most)
        work = Work()
        assert not solve(w.world(w.pool(), pods), pods, work=work).unplaced
        steps.append(work.whole)
    assert steps[1] > steps[0] // 3


def test_foreseen_packing_closes_a_round_and_the_next_one_is_open() -> None:
    work = Work(100)
    work.begin()
    work.foresee(200)
    assert not work.spent
    work.foresee(1)
    assert work.spent
    work.begin()
    assert not work.spent


def test_refused_pods_wait_until_each_other_pod_has_had_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """No node can be made for any of them. When all have been refused once, no further pass follows at once."""
    monkeypatch.setattr(boundary, "budget", lambda pods: 500)
    pods = [
        w.pod(
            f"p{i:02}",
            affinity=w.node_affinity([("example.com/x", "NotIn", [f"v{i}"]), ("kubernetes.io/arch", "In", ["none"])]),
        )
        for i in range(60)
    ]
    plan, refused, passes = Plan(), set[str](), 0
    while passes == 0 or plan.left_over:
        world: Snapshot = w.world(w.pool(), pods)
        world = replace(world, left_over=plan.left_over, had_turn=plan.had_turn, nominations=plan.nominations)
        plan = provision(replace(world, batch=Batch(EARLIER, EARLIER)))
        now = {one.subject for one in plan.refusals if one.reason.code != WORK_BUDGET}
        assert now - refused
        assert plan.left_over.isdisjoint(plan.had_turn)
        refused, passes = refused | now, passes + 1
    assert len(refused) == 60
    assert not plan.had_turn
    assert passes > 2


def test_pods_that_had_their_turn_come_after_new_ones() -> None:
    pods = _of("a", 3)
    turns = Turns(frozenset({"uid-a-p2"}), had_turn=frozenset({"uid-a-p0"}))
    assert [pod.key for pod in turns.fairly(pods, lambda one: [one])] == ["a/p2", "a/p1", "a/p0"]


def test_the_next_pass_follows_at_once() -> None:
    window = BatchWindow()
    window.trigger("pod", w.NOW)
    window.served(w.NOW, again=True)
    assert window.at(w.NOW) == Batch(w.NOW, w.NOW, again=True)
    window.served(w.NOW)
    assert window.at(w.NOW) is None
