"""Consolidation under a load that stays as it is: no fleet comes back that it has left, and no cost ever rises by it.

Looked at are the instances that really run, whenever the world is at rest. What replaces nodes is held against what it
replaced, at the prices of what was really launched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kerf.model.kinds import NODE_CLAIM
from kerf.sandbox.api.api_server import Record
from kerf.sandbox.world import World
from kerf_api import labels
from tests.simulation.rest import unrest
from tests.simulation.trouble import lives

#: The types of the instances that live, sorted.
Fleet = tuple[str, ...]


@dataclass(slots=True)
class Thrift:
    """Listens from the start on. `returned` are fleets that were left and came back, `dearer` what cost more than
    before, in words."""

    world: World
    returned: list[str] = field(default_factory=list)
    dearer: list[str] = field(default_factory=list)
    #: How many times a world at rest had been changed by commands at constant load.
    compared: int = 0
    _resting: tuple[Fleet, int] | None = None
    _left: set[Fleet] = field(default_factory=set)
    _begun: bool = False
    _seen: int = -1
    _prices: dict[str, int] = field(default_factory=dict)
    _replaced: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.world.server.listen(self._heard)

    def load_changes(self) -> None:
        """What there was before says nothing of what follows."""
        self._resting, self._begun = None, False
        self._left.clear()

    def look(self) -> None:
        """After each look of the controller."""
        changes = self.world.server.loud_changes
        if changes == self._seen:
            return
        self._seen = changes
        if unrest(self.world):
            return
        living = [machine for machine in self.world.ec2.instances.values() if lives(machine)]
        fleet, cost = tuple(sorted(machine.instance_type for machine in living)), sum(m.price for m in living)
        if self._begun and self._resting is not None:
            self._compare(*self._resting, fleet, cost)
        self._resting, self._begun = (fleet, cost), False

    def _compare(self, before: Fleet, cost_before: int, fleet: Fleet, cost: int) -> None:
        now = f"{self.world.clock.now():%d %H:%M:%S}"
        self.compared += 1
        self._left.add(before)
        if fleet in self._left:
            self.returned.append(f"{now} {', '.join(fleet)}")
        if cost > cost_before:
            self.dearer.append(f"{now} {cost_before} to {cost}: {', '.join(before)} to {', '.join(fleet)}")

    def replacements(self) -> Mapping[tuple[str, ...], tuple[int, int]]:
        """By the claims that were replaced: what these cost, and what came for them. Microdollars an hour."""
        found: dict[tuple[str, ...], tuple[int, int]] = {}
        for name, replaced in self._replaced.items():
            key = tuple(replaced.split(","))
            _, new = found.get(key, (0, 0))
            found[key] = sum(self._prices[old] for old in key), new + self._prices.get(name, 0)
        return found

    def _heard(self, old: Record | None, new: Record | None) -> None:
        if new is None or new.kind is not NODE_CLAIM:
            return
        claim = new.value
        machine = self.world.ec2.instances.get(claim.instance_id)
        if machine is not None:
            self._prices[claim.name] = machine.price
        if labels.REPLACES in claim.metadata.annotations:
            self._replaced[claim.name] = claim.metadata.annotations[labels.REPLACES]
        had = old is not None and labels.COMMAND in old.value.metadata.annotations
        self._begun |= labels.COMMAND in claim.metadata.annotations and not had
