"""Where pods of a class can have new nodes, with the price of a pod's share of a node, and who goes there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kerf.model.kubernetes.objects import Pod
from kerf.pods.topology_constraints import TopologyGroup
from kerf.scheduling.offerings.instance_types import Ints
from kerf.scheduling.placing.classes import PodClass, Relaxation
from kerf.scheduling.placing.routes import Next, Route, Wide
from kerf.scheduling.placing.strategy import Pins
from kerf_api.requirements import Requirements

#: Where nothing else decides, a domain gets pods for so much money (a dollar an hour) before the next one has its turn:
#: few pods share a node, many leave no domain empty that others must use.
TURN: Final = 1_000_000
#: The group of a pod on a new node: class, relaxation, volume alternative, pinned labels.
ItemKey = tuple[int, int, int, Pins]


@dataclass(slots=True, eq=False)
class PodGroup:
    """Equal pods that are to be placed on new nodes. `requirements`: the relaxation's, the volumes' and the pins
    together.

    `unpinned` are topology keys without a pin: the counts assume nodes that do not have such a label. Its pods have the
    turns `first` to `last` in the order of the plan, from 1 on.
    """

    key: ItemKey
    cls: PodClass
    relaxation: Relaxation
    requirements: Requirements
    pins: Pins
    need: Ints
    unpinned: tuple[str, ...]
    first: int
    last: int
    pods: list[Pod] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Spent:
    """The cost of the pods that are planned in the same domains, and for each affinity the number of those whose nodes
    carry the DaemonSet pods that they must be near."""

    amount: int = 0
    founding: dict[TopologyGroup, int] = field(default_factory=dict)

    def until_next_turn(self, cost: int, pods: int) -> int:
        """How many of these pods, which cost so much each, come before another domain has its turn."""
        return min(-(-(TURN - self.amount % TURN) // cost), pods) if cost > 0 else pods

    def beside(self, group: TopologyGroup, number: int) -> tuple[int, int]:
        """Count so many more pods that are near DaemonSet pods; the number before and now."""
        before = self.founding.get(group, 0)
        self.founding[group] = before + number
        return before, before + number


class Way(NamedTuple):
    """A route with the cost of a pod of one class on it: the price of the share of a node that it needs."""

    route: Route
    cost: int
    key: ItemKey
    spent: Spent


@dataclass(slots=True, eq=False)
class Choice:
    """The ways in one NodePool; where there are too many to list, those that were chosen so far."""

    ways: list[Way]
    wide: Wide | None = None
    company: int = 1
    known: dict[Pins, list[Next]] = field(default_factory=dict)

    def only(self, pins: Pins) -> Choice:
        return Choice([way for way in self.ways if way.route.pins == pins])
