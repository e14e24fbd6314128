"""While a batch is open, nodes are ordered that are certain whatever comes: full, at about the best price, and free of
all in which pods to come have a say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import msgspec
import pytest

from kerf.model.aws.instance_type import Offering, Reservation
from kerf.model.kubernetes.objects import Pod
from kerf.model.plan import CreateNodeClaim, Nomination, Plan, Reason
from kerf.model.settings import FeatureGates
from kerf.model.snapshot import Batch, Snapshot
from kerf.provisioning import provision as room
from kerf.provisioning.early import A_POD, ANSWERS, EVERY, NODES
from kerf.provisioning.provision import provision
from kerf.runtime.state.promises import Promises
from kerf.scheduling.answers.solution import Solution
from kerf_api import labels
from tests.unit.disruption.test_buffers import buffer
from tests.unit.scheduling import dra_world as d
from tests.unit.scheduling import worlds as w
from tests.unit.scheduling.progress_world import claim, ready
from tests.unit.scheduling.test_volumes import storage_class

SECOND: Final = timedelta(seconds=1)
BOX: Final = w.instance_type("box", 4, 4, pods=110)
#: Four of them fill a box.
QUARTER: Final = ("970m", "1020Mi")
OPEN: Final = Batch(w.NOW - 2 * SECOND, w.NOW - 0.1 * SECOND)
CLOSES: Final = w.NOW + 0.9 * SECOND
#: When the batch is solved ahead.
AHEAD: Final = w.NOW + 0.47 * SECOND


def look(*objects: Any, **facts: Any) -> Plan:
    return provision(w.world(*objects, **{"batch": OPEN, "catalogue": (BOX,), **facts}))


def ordered(plan: Plan) -> list[int]:
    """The number of pods of each node that is ordered."""
    claims = [action.claim for action in plan.actions if isinstance(action, CreateNodeClaim)]
    return sorted(len(claim.metadata.annotations[labels.PLANNED_PODS].split(",")) for claim in claims)


def some(number: int = 22, **spec: Any) -> list[Pod]:
    return w.replicas(number, "p", *QUARTER, **spec)


def created(pods: list[Pod], seconds: float) -> list[Pod]:
    """The pods as they were created so long before now."""
    at = w.NOW - seconds * SECOND
    return [
        msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, creation_timestamp=at))
        for pod in pods
    ]


@pytest.mark.parametrize(("number", "solved"), [(NODES - 1, False), (NODES, True)])
def test_fewer_pods_than_nodes_have_to_be_needed_are_not_solved_for(
    monkeypatch: pytest.MonkeyPatch, number: int, *, solved: bool
) -> None:
    looks: list[Snapshot] = []

    def noted(snapshot: Snapshot, *_rest: Any, **_facts: Any) -> Solution:
        looks.append(snapshot)
        return Solution()

    monkeypatch.setattr(room, "solve_early", noted)
    assert ordered(look(w.pool(), w.replicas(number, "p", "3700m", "3500Mi"))) == []
    assert bool(looks) == solved


def test_pods_that_leave_their_nodes_count_among_those_that_need_nodes() -> None:
    meta = w.node("old", cpu="64", memory="64Gi").metadata
    meta = msgspec.structs.replace(meta, deletion_timestamp=w.NOW, finalizers=(labels.TERMINATION_FINALIZER,))
    old = msgspec.structs.replace(w.node("old", cpu="64", memory="64Gi"), metadata=meta)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}
    leaving = [w.pod(f"l-{number}", *QUARTER, node="old", owner=owner) for number in range(20)]
    assert len(ordered(look(w.pool(), old, *leaving, *w.replicas(NODES - 1, "p", "3500m", "3500Mi")))) == 5


def test_full_nodes_are_ordered_and_the_other_pods_wait_for_the_close() -> None:
    plan = look(w.pool(), some())
    assert ordered(plan) == [4] * 5
    assert not plan.provisioned
    assert (plan.try_at, plan.next_due) == (w.NOW + EVERY, w.NOW + EVERY)
    assert len(plan.nominations) == 20
    assert len([event for event in plan.events if event.reason == "Nominated"]) == 20
    assert plan.refusals == ()
    assert plan.purchase is not None
    assert (plan.purchase.nodes, plan.purchase.pods) == (5, 20)
    assert plan.purchase.cost_ratio == pytest.approx(1, abs=0.02)


def test_the_close_plans_only_what_is_left() -> None:
    pods = some()
    snapshot = w.world(w.pool(), pods, batch=OPEN, catalogue=(BOX,))
    plan = provision(snapshot)
    promises = Promises()
    promises.planned(plan)
    assert promises.facts["nominations"] == plan.nominations
    claims = [action.claim for action in plan.actions if isinstance(action, CreateNodeClaim)]
    closed = replace(OPEN, last=w.NOW - SECOND)
    later = provision(w.world(w.pool(), pods, claims, batch=closed, catalogue=(BOX,), **promises.facts))
    assert later.provisioned
    assert ordered(later) == [2]
    targets = {claim.name for claim in claims}
    assert sum(one.target in targets for one in later.nominations) == 20


def test_a_try_that_orders_nothing_keeps_the_expectations() -> None:
    promises = Promises()
    before = (Nomination("uid", "node", w.NOW),)
    promises.planned(Plan(provisioned=True, nominations=before))
    promises.planned(Plan(try_at=w.NOW))
    assert promises.latest.nominations == before


@pytest.mark.parametrize(
    ("batch", "due"),
    [
        (Batch(w.NOW - 0.4 * SECOND, w.NOW), w.NOW + 0.1 * SECOND),
        (replace(OPEN, try_at=w.NOW + 0.3 * SECOND), w.NOW + 0.3 * SECOND),
        (replace(OPEN, try_at=CLOSES), AHEAD),
        (replace(OPEN, again=True), CLOSES),
    ],
)
def test_nodes_are_looked_for_twice_a_second(batch: Batch, due: Any) -> None:
    plan = look(w.pool(), some(), batch=batch)
    assert (ordered(plan), plan.try_at) == ([], None)
    assert plan.next_due == due


@pytest.mark.parametrize(("ago", "looks"), [(0.2, True), (0.6, False)])
def test_without_another_pod_since_the_latest_look_there_is_none(ago: float, looks: bool) -> None:
    """The latest look was half a second ago."""
    batch = replace(OPEN, last=w.NOW - ago * SECOND, tried_at=w.NOW - 0.5 * SECOND, try_at=w.NOW)
    assert (look(w.pool(), some(), batch=batch).try_at is not None) == looks


def test_many_pods_are_looked_at_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "solve_early", lambda *_, **__: Solution())
    just = replace(OPEN, first=w.NOW - EVERY)
    assert look(w.pool(), some(3000), batch=just).try_at == w.NOW + 3000 * A_POD


@pytest.mark.parametrize(("seconds", "pause"), [(0.5, 0.5), (1, 0.5), (2, 1), (8, 4)])
def test_a_look_that_finds_no_node_is_followed_by_a_longer_pause(seconds: float, pause: float) -> None:
    batch, hopeless = replace(OPEN, first=w.NOW - seconds * SECOND), some(nodeSelector={"no": "such"})
    plan = look(w.pool(), hopeless, batch=batch)
    assert (ordered(plan), plan.try_at) == ([], w.NOW + pause * SECOND)
    assert look(w.pool(), some(), batch=batch).try_at == w.NOW + EVERY


def test_one_reconcile_does_not_both_look_for_certain_nodes_and_solve_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    solved: list[str] = []

    def noted(name: str) -> Callable[..., Solution]:
        def solve(*_args: Any, **_facts: Any) -> Solution:
            solved.append(name)
            return Solution()

        return solve

    for name in ("solve_early", "solve_apart"):
        monkeypatch.setattr(room, name, noted(name))
    batch = replace(OPEN, last=w.NOW - 0.5 * SECOND)
    first = look(w.pool(), some(), batch=batch)
    assert (solved, first.next_due) == (["solve_early"], w.NOW)
    look(w.pool(), some(), batch=replace(batch, tried_at=w.NOW, try_at=first.try_at))
    assert solved == ["solve_early", "solve_apart"]


def test_an_expectation_that_ends_with_an_early_order_is_reported() -> None:
    pods = some()
    promise = Nomination(pods[0].metadata.uid, "n1", w.NOW, w.NOW - timedelta(minutes=6))
    plan = look(w.pool(), pods, claim("n1", minutes=30), ready("n1"), nominations=(promise,))
    assert ordered(plan)
    assert [one.pod_uid for one in plan.nominations if one.over] == [pods[0].metadata.uid]
    assert [event.reason for event in plan.events if event.type == "Warning"] == ["NotBound"]


def test_nothing_is_solved_for_too_few_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "solve_early", None)
    plan = look(w.pool(), some(3))
    assert (plan.actions, plan.try_at) == ((), w.NOW + SECOND)
    expected = tuple(Nomination(pod.metadata.uid, "node/full", w.NOW) for pod in some(19))
    assert look(w.pool(), some(), w.node("full", cpu="100m"), nominations=expected).actions == ()


def test_pods_that_were_expected_on_a_node_that_is_gone_count() -> None:
    expected = tuple(Nomination(pod.metadata.uid, "gone", w.NOW) for pod in some())
    assert ordered(look(w.pool(), some(), nominations=expected)) == [4] * 5


def test_a_few_nodes_are_no_certain_ones() -> None:
    assert ordered(look(w.pool(), some(12))) == []


def test_it_can_be_turned_off() -> None:
    plan = look(w.pool(), some(), early_orders=False)
    assert (ordered(plan), plan.try_at, plan.next_due) == ([], None, AHEAD)


def test_nodes_that_are_not_full_wait() -> None:
    assert ordered(look(w.pool(), w.replicas(22, "p", "970m", "600Mi"))) == []


@pytest.mark.parametrize(("gpus", "early"), [(0, True), (1, True), (4, False)])
def test_nodes_with_accelerators_to_spare_wait(gpus: int, early: bool) -> None:
    """Of the four pods on a node one uses a GPU."""
    kind = w.instance_type("box", 4, 4, pods=110, extra={w.GPU: gpus} if gpus else None)
    pods = [*w.replicas(15, "p", *QUARTER), *(w.pod(f"g-{i}", *QUARTER, requests={w.GPU: "1"}) for i in range(5))]
    assert bool(ordered(look(w.pool(), pods if gpus else some(20), catalogue=(kind,)))) is early


@pytest.mark.parametrize("resource", ["aws.amazon.com/neuron", "aws.amazon.com/neuroncore"])
def test_devices_of_neuron_are_in_use_when_their_cores_are(resource: str) -> None:
    extra = {"aws.amazon.com/neuron": 4, "aws.amazon.com/neuroncore": 4}
    kind = w.instance_type("box", 4, 4, pods=110, extra=extra)
    assert ordered(look(w.pool(), some(20, requests={resource: "1"}), catalogue=(kind,))) == [4] * 5
    assert ordered(look(w.pool(), some(20), catalogue=(kind,))) == []


def test_nodes_that_cost_more_than_their_pods_are_worth_wait() -> None:
    large = w.instance_type("large", 64, 64, pods=500, price=8_000_000)
    assert ordered(look(w.pool(), some(), catalogue=(BOX, large))) == []


def test_a_node_claim_that_is_being_created_comes_first() -> None:
    creation = next(a for a in look(w.pool(), some()).actions if isinstance(a, CreateNodeClaim))
    assert look(w.pool(), some(), under_way=(creation,)).try_at is None
    closed = Batch(w.NOW - 2 * SECOND, w.NOW - SECOND)
    waits = look(w.pool(), some(), under_way=(creation,), batch=closed)
    assert (waits.provisioned, waits.next_due) == (False, w.NOW + ANSWERS)
    long_closed = Batch(w.NOW - 2 * SECOND, w.NOW - SECOND - ANSWERS)
    assert look(w.pool(), some(), under_way=(creation,), batch=long_closed).provisioned


def test_a_node_claim_for_no_pod_holds_up_no_batch() -> None:
    replica = CreateNodeClaim(reason=Reason("Provisioned", "one of 3 replicas"), claim=claim("replica"))
    assert ordered(look(w.pool(), some(), under_way=(replica,))) == [4] * 5


# --- never early ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("cpu", "early"), [("120", True), ("60", False)])
def test_node_pools_near_a_limit(cpu: str, early: bool) -> None:
    assert bool(ordered(look(w.pool(limits={"cpu": cpu}), some()))) is early


def test_node_pools_with_capacity_reservations() -> None:
    held = Offering("box", "z1", labels.RESERVED, 1, reservation=Reservation("cr-1", 1))
    kinds = BOX.requirements.without(labels.CAPACITY_TYPE)
    reserved = replace(BOX, requirements=kinds, offerings=(*BOX.offerings, held))
    assert ordered(look(w.pool(), some(), catalogue=(reserved,))) == []


def test_too_few_types_for_min_values() -> None:
    rows = [{"key": labels.INSTANCE_TYPE, "operator": "Exists", "minValues": 2}]
    pool = w.pool(requirements=rows)
    assert ordered(look(pool, some(), min_values_policy="BestEffort")) == []
    twin = w.instance_type("twin", 4, 4, pods=110)
    assert ordered(look(pool, some(), min_values_policy="BestEffort", catalogue=(BOX, twin)))


def test_hard_spreads() -> None:
    web = {"labels": {"app": "web"}}
    soft = w.spread(whenUnsatisfiable="ScheduleAnyway")
    assert ordered(look(w.pool(), some(40, **web, topologySpreadConstraints=[soft])))
    assert ordered(look(w.pool(), some(40, **web, topologySpreadConstraints=[w.spread()]))) == []


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
def test_required_terms(kind: str) -> None:
    other = "web" if kind == "podAffinity" else "none"
    own = some(40, labels={"app": "web"}, affinity=w.between(kind, labels.ZONE, app=other))
    assert ordered(look(w.pool(), own)) == []


def test_pods_that_terms_of_others_count() -> None:
    alone = w.pod("alone", *QUARTER, affinity=w.between("podAntiAffinity", app="web"))
    assert ordered(look(w.pool(), some(labels={"app": "web"}), alone)) == []
    there = w.pod("there", node="n", affinity=w.between("podAntiAffinity", app="web"))
    full = w.node("n", cpu="100m")
    assert ordered(look(w.pool(), some(labels={"app": "web"}), full, there)) == []
    assert ordered(look(w.pool(), some(labels={"app": "other"}), full, there))


def test_pods_with_volumes() -> None:
    other = [{"name": "tmp", "emptyDir": {}}]
    assert ordered(look(w.pool(), some(volumes=other)))
    volume = [{"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}}}]
    pods, closed = some(volumes=volume), replace(OPEN, last=w.NOW - SECOND)
    assert ordered(look(w.pool(), pods, storage_class("fast"), batch=closed)) == [2, 4, 4, 4, 4, 4]
    assert ordered(look(w.pool(), pods, storage_class("fast"))) == []


def test_pods_with_device_claims() -> None:
    kind, claims = d.gpus(BOX, 4), [d.claim(f"c-{i}") for i in range(22)]
    rows = [[{"name": "c", "resourceClaimName": f"c-{i}"}] for i in range(22)]
    pods = [w.pod(f"p-{i}", *QUARTER, resourceClaims=row) for i, row in enumerate(rows)]
    world: list[Any] = [w.pool(), pods, claims, d.classes()]
    facts: dict[str, Any] = {"catalogue": (kind,), "ignore_dra_requests": False}
    closed = replace(OPEN, last=w.NOW - SECOND)
    assert ordered(look(*world, **facts, batch=closed)) == [2, 4, 4, 4, 4, 4]
    assert ordered(look(*world, **facts)) == []


def test_priorities_below_one_that_still_grows() -> None:
    low = created(some(), 1)
    urgent = [w.pod("urgent", priority=10)]
    assert ordered(look(w.pool(), low, created(urgent, 2))) == []
    assert ordered(look(w.pool(), low, urgent)) == []
    assert ordered(look(w.pool(), low, created(urgent, 60)))


def test_nodes_for_capacity_buffers() -> None:
    on = FeatureGates(capacity_buffer=True)
    plan = look(w.pool(), some(20), buffer("970m", 30), gates=on)
    assert ordered(plan) == [4] * 5
    assert all("CapacityBuffers" not in str(action.reason) for action in plan.actions)


def test_static_node_pools() -> None:
    assert ordered(look(w.pool(replicas=5), some(), gates=FeatureGates(static_capacity=True))) == []
