"""Provisioning passes: batching, creations, nominations, refusals, events, pods on nodes that are going."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from kerf.model.backoff import PoolFailures
from kerf.model.gauges import PlanGauge
from kerf.model.kubernetes.objects import PodDisruptionBudget
from kerf.model.plan import CreateNodeClaim, Plan, Purchase
from kerf.model.settings import Settings
from kerf.model.snapshot import Batch
from kerf.provisioning.provision import provision
from kerf_api import labels
from kerf_api.v1.meta import decode
from tests.unit.scheduling import worlds as w
from tests.unit.scheduling.progress_world import claim, ready

SECOND = timedelta(seconds=1)
CLOSED = Batch(w.NOW - 2 * SECOND, w.NOW - 2 * SECOND)


def plan_of(*objects: Any, batch: Batch | None = CLOSED, **facts: Any) -> Plan:
    return provision(w.world(*objects, batch=batch, **facts))


def created(plan: Plan) -> list[CreateNodeClaim]:
    return [a for a in plan.actions if isinstance(a, CreateNodeClaim)]


def test_nothing_pending_is_an_empty_plan() -> None:
    assert plan_of(w.pool(), batch=None) == Plan()


@pytest.mark.parametrize(
    ("first", "last", "due"),
    [(0.5, 0.5, 0.5), (4.0, 0.2, 0.8), (9.5, 0.1, 0.5), (10.0, 0.0, None), (2.0, 1.0, None)],
)
def test_a_batch_closes_when_idle_or_at_its_longest(first: float, last: float, due: float | None) -> None:
    batch = Batch(w.NOW - first * SECOND, w.NOW - last * SECOND)
    plan = plan_of(w.pool(), w.pod("p"), batch=batch, early_orders=False)
    assert plan.provisioned == (due is None)
    assert bool(created(plan)) == (due is None)
    assert due is None or plan.next_due == w.NOW + due * SECOND


@pytest.mark.parametrize("taken", [True, False])
@pytest.mark.parametrize("again", [True, False])
def test_an_open_batch_closes_for_a_pod_that_lost_its_capacity_to_others(taken: bool, again: bool) -> None:
    """It has waited for one batch already; while others come, or when nothing else asks."""
    web, late = w.pod("web", "1500m"), () if again else (w.pod("late"),)
    asks = w.NOW + 8 * SECOND if again else None
    batch = Batch(w.NOW, w.NOW, again=again, opened_at=w.NOW - SECOND, recheck_at=w.NOW, asks_at=asks)
    others = (w.pod("other", "3" if taken else "1", node="n1"),)
    plan = plan_of(
        w.pool(), claim("n1", web, minutes=1 / 60), ready("n1"), web, *late, *others, batch=batch, early_orders=False
    )
    assert plan.provisioned == bool(created(plan)) == taken
    if again and not taken:
        assert plan.next_due == batch.closes(Settings("c"))


def test_pods_without_capacity_are_looked_for_when_it_is_due_and_all_orders_are_answered() -> None:
    web = w.pod("web", "1500m")
    there = (w.pool(), claim("n1", web, minutes=1 / 60), ready("n1"), web, w.pod("other", "3", node="n1"))
    due = Batch(w.NOW, w.NOW, opened_at=w.NOW - SECOND, recheck_at=w.NOW)
    later = plan_of(*there, batch=replace(due, recheck_at=w.NOW + 0.1 * SECOND), early_orders=False)
    assert not later.provisioned
    (order,) = created(plan_of(*there, batch=due, early_orders=False))
    unanswered = plan_of(*there, batch=due, early_orders=False, under_way=(order,))
    assert not unanswered.provisioned


@pytest.mark.parametrize(("seconds", "closes"), [(1, False), (4.9, False), (5, True)])
def test_a_pod_that_lost_its_capacity_waits_for_nodes_that_are_still_to_come_for_a_while(
    seconds: float, closes: bool
) -> None:
    """Pods that took it have a place there."""
    web = w.pod("web", "1500m")
    there = (claim("n1", web, minutes=1 / 60), ready("n1"), web, w.pod("other", "3", node="n1"))
    coming = claim("n2", w.pod("other"), initialized=False)
    batch = Batch(w.NOW, w.NOW, opened_at=w.NOW - seconds * SECOND, recheck_at=w.NOW)
    plan = plan_of(w.pool(), *there, coming, batch=batch, early_orders=False)
    assert plan.provisioned == closes


@pytest.mark.parametrize(("zone", "made"), [("z1", 0), ("z2", 1)])
def test_a_pod_with_a_hard_spread_that_lost_its_capacity_does_not_wait_for_nodes_that_are_still_to_come(
    zone: str, made: int
) -> None:
    """Its zone is full, whatever comes in others; where a node in it is coming, it needs no further one."""
    facts: dict[str, Any] = {"labels": {"app": "web"}, "topologySpreadConstraints": [w.spread()]}
    web = w.pod("web", "1500m", **facts)
    full = (claim("n1", web, minutes=1 / 60), ready("n1"), web, w.pod("other", "3", node="n1"))
    elsewhere = [w.node(f"old-{name}", name, cpu="100m") for name in ("z2", "z3")]
    running = [w.pod(f"web-{node.name}", node=node.name, **facts) for node in elsewhere]
    coming = (claim("n2", w.pod("late"), initialized=False), ready("n2", zone=zone))
    batch = Batch(w.NOW, w.NOW, opened_at=w.NOW - SECOND, recheck_at=w.NOW)
    plan = plan_of(w.pool(), *full, *elsewhere, *running, *coming, batch=batch, early_orders=False)
    assert plan.provisioned
    assert len(created(plan)) == made


def test_a_closed_batch_makes_claims_nominations_and_events() -> None:
    plan = plan_of(w.pool(), w.replicas(3, "p"))
    (action,) = created(plan)
    assert plan.provisioned
    assert plan.next_due == w.NOW + 10 * SECOND
    assert {n.target for n in plan.nominations} == {action.claim.name}
    assert {n.until for n in plan.nominations} == {w.NOW + 20 * SECOND}
    assert {e.reason for e in plan.events} == {"Nominated"}
    assert plan.events[0].message == f"Pod should schedule on: nodeclaim/{action.claim.name}"


def test_a_pod_that_is_expected_on_a_node_that_is_gone_gets_one() -> None:
    """With preemptionPolicy Never the kube-scheduler never clears the nomination."""
    one = w.pod("p", preemptionPolicy="Never")
    one = msgspec.structs.replace(one, status=msgspec.structs.replace(one.status, nominated_node_name="n"))
    assert len(created(plan_of(w.pool(), one))) == 1
    assert not created(plan_of(w.pool(), w.node("n", cpu="0"), one))


def test_a_plan_says_what_it_buys_and_what_that_must_cost_at_least() -> None:
    """Three pods that fill a node, and one more that leaves a node to be filled: the bound knows no last node."""
    types = (w.instance_type("m", 4, 4, price=900_000),)
    four = plan_of(w.pool(), w.replicas(4, "p", "1300m"), catalogue=types).purchase
    assert four == Purchase(nodes=2, pods=4, price=1_800_000, bound=1_200_000)
    assert four.cost_ratio == pytest.approx(1.5)
    assert plan_of(w.pool(), w.node("n"), w.pod("p"), catalogue=types).purchase is None


def test_the_same_snapshot_makes_the_same_plan_and_what_is_on_its_way_is_enough() -> None:
    pods = w.replicas(9, "p", "900m")
    plan = plan_of(w.pool(), pods)
    assert plan == plan_of(w.pool(), list(reversed(pods)))
    claims = [a.claim for a in created(plan)]
    again = plan_of(w.pool(), pods, claims)
    assert again.actions == ()
    assert len(again.nominations) == 9


def test_a_pod_without_a_place_is_refused_aloud() -> None:
    plan = plan_of(w.pool(), w.pod("p", "1000"))
    (refusal,) = plan.refusals
    (event,) = plan.events
    assert refusal.subject == "pod/default/p"
    assert (event.type, event.reason, event.dedupe_seconds) == ("Warning", "FailedScheduling", 300)
    assert event.message.startswith("Failed to schedule pod, ")
    assert plan.next_due == w.NOW + 10 * SECOND


def test_another_code_of_a_refusal_is_another_event_and_other_words_are_not() -> None:
    def dedupe(*objects: Any) -> str:
        (event,) = plan_of(*objects).events
        return event.dedupe

    large, larger, labelled = w.pod("p", "1000"), w.pod("p", "2000"), w.pod("p", nodeSelector={"karpenter.sh/x": "y"})
    assert dedupe(w.pool(), large) == dedupe(w.pool(), larger)
    assert dedupe(w.pool(), large) != dedupe(w.pool(), labelled)
    assert dedupe(w.pool(), large) != dedupe(w.pool(), w.pod("q", "1000"))


def test_a_pod_that_opted_out_is_refused_silently_and_a_restricted_label_aloud() -> None:
    out = w.pod("out", affinity=w.node_affinity([(labels.NODEPOOL, "DoesNotExist", [])]))
    bad = w.pod("bad", nodeSelector={"karpenter.sh/custom": "x"})
    plan = plan_of(w.pool(), out, bad)
    assert not created(plan)
    assert [r.reason.code for r in plan.refusals] == ["InvalidPod", "OptedOut"]
    assert [e.ref.name for e in plan.events] == ["bad"]


def test_pools_that_cannot_be_used_are_named() -> None:
    bad = w.pool("bad", requirements=[{"key": "k", "operator": "Gt", "values": ["x"]}])
    empty = w.pool("empty", requirements=[{"key": labels.ARCH, "operator": "In", "values": ["mips"]}])
    plan = plan_of(bad, empty, w.pool(), w.pod("p"))
    assert len(created(plan)) == 1
    codes = {r.subject: r.reason.code for r in plan.refusals}
    assert codes == {"nodepool/bad": "InvalidNodePool", "nodepool/empty": "NoCompatibleInstanceTypes"}
    assert [e.ref.name for e in plan.events if e.reason == "NoCompatibleInstanceTypes"] == ["empty"]


# --- promises ---------------------------------------------------------------------------------------------------
def targets(plan: Plan) -> dict[str, str]:
    return {n.pod_uid.removeprefix("uid-default-"): n.target for n in plan.nominations}


def test_nominations_are_in_the_order_of_the_decisions() -> None:
    plan = plan_of(w.pool(), w.node("n", cpu="1"), w.pod("b", "900m"), w.pod("a", "500m"), w.pod("c", "100m"))
    assert [n.pod_uid for n in plan.nominations] == ["uid-default-b", "uid-default-a", "uid-default-c"]
    assert targets(plan)["b"] == "node/n"


def test_a_pod_stays_where_the_latest_pass_sent_it() -> None:
    """The large newcomer would come first and take the small pod's place; the small pod would need a new node."""
    small, large = w.pod("small", "400m"), w.pod("large", "900m")
    before = plan_of(w.pool(), w.node("n", cpu="1"), small)
    assert targets(plan_of(w.pool(), w.node("n", cpu="1"), small, large))["large"] == "node/n"
    after = plan_of(w.pool(), w.node("n", cpu="1"), small, large, nominations=before.nominations)
    assert targets(after)["small"] == "node/n"
    assert len(created(after)) == 1


@pytest.mark.parametrize(
    "changed",
    [
        w.node("n", taints=[{"key": "t", "effect": "NoSchedule"}]),
        w.node("n", cpu="100m"),
        w.node("n", "z2"),
        w.node("other"),
    ],
)
def test_a_promise_that_the_world_has_overtaken_binds_nobody(changed: Any) -> None:
    pod = w.pod("p", "400m", nodeSelector={labels.ZONE: "z1"})
    before = plan_of(w.pool(), w.node("n"), pod)
    assert targets(before) == {"p": "node/n"}
    after = plan_of(w.pool(), changed, pod, nominations=before.nominations)
    assert targets(after)["p"] != "node/n"


def test_a_promise_does_not_outweigh_a_spread_that_has_changed() -> None:
    pod = w.pod("p", labels={"app": "web"}, topologySpreadConstraints=[w.spread()])
    nodes = [w.node("a", "z1"), w.node("b", "z2"), w.node("c", "z3")]
    before = plan_of(w.pool(), nodes, pod)
    assert targets(before) == {"p": "node/a"}
    rival = w.pod("rival", node="a", labels={"app": "web"})
    after = plan_of(w.pool(), nodes, pod, rival, nominations=before.nominations)
    assert targets(after) == {"p": "node/b"}


# --- pods on nodes that are going -------------------------------------------------------------------------------
def going(name: str) -> Any:
    node = w.node(name)
    return msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, deletion_timestamp=w.NOW))


def budget(**spec: Any) -> PodDisruptionBudget:
    name = "b-" + "-".join(map(str, spec.values())).strip("%").replace("%", "")
    spec = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    return decode(PodDisruptionBudget, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})


def running(name: str = "old", **spec: Any) -> Any:
    return w.pod(name, node="n", labels={"app": "web"}, **spec)


def test_pods_on_a_deleting_node_and_new_ones_share_the_replacement() -> None:
    plan = plan_of(w.pool(), going("n"), w.replicas(3, "old", node="n"), w.replicas(2, "new"))
    (action,) = created(plan)
    assert action.claim.spec.resources.requests["pods"] == "5"
    assert len(plan.nominations) == 5
    assert len([e for e in plan.events if e.reason == "Nominated"]) == 2


@pytest.mark.parametrize(
    ("pod", "more", "moves"),
    [
        (running(), [], True),
        (running(owner={"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d"}), [], False),
        (running(owner={"apiVersion": "v1", "kind": "Node", "name": "n"}), [], False),
        (running(annotations={labels.DO_NOT_DISRUPT: "true"}), [], False),
        (running(annotations={labels.DO_NOT_DISRUPT: "nonsense"}), [], True),
        (running(), [budget(maxUnavailable=0)], False),
        (running(), [budget(maxUnavailable="0%")], False),
        (running(), [budget(minAvailable="100%")], False),
        (running(), [budget(maxUnavailable=1)], True),
        (running(), [budget(maxUnavailable=1), budget(maxUnavailable=2)], False),
    ],
)
def test_which_pods_of_a_deleting_node_are_planned_for(pod: Any, more: list[Any], moves: bool) -> None:
    plan = plan_of(w.pool(), going("n"), pod, more, w.pod("other", nodeSelector={labels.ZONE: "z2"}))
    total = sum(int(a.claim.spec.resources.requests["pods"]) for a in created(plan))
    assert total == (2 if moves else 1)


def test_a_pool_whose_launches_failed_is_passed_over_for_a_while() -> None:
    known = PoolFailures(count=1, at=w.NOW - SECOND)
    tired = w.pool("tired", weight=100)
    notes = {labels.BACK_OFF: msgspec.json.encode(known).decode()}
    tired = msgspec.structs.replace(tired, metadata=msgspec.structs.replace(tired.metadata, annotations=notes))
    plan = plan_of(tired, w.pool("fresh"), w.pod("p"))
    assert [a.claim.pool_name for a in created(plan)] == ["fresh"]
    assert [(r.subject, r.reason.code) for r in plan.refusals] == [("nodepool/tired", "BackOff")]
    later = plan_of(tired, w.pool("fresh"), w.pod("p"), now=w.NOW + 16 * SECOND)
    assert [a.claim.pool_name for a in created(later)] == ["tired"]


def test_a_pool_whose_claims_are_refused_is_passed_over_for_a_while() -> None:
    held = {"nodepool/refused": w.NOW + SECOND}
    plan = plan_of(w.pool("refused", weight=100), w.pool("other"), w.pod("p"), not_before=held)
    assert [a.claim.pool_name for a in created(plan)] == ["other"]


@pytest.mark.parametrize("cpu", ["lots", "1e30"])
def test_a_daemon_set_that_makes_no_sense_is_told_of(cpu: str) -> None:
    plan = plan_of(w.pool(), w.daemon_set("odd", cpu), w.pod("p"))
    assert len(created(plan)) == 1
    assert [(r.subject, r.reason.code) for r in plan.refusals] == [("daemonset/default/odd", "Malformed")]


def test_pods_without_a_place_are_counted_by_the_rule_that_says_so() -> None:
    tainted = w.pool(taints=[{"key": "own", "effect": "NoSchedule"}])
    assert _rules(plan_of(tainted, w.replicas(3, "p"))) == {"taints": 3.0}
    assert _rules(plan_of(w.pool(), w.pod("huge", cpu="4000"))) == {"resources": 1.0}
    assert _rules(plan_of(w.replicas(2, "p"))) == {"NoNodePool": 2.0}
    assert _rules(plan_of(w.pool(), w.pod("p"))) == {}


def _rules(plan: Plan) -> dict[str, float]:
    return {labels_[0][1]: count for (name, labels_), count in plan.gauges.items() if name is PlanGauge.REFUSED_PODS}
