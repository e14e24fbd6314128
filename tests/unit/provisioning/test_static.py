"""Static NodePools: how many claims are created, which names they have, and what speaks against it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec

from kerf.model import kinds
from kerf.model.annotations import text_of
from kerf.model.backoff import PoolFailures, Registration
from kerf.model.cluster import Cluster
from kerf.model.memory import Memory
from kerf.model.plan import Action, CreateNodeClaim, Plan, Reason
from kerf.model.settings import FeatureGates, Settings
from kerf.provisioning.static import keep_replicas
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.ec2 import ec2_facts
from tests.unit.scheduling import progress_world as progress
from tests.unit.scheduling import worlds as w

ON = FeatureGates(static_capacity=True)
ROW = {"key": labels.CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]}


def plan_of(*objects: Any, **facts: Any) -> Plan:
    return keep_replicas(w.world(*objects, **{"gates": ON, **facts}))


def created(plan: Plan) -> list[str]:
    return [action.claim.name for action in plan.actions if isinstance(action, CreateNodeClaim)]


def why(plan: Plan) -> dict[str, str]:
    return {refusal.subject: refusal.reason.code for refusal in plan.refusals}


def claims_of(plan: Plan) -> list[NodeClaim]:
    return [action.claim for action in plan.actions if isinstance(action, CreateNodeClaim)]


def going(claim: NodeClaim) -> NodeClaim:
    return msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, deletion_timestamp=w.NOW))


def test_the_same_decision_has_the_same_names_and_what_is_there_is_not_made_again() -> None:
    first = plan_of(w.pool(replicas=3))
    assert created(first) == created(plan_of(w.pool(replicas=3)))
    assert len(set(created(first))) == 3
    assert created(plan_of(w.pool(replicas=3), claims_of(first)[:2])) == created(first)[2:]
    assert plan_of(w.pool(replicas=3), claims_of(first)) == Plan()
    assert not set(created(first)) & set(created(plan_of(w.pool("other", replicas=3))))


def test_a_member_that_goes_is_replaced_under_another_name() -> None:
    one, two = claims_of(plan_of(w.pool(replicas=2)))
    (name,) = created(plan_of(w.pool(replicas=2), going(one), two))
    assert name not in (one.name, two.name)


def test_a_member_that_a_command_replaces_is_not_replaced_twice() -> None:
    one, two = claims_of(plan_of(w.pool(replicas=2)))
    meta = msgspec.structs.replace(one.metadata, annotations={**one.metadata.annotations, labels.COMMAND: "{}"})
    assert plan_of(w.pool(replicas=2), msgspec.structs.replace(one, metadata=meta), two) == Plan()


def test_what_is_being_created_counts_whatever_becomes_of_the_others_meanwhile() -> None:
    """Of three members one is gone and its successor under way when another one's name becomes free."""
    one, two, three = claims_of(plan_of(w.pool(replicas=3)))
    (action,) = plan_of(w.pool(replicas=3), two, going(one), three).actions
    assert isinstance(action, CreateNodeClaim)
    under_way: tuple[Action, ...] = (action,)
    assert plan_of(w.pool(replicas=3), two, three, under_way=under_way) == Plan()
    assert created(plan_of(w.pool(replicas=3), two, under_way=under_way)) == [one.name]
    shown = action.claim
    assert plan_of(w.pool(replicas=3), two, three, shown, under_way=under_way) == Plan()
    limited = w.pool(replicas=3, limits={"nodes": "2"})
    assert created(plan_of(limited, two, under_way=under_way)) == []


def test_members_on_their_way_out_count_against_the_limit() -> None:
    one, two = claims_of(plan_of(w.pool(replicas=2)))
    limited = w.pool(replicas=2, limits={"nodes": 2})
    plan = plan_of(limited, going(one), two)
    assert (created(plan), why(plan)) == ([], {"nodepool/default": "NodeLimitReached"})
    assert plan.next_due == w.NOW + timedelta(seconds=10)
    assert len(created(plan_of(limited, two))) == 1


def test_a_large_number_is_created_in_portions() -> None:
    assert len(created(plan_of(w.pool(replicas=10**12)))) == 100


def test_a_pool_that_failed_or_is_refused_is_left_alone_for_a_while() -> None:
    failures = msgspec.json.encode(PoolFailures(count=1, at=w.NOW)).decode()
    pool = w.pool(replicas=1)
    tired = msgspec.structs.replace(
        pool, metadata=msgspec.structs.replace(pool.metadata, annotations={labels.BACK_OFF: failures})
    )
    assert why(plan_of(tired)) == {"nodepool/default": "BackOff"}
    refused = {"nodepool/default": w.NOW + timedelta(seconds=1)}
    assert why(plan_of(pool, not_before=refused)) == {"nodepool/default": "BackOff"}
    assert created(plan_of(pool, not_before=refused, now=w.NOW + timedelta(seconds=2)))


def test_after_members_that_did_not_join_there_is_one_at_a_time() -> None:
    latest = tuple(Registration(claim=name, at=w.NOW, reason="RegistrationFailed") for name in "ab")
    pool = w.pool(replicas=5)
    meta = msgspec.structs.replace(pool.metadata, annotations={labels.REGISTRATIONS: text_of(latest)})
    failing = msgspec.structs.replace(pool, metadata=meta)
    plan = plan_of(failing)
    assert (len(created(plan)), why(plan)) == (1, {"nodepool/default": "NodesNotRegistered"})
    assert created(plan_of(failing, under_way=plan.actions)) == []
    plan = plan_of(failing, claims_of(plan))
    assert (created(plan), why(plan)) == ([], {"nodepool/default": "NodesNotRegistered"})


def test_members_that_are_not_initialized_hold_up_no_others() -> None:
    """They are members: no others are made in their place."""
    stuck = [progress.claim(name, minutes=minutes, initialized=False) for name, minutes in (("n1", 60), ("n2", 30))]
    nodes = [progress.ready(one.name) for one in stuck]
    assert len(created(plan_of(w.pool(replicas=5), *stuck, *nodes))) == 3


def test_a_pool_that_makes_no_sense_holds_up_no_other() -> None:
    row = {"key": "k", "operator": "Gt", "values": ["x"]}
    plan = plan_of(w.pool("a", replicas=1, requirements=[row]), w.pool("b", replicas=1))
    assert [name.rpartition("-")[0] for name in created(plan)] == ["b"]
    assert why(plan) == {"nodepool/a": "Malformed"}


def test_a_claim_that_would_be_given_up_at_once_is_not_asked_for() -> None:
    """Nothing is in stock; then something is."""
    catalogue = ec2_facts.catalogue("m5.large", "c5.large")
    facts: dict[str, Any] = {"catalogues": {"default": catalogue}, "cluster": ec2_facts.CLUSTER}
    world = (w.pool(replicas=1, requirements=[ROW]), ec2_facts.ready(ec2_facts.node_class()))
    until = w.NOW + timedelta(seconds=20)
    keys = [offering.key for type_ in catalogue for offering in type_.offerings]
    plan = plan_of(*world, out_of_stock=dict.fromkeys(keys, until), **facts)
    assert (created(plan), why(plan)) == ([], {"nodepool/default": "InsufficientCapacity"})
    assert len(created(plan_of(*world, now=until, out_of_stock=dict.fromkeys(keys, until), **facts))) == 1


def test_what_is_remembered_follows_the_claims() -> None:
    """Over several looks with one memory, as claims come and go."""
    cluster, memory = Cluster(), Memory()
    settings = Settings("test", gates=ON)

    def look() -> list[str]:
        snapshot = cluster.snapshot(now=w.NOW, settings=settings)
        return created(keep_replicas(snapshot, memory.turn(snapshot)))

    cluster.apply(kinds.NODE_POOL, w.pool(replicas=2))
    names = look()
    assert look() == names
    made = [action.claim for action in plan_of(w.pool(replicas=2)).actions if isinstance(action, CreateNodeClaim)]
    cluster.apply(kinds.NODE_CLAIM, made[0])
    assert look() == names[1:]
    cluster.apply(kinds.NODE_CLAIM, made[1])
    assert look() == []
    cluster.remove(kinds.NODE_CLAIM, "", made[0].name)
    assert look() == [names[0]]


def test_the_reason_is_that_of_all_provisioned_claims() -> None:
    (action,) = plan_of(w.pool(replicas=1)).actions
    assert action.reason == Reason("Provisioned", "one of 1 replicas")
