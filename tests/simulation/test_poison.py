"""A poisoned object of every kind: the others' nodes come, drain and go as if it were not there, and it is told of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from kerf.model import kinds
from kerf.model.kinds import Kind
from kerf.model.kubernetes.objects import TopologySpreadConstraint
from kerf.model.plan import Plan
from kerf.model.settings import FeatureGates, Settings
from kerf.ports import Ports
from kerf.runtime.controller import Controller
from kerf.sandbox.world import World
from kerf_api import labels
from tests.simulation.chaos import bugs
from tests.simulation.poison import POISON, PoisonedKube
from tests.worlds import deployment, node_class, node_pool

PROMPT = timedelta(minutes=3)
ALONE = {"cpu": "3", "memory": "4Gi"}
#: Of these kinds nothing need be said about an object that could be read, however strange: nobody asks for it.
QUIET = {
    kinds.NAMESPACE,
    kinds.STORAGE_CLASS,
    kinds.PV,
    kinds.PVC,
    kinds.VOLUME_ATTACHMENT,
    kinds.CSI_NODE,
    kinds.PDB,
    kinds.NODE,
    kinds.POD_TEMPLATE,
    *kinds.WORKLOADS,
    kinds.DEPLOYMENT,
    *kinds.DEVICES,
}
#: Whatever has to be asked for is asked for, so that all kinds are watched.
GATES = FeatureGates(node_overlay=True, static_capacity=True, capacity_buffer=True)
SPREAD = TopologySpreadConstraint(topology_key=labels.ZONE, max_skew=9, when_unsatisfiable="ScheduleAnyway")
SETTINGS = Settings(
    cluster_name="sandbox",
    interruption_queue="sandbox",
    gates=GATES,
    default_constraints=(SPREAD,),
    ignore_dra_requests=False,
)


class Story:
    """A world with two NodePools and a Deployment, and a controller that sees poison beside them."""

    def __init__(self, poison: Mapping[Kind, Sequence[Mapping[str, Any]]]) -> None:
        self.world = World(seed=5, types=("c5.xlarge", "m5.xlarge", "m5.2xlarge", "r5.xlarge"))
        self.kube = PoisonedKube(self.world.kube, poison)
        self.controller = Controller(
            Ports(kube=self.kube, cloud=self.world.cloud, clock=self.world.clock), settings=SETTINGS, inline=True
        )
        self.refused: set[str] = set()
        self.world.apply(node_class())
        eager = {"consolidateAfter": "30s", "budgets": [{"nodes": "100%"}]}
        self.world.apply(node_pool("general", {"disruption": eager}))

    # --- the controller, with an ear on its refusals
    @property
    def next_due(self) -> Any:
        return self.controller.next_due

    def tick(self) -> Plan:
        plan = self.controller.tick()
        self.refused |= {refusal.subject for refusal in plan.refusals}
        return plan

    def until(self, limit: timedelta, done: Any) -> bool:
        self.world.run(self, limit, stop_when=done)
        return bool(done())

    def running(self) -> int:
        pods = [p for p in self.world.objects("Pod") if not p["metadata"].get("deletionTimestamp")]
        return sum(p["status"].get("phase") == "Running" for p in pods)

    def told_of(self) -> set[str]:
        events = {(e["involvedObject"]["kind"], e["involvedObject"]["name"]) for e in self.world.objects("Event")}
        return self.refused | {f"{kind.lower()}/{name}" for kind, name in events}

    def lives(self) -> None:
        """Nodes come for pods, one drains because a person says so, and all go when the pods have gone."""
        self.world.apply(deployment("web", {"replicas": 3, **ALONE}))
        assert self.until(PROMPT, lambda: self.running() == 3), "pods are not served"
        first = self.world.objects("NodeClaim")[0]["metadata"]["name"]
        self.world.delete("NodeClaim", first)
        assert self.until(PROMPT, lambda: first not in self.claims()), "a claim is not drained"
        assert self.until(PROMPT, lambda: self.running() == 3), "its pods have found no other place"
        self.world.scale("default", "web", 0)
        assert self.until(2 * PROMPT, lambda: not self.claims()), "empty nodes stay"

    def claims(self) -> list[str]:
        return [claim["metadata"]["name"] for claim in self.world.objects("NodeClaim")]


def test_every_watched_kind_is_poisoned() -> None:
    assert set(POISON) == set(kinds.KNOWN) == set(kinds.watched(SETTINGS))


@pytest.mark.parametrize("kind", kinds.KNOWN, ids=lambda kind: kind.name)
def test_poison_stops_nothing_else_and_is_told_of(kind: Kind) -> None:
    story = Story({kind: POISON[kind]})
    story.lives()
    assert bugs(story.controller) == []
    names = {f"poison-{number}" for number in range(len(POISON[kind]))}
    unreadable = {problem for problem in story.kube.problems if problem.startswith(f"{kind.name}:")}
    assert unreadable or kind is kinds.POD
    if kind not in QUIET:
        told = {
            subject.rpartition("/")[2] for subject in story.told_of() if subject.startswith(f"{kind.name.lower()}/")
        }
        assert names - told == HARMLESS.get(kind, set())


#: Strange, but with nothing wrong that would have to be said.
HARMLESS: dict[Kind, set[str]] = {
    kinds.NODE_CLAIM: {"poison-6", "poison-7", "poison-11"},
    kinds.DAEMON_SET: {"poison-4"},
    kinds.NODE_OVERLAY: {"poison-14"},
}


def test_instances_and_messages_that_make_no_sense_stop_nothing_else() -> None:
    story = Story({})
    ec2 = story.world.ec2
    story.world.apply(deployment("odd", {"replicas": 3, **ALONE}))
    assert story.until(PROMPT, lambda: story.running() == 3)
    machines = sorted(ec2.instances.values(), key=lambda machine: machine.number)
    machines[0].instance_type, machines[1].zone, machines[2].tags = "x99.colossal", "nowhere", {"": ""}
    warning = "EC2 Spot Instance Interruption Warning"
    for detail in ({}, {"instance-id": 7}, {"instance-id": ""}, {"instance-id": "i-unheard-of"}):
        ec2.send("aws.ec2", warning, detail)
    ec2.send("aws.health", "AWS Health Event", {"affectedEntities": "all", "service": "EC2"})
    ec2.send("", "", {})
    story.world.run(story, PROMPT)
    story.world.scale("default", "odd", 0)
    assert story.until(2 * PROMPT, lambda: not story.claims()), "empty nodes stay"
    story.lives()
    assert bugs(story.controller) == []
