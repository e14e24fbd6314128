"""A controller's loop in the sandbox, inline, and a `decide` that does what a test has put in."""

from __future__ import annotations

from typing import Any

from kerf.model import kinds
from kerf.model.memory import Memory
from kerf.model.plan import Plan, Reason
from kerf.model.settings import Settings
from kerf.model.snapshot import Snapshot
from kerf.runtime.controller import Controller
from kerf.runtime.parts import Parts
from kerf.sandbox.world import World

WHY = Reason("Test")


class Decider:
    """Decides what a test put in, and keeps what it saw."""

    def __init__(self, *plans: Plan) -> None:
        self.plans, self.seen = list(plans), list[Snapshot]()

    def __call__(self, snapshot: Snapshot, memory: Memory) -> Plan:
        self.seen.append(snapshot)
        return self.plans.pop(0) if self.plans else Plan()


def controller(world: World, decide: Any, **options: Any) -> Controller:
    settings = Settings(cluster_name="sandbox")
    parts = {name: options.pop(name) for name in Parts.__dataclass_fields__ if name in options}
    return Controller(world.ports, Parts(decide=decide, **parts), settings=settings, inline=True, **options)


def node(world: World, name: str) -> None:
    world.kube.create(kinds.NODE, {"metadata": {"name": name}, "spec": {}})


def errors(loop: Controller, where: str) -> float | None:
    return loop.telemetry.metrics.registry.get_sample_value("kerf_errors_total", {"where": where})
