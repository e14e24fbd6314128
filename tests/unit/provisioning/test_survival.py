"""A failure after the solve, about one planned node or one object, is a refusal about it; all others are served."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace as changed

from kerf.model.changes.indexes import PodIndex
from kerf.model.kubernetes.objects import Pod
from kerf.model.memory import Memory, Turn
from kerf.model.plan import CreateNodeClaim, PatchObject, Plan
from kerf.model.settings import FeatureGates
from kerf.model.snapshot import Snapshot
from kerf.provisioning import provision as room
from kerf.provisioning.provision import provision
from kerf.provisioning.static import keep_replicas
from kerf.scheduling.answers.explanation import Account, PoolAccount
from kerf.scheduling.solve import PodRefusal, solve
from kerf_api.v1.nodepool import NodePool
from tests.unit.provisioning.test_boundary import CLOSED, pools_of, refused
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w

GATES = FeatureGates(capacity_buffer=True, static_capacity=True)


class Brittle(dict[str, Any]):
    """A table whose lookups of one key fail from the n-th on; `count` says how many there were."""

    def __init__(self, table: Mapping[str, Any], key: str, nth: int) -> None:
        super().__init__(table)
        self.key, self.nth, self.count = key, nth, 0

    def __getitem__(self, key: str) -> Any:
        if key == self.key:
            self.count += 1
            if self.count >= self.nth:
                raise TypeError(f"{key} is nonsense")
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        try:
            return self[key]
        except KeyError:
            return default


class Uid(str):
    """A UID that cannot be written anywhere."""

    __slots__ = ()

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        raise TypeError("no text at all")


class Mute(PodRefusal):
    """A refusal that has no words."""

    def __str__(self) -> str:
        raise TypeError("no words")


def with_uid(pod: Pod) -> Pod:
    return changed(pod, metadata=changed(pod.metadata, uid=Uid(pod.metadata.uid)))


def annotated(pool: NodePool) -> NodePool:
    """A NodePool that pods fit, but of which no NodeClaim can be made."""
    template = pool.spec.template
    nonsense: Any = 7
    template = changed(template, metadata=changed(template.metadata, annotations=nonsense))
    return changed(pool, spec=changed(pool.spec, template=template))


def buffer(name: str) -> list[Any]:
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
    return [
        c.made("PodTemplate", name, "default", template={"metadata": {"labels": {"app": name}}, "spec": spec}),
        c.made("CapacityBuffer", name, "default", spec={"podTemplateRef": {"name": name}, "replicas": 1}),
    ]


def world(*objects: Any, **facts: Any) -> Snapshot:
    return w.world(*objects, **{"batch": CLOSED, "gates": GATES, **facts})


def crowd() -> list[Any]:
    """Two NodePools for different pods, pods for each, one pod without a place, two buffers."""
    kind = [{"key": "kind", "operator": "In", "values": ["a"]}]
    guests = w.replicas(2, "guest", "2", nodeSelector={"kind": "a"})
    pods = [*w.replicas(3, "p", "2"), *guests, w.pod("huge", "1000")]
    return [w.pool("a", requirements=kind), w.pool(), *pods, *buffer("one"), *buffer("two")]


def nominated(plan: Plan) -> set[str]:
    return {nomination.pod_uid for nomination in plan.nominations}


def brittle(snapshot: Snapshot, table: str, key: str, nth: int) -> tuple[Snapshot, Brittle]:
    if table == "pods":
        pods = snapshot.pods
        broken = Brittle(pods.by_key, key, nth)
        return replace(snapshot, pods=PodIndex(broken, pods.by_node, pods.pending, pods.nominated)), broken
    broken = Brittle(getattr(snapshot, table), key, nth)
    tables: dict[str, Any] = {table: broken}
    return replace(snapshot, **tables), broken


def sweep(
    make: Callable[[], Snapshot], table: str, key: str, ask: Callable[[Snapshot, Turn], Plan]
) -> list[tuple[int, Plan]]:
    """The plans when the first lookup of an object fails, when the second does, and so on up to the last."""
    found: list[tuple[int, Plan]] = []
    for nth in range(1, 200):
        snapshot, broken = brittle(make(), table, key, nth)
        plan = ask(snapshot, Memory().turn(snapshot))
        if broken.count < nth:
            return found
        found.append((nth, plan))
    raise AssertionError("no end of lookups")


@pytest.mark.parametrize("key", ["default/p-0", "default/guest-1", "default/huge"])
def test_a_pod_that_fails_at_any_step_costs_no_other_pod(key: str) -> None:
    whole = nominated(provision(world(crowd())))
    assert len(whole) == 5
    plans = sweep(lambda: world(crowd()), "pods", key, provision)
    assert plans
    for nth, plan in plans:
        assert refused(plan).get(f"pod/{key}") in ("InternalError", "Incompatible"), nth
        assert whole - {f"uid-{key.replace('/', '-')}"} <= nominated(plan), nth
        assert plan.provisioned
    assert key == "default/huge" or any(refused(plan)[f"pod/{key}"] == "InternalError" for _, plan in plans)


def test_a_node_pool_that_fails_at_any_step_costs_no_other_pool() -> None:
    plans = sweep(lambda: world(crowd()), "node_pools", "a", provision)
    assert len(plans) > 2
    for nth, plan in plans:
        assert {f"uid-default-p-{i}" for i in range(3)} <= nominated(plan), nth
        assert "default" in pools_of(plan)
        assert "InternalError" in refused(plan).values()


@pytest.mark.parametrize("batch", [CLOSED, None])
def test_a_buffer_that_fails_at_any_step_costs_no_pod_and_no_other_buffer(batch: Any) -> None:
    plans = sweep(lambda: world(crowd(), batch=batch), "capacity_buffers", "default/one", provision)
    assert len(plans) > 1
    for nth, plan in plans:
        assert batch is None or len(nominated(plan)) == 5, nth
        assert refused(plan)["capacitybuffer/default/one"] == "InternalError", nth
        written = {action.ref.name for action in plan.actions if isinstance(action, PatchObject)}
        assert "two" in written, nth


def test_a_static_pool_that_fails_at_any_step_costs_no_other_pool() -> None:
    def make() -> Snapshot:
        return world(w.pool("a", replicas=2), w.pool("b", replicas=2))

    plans = sweep(make, "node_pools", "a", lambda snapshot, turn: keep_replicas(snapshot, turn))
    assert len(plans) > 2
    for nth, plan in plans:
        assert sum(a.claim.pool_name == "b" for a in plan.actions if isinstance(a, CreateNodeClaim)) == 2, nth
        assert refused(plan) == {"nodepool/a": "InternalError"}, nth


def test_a_pod_that_no_claim_can_name_is_left_out_of_its_node() -> None:
    pods = w.replicas(5, "p")
    plan = provision(world(w.pool(), [with_uid(pods[0]), *pods[1:]]))
    assert len(pools_of(plan)) == 1
    assert refused(plan) == {"pod/default/p-0": "InternalError"}
    assert nominated(plan) == {pod.metadata.uid for pod in pods[1:]}
    assert {event.ref.name for event in plan.events if event.reason == "FailedScheduling"} == {"p-0"}


def test_a_pool_of_which_no_claim_can_be_made_costs_its_own_pods_only_also_after_a_restart() -> None:
    kind = [{"key": "kind", "operator": "In", "values": ["a"]}]
    odd = annotated(w.pool("odd", requirements=kind))
    pods = w.replicas(3, "p")
    objects = [odd, w.pool(), *pods, w.pod("guest", nodeSelector={"kind": "a"})]
    plan = provision(world(objects))
    assert pools_of(plan) == {"default"}
    assert refused(plan) == {"pod/default/guest": "Incompatible", "nodepool/odd": "InternalError"}
    assert nominated(plan) == {pod.metadata.uid for pod in pods}
    assert plan.purchase is not None
    assert plan.purchase.nodes == 1
    claims = [action.claim for action in plan.actions if isinstance(action, CreateNodeClaim)]
    again = provision(world([*objects, *claims, *w.replicas(2, "q", "2")]), None)
    assert refused(again) == refused(plan)
    assert nominated(again) == nominated(plan) | {"uid-default-q-0", "uid-default-q-1"}


def test_a_buffer_of_whose_node_no_claim_can_be_made_says_so() -> None:
    plan = provision(world(annotated(w.pool()), buffer("one")))
    assert refused(plan) == {"capacitybuffer/default/one": "NoNodePool", "nodepool/default": "InternalError"}
    assert plan.buffer_pods == {}


class Unruly(PoolAccount):
    """An account that does not say by which rule."""

    @property
    def rule(self) -> str:
        raise TypeError("no rule")


def test_refusals_that_cannot_be_told_or_counted_cost_no_other_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = world(w.pool(), w.replicas(2, "p"), w.pod("huge", "1000"), w.pod("vast", "1000"))
    solution = solve(snapshot, list(snapshot.pods.pending.values()))
    uncounted = PodRefusal("Incompatible", "too large", account=Account(1, pools=(object.__new__(Unruly),)))
    unplaced = {"default/huge": Mute("Incompatible", "too large"), "default/vast": uncounted}
    monkeypatch.setattr(room, "_solved", lambda *_: replace(solution, unplaced=unplaced))
    plan = provision(snapshot)
    assert len(nominated(plan)) == 2
    assert {"pod/default/huge", "pod/default/vast"} <= set(refused(plan))
    assert plan.gauges


@pytest.mark.parametrize("spec", [None, 7])
def test_a_daemon_set_that_makes_no_sense_costs_no_pod(spec: Any) -> None:
    odd = w.daemon_set("odd")
    template = changed(odd.spec.template, spec=spec)
    odd = changed(odd, spec=changed(odd.spec, template=template))
    plan = provision(world(w.pool(), w.daemon_set("sound"), odd, w.replicas(2, "p")))
    assert len(nominated(plan)) == 2
    assert refused(plan) == {"daemonset/default/odd": "InternalError"}


def test_a_pod_that_leaves_a_node_and_cannot_be_read_costs_no_other() -> None:
    nonsense: Any = 7
    leaving = changed(w.node("n"), metadata=changed(w.node("n").metadata, deletion_timestamp=w.NOW))
    sane = w.pod("sane", node="n", owner={"kind": "ReplicaSet", "name": "r", "controller": True})
    odd = changed(sane, metadata=changed(sane.metadata, name="odd", uid="uid-odd", owner_references=nonsense))
    plan = provision(world(w.pool(), leaving, sane, odd, w.replicas(2, "p"), now=w.NOW + timedelta(seconds=1)))
    assert nominated(plan) == {"uid-default-p-0", "uid-default-p-1", sane.metadata.uid}
    assert refused(plan)["pod/default/odd"] == "InternalError"
