"""What a cluster's life came to: money, nodes, pods that had to leave, and how long pods waited for a node."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from kerf.sandbox.api.api_server import Record
from kerf.sandbox.aws.machines import Machine
from kerf.sandbox.world import World
from tests.simulation.evictions import Evictions
from tests.simulation.trouble import lives

_HOUR = timedelta(hours=1)


class Bill:
    """Listens from the start on. `acting` says whether what happens now is the controller's doing."""

    def __init__(self, world: World, acting: Callable[[], bool]) -> None:
        self._world, self._evictions = world, Evictions(world, acting)
        self.peak_nodes = 0
        self.waited = timedelta()
        world.server.listen(self._heard)
        world.ec2.listen(self._counted)

    @property
    def evictions(self) -> int:
        return self._evictions.count

    @property
    def launches(self) -> int:
        return len(self._world.ec2.instances)

    @property
    def cost_usd(self) -> float:
        """Of all instances, from their launch to their end or to now."""
        return sum(map(self._paid, self._world.ec2.instances.values())) / 1e6

    def _paid(self, machine: Machine) -> float:
        return machine.price * (((machine.ended or self._world.clock.now()) - machine.launched) / _HOUR)

    def _counted(self, machine: Machine) -> None:
        self.peak_nodes = max(self.peak_nodes, sum(map(lives, self._world.ec2.instances.values())))

    def _heard(self, old: Record | None, new: Record | None) -> None:
        if old is None or new is None or new.kind.name != "Pod":
            return
        created = new.value.metadata.creation_timestamp
        if new.value.spec.node_name and not old.value.spec.node_name and created is not None:
            self.waited += self._world.clock.now() - created
