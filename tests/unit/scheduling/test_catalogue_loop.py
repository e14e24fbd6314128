"""Batches and passes: behaviours 1 to 12 of the catalogue (scheduling reference §11), but for those of the metrics."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from kerf.model import kinds
from kerf.model.memory import Memory
from kerf.model.plan import CreateNodeClaim, Plan
from kerf.model.settings import Settings
from kerf.model.snapshot import Batch, Snapshot
from kerf.ports import Unavailable
from kerf.provisioning.provision import provision
from kerf.runtime.controller import Controller
from kerf.runtime.parts import Parts
from kerf.runtime.state.batching import BatchWindow
from kerf.sandbox.faults import Call, Faults
from kerf.sandbox.world import World
from kerf_api.v1.hashes import nodepool_hash
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w

SECOND = timedelta(seconds=1)
IDLE_5 = Settings("test", batch_idle=5 * SECOND, batch_max=60 * SECOND, batch_lone=5 * SECOND)


def created(plan: Plan) -> list[CreateNodeClaim]:
    return [action for action in plan.actions if isinstance(action, CreateNodeClaim)]


def going(value: Any) -> Any:
    """The object, being deleted."""
    return msgspec.structs.replace(value, metadata=msgspec.structs.replace(value.metadata, deletion_timestamp=w.NOW))


def window(*triggers: tuple[float, str]) -> BatchWindow:
    """A window after these triggers, each at so many seconds."""
    found = BatchWindow()
    for at, uid in triggers:
        found.trigger(uid, w.NOW + at * SECOND)
    return found


def test_001_a_batch_closes_after_some_silence() -> None:
    """A second after the only trigger it is worked off, and not before."""
    for waited, done in ((0.9, False), (1.0, True)):
        at = w.NOW - waited * SECOND
        plan = c.plan(w.pool(), w.pod("p"), batch=Batch(at, at))
        assert bool(created(plan)) == done
        assert plan.provisioned == done


def test_002_the_same_pod_does_not_prolong_the_batch() -> None:
    """Seen at 0 s and again at 3 s, with five seconds of silence asked for: closed at 5 s."""
    assert window((0, "a"), (3, "a")).due(w.NOW + 3 * SECOND, IDLE_5) == w.NOW + 5 * SECOND


def test_003_another_pod_does() -> None:
    """Seen at 3 s: closed at 8 s. The longest a batch may last still holds."""
    assert window((0, "a"), (3, "b")).due(w.NOW + 3 * SECOND, IDLE_5) == w.NOW + 8 * SECOND
    short = Settings("test", batch_idle=5 * SECOND, batch_max=6 * SECOND)
    assert window((0, "a"), (3, "b")).due(w.NOW + 3 * SECOND, short) == w.NOW + 6 * SECOND
    batch = window((0, "a"), (3, "b")).at(w.NOW + 3 * SECOND)
    assert batch is not None
    assert batch.closes(w.world(batch_idle=5 * SECOND).settings) == w.NOW + 8 * SECOND


class NoNodes(Faults):
    """Nodes cannot be listed for a while."""

    broken = True

    def before(self, call: Call) -> None:
        if self.broken and (call.verb, call.subject) == ("list", "nodes"):
            raise Unavailable("not now")


def test_004_nothing_is_decided_before_everything_is_known() -> None:
    """No error either; and the pod is not forgotten."""
    faults, seen = NoNodes(), list[Snapshot]()

    def decide(snapshot: Snapshot, memory: Memory) -> Plan:
        seen.append(snapshot)
        return Plan()

    world = World(faults=faults)
    world.kube.create(kinds.POD, {"metadata": {"name": "p", "namespace": "default"}, "spec": {"containers": []}})
    controller = Controller(world.ports, Parts(decide=decide), settings=Settings("test"), inline=True)
    assert controller.tick() == Plan()
    assert not controller.synced
    assert seen == []
    faults.broken = False
    world.clock.sleep(60)
    controller.tick()
    assert controller.synced
    assert "default/p" in seen[0].pods


def test_005_pools_that_are_being_deleted_make_nothing() -> None:
    """Their pods wait."""
    assert c.run(going(w.pool()), w.pod("p")).pending == ["p"]


def test_006_without_a_pool_there_is_a_refusal_and_no_claim() -> None:
    """The refusal names the pod."""
    plan = c.plan(w.pod("p"))
    assert created(plan) == []
    assert [refusal.subject for refusal in plan.refusals] == ["pod/default/p"]


@pytest.mark.parametrize("ready", ["False", "Unknown"])
def test_007_a_pool_that_is_not_ready_is_not_used(ready: str) -> None:
    """Its Ready condition must be True."""
    assert c.run(w.pool(ready=ready), w.pod("p")).pending == ["p"]
    assert c.run(w.pool(), w.pod("p")).node


def test_008_a_static_pool_makes_nothing_for_pods() -> None:
    """Beside a dynamic one that one is taken; alone it leaves the pods waiting."""
    static = w.pool("static", replicas=1)
    assert c.run(static, w.pool("dynamic"), w.pod("p")).node.pool == "dynamic"
    assert c.run(static, w.pod("p")).pending == ["p"]


def test_009_a_claim_has_the_hash_of_the_pool_that_it_was_planned_for() -> None:
    """Whatever becomes of the pool before the claim is made. The pod's promise names the claim."""
    pool, later = w.pool(), w.pool(labels={"team": "red"})
    plan = c.plan(pool, w.pod("p"))
    (action,) = created(plan)
    assert action.claim.metadata.annotations["karpenter.sh/nodepool-hash"] == nodepool_hash(pool)
    assert nodepool_hash(pool) != nodepool_hash(later)
    assert [(n.pod_uid, n.target) for n in plan.nominations] == [("uid-default-p", action.claim.name)]


def test_010_a_node_that_is_removed_and_new_pods_share_one_new_node() -> None:
    """Three pods from it and two new ones; it takes none itself."""
    old = w.replicas(3, "old", node="n")
    done = c.run(w.pool(), going(w.node("n", cpu="32", memory="32Gi")), old, w.replicas(2, "new"))
    assert len(done.node.pods) == 5
    assert done.placed == {}


def test_012_nothing_is_bound_and_nothing_made_twice() -> None:
    """The plan makes claims only; while the pod still waits, the claim on its way is enough."""
    snapshot = w.world(w.pool(), w.pod("p"), catalogue=c.CATALOGUE, batch=Batch(w.NOW - SECOND, w.NOW - SECOND))
    plan = provision(snapshot)
    (action,) = plan.actions
    assert isinstance(action, CreateNodeClaim)
    again = c.plan(w.pool(), w.pod("p"), action.claim)
    assert again.actions == ()
    assert [n.target for n in again.nominations] == [action.claim.name]
