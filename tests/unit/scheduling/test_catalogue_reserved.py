"""Capacity reservations: behaviours 194 to 200 of the catalogue.

Karpenter serves one pod in a pass where a node holds all that it might use; here one pass is enough. What is asked is
who ends where.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from kerf.model.aws.cloud import HeldReservation, Instance
from kerf.model.aws.instance_type import Catalogue, InstanceType, Offering, Reservation
from kerf.model.changes.indexes import InstanceIndex
from kerf.model.kubernetes.objects import Pod
from kerf.model.plan import Plan
from kerf.model.settings import FeatureGates
from kerf.scheduling.solve import NewNode, solve
from kerf_api import labels
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w

#: Reservations by type: ID, and what is left of each.
Left = Mapping[str, Mapping[str, int]]
ONE_EACH: Left = {"small": {"cr-s": 1}, "medium": {"cr-m": 1}}
ONLY_RESERVED = {labels.CAPACITY_TYPE: labels.RESERVED}


def reserving(kind: InstanceType, reservations: Mapping[str, int]) -> InstanceType:
    """The type with a reserved offering in z1 for each of these reservations."""
    more = tuple(
        Offering(kind.name, "z1", labels.RESERVED, 1, available=left > 0, reservation=Reservation(id_, left))
        for id_, left in reservations.items()
    )
    rows = kind.requirements.without(labels.CAPACITY_TYPE)
    return replace(kind, requirements=rows, offerings=kind.offerings + more)


def catalogue(reservations: Left) -> Catalogue:
    """small, medium and large."""
    types = (c.machine("small", 2, 8), c.machine("medium", 3, 8), c.machine("large", 8, 32))
    return tuple(reserving(t, reservations.get(t.name, {})) for t in types)


@dataclass
class Served:
    """The nodes of as many passes as it took, and how many that were."""

    nodes: list[NewNode]
    passes: int

    @property
    def held(self) -> list[list[str]]:
        return sorted(held(node) for node in self.nodes)


def served(pools: Any, pods: list[Pod], reservations: Left) -> Served:
    """Pass after pass until all pods have a node; each launched one uses up its reservation."""
    story, left = c.Story.of(pools), {t: dict(ids) for t, ids in reservations.items()}
    waiting, nodes = list(pods), list[NewNode]()
    for number in range(1, 5):
        story.facts = {"catalogue": catalogue(left)}
        done = story.batch(waiting)
        nodes += done.nodes
        waiting = [pod for pod in waiting if pod.metadata.name in done.pending]
        for node in done.nodes:
            for id_ in held(node):
                (kind,) = (t for t in node.instance_types if id_ in left.get(t, {}))
                left[kind][id_] -= 1
        assert all(count >= 0 for ids in left.values() for count in ids.values())
        if not waiting:
            return Served(nodes, number)
    raise AssertionError(f"still waiting: {waiting}")


def held(node: NewNode) -> list[str]:
    """The reservations that a planned node may use: of a bought one none."""
    row = node.requirements.get(labels.RESERVATION_ID)
    if node.capacity_types == (labels.RESERVED,):
        assert row is not None
        return sorted(row.values)
    assert labels.RESERVED not in node.capacity_types
    return []


def test_194_reservations_are_used_up_before_anything_is_bought() -> None:
    """Three pods of 1.8 CPU: one on each reservation, the last on what is for sale."""
    found = served(w.pool(), w.replicas(3, "p", "1800m"), ONE_EACH)
    assert found.held == [[], ["cr-m"], ["cr-s"]]
    (bought,) = (node for node in found.nodes if not held(node))
    assert bought.instance_types[0] == "small"
    assert bought.capacity_types == ("on-demand", "spot")
    assert found.passes == 1


def one_pod_each() -> list[Pod]:
    return [w.pod(f"p-{name}", "1800m", nodeSelector={labels.NODEPOOL: name}) for name in ("np-1", "np-2")]


def failures(plan: Plan) -> list[str]:
    """What the refusals of pods and the events say of those without a place."""
    codes = [refusal.reason.code for refusal in plan.refusals if refusal.subject.startswith("pod/")]
    return codes + [event.reason for event in plan.events if event.reason == "FailedScheduling"]


def test_195_two_pools_that_share_a_reservation() -> None:
    """One of them gets it, the other buys; nobody is told of a failure."""
    pools = [w.pool("np-1"), w.pool("np-2")]
    assert failures(c.plan(pools, one_pod_each(), catalogue=catalogue({"small": {"cr": 1}}))) == []
    assert served(pools, one_pod_each(), {"small": {"cr": 1}}).held == [[], ["cr"]]


def test_196_two_pools_with_a_reservation_each() -> None:
    """Both in one pass, under different IDs."""
    pools = [
        c.pool(c.row(labels.RESERVATION_ID, "In", id_), name=name) for name, id_ in (("np-1", "cr-1"), ("np-2", "cr-2"))
    ]
    found = served(pools, one_pod_each(), {"small": {"cr-1": 1, "cr-2": 1}})
    assert {node.pool: held(node) for node in found.nodes} == {"np-1": ["cr-1"], "np-2": ["cr-2"]}
    assert found.passes == 1


def test_197_a_reservation_has_so_many_machines() -> None:
    """One and two, for four pods that shun each other: three reserved, the last is bought."""
    apart = w.between("podAntiAffinity")
    pods = w.replicas(4, "p", "1800m", labels={"app": "web"}, affinity=apart)
    assert served(w.pool(), pods, {"small": {"cr-1": 1, "cr-2": 2}}).held == [[], ["cr-1"], ["cr-2"], ["cr-2"]]


def test_198_a_heavier_pool_buys_rather_than_leave_its_pod_to_a_reservation_of_a_lighter_one() -> None:
    """Its own reservation is used up by the first pod."""
    heavy = c.pool(c.row(labels.RESERVATION_ID, "NotIn", "cr-light"), name="heavy", weight=9)
    light = c.pool(c.row(labels.RESERVATION_ID, "In", "cr-light"), name="light")
    found = served([heavy, light], w.replicas(2, "p", "1800m"), {"small": {"cr-heavy": 1, "cr-light": 1}})
    assert {node.pool for node in found.nodes} == {"heavy"}
    assert found.held == [[], ["cr-heavy"]]


def test_199_a_preference_is_not_given_up_for_a_reservation() -> None:
    """Two pods prefer np-1, whose reservation is for one of them; nobody goes to np-2."""
    pools = [w.pool("np-1"), w.pool("np-2", weight=9)]
    wish = c.prefers((1, labels.NODEPOOL, "np-1"))
    found = served(pools, w.replicas(2, "p", "1800m", affinity=wish), {"small": {"cr": 1}})
    assert {node.pool for node in found.nodes} == {"np-1"}
    assert found.held == [[], ["cr"]]


def test_200_pods_that_want_to_be_together_share_the_reserved_node() -> None:
    """One node with both."""
    spec: dict[str, Any] = {"labels": {"app": "web"}, "affinity": w.between("podAffinity")}
    pods = w.replicas(2, "p", "500m", nodeSelector=ONLY_RESERVED, **spec)
    node = c.run(w.pool(), pods, catalogue=catalogue(ONE_EACH)).node
    assert len(node.pods) == 2
    assert len(held(node)) == 1


# --- who waits ----------------------------------------------------------------------------------------------------
def test_who_wants_nothing_else_is_put_off_without_a_word() -> None:
    """The reservation has a machine for one of them."""
    pods = w.replicas(2, "p", "1800m", nodeSelector=ONLY_RESERVED)
    plan = c.plan(w.pool(), pods, catalogue=catalogue({"small": {"cr": 1}}))
    assert failures(plan) == ["Deferred"]
    assert [event.reason for event in plan.events] == ["Nominated"]
    assert plan.next_due is not None


def test_who_waits_for_a_reservation_that_is_used_up_is_told() -> None:
    pods = w.pod("p", "1800m", nodeSelector=ONLY_RESERVED)
    plan = c.plan(w.pool(), pods, catalogue=catalogue({"small": {"cr": 0}}))
    assert failures(plan) == ["Incompatible", "FailedScheduling"]


def test_a_claim_on_its_way_has_its_machine_still() -> None:
    """It is a place for the pod it was made for, though nothing be left; and nobody else is planned on its machine."""
    known, pods = catalogue({"small": {"cr": 1}}), w.replicas(2, "p", "1800m", nodeSelector=ONLY_RESERVED)
    first = c.run(w.pool(), pods[0], catalogue=known)
    (claim,) = first.claims()
    for left in (1, 0):
        again = c.run(w.pool(), pods, claim, catalogue=catalogue({"small": {"cr": left}}))
        assert again.placed == {"p-0": claim.name}
        assert (again.nodes, again.pending) == ((), ["p-1"])
    assert failures(c.plan(w.pool(), pods, claim, catalogue=known)) == ["Deferred"]


@pytest.mark.parametrize(("seconds", "others"), [(-60, 1), (-6, 1), (-4, 0), (30, 0)])
def test_what_was_launched_since_ec2_was_asked_is_taken(seconds: int, others: int) -> None:
    """EC2 said that two machines were left; one was launched so long after it was asked."""
    asked, known = w.NOW - timedelta(minutes=1), catalogue({"small": {"cr": 2}})
    (claim,) = c.run(w.pool(), w.pod("p-0", "1800m", nodeSelector=ONLY_RESERVED), catalogue=known).claims()
    machine = Instance(
        f"i-{claim.name}",
        "small",
        "z1",
        "running",
        labels.RESERVED,
        asked + timedelta(seconds=seconds),
        reservation=HeldReservation(id="cr"),
    )
    chosen = next(t for t in known if t.name == "small")
    running = w.launched_as(claim, chosen, chosen.offerings[-1])
    facts = {"instances": InstanceIndex.of({machine.id: machine}), "resolved_at": {"default": asked}}
    pods = w.replicas(2, "more", "1800m", nodeSelector=ONLY_RESERVED)
    done = c.run(w.pool(limits={"nodes": "9"}), pods, running, w.pod("p-0", "1800m"), catalogue=known, **facts)
    assert len(done.nodes) == 1 + others
    assert {tuple(held(node)) for node in done.nodes} == {("cr",)}


def test_who_can_go_nowhere_else_goes_first() -> None:
    """Also when the other one is more important, and larger."""
    pods = [w.pod("any", "1900m", priority=9), w.pod("only", "1800m", nodeSelector=ONLY_RESERVED)]
    done = c.run(w.pool(), pods, catalogue=catalogue({"small": {"cr": 1}}))
    assert (held(done.of("only")), held(done.of("any"))) == (["cr"], [])


def test_pods_of_capacity_buffers_sit_down_last() -> None:
    """They do not exist yet, and make way, however important they are to be."""
    fake = {labels.BUFFER_FAKE_POD: "true"}
    later = w.pod("virtual", "1800m", priority=9, nodeSelector=ONLY_RESERVED, annotations=fake)
    later = msgspec.structs.replace(later, metadata=msgspec.structs.replace(later.metadata, uid=later.key))
    snapshot = w.world(w.pool(), w.pod("real", "1800m"), catalogue=catalogue({"small": {"cr": 1}}))
    solution = solve(snapshot, [later, *snapshot.pods.pending.values()])
    assert [(node.pods, held(node)) for node in solution.new_nodes] == [(("default/real",), ["cr"])]
    assert {key: why.code for key, why in solution.unplaced.items()} == {later.key: "Deferred"}


# --- what is taken ------------------------------------------------------------------------------------------------
def test_the_smallest_machine_that_holds_all() -> None:
    """Large is reserved too, and costs no more."""
    every = {"small": {"cr-s": 5}, "medium": {"cr-m": 5}, "large": {"cr-l": 5}}
    assert served(w.pool(), w.replicas(1, "p", "1800m"), every).held == [["cr-s"]]
    assert served(w.pool(), w.replicas(2, "p", "1300m"), every).held == [["cr-m"]]
    assert served(w.pool(), w.replicas(5, "p", "1500m"), every).held == [["cr-l"]]


def test_pods_of_many_kinds_fill_a_reservation_and_the_rest_is_bought() -> None:
    pods = [*w.replicas(30, "a", "900m"), *w.replicas(30, "b", "600m", labels={"app": "b"})]
    found = served(w.pool(), pods, {"large": {"cr": 3}})
    assert Counter(map(tuple, found.held))[("cr",)] == 3
    assert all(len(node.pods) == 5 for node in found.nodes if held(node))
    assert sum(len(node.pods) for node in found.nodes) == 60


def test_a_company_that_a_reservation_cannot_hold_is_not_torn_apart() -> None:
    """Three pods that must share a host: two would go on the reserved one."""
    spec: dict[str, Any] = {"labels": {"app": "web"}, "affinity": w.between("podAffinity")}
    node = c.run(w.pool(), w.replicas(3, "p", "1200m", **spec), catalogue=catalogue({"medium": {"cr": 1}})).node
    assert (len(node.pods), held(node)) == (3, [])


def test_whom_others_must_be_beside_waits_for_them() -> None:
    """The leader would fill the reserved machine, and its follower would have no place anywhere."""
    leader = w.pod("leader", "1800m", labels={"app": "web"})
    follower = w.pod("follower", "1800m", affinity=w.between("podAffinity"))
    done = c.run(w.pool(), leader, follower, catalogue=catalogue({"small": {"cr": 1}}))
    assert done.together("leader", "follower")


@pytest.mark.parametrize(("row", "ids"), [(("NotIn", "cr-s"), ["cr-m"]), (("In", "cr-s"), ["cr-s"])])
def test_a_pool_may_choose_its_reservations(row: tuple[str, str], ids: list[str]) -> None:
    pool = c.pool(c.row(labels.RESERVATION_ID, *row))
    assert served(pool, w.replicas(1, "p", "1800m"), ONE_EACH).held == [ids]


def test_a_pool_without_reserved_capacity_buys() -> None:
    pool = c.pool(c.row(labels.CAPACITY_TYPE, "In", "on-demand"))
    (node,) = served(pool, w.replicas(1, "p", "1800m"), ONE_EACH).nodes
    assert node.capacity_types == ("on-demand",)


def test_limits_count_for_what_is_reserved() -> None:
    pods = w.replicas(2, "p", "1800m")
    done = c.run(w.pool(limits={"cpu": "3"}), pods, catalogue=catalogue({"small": {"cr": 2}}))
    assert [held(node) for node in done.nodes] == [["cr"]]
    assert len(done.pending) == 1


def test_without_the_gate_a_reserved_offering_is_one_like_others() -> None:
    """The cheapest: nobody counts."""
    shut = FeatureGates(reserved_capacity=False)
    done = c.run(w.pool(), w.replicas(3, "p", "1800m"), catalogue=catalogue({"small": {"cr": 1}}), gates=shut)
    assert [(node.instance_types[0], node.price) for node in done.nodes] == [("small", 1)] * 3
    assert all(set(node.capacity_types) > {labels.RESERVED} for node in done.nodes)
