"""Some kinds are watched only while a setting asks for them; what is known of them then reaches every decision."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from kerf.model import kinds
from kerf.model.kubernetes.objects import LabelSelector, TopologySpreadConstraint
from kerf.model.kubernetes.workloads import ReplicaSet, WorkloadSpec
from kerf.model.memory import Memory
from kerf.model.settings import Settings
from kerf.model.snapshot import Findings, Proposal, Snapshot
from kerf.ports import Forbidden, Ports
from kerf.runtime.controller import Controller
from kerf.runtime.inbox import Changed, Inbox, Proposed
from kerf.runtime.proposer import ProcessProposer
from kerf.runtime.state.state import State
from kerf.sandbox.clock import START
from kerf.sandbox.faults import Call
from kerf.sandbox.world import World
from kerf_api import labels
from kerf_api.v1.meta import ObjectMeta
from tests.simulation.stage import Seam, of
from tests.worlds import deployment, node_class, node_pool

PLAIN = Settings(cluster_name="sandbox")
HOSTS = TopologySpreadConstraint(topology_key=labels.HOSTNAME)
SPREAD = replace(PLAIN, default_constraints=(HOSTS,))


class Scene:
    """Three pods of a Deployment that would share a node, and a controller with these settings."""

    def __init__(self, settings: Settings) -> None:
        self.seam = Seam()
        self.world = World(seed=3, faults=self.seam)
        for manifest in (node_class(), node_pool("general", {}), deployment("web", {"replicas": 3, "cpu": "10m"})):
            self.world.apply(manifest)
        kube, cloud, clock = self.world.kube, self.world.cloud, self.world.clock
        self.controller = Controller(Ports(kube=kube, cloud=cloud, clock=clock), settings=settings, inline=True)

    def claims(self, seconds: int = 60) -> int:
        """How many there are after a while."""
        self.world.run(self.controller, timedelta(seconds=seconds))
        return len(self.world.objects("NodeClaim"))

    def listed(self) -> set[str]:
        return {call.subject for call in self.seam.calls if call.verb == "list"}


@pytest.mark.parametrize(("settings", "count"), [(PLAIN, 1), (SPREAD, 3)])
def test_pods_of_a_deployment_have_a_node_each_when_the_setting_says_so(settings: Settings, count: int) -> None:
    scene = Scene(settings)
    assert scene.claims() == count
    workloads = {kind.plural for kind in kinds.WORKLOADS}
    assert scene.listed() & workloads == (workloads if count > 1 else set())


@pytest.mark.parametrize("kind", kinds.WORKLOADS, ids=lambda kind: kind.plural)
def test_a_list_of_workloads_that_is_forbidden_is_not_an_empty_one(kind: kinds.Kind) -> None:
    """Nothing is decided meanwhile, and the kind is named."""
    scene = Scene(SPREAD)
    scene.seam.fails["kube", "list"] = of(kind.plural, Forbidden("not yours"))
    assert scene.claims() == 0
    assert scene.controller.missing() == [kind.name]
    scene.seam.fails.clear()
    assert scene.claims(120) == 3


def test_without_the_setting_nobody_asks_for_leave_to_read_them() -> None:
    scene = Scene(PLAIN)
    asked: set[str] = {kind.plural for kind in kinds.WORKLOADS}

    def refuse(call: Call) -> None:
        if call.subject in asked:
            raise Forbidden("not yours")

    scene.seam.fails["kube", "list"] = refuse
    assert scene.claims() == 1
    assert scene.controller.missing() == []


def tell(snapshot: Snapshot, memory: Memory) -> Findings:
    """A proposal that says which ReplicaSets the worker knows."""
    known = {key: value.spec.selector for key, value in snapshot.replica_sets.items()}
    found = {key: selector.match_labels["app"] for key, selector in known.items() if selector is not None}
    return Findings((Proposal("id", "Test", "delete", (), (), len(snapshot.settings.default_constraints), found),))


def test_the_worker_knows_them_too() -> None:
    inbox, state = Inbox(), State(SPREAD, build=lambda *_: (), interpret=lambda m: None)
    meta = ObjectMeta(name="rs", namespace="d", uid="u", resource_version="1")
    selector = LabelSelector(match_labels={"app": "web"})
    value = ReplicaSet(metadata=meta, spec=WorkloadSpec(selector=selector))
    state.take(Changed(kinds.REPLICA_SET, value), START)
    proposer = ProcessProposer(inbox, think=tell)
    try:
        assert proposer.start(state.snapshot(START), state.changes)
        inbox.wait(30)
        (answer,) = (item for item in inbox.drain() if isinstance(item, Proposed))
    finally:
        proposer.close()
    (proposal,) = answer.proposals
    assert (proposal.versions, proposal.saving) == ({"d/rs": "web"}, 1)
