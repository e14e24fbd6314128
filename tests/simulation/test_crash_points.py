"""The controller is killed at every mutating call of a scale-out and a scale-in, before and after the call took effect.

A new controller on the same world must reach the same end: every pod runs on exactly one instance per claim, then
nothing is left. At no point are two instances made for one claim.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from reconciler.model.settings import Settings
from reconciler.runtime.controller import Controller
from reconciler.sandbox.faults import Call, Faults
from reconciler.sandbox.world import ControllerLike, World
from tests.simulation.scripts import TYPES
from tests.simulation.trouble import READS, Killed
from tests.worlds import deployment, node_class, node_pool

REPLICAS = 5
#: The calls are dealt to so many shares; `make test` plays every second one, and with them every second call.
SHARES = 8
#: What is bought is not tested here: few types, and few tries at a cheaper answer, for two hundred lives.
SETTINGS = Settings("sandbox", interruption_queue="sandbox", improve=timedelta(milliseconds=10))
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "topology.kubernetes.io/zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}


class KillAt(Faults):
    """Kills at the k-th mutating call (from 0), before it or after; events do not count. `None` only counts."""

    def __init__(self, at: int | None = None, when: str = "before") -> None:
        self.at, self.when, self.count = at, when, 0
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
        return call.verb not in READS and call.verb != "emit"

    def _strike(self, call: Call) -> None:
        if self.struck is None and self.at is not None and self.count - 1 == self.at:
            self.struck = call
            raise Killed(call)


def controller(world: World) -> ControllerLike:
    return Controller(kube=world.kube, cloud=world.cloud, clock=world.clock, settings=SETTINGS, inline=True)


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
                return self.world.run(self.controller, end)
            except Killed:
                self.controller = self._successor(self.world)

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
    "share", [pytest.param(share, marks=pytest.mark.long) if share % 2 else share for share in range(SHARES)]
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
