"""What is known of the cluster, and what is told of it: behaviours 212 to 221 of the catalogue."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from kerf.model import kinds
from kerf.model.cluster import Cluster
from kerf.model.kinds import Ref, ref
from kerf.model.kubernetes.objects import Pod
from kerf.model.plan import Nomination, Plan, Reason, Refusal
from kerf.model.settings import Settings
from kerf.model.snapshot import Proposal, Snapshot
from kerf.runtime.inbox import Changed, Listed
from kerf.runtime.state.state import PROPOSALS_KEPT, State
from kerf.sandbox.clock import VirtualClock
from kerf.sandbox.world import World
from kerf.scheduling.solve import Solution, solve
from kerf.telemetry.telemetry import Telemetry
from kerf_api import labels
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w

SECOND = timedelta(seconds=1)
SETTINGS = Settings("test")


class Known:
    """Indexes that are fed one event at a time."""

    def __init__(self, *objects: Any) -> None:
        self.cluster = Cluster()
        self.apply(*objects)

    def apply(self, *objects: Any) -> None:
        for value in objects:
            self.cluster.apply(kinds.BY_NAME[ref(value).kind], value)

    def remove(self, value: Any) -> None:
        own: Ref = ref(value)
        self.cluster.remove(kinds.BY_NAME[own.kind], own.namespace, own.name)

    def snapshot(self) -> Snapshot:
        return self.cluster.snapshot(now=w.NOW, settings=SETTINGS, catalogues={"default": c.CATALOGUE})

    def solve(self, *pods: Pod) -> Solution:
        return solve(self.snapshot(), pods)

    def room(self, cpu: str, **spec: Any) -> bool:
        """Whether an existing node takes a pod of this size."""
        return bool(self.solve(w.pod("probe", cpu, **spec)).placed)

    def can_grow(self) -> bool:
        """Whether the pool's limit admits one more node for a pod of one CPU that fits nowhere else."""
        return bool(self.solve(w.pod("probe", "1", nodeSelector={labels.CAPACITY_TYPE: "spot"})).new_nodes)


def state() -> State:
    return State(SETTINGS, build=lambda *_: c.CATALOGUE, interpret=lambda _: None)


def listed(known: State, **objects: tuple[Any, ...]) -> None:
    """Everything has been listed; keywords are kinds."""
    for kind in kinds.WATCHED:
        known.take(Listed(kind, objects.get(kind.name, ()), "1", w.NOW), w.NOW)


def changed(value: Any, **meta: Any) -> Any:
    return msgspec.structs.replace(value, metadata=msgspec.structs.replace(value.metadata, **meta))


def labelled(node: Any, **own: str) -> Any:
    return changed(node, labels={**node.metadata.labels, **own})


def test_212_what_is_not_listed_yet_holds_everything_up_and_a_slow_launch_nothing() -> None:
    """Claims and nodes must have been listed. A claim without an instance counts with what is certain of it."""
    known = state()
    assert not known.synced
    for kind in kinds.WATCHED[:-1]:
        known.take(Listed(kind, (), "1", w.NOW), w.NOW)
    assert not known.synced
    pool = c.pool(c.row(labels.INSTANCE_TYPE, "In", "small", "default", "arm"))
    planned = c.run(pool, w.pod("first"))
    (claim,) = planned.claims()
    listed(known, NodeClaim=(claim,))
    assert known.synced
    done = c.run(pool, claim, w.pod("first"), w.pod("p"), w.pod("big", "10"))
    assert done.placed == {"first": claim.name, "p": claim.name}
    assert done.types() == ["arm"]


def test_213_nodes_of_others_and_later_ones_do_not_matter_to_that() -> None:
    """A node without a provider ID; a node that comes when everything is known."""
    theirs = w.node("theirs")
    theirs = msgspec.structs.replace(theirs, spec=msgspec.structs.replace(theirs.spec, provider_id=""))
    known = state()
    listed(known, Node=(theirs,))
    assert known.synced
    known.take(Changed(kinds.NODE, changed(w.node("late"), resource_version="2")), w.NOW)
    assert known.synced
    assert set(known.snapshot(w.NOW).state_nodes) == {"node/theirs", "node/late"}


def test_214_what_runs_on_a_node_is_what_is_there() -> None:
    """Pods that wait or are over take nothing; one that goes or moves frees its room; daemons are reckoned apart."""
    known = Known(w.node("n", cpu="4"), w.pod("waits", "3"))
    assert known.room("4")
    running = w.pod("p", "3", node="n")
    known.apply(running)
    assert not known.room("2")
    over = msgspec.structs.replace(running, status=msgspec.structs.replace(running.status, phase="Succeeded"))
    known.apply(over)
    assert known.room("4")
    known.apply(running)
    known.apply(w.node("other", cpu="3"), w.pod("p", "3", node="other"))
    assert known.room("4")
    known.remove(running)
    assert known.room("3", nodeSelector={labels.HOSTNAME: "other"})
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "u", "controller": True}
    known.apply(w.daemon_set("agent", "1"), w.pod("agent-n", "1", node="n", owner=owner))
    assert known.room("3")
    assert not known.room("3001m")


def test_215_a_pod_does_not_clash_with_itself() -> None:
    """Told of twice, its host port is taken once, and by nobody else."""
    port: dict[str, Any] = {"ports": [{"containerPort": 80, "hostPort": 8080}]}
    known = Known(w.node("n"))
    pod = w.pod("p", node="n", **port)
    known.apply(pod, changed(pod, resource_version="2"))
    assert known.solve(pod).placed == {"default/p": "node/n"}
    assert not known.room("100m", **port)
    known.remove(pod)
    assert known.room("100m", **port)


def test_216_what_a_pool_has_follows_its_nodes() -> None:
    """Limits see each node once: in the pool it is in now, and not at all while it goes."""
    node = w.node("n", cpu="4", labels={labels.NODEPOOL: "default"})
    pool = w.pool(limits={"cpu": "5"})
    known = Known(pool)
    assert known.can_grow()
    known.apply(node)
    assert not known.can_grow()
    known.apply(labelled(node, **{labels.NODEPOOL: "other"}))
    assert known.can_grow()
    known.apply(node)
    assert not known.can_grow()
    moved = msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, provider_id="aws:///z2/i-moved"))
    known.apply(moved)
    assert not known.can_grow()
    known.apply(changed(moved, deletion_timestamp=w.NOW))
    assert known.can_grow()
    known.remove(moved)
    assert known.can_grow()


def test_217_a_promise_ends_and_so_does_what_was_thought_of_consolidation() -> None:
    """A node is spared until the promise to its pod is over; a proposal is forgotten well within five minutes."""
    known = state()
    until = w.NOW + 20 * SECOND
    known.planned(Plan(nominations=(Nomination("pod", "n", until),), provisioned=True), w.NOW)
    assert "n" in known.snapshot(until - SECOND).nominated_until
    assert "n" not in known.snapshot(until).nominated_until
    known.proposals = (Proposal("id", "Underutilized", "delete", (), (), 1, {}, made_at=w.NOW),)
    assert known.snapshot(w.NOW + PROPOSALS_KEPT).proposals
    assert not known.snapshot(w.NOW + PROPOSALS_KEPT + SECOND).proposals
    assert timedelta(minutes=5) >= PROPOSALS_KEPT


def test_218_the_newest_pod_speaks_for_its_daemon_set() -> None:
    """And nobody when the daemon set is gone."""

    def living(name: str, cpu: str, made: datetime) -> Pod:
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "u", "controller": True}
        return changed(w.pod(name, cpu, node="n", owner=owner), creation_timestamp=made)  # type: ignore[no-any-return]

    known = Known(w.pool(), w.node("n", cpu="6"), w.daemon_set("agent", "100m"))
    known.apply(living("old", "3", w.NOW - 9 * SECOND), living("new", "1500m", w.NOW))
    (node,) = known.solve(w.pod("p", "1800m")).new_nodes
    assert node.requests["cpu"] == 3300
    known.remove(w.daemon_set("agent"))
    (node,) = known.solve(w.pod("p", "1800m")).new_nodes
    assert node.requests["cpu"] == 1800


def test_221_how_many_pods_wait_and_how_many_have_no_place() -> None:
    """Pods that were not even tried are counted apart; those that the next pass may serve nowhere."""
    world = World()
    told = Telemetry.quiet(world.kube, VirtualClock())
    pods = [w.pod("fits"), w.pod("large", "1000"), w.pod("odd", nodeSelector={"karpenter.sh/unknown": "x"})]
    snapshot = w.world(w.pool(), pods, catalogue=c.CATALOGUE)
    plan = c.plan(w.pool(), pods)
    deferred = Refusal("pod/default/deferred", Reason("Deferred", "waits for a capacity reservation"))
    told.planned(replace(plan, refusals=(*plan.refusals, deferred)), snapshot)
    families = text_string_to_metric_families(told.metrics.text().decode())
    found = {sample.name: sample.value for family in families for sample in family.samples}
    assert found["karpenter_scheduler_queue_depth"] == 3
    assert found["karpenter_scheduler_unschedulable_pods_count"] == 1
    assert found["karpenter_scheduler_ignored_pods_count"] == 1
