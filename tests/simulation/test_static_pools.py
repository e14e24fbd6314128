"""Static NodePools, from end to end: as many nodes as `replicas` says, whatever becomes of them and the controller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kerf.model import kinds
from kerf.model.settings import FeatureGates
from kerf.ports import Invalid, Unavailable
from kerf.sandbox.weather import Weather
from kerf.sandbox.world import World
from kerf_api import labels
from tests.simulation.scripts import TYPES
from tests.simulation.stage import ALONE, EAGER, SETTINGS, Play, Stage, of
from tests.simulation.test_crash_points import KillAt
from tests.simulation.trouble import Killed, lives
from tests.worlds import deployment, node_class, node_pool

OPEN = replace(SETTINGS, gates=FeatureGates(static_capacity=True))
#: The calls are dealt to so many shares; `make test` plays the first.
SHARES = 4


class Herd(Stage):
    """A world with a static NodePool named `herd` beside the stage's own, which has no pods to serve."""

    twice = True

    def __init__(self, replicas: int, *, weather: Weather | None = None, **pool: Any) -> None:
        super().__init__(replicas=0, weather=weather, settings=OPEN)
        self.world.apply(node_pool("herd", {"replicas": replicas, "disruption": EAGER, **pool}))

    @property
    def members(self) -> list[Any]:
        return [claim for claim in self.claims if not claim.metadata.deleting]

    def is_whole(self, number: int) -> Callable[[], bool]:
        """Whether there are so many nodes, claims and instances, and nothing else."""

        def whole() -> bool:
            done = [claim for claim in self.members if claim.is_true("Initialized")]
            return len(done) == len(self.claims) == len(self.nodes) == len(self.machines) == number

        return whole

    def resize(self, replicas: int) -> None:
        self.world.server.patch(kinds.NODE_POOL, "", "herd", {"spec": {"replicas": replicas}})

    def made(self) -> int:
        """How many instances there have ever been."""
        return len(self.world.ec2.instances)


def test_a_static_pool_has_so_many_nodes_and_they_stay_though_nobody_uses_them() -> None:
    herd = Herd(3)
    herd.run(200, until=herd.is_whole(3))
    herd.run(60)
    herd.seam.calls.clear()
    herd.run(900)
    assert herd.is_whole(3)()
    assert herd.made() == 3
    assert not herd.seam.writes()
    assert not any(claim.condition("Consolidatable") for claim in herd.claims)


def test_who_goes_when_a_static_pool_shrinks() -> None:
    """Of three the empty one first; then the one whose pod nobody protects; a drained pod finds a new place."""
    herd = Herd(3)
    herd.run(200, until=herd.is_whole(3))
    herd.world.apply(deployment("web", {"replicas": 2, **ALONE}))
    herd.run(60, until=herd.all_run)
    (empty,) = [node.name for node in herd.nodes if not herd.pods_on(node.name)]
    used = [node.name for node in herd.nodes if herd.pods_on(node.name)]
    (kept,) = herd.pods_on(used[0])
    herd.world.server.patch(
        kinds.POD, "default", kept.metadata.name, {"metadata": {"annotations": {labels.DO_NOT_DISRUPT: "true"}}}
    )
    herd.resize(2)
    herd.run(200, until=herd.is_whole(2))
    assert empty not in [node.name for node in herd.nodes]
    assert all(pod.metadata.deletion_timestamp is None for name in used for pod in herd.pods_on(name))
    herd.resize(1)
    herd.run(400, until=lambda: used[1] not in [node.name for node in herd.nodes] and herd.all_run())
    assert used[0] in [claim.status.node_name for claim in herd.members]
    assert sorted(claim.pool_name for claim in herd.members) == ["general", "herd"]


def test_a_member_that_is_lost_is_replaced() -> None:
    herd = Herd(3)
    herd.run(200, until=herd.is_whole(3))
    lost = herd.machines[0]
    herd.world.ec2.terminate(lost.id)
    herd.run(900, until=lambda: not lives(lost) and herd.is_whole(3)())
    assert herd.made() == 4
    herd.delete_claim(herd.claims[0].name)
    herd.run(5, until=lambda: len(herd.members) == 3)
    herd.run(400, until=herd.is_whole(3))
    assert herd.made() == 5


def test_the_limit_of_nodes_holds_while_members_are_replaced() -> None:
    """With as many nodes as the limit allows the successor has to wait until the other is gone."""
    herd = Herd(3, limits={"nodes": "2"})
    herd.run(200, until=herd.is_whole(2))
    herd.delete_claim(herd.claims[0].name)
    herd.run(400, until=lambda: herd.made() == 3 and herd.is_whole(2)())
    ended = max(m.ended for m in herd.world.ec2.instances.values() if m.ended is not None)
    assert max(m.launched for m in herd.world.ec2.instances.values()) >= ended


def test_members_are_renewed_when_the_template_changes() -> None:
    """One after the other where the limit leaves room for one more, and never fewer than are wanted."""
    herd = Herd(3, limits={"nodes": "4"})
    herd.run(200, until=herd.is_whole(3))
    old = {claim.name for claim in herd.claims}
    most, least = [0], [3]

    def renewed() -> bool:
        up = sum(node.initialized and node.ready and not node.metadata.deleting for node in herd.nodes)
        most[0], least[0] = max(most[0], len(herd.claims)), min(least[0], up)
        return herd.is_whole(3)() and not old & {claim.name for claim in herd.claims}

    template = {"metadata": {"labels": {"team": "new"}}}
    herd.world.server.patch(kinds.NODE_POOL, "", "herd", {"spec": {"template": template}})
    herd.run(1800, until=renewed)
    assert (most, least) == ([4], [3])
    assert all(node.metadata.labels["team"] == "new" for node in herd.nodes)


def test_without_the_gate_a_static_pool_is_left_alone() -> None:
    stage = Stage(replicas=0)
    stage.world.apply(node_pool("herd", {"replicas": 2}))
    stage.run(120)
    assert not stage.claims


def test_a_pool_whose_claims_are_refused_waits_and_is_filled_when_they_are_taken() -> None:
    herd = Herd(1)
    herd.seam.fails["kube", "create"] = of("nodeclaims", Invalid("no"))
    herd.run(120)
    tries = len(herd.seam.writes("create"))
    assert 1 <= tries <= 5
    herd.seam.fails.clear()
    herd.run(200, until=herd.is_whole(1))


def test_a_creation_whose_answer_was_lost_makes_no_second_member() -> None:
    herd = Herd(2)
    herd.seam.silent_kinds.add("nodeclaims")
    herd.seam.loses["kube", "create"] = Unavailable("cut off")
    herd.run(8, until=lambda: len(herd.claims) == 2)
    herd.seam.loses.clear()
    herd.run(20)
    herd.seam.silent_kinds.clear()
    herd.run(200, until=herd.is_whole(2))
    assert herd.made() == 2


@pytest.mark.parametrize(
    "share", [pytest.param(share, marks=pytest.mark.long) if share else share for share in range(SHARES)]
)
def test_a_static_pool_has_its_number_wherever_the_controller_is_killed(share: int) -> None:
    """Killed at every call of a scale-out from nothing to three and a scale-in to one, before and after it."""
    counting = KillAt()
    assert _life(counting) == (3, 3, 1, 3)
    for at in range(share, counting.count, SHARES):
        for when in ("before", "after"):
            faults = KillAt(at, when)
            assert _life(faults) == (3, 3, 1, 3), f"{when} call {at}, {faults.struck}"
            assert faults.struck is not None


def _life(faults: KillAt) -> tuple[int, int, int, int]:
    """Nodes and instances so far, at the height and at the end."""
    world = World(seed=7, types=TYPES, faults=faults)
    world.apply(node_class())
    world.apply(node_pool("herd", {"replicas": 3}))
    play = Play(world, settings=OPEN)
    found: list[int] = []
    for replicas in (3, 1):
        world.server.patch(kinds.NODE_POOL, "", "herd", {"spec": {"replicas": replicas}})
        end = world.clock.now() + timedelta(minutes=4)
        while world.clock.now() < end:
            try:
                world.run(play.controller, end)
            except Killed:
                play.restart()
        assert (
            len(world.objects("NodeClaim"))
            == len(world.objects("Node"))
            == sum(lives(machine) for machine in world.ec2.instances.values())
        )
        found += [len(world.objects("Node")), len(world.ec2.instances)]
    return found[0], found[1], found[2], found[3]
