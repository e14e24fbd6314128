"""Every invariant can fail: in a small world at rest something forbidden is done in the controller's name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from api import labels
from reconciler.model import kinds
from reconciler.runtime.controller import Controller
from reconciler.sandbox.faults import Call
from reconciler.sandbox.world import World
from tests.simulation.chaos import SETTINGS
from tests.simulation.invariants import PATIENCE, STALE, Invariants, Violation
from tests.simulation.memory import grown
from tests.simulation.rest import unrest
from tests.simulation.scripts import TYPES
from tests.simulation.trouble import Trouble
from tests.worlds import deployment, node_class, node_pool

POOL = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never", "budgets": [{"nodes": "0"}]}


class Scene:
    """One node with one pod, and a controller that has gone home: whatever happens now is said to be its doing."""

    def __init__(self) -> None:
        self.trouble = Trouble(())
        self.world = world = World(seed=1, types=TYPES, faults=self.trouble)
        self.trouble.begin(world.clock.now)
        self.invariants = Invariants(world, self.trouble, SETTINGS)
        world.apply(node_class())
        world.apply(node_pool("general", {"disruption": POOL, "limits": {"cpu": "2"}}))
        world.apply(deployment("web", {"replicas": 1}))
        self.controller = Controller(
            kube=world.kube, cloud=world.cloud, clock=world.clock, settings=SETTINGS, inline=True
        )
        world.run(self.controller, timedelta(minutes=3))
        world.run(None, STALE)
        assert unrest(world) == []
        self.invariants.check()
        self.invariants.acting = 1

    @property
    def claim(self) -> Any:
        return self._only(kinds.NODE_CLAIM)

    @property
    def node(self) -> Any:
        return self._only(kinds.NODE)

    @property
    def pod(self) -> Any:
        return self._only(kinds.POD)

    def _only(self, kind: kinds.Kind) -> Any:
        (record,) = self.world.server.records(kind)
        return record.value

    def patch(self, value: Any, kind: kinds.Kind, **metadata: Any) -> None:
        meta = value.metadata
        self.world.server.patch(kind, meta.namespace, meta.name, {"metadata": metadata})

    def command(self, reason: str) -> None:
        command = msgspec.json.encode({"reason": reason}).decode()
        self.patch(self.claim, kinds.NODE_CLAIM, annotations={labels.COMMAND: command})

    def call(self, verb: str, subject: str, port: str = "kube") -> None:
        self.trouble.before(Call(port, verb, subject))

    def vanish(self, value: Any, kind: kinds.Kind) -> None:
        self.patch(value, kind, finalizers=[])
        self.world.server.delete(kind, value.metadata.namespace, value.metadata.name)


def _limits(scene: Scene) -> None:
    manifest = {"metadata": {"name": "more", "labels": {labels.NODEPOOL: "general"}}, "spec": _spec(scene)}
    scene.world.server.create(kinds.NODE_CLAIM, manifest)


def _spec(scene: Scene) -> dict[str, Any]:
    (record,) = scene.world.server.records(kinds.NODE_CLAIM)
    return dict(record.manifest["spec"])


def _emptiness(scene: Scene) -> None:
    scene.world.apply(node_pool("general", {"disruption": {**POOL, "budgets": [{"nodes": "100%"}]}}))
    scene.command("Empty")
    scene.world.server.delete(kinds.NODE_CLAIM, "", scene.claim.name)


def _pinned(scene: Scene) -> None:
    scene.world.apply(node_pool("general", {"disruption": {**POOL, "budgets": [{"nodes": "100%"}]}}))
    scene.patch(scene.pod, kinds.POD, annotations={labels.DO_NOT_DISRUPT: "true"})
    scene.command("Underutilized")


def _orphan(scene: Scene) -> None:
    scene.invariants.acting = 0
    scene.vanish(scene.claim, kinds.NODE_CLAIM)
    scene.invariants.check()
    scene.world.run(None, SETTINGS.adoption_time + PATIENCE + timedelta(seconds=1))


def _twins(scene: Scene) -> None:
    (machine,) = scene.world.ec2.instances.values()
    scene.world.ec2.instances["i-twin"] = replace(machine, id="i-twin", tags=dict(machine.tags))
    scene.world.ec2.tag("i-twin", {})


def _fight(scene: Scene) -> None:
    for turn in range(50):
        scene.patch(scene.claim, kinds.NODE_CLAIM, annotations={"turn": str(turn % 2)})


def _lease(scene: Scene) -> None:
    scene.invariants.leads = lambda: False
    scene.call("patch", f"nodeclaim/{scene.claim.name}")


PLANTED: dict[str, Callable[[Scene], None]] = {
    "limits": _limits,
    "budget": lambda scene: scene.command("Drifted"),
    "emptiness": _emptiness,
    "pinned": _pinned,
    "released": lambda scene: scene.vanish(scene.claim, kinds.NODE_CLAIM),
    "released: node": lambda scene: scene.vanish(scene.node, kinds.NODE),
    "orphan": _orphan,
    "twins": _twins,
    "fight": _fight,
    "lease": _lease,
    "force": lambda scene: scene.call("delete", f"pod/{scene.pod.key}"),
    "taint": lambda scene: scene.call("evict", f"pod/{scene.pod.key}"),
    "drain": lambda scene: scene.call("terminate", scene.claim.instance_id, "cloud"),
    "owned": lambda scene: scene.call("terminate", scene.claim.instance_id, "cloud"),
    "launch": lambda scene: scene.call("create_fleet", "unheard-of", "cloud"),
    "bug": lambda scene: scene.invariants.broken(["bug: planted"]),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_violation_is_found(name: str) -> None:
    scene = Scene()
    PLANTED[name](scene)
    with pytest.raises(Violation, match=name):
        scene.invariants.check()


def test_unrest_is_found() -> None:
    scene = Scene()
    scene.world.scale("default", "web", 2)
    scene.patch(scene.node, kinds.NODE, labels={labels.EXCLUDE_BALANCERS: "karpenter"})
    scene.command("Drifted")
    (machine,) = scene.world.ec2.instances.values()
    scene.world.ec2.instances["i-left"] = replace(machine, id="i-left")
    words = "; ".join(unrest(scene.world))
    for part in ("carries", "are not the same", "out of load balancers", "has 1 of 2 pods"):
        assert part in words


def test_a_table_that_only_grows_is_found() -> None:
    scene = Scene()
    assert grown(scene.controller, scene.controller) == []
    other = Scene().controller
    assert grown(scene.controller, other) == []
    for number in range(40):
        scene.controller.state.actions.failed(f"gone-{number}", scene.world.clock.now())
    found = grown(scene.controller, other)
    assert [text.split()[1] for text in found] == [".state.actions._failures", ".state.actions._until"]
