"""One plan starts the replacement of several drifted nodes, each with a command of its own, by the real scheduler."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.disruption import share
from kerf.disruption.asking import Scheduler
from kerf.disruption.candidates.candidates import Blocker, Candidate, candidate
from kerf.disruption.command import Command, command_of
from kerf.disruption.consolidation.moves import judge
from kerf.disruption.disrupt import disrupt
from kerf.disruption.methods import replacing
from kerf.disruption.view import view
from kerf.model.annotations import text_of
from kerf.model.kubernetes.objects import Service, TopologySpreadConstraint
from kerf.model.plan import PatchObject, Plan
from kerf.model.settings import FeatureGates, Settings
from kerf_api import labels
from kerf_api.v1.meta import decode
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.disruption import worlds as w
from tests.unit.disruption.test_buffers import buffer


def sized(cpu: str) -> dict[str, Any]:
    return {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}


#: One fills a node of the cheapest type that holds it.
LARGE = sized("1500m")
TERM = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": labels.ZONE}
SPREAD = {**LARGE, "topologySpreadConstraints": [{**TERM, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]}
APART_TERM = {**TERM, "topologyKey": labels.HOSTNAME}
APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [APART_TERM]}}
CLAIMING = {**LARGE, "resourceClaims": [{"name": "gpu", "resourceClaimName": "none"}]}


def planned(*objects: Any, names: str = "abc", **own: dict[str, Any]) -> Plan:
    """Of nodes that have drifted in this order, each with a large pod or its own."""
    pods = [w.pod(f"on-{name}", name, **own.get(name, LARGE)) for name in names]
    return disrupt(w.snapshot([*w.drifted(*names), *pods, *(objects or [w.rolling()])]))


def commands(plan: Plan) -> Iterable[Command]:
    for action in plan.actions:
        if isinstance(action, PatchObject) and action.key.startswith("StartCommand"):
            found = command_of(action.patch["metadata"]["annotations"])
            assert found is not None
            yield found


def test_each_has_a_command_and_successors_of_its_own() -> None:
    plan = planned()
    found = list(commands(plan))
    assert w.started(plan) == ["a", "b", "c"]
    assert [len(one.claims) for one in found] == [1, 1, 1]
    assert len({name for one in found for name in one.replacements}) == len({one.id for one in found}) == 3
    assert [one.peers for one in found] == [(), (), ()]
    assert [claim.metadata.annotations[labels.REPLACES] for one in found for claim in one.claims] == ["a", "b", "c"]


@pytest.mark.parametrize("nodes", [0, 1, 2])
def test_no_more_than_budgets_allow(nodes: int) -> None:
    plan = planned(w.rolling(budgets=[{"nodes": str(nodes)}]))
    assert w.started(plan) == ["a", "b", "c"][:nodes]


def test_free_resources_of_a_node_are_taken_once() -> None:
    plan = planned(w.rolling(), *w.pairs("free", consolidatable=False))
    assert w.started(plan) == ["a", "b", "c"]
    assert [len(one.claims) for one in commands(plan)] == [0, 1, 1]


def test_one_that_would_have_its_pods_on_the_successor_of_another_waits_for_that() -> None:
    """It is not refused: in a plan of its own it may have a place."""
    plan = planned(names="ab", a=sized("2500m"), b=sized("1500m"))
    assert w.started(plan) == ["a"]
    assert [len(one.claims) for one in commands(plan)] == [1]
    assert w.refusals(plan) == {}


def test_one_that_takes_the_pods_of_another_stays_until_they_have_moved() -> None:
    """Their only place would go, and they would wait for a node."""
    plan = planned(names="ab", a=sized("500m"), b=sized("300m"))
    assert w.started(plan) == ["a"]
    assert [len(one.claims) for one in commands(plan)] == [0]


def test_where_limits_count_successors_only_one_is_started() -> None:
    pool = w.rolling()
    assert w.started(planned(replace(pool, spec=replace(pool.spec, limits={"cpu": "100"})))) == ["a"]


@pytest.mark.parametrize("own", [SPREAD, {**LARGE, "affinity": APART}])
def test_nodes_whose_pods_depend_on_others_are_started_alone(own: dict[str, Any]) -> None:
    assert w.started(planned(a=own)) == ["a"]
    assert w.started(planned(b=own)) == ["a", "c"]


@pytest.mark.parametrize(("cpu", "begun"), [("1500m", ["a"]), ("500", ["a", "b", "c"])])
def test_a_pending_pod_that_depends_on_others_counts_if_it_has_a_place(cpu: str, begun: list[str]) -> None:
    waits = ({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"},)
    pending = w.pod("waits", "", phase="Pending", pod_conditions=waits, **{**SPREAD, **sized(cpu)})
    assert w.started(planned(w.rolling(), pending)) == begun


def test_a_pending_pod_for_which_no_work_is_left_counts() -> None:
    """Another pass places it, where the pods of the nodes would go now."""
    rows = [{"matchExpressions": [{"key": f"k{number}", "operator": "DoesNotExist"}]} for number in range(300)]
    spread = {"maxSkew": 9, "whenUnsatisfiable": "DoNotSchedule"}
    keys = (labels.ZONE, labels.HOSTNAME)
    terms = [{**spread, "topologyKey": key, "labelSelector": row} for key in keys for row in rows]
    waits = ({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"},)
    hard = {**LARGE, "topologySpreadConstraints": terms}
    pending = [w.pod(f"waits-{name}", phase="Pending", pod_conditions=waits, **hard) for name in "abcd"]
    assert w.started(planned(w.rolling(), *w.pairs(*"wxyz", consolidatable=False), *pending)) == ["a"]


def test_default_spreads_count_as_those_of_pods() -> None:
    row = TopologySpreadConstraint(max_skew=1, topology_key=labels.HOSTNAME, when_unsatisfiable="DoNotSchedule")
    settings = Settings("test", default_constraints=(row,))
    pods = [w.pod(f"on-{name}", name, **LARGE) for name in "abc"]
    service = decode(Service, {"metadata": {"name": "s", "namespace": "shop"}, "spec": {"selector": {"app": "web"}}})
    objects = [w.rolling(), *w.drifted(*"abc"), *pods]
    assert w.started(disrupt(w.snapshot([*objects, service]))) == ["a", "b", "c"]
    assert w.started(disrupt(w.snapshot([*objects, service], settings=settings))) == ["a"]


def test_a_bug_beside_the_first_costs_only_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scheduler, "filled", lambda *given: 1 / 0)
    plan = planned()
    assert w.started(plan) == ["a"]
    assert w.refusals(plan) == {"disruption/drift": "InternalError"}


def test_nodes_whose_pods_claim_devices_are_not_started_beside_others() -> None:
    assert w.started(planned(b=CLAIMING)) == ["a", "c"]


def test_one_without_a_place_keeps_no_others_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """But a plan simulates only so many."""
    huge = sized("64")
    assert w.started(planned(names="abcd", b=huge)) == ["a", "c", "d"]
    monkeypatch.setattr(replacing, "_BESIDE", 2)
    assert w.started(planned(names="abcd", b=huge)) == ["a", "c"]


def test_there_is_an_end_to_the_work_of_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    names = "abcdefgh"
    assert w.started(planned(names=names)) == [*names]
    monkeypatch.setattr(share, "_STEPS", 400)
    some = w.started(planned(names=names))
    assert 1 < len(some) < len(names)
    assert some == [*names][: len(some)]


def test_node_pools_have_their_turns() -> None:
    other = w.pool("late", annotations=w.HASHES, consolidateAfter="Never")
    late = w.pairs("z", pool_name="late", drifted=w.NOW - w.MINUTE, consolidatable=False)
    rolling = w.rolling(budgets=[{"nodes": "2"}])
    assert w.started(planned(rolling, other, *late, w.pod("on-z", "z", **LARGE))) == ["a", "z", "b"]


def test_a_change_without_a_canary_starts_one_node() -> None:
    first = {**w.HASHES, labels.CANARY_SOAK: "10m"}
    assert len(w.started(planned(w.pool(annotations=first, consolidateAfter="Never")))) <= 1


@pytest.mark.parametrize(("failed", "begun"), [(1, ["a", "b", "c"]), (2, ["a"])])
def test_after_nodes_that_did_not_join_only_one_is_started(failed: int, begun: list[str]) -> None:
    assert w.started(planned(w.unjoined(w.rolling(), failed))) == begun


ONLY_LARGE = [{"key": labels.INSTANCE_TYPE, "operator": "In", "values": ["m5.large"]}]


def late(name: str, minutes: int = 60, **more: Any) -> list[Any]:
    """A node that has been registered for so long, and not initialized."""
    own = w.claim(name, since=w.NOW - minutes * w.MINUTE, consolidatable=False, annotations=w.HASHES, **more)
    rows = tuple(one for one in own.status.conditions if one.type in ("Launched", "Registered"))
    node = w.node(own)
    kept = {key: value for key, value in node.metadata.labels.items() if key != labels.INITIALIZED}
    node = replace(node, metadata=replace(node.metadata, labels=kept), spec=replace(node.spec, unschedulable=True))
    return [replace(own, status=replace(own.status, conditions=rows)), node]


def large(name: str, **more: Any) -> list[Any]:
    """A drifted node whose pods need two nodes of its NodePool."""
    own = w.claim(name, drifted=w.NOW - w.MINUTE, consolidatable=False, instance_type="m5.xlarge", **more)
    return [own, w.node(own), *(w.pod(f"p{number}-{name}", name, **LARGE) for number in range(2))]


HELD = [
    ([w.rolling(requirements=ONLY_LARGE), *late("n")], "NodesNotInitialized", "is initialized"),
    ([w.unjoined(w.rolling(requirements=ONLY_LARGE), 2)], "NodesNotRegistered", "registers"),
]


@pytest.mark.parametrize("held", [one[0] for one in HELD], ids=["not initialized", "not registered"])
def test_where_one_node_at_a_time_is_made_all_successors_of_one_are_one_attempt(held: list[Any]) -> None:
    """Less would not do for its pods; no other goes meanwhile, whatever restarts."""
    world = w.World.of(*held, *large("a"), *large("b"), ask=None)
    world.settle()
    assert (len(world.replacements), world.tainted("a"), world.tainted("b")) == (2, True, False)
    world.now += w.MINUTE
    world.settle()
    assert len(world.replacements) == 2


@pytest.mark.parametrize(("held", "code", "until"), HELD, ids=["not initialized", "not registered"])
def test_that_attempt_waits_for_other_commands_of_the_node_pool(held: list[Any], code: str, until: str) -> None:
    moving = text_of(Command(id="c", reason="Drifted", started=w.NOW, created=True))
    plan = disrupt(w.snapshot([*held, *large("a"), *w.pairs("c", annotations={**w.HASHES, labels.COMMAND: moving})]))
    assert w.started(plan) == []
    (refusal,) = [one for one in plan.refusals if one.subject == "node/node-a"]
    assert refusal.reason.code == code
    assert f"one node at a time until one {until}; 2 wait for its other commands" in refusal.reason.text


def test_a_node_whose_successor_would_be_like_late_ones_stays() -> None:
    own = large("a", annotations=w.HASHES)[:-1]
    plan = disrupt(w.snapshot([w.rolling(), *late("n"), *late("m", 20), *own]))
    assert w.started(plan) == []
    (refusal,) = [one for one in plan.refusals if one.subject == "node/node-a"]
    assert refusal.reason.code == "NodesNotInitialized"
    assert "launches no further node like its late ones" in refusal.reason.text
    assert w.started(disrupt(w.snapshot([w.rolling(), *late("n"), *own]))) == ["a"]


def _successors(plan: Plan) -> list[NodeClaim]:
    return [claim for one in commands(plan) for claim in one.claims]


def test_a_node_that_can_stay_waits_for_its_node_pool() -> None:
    """Nodes of another one do not have the change that makes the roll-out; they would say that it is well."""
    own, other = large("a", annotations=w.HASHES)[:-1], w.rolling("another")
    plan = disrupt(w.snapshot([w.rolling(), other, *late("n"), *late("m", 20), *own]))
    assert w.started(plan) == []
    assert w.refusals(plan) == {"node/node-a": "NodesNotInitialized"}


@pytest.mark.parametrize("others", [[], [w.pod("nowhere", "a", nodeSelector={labels.ZONE: "nowhere"})]])
def test_a_node_that_must_go_gets_a_successor_of_another_node_pool(others: list[Any]) -> None:
    """Whether or not each of its pods has a place."""
    own = w.claim("a", since=w.NOW - 115 * w.MINUTE, expireAfter="2h", annotations=w.HASHES, consolidatable=False)
    there = [own, w.node(own), w.pod("on-a", "a", **LARGE), *others]
    world = w.World.of(w.rolling(), w.rolling("another"), *late("n"), *late("m", 20), *there, ask=None)
    world.settle()
    assert [world.claim(name).pool_name for name in world.replacements] == ["another"]


def test_node_pools_without_such_nodes_are_passed_over_one_after_the_other() -> None:
    own = w.claim("a", since=w.NOW - 115 * w.MINUTE, expireAfter="2h", annotations=w.HASHES, consolidatable=False)
    pools = [w.rolling(weight=30), *(w.pool(name, weight=20, annotations=w.HASHES) for name in ("second", "third"))]
    held = [*late("n"), *late("m", 20), *late("x", pool_name="third"), *late("y", 20, pool_name="third")]
    world = w.World.of(*pools, *held, own, w.node(own), w.pod("on-a", "a", **LARGE), ask=None)
    world.settle()
    assert [world.claim(name).pool_name for name in world.replacements] == ["second"]


def test_one_that_waits_for_its_successor_keeps_no_other_of_its_node_pool_waiting() -> None:
    """Its pod needs a node like the late ones; that of the other one does not."""
    zonal = {labels.ZONE: "us-west-2a"}
    rows = [{"key": labels.ZONE, "operator": "In", "values": ["us-west-2a"]}]
    own = [
        w.claim(name, since=w.NOW - at * w.MINUTE, expireAfter="2h", annotations=w.HASHES, consolidatable=False)
        for name, at in (("a", 115), ("b", 114))
    ]
    pods = [w.pod("on-a", "a", nodeSelector=zonal, **LARGE), w.pod("on-b", "b", **LARGE)]
    held = [*late("n", requirements=rows), *late("m", 20, requirements=rows)]
    world = w.World.of(w.rolling(), *held, *own, *map(w.node, own), *pods, ask=None)
    world.settle()
    assert (len(world.replacements), world.tainted("a"), world.tainted("b")) == (1, False, True)


def test_a_node_that_must_go_waits_for_the_attempt_that_is_under_way() -> None:
    """Not for ever: at its end it goes."""
    own = w.claim("a", since=w.NOW - 115 * w.MINUTE, expireAfter="2h", annotations=w.HASHES, consolidatable=False)
    attempt = w.claim("m", since=w.NOW - w.MINUTE, annotations=w.HASHES, consolidatable=False, instance_type="t3.small")
    coming = replace(attempt, status=replace(attempt.status, conditions=attempt.status.conditions[:1]))
    there = [own, w.node(own), w.pod("on-a", "a", **LARGE)]
    world = w.World.of(w.rolling(), *late("n"), coming, *there, ask=None)
    world.settle()
    assert (world.replacements, world.claim("a").metadata.deleting) == ([], False)
    noted = world.claim("a").condition("Expiring")
    assert noted is not None
    assert noted.reason == "Expiring"
    world.now += 6 * w.MINUTE
    world.settle()
    assert world.claim("a").metadata.deleting


def test_a_pending_pod_that_gets_no_node_keeps_no_node_from_its_successor() -> None:
    """On one node with the pod of the drifted one, it would be like the late ones."""
    zone = {labels.ZONE: "us-west-2a"}
    rows = [{"key": labels.ZONE, "operator": "In", "values": ["us-west-2a"]}]
    waits = ({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"},)
    pending, again = (
        w.pod(name, "", phase="Pending", pod_conditions=waits, nodeSelector=zone, **sized(cpu))
        for name, cpu in (("waits", "300m"), ("waits-too", "1500m"))
    )
    zonal = [late(name, minutes, requirements=rows) for name, minutes in (("n", 60), ("m", 20))]
    there = [w.rolling(), *zonal[0], *zonal[1], *large("a", annotations=w.HASHES)[:-1]]
    settings = Settings("test", gates=FeatureGates(capacity_buffer=True))
    for others in ([pending], [pending, again], buffer("300m", 2, zone=zone)):
        plan = disrupt(w.snapshot([*there, *others], settings=settings))
        assert w.started(plan) == ["a"]
        (successor,) = _successors(plan)
        assert labels.ZONE not in {one.key for one in successor.spec.requirements}


def test_a_replacement_of_fewer_types_than_planned_is_not_made_where_it_would_be_like_late_ones() -> None:
    """Only the cheapest type of the plan is cheaper than the node, and nodes that were planned for it are late."""
    small = [{"key": labels.INSTANCE_TYPE, "operator": "In", "values": ["t3.small"]}]

    def code(*ages: int) -> str:
        there = [one for age in ages for one in late(f"n{age}", age, requirements=small, instance_type="t3.small")]
        world = w.snapshot(
            [w.pool(annotations=w.HASHES), *w.pairs("a", annotations=w.HASHES), w.pod("web", "a"), *there]
        )
        found = candidate(view(world), "a")
        assert isinstance(found, Candidate)
        move = judge(view(world), [found], w.on_new_nodes("t3.small", "m5.large", "m5.xlarge"))
        return move.code if isinstance(move, Blocker) else move.kind

    assert code() == code(60) == "replace"
    assert code(60, 20) == "NodesNotInitialized"


def test_consolidation_makes_one_node_at_a_time_beside_late_ones() -> None:
    def code(*there: Any) -> str:
        nodes = w.pairs("a", "b", annotations=w.HASHES, instance_type="m5.xlarge")
        pods = [w.pod(f"web-{name}", name, **LARGE) for name in "ab"]
        seen = view(w.snapshot([w.pool(annotations=w.HASHES), *nodes, *pods, *there]))
        several = [one for name in "ab" if isinstance(one := candidate(seen, name), Candidate)]
        move = judge(seen, several, w.on_new_nodes("m5.large", count=2))
        return move.code if isinstance(move, Blocker) else move.kind

    assert code() == "replace"
    assert code(*late("n")) == "NodesNotInitialized"


STRANDED = w.pod("nowhere", "a", nodeSelector={labels.ZONE: "nowhere"})


@pytest.mark.parametrize("others", [[], [STRANDED]], ids=["alone", "beside a pod without a place"])
@pytest.mark.parametrize(("held", "successors"), [([("n", 60)], 1), ([("n", 60), ("m", 20)], 0)])
def test_an_expiring_node_is_followed_by_no_node_like_late_ones(
    held: list[Any], successors: int, others: list[Any]
) -> None:
    own = w.claim("a", since=w.NOW - 115 * w.MINUTE, expireAfter="2h", annotations=w.HASHES, consolidatable=False)
    rows = [each for name, minutes in held for each in late(name, minutes)]
    world = w.World.of(w.rolling(), *rows, own, w.node(own), w.pod("on-a", "a", **LARGE), *others, ask=None)
    world.settle()
    assert len(world.replacements) == successors


def test_room_that_a_buffer_cannot_have_keeps_no_other_node() -> None:
    """Its node would be like the late ones; the drifted node of the other NodePool has nothing to do with it."""
    other = w.pool(
        "other", annotations=w.HASHES, consolidateAfter="Never", taints=[{"key": "x", "effect": "NoSchedule"}]
    )
    own = w.claim("a", pool_name="other", drifted=w.NOW - w.MINUTE, consolidatable=False, annotations=w.HASHES)
    tolerant = w.pod("on-a", "a", **{**LARGE, "tolerations": [{"key": "x", "operator": "Exists"}]})
    there = [
        w.rolling(),
        *late("n"),
        *late("m", 20),
        other,
        own,
        w.node(own),
        tolerant,
        *buffer("1500m", 4, fits=False),
    ]
    settings = Settings("test", gates=FeatureGates(capacity_buffer=True))
    assert w.started(disrupt(w.snapshot(there, settings=settings))) == ["a"]
