"""The controller is killed at every mutating call of a scale-out and a scale-in, before and after the call took effect;
and of the replacement of nodes that have drifted, expired or fallen sick.

A new controller on the same world must reach the same end: every pod runs on exactly one instance per claim, then
nothing is left; or every node that had to go has one successor, and nothing remains of the commands. At no point are
two instances made for one claim, budgets overdrawn or PodDisruptionBudgets broken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from kerf.model import kinds
from kerf.model.settings import FeatureGates, Settings
from kerf.runtime.controller import Controller
from kerf.sandbox.api.manifests import timestamp
from kerf.sandbox.faults import Call, Faults
from kerf.sandbox.world import ControllerLike, World
from kerf_api import labels
from tests.simulation.scripts import TYPES
from tests.simulation.stage import ALONE, STILL
from tests.simulation.trouble import READS, Killed
from tests.worlds import deployment, node_class, node_pool

REPLICAS = 5
#: The calls are dealt to so many shares; `make test` plays every fourth one, and with them every fourth call.
SHARES, PLAYED = 8, 4
#: The same of the replacement of nodes; `make test` plays the first.
SHARES_OF_ENDS = 8
#: What is bought is not tested here: few types, and few tries at a cheaper answer, for two hundred lives.
SETTINGS = Settings("sandbox", interruption_queue="sandbox", improve=timedelta(milliseconds=10))
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "topology.kubernetes.io/zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}


class KillAt(Faults):
    """Kills at the k-th mutating call (from 0), before it or after; events do not count. `None` only counts.

    While `idle` nothing counts and nobody dies.
    """

    def __init__(self, at: int | None = None, when: str = "before") -> None:
        self.at, self.when, self.count, self.idle = at, when, 0, False
        self.struck: Call | None = None

    def before(self, call: Call) -> None:
        if self._mutating(call):
            self.count += 1
            if self.when == "before":
                self._strike(call)

    def after(self, call: Call) -> None:
        if self._mutating(call) and self.when == "after":
            self._strike(call)

    def _mutating(self, call: Call) -> bool:
        return not self.idle and call.verb not in READS and call.verb != "emit"

    def _strike(self, call: Call) -> None:
        if self.struck is None and self.at is not None and self.count - 1 == self.at:
            self.struck = call
            raise Killed(call)


def controller(world: World) -> ControllerLike:
    return Controller(world.ports, settings=SETTINGS, inline=True)


class Life:
    """One world and whoever controls it now."""

    def __init__(self, faults: KillAt, successor: Callable[[World], ControllerLike] | None = None) -> None:
        self.world = World(seed=5, types=TYPES, faults=faults)
        self.controller: ControllerLike = controller(self.world)
        self._successor = successor or controller

    def live(self, minutes: float) -> None:
        """Run; a killed controller is replaced at once."""
        end = self.world.clock.now() + timedelta(minutes=minutes)
        while True:
            try:
                return self.world.run(self.controller, end, stop_when=self.look)
            except Killed:
                self.controller = self._successor(self.world)

    def look(self) -> bool:
        """Asked whenever the world has done what it had to do; True would end the life."""
        return False

    def run(self) -> dict[str, Any]:
        """A scale-out and a scale-in; what was there at the height and at the end."""
        self.world.apply(node_class())
        quick = {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}
        self.world.apply(node_pool("general", {"disruption": quick}))
        self.world.apply(deployment("web", {"replicas": REPLICAS, "topologySpreadConstraints": [SPREAD]}))
        self.live(4)
        height = self.picture()
        self.world.scale("default", "web", 0)
        self.live(8)
        return {"height": height, "end": self.picture()}

    def picture(self) -> dict[str, Any]:
        pods = [p for p in self.world.objects("Pod") if p["metadata"]["labels"].get("app") == "web"]
        claims = self.world.objects("NodeClaim")
        alive = {m.provider_id for m in self.world.ec2.instances.values() if m.state in ("pending", "running")}
        return {
            "running": sum(p["status"].get("phase") == "Running" for p in pods),
            "claims without an instance": sorted({c.get("status", {}).get("providerID", "") for c in claims} - alive),
            "instances without a claim": sorted(alive - {c.get("status", {}).get("providerID", "") for c in claims}),
            "claims": len(claims) > 0,
            "nodes": len(self.world.objects("Node")) == len(claims),
            # Whatever became of them: one that was ended before it was given its claim's tag has cost money too.
            "instances ever": len(self.world.ec2.instances),
        }

    def doubled(self) -> list[str]:
        """Claims that ever had two instances."""
        names = [m.tags.get("karpenter.sh/nodeclaim") for m in self.world.ec2.instances.values()]
        return sorted({name for name in names if name and names.count(name) > 1})


@pytest.mark.parametrize(
    "share", [pytest.param(share, marks=pytest.mark.long) if share % PLAYED else share for share in range(SHARES)]
)
def test_the_end_is_the_same_wherever_the_controller_is_killed(share: int) -> None:
    """Every call is in one of the shares, which workers may run side by side."""
    counting = KillAt()
    expected = Life(counting).run()
    assert expected["height"]["running"] == REPLICAS
    assert not expected["end"]["claims"]
    problems = {}
    for at in range(share, counting.count, SHARES):
        for when in ("before", "after"):
            faults = KillAt(at, when)
            life = Life(faults)
            found = life.run()
            assert faults.struck is not None, f"call {at} was never made: the run is not deterministic"
            if found != expected or life.doubled():
                problems[f"{when} call {at}, {faults.struck}"] = (found, life.doubled())
    print(f"\n{counting.count} mutating calls, share {share} of {SHARES}: {len(problems)} ended otherwise")
    assert not problems


def test_the_pictures_tell_a_world_without_a_controller_apart() -> None:
    life = Life(KillAt(20), successor=_Dead)
    assert life.run() != Life(KillAt()).run()


class _Dead:
    """A controller that does nothing any more."""

    next_due = None

    def __init__(self, world: World) -> None:
        self.world = world

    def tick(self) -> None:
        """Nothing."""


# --- nodes that come to their end, each with a successor ----------------------------------------------------------
OPEN = replace(SETTINGS, gates=FeatureGates(node_repair=True))
#: So many nodes, with a pod each; the budget of the pods lets one of them go at a time.
NODES = 2


def _drift(world: World) -> None:
    label = {"spec": {"template": {"metadata": {"labels": {"version": "next"}}}}}
    world.server.patch(kinds.NODE_POOL, "", "general", label)


def _sicken(world: World) -> None:
    """The node monitoring agent has found something half an hour ago, on one of the nodes."""
    record = world.server.select(kinds.NODE, "", "", "")[0]
    since = timestamp(world.clock.now() - timedelta(minutes=30))
    rows = [
        *record.manifest["status"]["conditions"],
        {"type": "KernelReady", "status": "False", "lastTransitionTime": since},
    ]
    world.server.patch(kinds.NODE, "", record.value.name, {"status": {"conditions": rows}}, subresource="status")


@dataclass(frozen=True, slots=True)
class End:
    """Why nodes go: what their pool says of that, how long they are left alone before, and what happens to them then.

    `replaced` nodes go, at most `at_once` of them together. At least so many nodes are `ready` all the while, and as
    many pods run but for one.
    """

    pool: Mapping[str, Any] = field(default_factory=dict)
    alone_minutes: float = 0.0
    begin: Callable[[World], None] = lambda world: None
    replaced: int = NODES
    at_once: int = NODES
    ready: int = NODES


ENDS = {
    "Drifted": End(begin=_drift, at_once=1),
    "Expired": End(pool={"expireAfter": "20m"}, alone_minutes=14),
    "Unhealthy": End(begin=_sicken, replaced=1, at_once=1, ready=NODES - 1),
}


class Succession(Life):
    """Nodes of which some come to an end; nobody dies before that begins."""

    def __init__(self, faults: KillAt, end: End) -> None:
        super().__init__(faults, _open)
        self.controller = _open(self.world)
        self._faults, self._end = faults, end
        self.fewest_ready, self.fewest_running, self.most_going = NODES, NODES, 0

    def look(self) -> bool:
        if not self._faults.idle:
            claims, pods = (self._values(kind) for kind in (kinds.NODE_CLAIM, kinds.POD))
            ready = sum(claim.is_true("Initialized") and not claim.metadata.deleting for claim in claims)
            running = sum(pod.status.phase == "Running" and not pod.metadata.deleting for pod in pods)
            self.fewest_ready = min(self.fewest_ready, ready)
            self.fewest_running = min(self.fewest_running, running)
            self.most_going = max(self.most_going, sum(map(_going, claims)))
        return False

    def run(self) -> dict[str, Any]:
        """What was there when all was over."""
        self._faults.idle = True
        self.world.apply(node_class())
        disruption = {**STILL, "budgets": [{"nodes": "1"}]}
        self.world.apply(node_pool("general", {"disruption": disruption, **self._end.pool}))
        self.world.apply(deployment("web", {"replicas": NODES, **ALONE}))
        self.world.apply(_PDB)
        self.live(4 + self._end.alone_minutes)
        old = {claim.name for claim in self._values(kinds.NODE_CLAIM)}
        assert len(old) == NODES
        self._end.begin(self.world)
        self._faults.idle = False
        self.live(8)
        return {**self.picture(), "old": len(old & {claim.name for claim in self._values(kinds.NODE_CLAIM)})}

    def problems(self) -> list[str]:
        """What must not have been at any time, and marks that a command has left behind."""
        told = [f"claim {name} had two instances" for name in self.doubled()]
        if self.fewest_ready < self._end.ready:
            told.append(f"only {self.fewest_ready} nodes were ready")
        if self.fewest_running < NODES - 1:
            told.append(f"only {self.fewest_running} pods ran")
        if self.most_going > self._end.at_once:
            told.append(f"{self.most_going} nodes went at once")
        told += [f"{claim.name} bears a command" for claim in self._values(kinds.NODE_CLAIM) if _going(claim)]
        return told + [f"{node.name} is tainted" for node in self._values(kinds.NODE) if node.spec.taints]

    def _values(self, kind: kinds.Kind) -> list[Any]:
        return [record.value for record in self.world.server.select(kind, "", "", "")]


def _open(world: World) -> ControllerLike:
    return Controller(world.ports, settings=OPEN, inline=True)


def _going(claim: Any) -> bool:
    """As budgets count."""
    if claim.is_true("InstanceTerminating"):
        return False
    return claim.metadata.deleting or labels.COMMAND in claim.metadata.annotations or claim.is_true("DisruptionReason")


_PDB = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1},
}


@pytest.mark.parametrize(
    "share", [pytest.param(share, marks=pytest.mark.long) if share else share for share in range(SHARES_OF_ENDS)]
)
@pytest.mark.parametrize("why", ENDS)
def test_nodes_that_go_have_a_successor_each_wherever_the_controller_is_killed(why: str, share: int) -> None:
    """A call that was refused has no effect after which to die."""
    end, counting = ENDS[why], KillAt()
    undisturbed = Succession(counting, end)
    expected = undisturbed.run()
    assert (expected["running"], expected["old"]) == (NODES, NODES - end.replaced)
    assert expected["instances ever"] == NODES + end.replaced
    assert not undisturbed.problems()
    found = {}
    for at in range(share, counting.count, SHARES_OF_ENDS):
        for when in ("before", "after"):
            faults = KillAt(at, when)
            life = Succession(faults, end)
            picture = life.run()
            assert faults.struck or faults.count > at, f"call {at} was never made: the run is not deterministic"
            if picture != expected or life.problems():
                found[f"{when} call {at}, {faults.struck}"] = (picture, life.problems())
    print(f"\n{why}: {counting.count} mutating calls, share {share} of {SHARES_OF_ENDS}: {len(found)} ended otherwise")
    assert not found
