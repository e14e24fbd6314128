"""Writes take effect and their answers are lost, as when the API server dies: what they wrote shows late, one by one.

Three equal claims come one after the other, each while the launch group of those before it is still unseen. A claim's
group then names the claims before it too, and shows when they have their instances already.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from kerf.ports import Unavailable
from kerf.runtime.controller import Controller
from kerf.sandbox.faults import Call, Faults
from kerf.sandbox.world import World
from tests.simulation.stage import SETTINGS
from tests.worlds import deployment, node_class, node_pool

CLAIMS, APART = 3, timedelta(seconds=12)
ALONE = {
    "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
    "topologyKey": "kubernetes.io/hostname",
}
AFFINITY = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [ALONE]}}


class LateWrites(Faults):
    """The first write to each claim loses its answer; no other is let through until the claim's turn has come, and no
    watch tells of claims until the last one's has."""

    def __init__(self) -> None:
        self.world: World | None = None
        self.written: list[str] = []
        self.begin = datetime.max

    def before(self, call: Call) -> None:
        if self._writes(call) and call.subject in self.written and not self._turn(self.written.index(call.subject)):
            raise Unavailable("refused")

    def after(self, call: Call) -> None:
        if self._writes(call) and call.subject not in self.written:
            self.written.append(call.subject)
            raise Unavailable("the answer is lost")

    def silent(self, call: Call) -> bool:
        return call.subject == "nodeclaims" and bool(self.written) and not self._turn(CLAIMS)

    def _writes(self, call: Call) -> bool:
        return call.verb == "patch" and call.subject.startswith("nodeclaim/")

    def _turn(self, number: int) -> bool:
        assert self.world is not None
        return self.world.clock.now() >= self.begin + (number + 1) * APART


def test_groups_that_show_late_launch_nothing_twice() -> None:
    faults = LateWrites()
    world = faults.world = World(seed=5, faults=faults)
    controller = Controller(world.ports, settings=SETTINGS, inline=True)
    world.apply(node_class())
    world.apply(node_pool("general", {}))
    world.run(controller, world.clock.now() + timedelta(seconds=20))
    faults.begin = world.clock.now()
    for number in range(CLAIMS):
        world.apply(deployment(f"web-{number}", {"affinity": AFFINITY}))
        world.run(controller, world.clock.now() + timedelta(seconds=3))
    assert len(faults.written) == CLAIMS
    assert not world.ec2.instances
    world.run(controller, world.clock.now() + timedelta(minutes=3))
    assert all(pod["status"].get("phase") == "Running" for pod in world.objects("Pod"))
    claims = {claim["status"]["providerID"] for claim in world.objects("NodeClaim")}
    assert len(claims) == CLAIMS
    assert sorted(claims) == sorted(machine.provider_id for machine in world.ec2.instances.values())
