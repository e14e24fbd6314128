"""New nodes for pods, domain by domain: which pool a pod is placed in, and which values its topology labels get there.

Routes, costs and groups are worked out once for equal constraints; for each pod only a few counters are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from kerf.model.kubernetes.objects import Pod
from kerf.pods.topology_constraints import AFFINITY, TopologyConstraint, TopologyGroup
from kerf.scheduling.devices.ledger import DeviceLedger
from kerf.scheduling.offerings.instance_types import Ints
from kerf.scheduling.offerings.nodepools import NodeClaimTemplate
from kerf.scheduling.placing.classes import PodClass, Relaxation
from kerf.scheduling.placing.packing_work import Packing
from kerf.scheduling.placing.routes import TURN, Route
from kerf.scheduling.placing.strategy import Pins, by_key
from kerf.scheduling.placing.ways import Choice, ItemKey, PodGroup, Way, Ways
from kerf.scheduling.topology import admits
from kerf.scheduling.topology.admits import Bounds
from kerf.scheduling.work import Work
from kerf_api import labels


class Opening:
    """The pods that need new nodes; none while `shut`, when only the domains of possible nodes are asked for.

    `caps` limits how many an item may have (learned from a failed packing). `put_off`: none is planned for a class now.
    `wished`: the domains that a class gets as long as it may, best first, by its number. `order` are the keys of the
    pods that have a place, here or on existing nodes, in turn.
    """

    def __init__(
        self,
        templates: Sequence[NodeClaimTemplate],
        caps: Mapping[ItemKey, int],
        wished: Mapping[int, Sequence[Pins]] = {},
        devices: DeviceLedger | None = None,
        *,
        shut: bool = False,
        work: Work | None = None,
    ) -> None:
        self.put_off = False
        self._shut, self.work = shut, work if work is not None else Work()
        self.order: list[str] = []
        self.items: dict[ItemKey, PodGroup] = {}
        self.ways = Ways(templates, devices, self.work)
        self._caps, self._wished = dict(caps), wished
        self._pins: dict[int, tuple[Pins, ...]] = {}
        self._domains: dict[tuple[Pins, ...], dict[str, set[str]]] = {}
        self._measured: set[tuple[int, int]] = set()
        self._barred: int | None = None
        self._closed: set[int] = set()
        self._turn = 0
        self._packing = Packing(self.work)

    def plan(self, cls: PodClass, number: int, pods: Sequence[Pod], need: Ints) -> int:
        """Plan as many of these pods of a class, at this relaxation, as can be; how many (the first ones)."""
        relaxation = cls.relaxations[number]
        self.work.total += 2
        if self._shut or self.put_off or not self.ways.templates:
            return 0
        choices = self.ways.choices(cls, number, need)
        if len(choices) == 1 and choices[0].wide is None and len(choices[0].ways) == 1:
            (only,) = choices[0].ways
            if not only[0].gates and cls.number not in self._closed:
                return self._put_all(cls, number, only, pods, need)
        self.work.total += len(pods) * (1 + len(choices) + len(relaxation.constraints))
        wished = self._wished.get(cls.number, ())
        if wished:
            choices = [*(choice.only(pins) for pins in wished for choice in choices), *choices]
        done = 0
        while done < len(pods):
            for choice in choices:
                way = self._best(choice, cls, number, need)
                if way is not None:
                    break
            else:
                return done
            alike = 1
            if relaxation.steady and len(pods) > 1 and self._steady(cls, relaxation, choices):
                alike = way[0].spent.until_next_turn(way[1], len(pods) - done)
            item = self._put(cls, number, way, pods[done : done + alike], need)
            if alike > 1:  # each has a turn of its own
                self._turn = item.last = self._turn + alike - 1
            done += alike
        return done

    def _steady(self, cls: PodClass, relaxation: Relaxation, choices: Iterable[Choice]) -> bool:
        """Whether a steady relaxation's best way for a pod stays the best until another domain has its turn."""
        if self._caps or cls.keep_company_away or cls.number in self._closed:
            return False
        return not any(choice.wide for choice in choices) and admits.all_founded(relaxation.others)

    # --- again -------------------------------------------------------------------------------------------------
    def lift(self) -> None:
        """Forget what items may have at most."""
        self._caps, self._pins, self._measured = {}, {}, set()

    def retry(self, cls: PodClass, number: int, pods: Sequence[Pod], need: Ints) -> tuple[PodGroup, Way] | None:
        """Plan all these pods on the way that is best now for the first of them; None when there is none."""
        if self._shut or not self.ways.templates:
            return None
        found = (self._best(choice, cls, number, need) for choice in self.ways.choices(cls, number, need))
        way = next(filter(None, found), None)
        return (self._put(cls, number, way, pods, need), way) if way else None

    def withdraw(self, item: PodGroup, way: Way, number: int) -> None:
        """The pods that were planned last, so many of the item on the way, are not, nor is any other from now on."""
        for planned in (item.pods, item.keys, self.order):
            del planned[len(planned) - number :]
        self._caps[item.key] = len(item.pods)
        if not item.pods:
            del self.items[item.key]
        self._reckon(way, -number)

    def open_routes(self, cls: PodClass, number: int, need: Ints) -> Iterator[Route]:
        """Where new nodes could be had for pods of a class, at this relaxation."""
        for route in self.ways.listed(cls, number, need) if not self._shut and cls.number != self._barred else ():
            full = self._full(cls, number, route.alternative, route.pins)
            if not full and route.begins() and route.affords(need) and route.clear():
                yield route

    def routes(self, cls: PodClass, number: int, need: Ints) -> list[Pins]:
        """The domains of all ways there are, however many pods are there already."""
        return [] if self._shut else [route.pins for route in self.ways.listed(cls, number, need)]

    def _put_all(self, cls: PodClass, number: int, way: Way, pods: Sequence[Pod], need: Ints) -> int:
        """There is one way only, and it asks for nothing of others but to keep clear of them."""
        route, _ = way
        if not route.begins():
            return 0
        if route.owners or route.inverse or route.company:
            done, choice = 0, Choice([way])
            while done < len(pods) and self._best(choice, cls, number, need) is not None:
                self._put(cls, number, way, pods[done : done + 1], need)
                done += 1
            return done
        fitting = pods[: self._room(_key(cls, number, route))] if self._caps else pods
        if fitting:
            self._put(cls, number, way, fitting, need)
        return len(fitting)

    def _room(self, key: ItemKey) -> int | None:
        """How many more pods the item may have; None for any number."""
        cap, item = self._caps.get(key), self.items.get(key)
        return None if cap is None else max(cap - (len(item.pods) if item is not None else 0), 0)

    def _full(self, cls: PodClass, number: int, alternative: int, pins: Pins) -> bool:
        """Whether the item may have no more pods."""
        return self._room((cls.number, number, alternative, pins)) == 0

    # --- choosing -----------------------------------------------------------------------------------------------
    def _best(self, choice: Choice, cls: PodClass, number: int, need: Ints) -> Way | None:
        """The way into the emptiest domains for the least money that constraints admit now."""
        relaxation = cls.relaxations[number]
        limits = self.limits(cls, number, need) if relaxation.over_domains else {}
        if choice.wide is not None:
            closed = partial(self._full, cls, number, choice.wide.alternative)
            self.ways.widen(choice, cls, need, limits, closed)
        best: Way | None = None
        least: tuple[int, int, int, int, Pins] | None = None
        hosts, begins = tuple[TopologyConstraint, ...](), True
        for way in choice.ways:
            route, cost = way
            if self._caps and self._full(cls, number, route.alternative, route.pins):
                continue
            if route.hosts is not hosts:  # mostly those of the relaxation
                hosts, begins = route.hosts, route.begins()
            if (
                not begins
                or (route.inverse and route.kept_away())
                or (route.company and route.lonely())
                or (cls.number in self._closed and admits.brings(relaxation.spreads, route.pins, cls.domains))
            ):
                continue
            crowd = route.crowd(limits, cls.domains) if limits else 0
            if crowd is None or (least is not None and crowd > least[0]):
                continue
            rank = (crowd, cost, route.spent.amount // TURN, route.alternative, route.pins)
            if least is None or rank < least:
                best, least = way, rank
        return best

    def limits(self, cls: PodClass, number: int, need: Ints) -> dict[TopologyConstraint, Bounds]:
        """The counts at which a domain, or a host, admits one more pod of the class now, by constraint."""
        relaxation = cls.relaxations[number]
        others = relaxation.others
        found = {constraint: admits.current(constraint) for constraint in others} if others else {}
        if relaxation.spreads:
            inverse = [group for group in cls.keep_away if group.owners] if cls.keep_away else ()
            if found or inverse or relaxation.hosts or (cls.number, number) not in self._measured:
                self._measure(cls, number, need, found, inverse)
            for constraint in relaxation.spreads:
                found[constraint] = admits.current(constraint, cls.domains[constraint.group])
        return found

    def _measure(
        self,
        cls: PodClass,
        number: int,
        need: Ints,
        others: Mapping[TopologyConstraint, Bounds],
        inverse: Sequence[TopologyGroup],
    ) -> None:
        """Find the domains of a relaxation's spreads beside its `others`, and the anti-affinity that keeps it away."""
        gates = {b: limits for b, limits in others.items() if b.required and b.key != labels.HOSTNAME}
        barred = cls.number == self._barred or cls.number in self._closed
        begins = not barred and self._begins(cls, number, need)
        makeable = self._makeable(cls, need, gates, inverse) if begins else {}
        for constraint in cls.relaxations[number].spreads:
            cls.domains[constraint.group] = admits.measured(constraint, makeable)
        self._measured.add((cls.number, number))

    def without_nodes(self, cls: PodClass, attempt: Callable[[], bool]) -> bool:
        """Whether an attempt succeeds while no node can be made for pods of the class: none brings a domain.

        From then on none may bring one: the pod was placed without it.
        """
        numbers = {(cls.number, number) for number, relaxation in enumerate(cls.relaxations) if relaxation.spreads}
        if self._shut or self.put_off or not numbers:
            return False
        before, self._barred = dict(cls.domains), cls.number
        self._measured -= numbers
        done = attempt()
        self._barred = None
        self._measured -= numbers
        self._closed |= {cls.number} if done else set()
        cls.domains.update({} if done else before)
        return done

    def _begins(self, cls: PodClass, number: int, need: Ints) -> bool:
        """Whether constraints over hostnames admit a pod of the class on some new node."""
        if admits.begins_hosts(cls.relaxations[number].hosts):
            return True
        return any(route.begins() for route in self.ways.listed(cls, number, need))

    def _makeable(
        self, cls: PodClass, need: Ints, gates: Mapping[TopologyConstraint, Bounds], inverse: Sequence[TopologyGroup]
    ) -> dict[str, set[str]]:
        """The domains, by key, in which a node for a pod of the class can be made now; its preferences bind nothing.

        `gates` are its other constraints, `inverse` are those of others.
        """
        chosen = self._pins_of(cls, need)
        if gates or inverse:
            chosen = tuple([pins for pins in chosen if admits.admits_pins(pins, gates, inverse)])
        known = self._domains.get(chosen)
        if known is None:
            known = self._domains[chosen] = by_key(chosen)
        return known

    def _pins_of(self, cls: PodClass, need: Ints) -> tuple[Pins, ...]:
        """The labels of the nodes that can be made for a pod of the class; key by key where there are too many."""
        known = self._pins.get(cls.number)
        if known is None:
            found: list[Pins] = []
            for number in cls.possible if self._caps else cls.unlike:  # what an item may have goes by relaxation
                for choice in self.ways.choices(cls, number, need):
                    found += self._open_pins(choice, cls, number, need)
            known = self._pins[cls.number] = tuple(dict.fromkeys(found))
        return known

    def _open_pins(self, choice: Choice, cls: PodClass, number: int, need: Ints) -> list[Pins]:
        routes = [route for route, _ in choice.ways]
        if self._caps:
            routes = [route for route in routes if not self._full(cls, number, route.alternative, route.pins)]
        found = [route.pins for route in routes if route.affords(need)]
        if choice.wide is not None:
            found += [((key, domain),) for key, domain in choice.wide.domains(choice.cost(cls, need))]
        return found

    def _put(self, cls: PodClass, number: int, way: Way, pods: Sequence[Pod], need: Ints) -> PodGroup:
        """Plan pods, one at least; the item that has them now."""
        route, relaxation, key = way[0], cls.relaxations[number], _key(cls, number, way[0])
        item, self._turn = self.items.get(key), self._turn + 1
        if item is None:
            turn = self._turn
            self._packing.add(route)
            item = PodGroup(key, cls, relaxation, route.requirements, need, route.unpinned, turn, turn)
            self.items[key] = item
        item.last = self._turn
        keys = [pod.key for pod in pods]
        item.pods += pods
        item.keys += keys
        self.order += keys
        self._reckon(way, len(pods))
        cls.bind(relaxation)
        return item

    def _reckon(self, way: Way, number: int) -> None:
        """So many more pods are planned on the way."""
        route, cost = way
        for group, domain, arriving in route.first_arrivals() if route.arrivals else ():
            group.arrive(domain, arriving)
        route.spent.amount += cost * number
        for group, domain in route.counts:
            group.count(domain, number)
            if route.follows and group.kind == AFFINITY:
                group.follow(domain, route.follows, number)
        for group, domain in route.unsure:
            group.doubt(domain, number)
        for group, domain in route.owners:
            group.own(domain, number)
        for group, domain in route.founds:
            before, now = route.spent.beside(group, number)
            group.count(domain, bool(now) - bool(before))
        for group in route.fresh:
            group.fresh += number


def _key(cls: PodClass, number: int, route: Route) -> ItemKey:
    return cls.number, number, route.alternative, route.pins
