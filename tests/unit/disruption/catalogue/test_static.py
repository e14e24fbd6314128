"""Static NodePools (124 to 126, 168 and 169 of the disruption catalogue; gate StaticCapacity)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from kerf.disruption.command import command_of
from kerf.disruption.disrupt import disrupt
from kerf.model.plan import Action, CreateNodeClaim, DeleteObject, PatchObject, Plan
from kerf.model.settings import FeatureGates, Settings
from kerf.ports import Unavailable
from kerf.provisioning.static import keep_replicas
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool
from tests.simulation.stage import of
from tests.simulation.test_static_pools import Herd
from tests.unit.disruption import worlds as w

ON = Settings("test", gates=FeatureGates(static_capacity=True))


def pool(replicas: int, limit: int | None = None, name: str = "default", nodes: str = "100%") -> NodePool:
    made = w.pool(name, replicas=replicas, budgets=[{"nodes": nodes}], annotations=w.HASHES)
    limits = {} if limit is None else {"nodes": str(limit)}
    return msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, limits=limits))


def outdated(count: int, pool_name: str = "default") -> list[Any]:
    """So many drifted members with a pod each, the first of which has drifted longest."""
    names = [f"{pool_name[0]}{i}" for i in range(count)]
    return [*w.drifted(*names, pool_name=pool_name), *(w.pod(f"on-{name}", name) for name in names)]


def look(*objects: Any, **facts: Any) -> Plan:
    return disrupt(w.snapshot(objects, settings=ON, **facts), w.never)


def created(*objects: Any, **facts: Any) -> list[NodeClaim]:
    plan = keep_replicas(w.snapshot(objects, settings=ON, **facts))
    return [action.claim for action in plan.actions if isinstance(action, CreateNodeClaim)]


def deleted(plan: Plan) -> list[str]:
    return [action.ref.name for action in plan.actions if isinstance(action, DeleteObject)]


def going(one: NodeClaim) -> NodeClaim:
    return msgspec.structs.replace(one, metadata=msgspec.structs.replace(one.metadata, deletion_timestamp=w.NOW))


# --- drift ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("budget", "expected"), [("2", 2), ("20%", 1), ("0", 0), ("100%", 5)])
def test_124_as_many_as_the_budget_allows_are_replaced_at_once(budget: str, expected: int) -> None:
    """Each by a successor from the template, without a simulation; those that have drifted longest."""
    plan = look(pool(5, nodes=budget), *outdated(5))
    assert w.started(plan) == [f"d{i}" for i in range(expected)]
    names = set()
    for action in plan.actions:
        if isinstance(action, PatchObject) and action.verb == "StartCommand":
            command = command_of(action.patch["metadata"]["annotations"])
            assert command is not None
            (successor,) = command.claims
            assert successor.metadata.annotations[labels.REPLACES] == action.ref.name
            assert (successor.pool_name, successor.spec.resources.requests) == ("default", {})
            names.add(successor.name)
    assert len(names) == expected


def test_124_pools_do_not_share_a_budget() -> None:
    pools = [pool(3, name="default", nodes="1"), pool(3, name="other", nodes="2"), pool(3, name="third", nodes="0")]
    plan = look(*pools, *outdated(3), *outdated(3, "other"), *outdated(3, "third"))
    assert w.started(plan) == ["d0", "o0", "o1"]


@pytest.mark.parametrize(("there", "limit", "expected"), [(5, 5, 0), (2, 5, 2), (5, 7, 2), (5, 6, 1), (5, None, 5)])
def test_125_the_limit_of_nodes_leaves_room_for_so_many_successors(
    there: int, limit: int | None, expected: int
) -> None:
    assert len(w.started(look(pool(5, limit), *outdated(there)))) == expected


def test_125_one_at_a_time_goes_through_them_all() -> None:
    """There are never more than the limit."""
    world = w.World.of(pool(2, 3), *outdated(2), facts={"settings": ON})
    for _ in range(60):
        world.tick()
        claims = [value for value in world.objects.values() if isinstance(value, NodeClaim)]
        assert len(claims) <= 3
        for one in claims:
            if labels.REPLACES in one.metadata.annotations and not one.is_true("Initialized"):
                world.join(one.name)
            if one.metadata.deleting:
                for lane in (f"nodeclaim/{one.name}", f"node/node-{one.name}", f"pod/shop/on-{one.name}"):
                    world.objects.pop(lane, None)
    assert [name for name in ("d0", "d1") if f"nodeclaim/{name}" in world.objects] == []
    assert len(world.replacements) == 2


@pytest.mark.parametrize(("replicas", "there"), [(1, 2), (0, 2), (0, 0)])
def test_126_what_is_too_much_anyway_is_not_replaced(replicas: int, there: int) -> None:
    """Not before there are as many as there should be; no limit is none."""
    assert w.started(look(pool(replicas), *outdated(there))) == []
    assert len(w.started(look(pool(2), *outdated(2)))) == 2


# --- their number -----------------------------------------------------------------------------------------------
def test_168_what_is_missing_is_created() -> None:
    """Those that a command replaces count as there."""
    about = {labels.COMMAND: "{}"}
    assert created(pool(2), w.claim("a"), w.claim("b")) == []
    assert created(pool(2), w.claim("a"), w.claim("b", annotations=about)) == []
    assert len(created(pool(5), w.claim("a"), w.claim("b", annotations=about))) == 3


def test_168_no_more_than_the_limit_are_created_however_often_that_is_asked() -> None:
    """What one look has asked for is known to the next, whether it shows or not; what failed is asked for again."""
    first = created(pool(5, 3), w.claim("a"))
    assert len(first) == 2
    plan = keep_replicas(w.snapshot([pool(5, 3), w.claim("a")], settings=ON))
    under_way: tuple[Action, ...] = plan.actions
    assert created(pool(5, 3), w.claim("a"), under_way=under_way) == []
    assert created(pool(5, 3), w.claim("a"), *first) == []
    assert [one.name for one in created(pool(5, 3), w.claim("a"), first[0])] == [first[1].name]


def test_168_before_claims_have_been_listed_nothing_is_created() -> None:
    """Whoever does not know what is there would make it a second time."""
    herd = Herd(2)
    herd.seam.fails["kube", "list"] = of("nodeclaims", Unavailable("not now"))
    herd.run(60)
    assert herd.claims == []
    herd.seam.fails.clear()
    herd.run(300, until=herd.is_whole(2))


def test_169_who_goes_first() -> None:
    """Without an instance, with daemons only, cheap ones, dear ones, and last those with a protected pod."""
    bare = w.claim("e-bare")
    bare = msgspec.structs.replace(bare, status=msgspec.structs.replace(bare.status, provider_id=""))
    pods = [
        w.pod("log", "d-daemon", owner="DaemonSet"),
        w.pod("one", "c-cheap"),
        *(w.pod(f"many{i}", "b-dear") for i in range(3)),
        w.pod("kept", "a-kept", annotations=w.PROTECTED),
    ]
    world = [bare, *w.pairs("d-daemon", "c-cheap", "b-dear", "a-kept"), *pods]
    order = ["e-bare", "d-daemon", "c-cheap", "b-dear", "a-kept"]
    for replicas in range(6):
        own = pool(replicas, nodes="0")
        assert sorted(deleted(look(own, *world))) == sorted(order[: 5 - replicas])
    assert deleted(look(pool(5), *world, going(w.claim("gone")))) == []


def test_169_a_deletion_that_failed_is_asked_for_again() -> None:
    world = w.World.of(pool(0), *w.pairs("a", "b"), facts={"settings": ON})
    for _ in range(3):
        plan = world.plan()
        assert deleted(plan) == ["a", "b"]
        world.now += timedelta(seconds=10)
    world.settle()
    assert deleted(world.plan()) == []
