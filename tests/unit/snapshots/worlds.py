"""A cluster at work, as a controller sees it."""

from __future__ import annotations

from datetime import timedelta
from functools import cache

from kerf.cli.demonstration.demo import manifests
from kerf.decide import decide
from kerf.model.memory import Memory
from kerf.model.plan import Plan
from kerf.model.settings import Settings
from kerf.model.snapshot import Snapshot
from kerf.runtime.controller import Controller
from kerf.runtime.observe.looking import captured
from kerf.runtime.parts import Parts
from kerf.sandbox.api.admission import Refused
from kerf.sandbox.world import World
from kerf.snapshots.captured import Captured

SETTINGS = Settings(cluster_name="sandbox", interruption_queue="sandbox", batch_max=timedelta(seconds=7))


@cache
def busy() -> Captured:
    """Nodes of three NodePools at work, pods that wait for one, and a spot instance about to be reclaimed."""
    world, seen = World(seed=3), list[Captured]()

    def deciding(snapshot: Snapshot, memory: Memory) -> Plan:
        """Keep the first moment at which an interruption is known and pods wait."""
        plan = decide(snapshot, memory)
        if not seen and plan.actions and snapshot.interruptions and snapshot.pods.pending:
            seen.append(captured(loop.state, snapshot.now))
        return plan

    loop = Controller(world.ports, Parts(decide=deciding), settings=SETTINGS, inline=True)
    for manifest in manifests("EC2NodeClass", "NodePool", "Deployment", "PodDisruptionBudget", "DaemonSet"):
        try:
            world.apply(manifest)
        except Refused:  # one of them is refused, which the demonstration shows
            continue
    world.run(loop, timedelta(minutes=3))
    world.scale("default", "web", 30)
    world.ec2.reclaim_spot(next(one.id for one in world.ec2.instances.values() if one.capacity_type == "spot"))
    world.run(loop, timedelta(minutes=1))
    return seen[0]
