"""Where pods of a class can have new nodes, with the price of a pod's share of a node, and who goes there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kerf.model.kubernetes.objects import Pod
from kerf.pods.topology_constraints import TopologyConstraint, TopologyGroup
from kerf.scheduling.devices.ledger import DeviceLedger
from kerf.scheduling.offerings.instance_types import Ints
from kerf.scheduling.offerings.nodepools import Ask, NodeClaimTemplate, ask, asks_of
from kerf.scheduling.placing.classes import PodClass, Relaxation
from kerf.scheduling.placing.routes import Next, Route, Spent, Wide, expect_daemons, routes
from kerf.scheduling.placing.strategy import Pins
from kerf.scheduling.topology.admits import Bounds
from kerf.scheduling.work import Work
from kerf_api.requirements import Requirements

#: A route with the cost of a pod of one class on it: the price of the share of a node that it needs.
Way = tuple[Route, int]
#: The group of a pod on a new node: class, relaxation, volume alternative, pinned labels.
ItemKey = tuple[int, int, int, Pins]


@dataclass(slots=True, eq=False)
class PodGroup:
    """Equal pods that are to be placed on new nodes. `requirements`: the relaxation's, the volumes' and the pins
    together. `keys` are those of its pods.

    `unpinned` are topology keys without a pin: the counts assume nodes that do not have such a label. Its pods have the
    turns `first` to `last` in the order of the plan, from 1 on.
    """

    key: ItemKey
    cls: PodClass
    relaxation: Relaxation
    requirements: Requirements
    need: Ints
    unpinned: tuple[str, ...]
    first: int
    last: int
    pods: list[Pod] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)

    @property
    def pins(self) -> Pins:
        """The labels of its nodes that are topology keys."""
        return self.key[3]


#: What classes that differ in their size only have in common: a relaxation, who counts them, what their volumes demand.
_Constraints = tuple[Relaxation, tuple[TopologyGroup, ...], tuple[Requirements, ...]]
#: The routes in one NodePool; where there are too many to list, none but the choice key by key.
_Routes = tuple[list[Route], Wide | None]


@dataclass(slots=True, eq=False)
class Choice:
    """The ways in one NodePool; where there are too many to list, those that were chosen so far."""

    ways: list[Way]
    wide: Wide | None = None
    company: int = 1
    known: dict[Pins, list[Next]] = field(default_factory=dict)

    def only(self, pins: Pins) -> Choice:
        return Choice([way for way in self.ways if way[0].pins == pins])

    def cost(self, cls: PodClass, need: Ints) -> Callable[[Requirements], int | None]:
        """What a pod of the class costs by the requirements of its node; None where no node can be had."""
        assert self.wide is not None
        template = self.wide.template
        return lambda served: (
            template.unit_cost(served, need, cls.ports, self.company) if template.affords(served, need) else None
        )


class Ways:
    """The ways there are: routes are worked out once for equal constraints, costs once for equal needs."""

    def __init__(self, templates: Sequence[NodeClaimTemplate], devices: DeviceLedger | None, work: Work) -> None:
        self.templates, self._devices, self._work = templates, devices, work
        self._choices: dict[tuple[int, int], list[Choice]] = {}
        self._routes: dict[_Constraints, list[_Routes]] = {}
        self._spent: defaultdict[Pins, Spent] = defaultdict(Spent)
        self._looking = 1
        self._alike: dict[_Constraints, list[Ints]] = {}

    def expect(self, classes: Iterable[PodClass], needs: Mapping[int, Ints], looking: int) -> None:
        """So many pods look for a place, of these classes; what those with equal constraints cost is asked together."""
        self._looking, self._alike = looking, {}
        for cls in classes:
            if not cls.ports:
                for relaxation in cls.relaxations:
                    self._alike.setdefault((relaxation, cls.counted, cls.volumes), []).append(needs[cls.number])

    def listed(self, cls: PodClass, number: int, need: Ints) -> Iterator[Route]:
        """All routes for pods of a class at a relaxation."""
        return (route for choice in self.choices(cls, number, need) for route, _ in choice.ways)

    def choices(self, cls: PodClass, number: int, need: Ints) -> list[Choice]:
        """For each alternative of the volumes and each pool, heaviest first, the ways there are."""
        key = (cls.number, number)
        known = self._choices.get(key)
        if known is None:
            constraints = (cls.relaxations[number], cls.counted, cls.volumes)
            together, lists = self._alike.pop(constraints, ()), self._routes_of(cls, number, constraints)
            found = [self._choice(cls, one, need, together) for one in lists]
            known = self._choices[key] = [choice for choice in found if choice.ways or choice.wide is not None]
            self._work.total += 1 + bool(known)  # most of thousands of alternatives may have none
            if cls.daemon_spreads:
                expect_daemons(cls.relaxations[number], self.listed(cls, number, need))
        return known

    def widen(
        self,
        choice: Choice,
        cls: PodClass,
        need: Ints,
        limits: Mapping[TopologyConstraint, Bounds],
        closed: Callable[[Pins], bool],
    ) -> None:
        """Add the way that constraints admit best now, into domains that are not `closed`."""
        assert choice.wide is not None
        route = choice.wide.best(limits, choice.cost(cls, need), closed, choice.known)
        if route is not None and all(known.pins != route.pins for known, _ in choice.ways):
            self._add(choice, route, cls, need, ask(need, cls.ports, choice.company))

    def _choice(self, cls: PodClass, found: _Routes, need: Ints, together: Sequence[Ints]) -> Choice:
        listed, wide = found
        company = 1 << (self._looking // max(len(listed), 1 if wide is None else wide.size)).bit_length()
        choice, asked = Choice([], wide, company), ask(need, cls.ports, company)
        alike = asks_of(together, company) if together else {}
        for route in listed:
            if alike:
                route.template.reckon(route.served, alike, company)
            self._add(choice, route, cls, need, asked)
        return choice

    def _add(self, choice: Choice, route: Route, cls: PodClass, need: Ints, asked: Ask) -> None:
        if (cost := route.costs.get(asked)) is None and asked not in route.costs:
            cost = route.template.unit_cost(route.served, need, cls.ports, choice.company)
        if cost is not None and (not cls.claiming or self._equips(cls, route)):
            choice.ways.append((route, cost))

    def _equips(self, cls: PodClass, route: Route) -> bool:
        """Whether a node of the pool could have the devices that the class's pod claims."""
        devices, template = self._devices, route.template
        return devices is None or devices.possible(cls.sample, template.type_names(route.served), route.served)

    def _routes_of(self, cls: PodClass, number: int, constraints: _Constraints) -> list[_Routes]:
        known = self._routes.get(constraints)
        if known is None:
            known = self._routes[constraints] = []
            relaxation, demand = cls.relaxations[number], cls.relaxations[number].demand
            for alternative, volume in enumerate(cls.volumes):
                for template in self.templates:
                    if not demand.tolerates(template.taints) or demand.requirements.conflict(volume):
                        continue
                    served = template.serve(demand.requirements & volume)
                    if served is not None:
                        known.append(routes(cls, relaxation, alternative, template, served, self._spent))
        return known
