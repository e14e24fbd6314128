"""Static NodePools with too many nodes: who goes, on what news, and what stands beside it in the plan."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from kerf.disruption.command import Command
from kerf.disruption.disrupt import disrupt
from kerf.model.annotations import text_of
from kerf.model.plan import Action, DeleteObject, Plan, Source
from kerf.model.settings import FeatureGates, Settings
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.disruption import worlds as w

ON = Settings("test", gates=FeatureGates(static_capacity=True))


def look(*objects: Any, **facts: Any) -> Plan:
    return disrupt(w.snapshot(objects, **{"settings": ON, **facts}), w.never)


def deletions(plan: Plan) -> list[DeleteObject]:
    return [action for action in plan.actions if isinstance(action, DeleteObject)]


def deleted(plan: Plan) -> list[str]:
    return [action.ref.name for action in deletions(plan)]


def pair(claim: NodeClaim) -> list[Any]:
    return [claim, w.node(claim)]


def static(replicas: int, **more: Any) -> Any:
    return w.pool(replicas=replicas, budgets=[{"nodes": "0"}], **more)


def test_budgets_do_not_count_and_the_surplus_uses_them_up() -> None:
    world = [*pair(w.claim("a")), *pair(w.claim("b")), *pair(w.claim("c"))]
    assert deleted(look(static(1), *world)) == ["a", "b"]
    assert deleted(look(static(0), *world)) == ["a", "b", "c"]
    assert deleted(look(static(3), *world)) == []
    assert deleted(look(static(1), *world, settings=Settings("test"))) == []
    assert deleted(look(w.pool(budgets=[{"nodes": "0"}]), *world)) == []


def test_of_two_alike_the_one_goes_that_would_have_expired_sooner() -> None:
    old, young = (
        w.claim(n, since=w.NOW - age * w.HOUR, expireAfter="100h") for n, age in (("z-old", 50), ("a-new", 1))
    )
    world = [*pair(old), *pair(young), w.pod("p", "z-old"), w.pod("q", "a-new")]
    assert deleted(look(static(1), *world)) == ["z-old"]
    spared = w.pod("q", "a-new", priority=-(2**25))
    assert deleted(look(static(1), *world[:-1], spared)) == ["a-new"]


def test_a_node_that_a_pod_has_been_promised_is_not_empty() -> None:
    world = [*pair(w.claim("a")), *pair(w.claim("b"))]
    promised = {"a": w.NOW + timedelta(seconds=5)}
    assert deleted(look(static(1), *world)) == ["a"]
    assert deleted(look(static(1), *world, nominated_until=promised)) == ["b"]


def test_an_empty_node_that_is_not_well_goes_before_one_that_is() -> None:
    well, silent = pair(w.claim("a")), [w.claim("b"), w.node(w.claim("b"), ready=False)]
    coming = w.claim("c")
    meta = replace(w.node(coming).metadata, labels={**coming.metadata.labels, labels.REGISTERED: "true"})
    joining = [coming, replace(w.node(coming), metadata=meta)]
    assert deleted(look(static(1), *well, *silent)) == ["b"]
    assert deleted(look(static(1), *well, *joining)) == ["c"]
    assert deleted(look(static(1), *well, *silent, w.pod("p", "b"))) == ["a"]


def test_an_empty_node_is_looked_at_once_more() -> None:
    world = [*pair(w.claim("a")), *pair(w.claim("b")), w.pod("d", "a", owner="DaemonSet"), w.pod("p", "b")]
    one, two = deletions(look(static(0), *world))
    assert (one.node_name, one.expected_pods) == ("node-a", frozenset({"pod-d"}))
    assert (two.node_name, two.expected_pods) == ("", None)


def test_who_goes_already_is_not_counted_again() -> None:
    """Whether it expires in this very plan, its deletion is under way, or a command replaces it."""
    short = w.claim("b", since=w.NOW - 9 * w.HOUR, expireAfter="2h")
    assert deleted(look(static(1), *pair(w.claim("a")), *pair(short))) == ["b"]
    world = [*pair(w.claim("a")), *pair(w.claim("b"))]
    under_way: tuple[Action, ...] = tuple(deletions(look(static(1), *world)))
    assert deleted(look(static(1), *world, under_way=under_way)) == []
    about = Command(id="x", reason="Drifted", started=w.NOW, created=True)
    command = w.claim("b", annotations={labels.COMMAND: text_of(about)})
    assert "a" not in deleted(look(static(1), *pair(w.claim("a")), *pair(command)))


def test_nothing_goes_on_old_news() -> None:
    world = [*pair(w.claim("a")), *pair(w.claim("b"))]
    for source in (Source.NODE_POOLS, Source.NODE_CLAIMS, Source.NODES, Source.PODS):
        fresh = {**dict.fromkeys(Source, w.NOW), source: w.NOW - w.HOUR}
        plan = look(static(1), *world, fresh_at=fresh)
        assert deleted(plan) == []
        assert ("nodepool/default", "StaleSource") in [(r.subject, r.reason.code) for r in plan.refusals]
        assert all(source in action.sources for action in deletions(look(static(1), *world)))


def test_what_cannot_be_read_stays() -> None:
    a, b = w.claim("a"), w.claim("b")
    assert deleted(look(static(0), w.torn(a), w.node(a), *pair(b))) == ["b"]
    assert deleted(look(w.torn(static(0)), *pair(a), *pair(b))) == []
    torn = w.torn(w.pod("p", "a"))
    assert deleted(look(static(1), *pair(a), *pair(b), torn, w.pod("q", "b"))) == ["b"]


def test_a_pool_that_is_going_takes_its_nodes_with_it_by_itself() -> None:
    pool = static(0)
    going = msgspec.structs.replace(pool.metadata, deletion_timestamp=w.NOW)
    assert deleted(look(msgspec.structs.replace(pool, metadata=going), *pair(w.claim("a")))) == []
