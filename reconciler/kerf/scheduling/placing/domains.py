"""New nodes for pods, domain by domain: which pool a pod is placed in, and which values its topology labels get there.

Routes, costs and groups are worked out once for equal constraints; for each pod only a few counters are read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from kerf.model.kubernetes.objects import Pod
from kerf.pods.topology_constraints import AFFINITY, TopologyConstraint, TopologyGroup
from kerf.scheduling.devices.ledger import DeviceLedger
from kerf.scheduling.offerings.instance_types import Ints
from kerf.scheduling.offerings.nodepools import Ask, NodeClaimTemplate, ask, asks_of
from kerf.scheduling.placing.classes import PodClass, Relaxation
from kerf.scheduling.placing.packing_work import Packing
from kerf.scheduling.placing.routes import Route, Wide, expect_daemons, routes
from kerf.scheduling.placing.strategy import Pins, by_key
from kerf.scheduling.placing.ways import TURN, Choice, ItemKey, PodGroup, Spent, Way
from kerf.scheduling.topology import admits
from kerf.scheduling.topology.admits import Bounds
from kerf.scheduling.work import Work
from kerf_api import labels
from kerf_api.requirements import Requirements

#: What classes that differ in their size only have in common: a relaxation, who counts them, what their volumes demand.
_Constraints = tuple[Relaxation, tuple[TopologyGroup, ...], tuple[Requirements, ...]]
#: The routes in one NodePool; where there are too many to list, none but the choice key by key.
_Routes = tuple[list[Route], Wide | None]


class Opening:
    """The pods that need new nodes; none while `shut`, when only the domains of possible nodes are asked for.

    `caps` limits how many an item may have (learned from a failed packing). `put_off`: none is planned for a class now.
    `wished`: the domains that a class gets as long as it may, best first, by its number.
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
        self.items: dict[ItemKey, PodGroup] = {}
        self._templates, self._caps, self._wished, self._devices = templates, dict(caps), wished, devices
        self._choices: dict[tuple[int, int], list[Choice]] = {}
        self._routes: dict[_Constraints, list[_Routes]] = {}
        self._pins: dict[int, tuple[Pins, ...]] = {}
        self._domains: dict[tuple[Pins, ...], dict[str, set[str]]] = {}
        self._measured: set[tuple[int, int]] = set()
        self._barred: int | None = None
        self._closed: set[int] = set()
        self._spent: defaultdict[Pins, Spent] = defaultdict(Spent)
        self._looking, self._turn = 1, 0
        self._packing = Packing(self.work)
        self._alike: dict[_Constraints, list[Ints]] = {}

    def expect(self, classes: Iterable[PodClass], needs: Mapping[int, Ints], looking: int) -> None:
        """So many pods look for a place, of these classes; what those with equal constraints cost is asked together."""
        self._looking, self._alike = looking, {}
        for cls in classes:
            if not cls.ports:
                for relaxation in cls.relaxations:
                    self._alike.setdefault((relaxation, cls.counted, cls.volumes), []).append(needs[cls.number])

    def plan(self, cls: PodClass, number: int, pods: Sequence[Pod], need: Ints) -> int:
        """Plan as many of these pods of a class, at this relaxation, as can be; how many (the first ones)."""
        relaxation = cls.relaxations[number]
        self.work.total += 2
        if self._shut or self.put_off or not self._templates:
            return 0
        choices = self._choices_of(cls, number, need)
        if len(choices) == 1 and choices[0].wide is None and len(choices[0].ways) == 1:
            (only,) = choices[0].ways
            if not only.route.gates and cls.number not in self._closed:
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
                alike = way.spent.until_next_turn(way.cost, len(pods) - done)
            self._put(cls, relaxation, way, pods[done : done + alike], need)
            if alike > 1:  # each has a turn of its own
                self._turn = self.items[way.key].last = self._turn + alike - 1
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
        relaxation = cls.relaxations[number]
        if self._shut or not self._templates:
            return None
        found = (self._best(choice, cls, number, need) for choice in self._choices_of(cls, number, need))
        if way := next(filter(None, found), None):
            self._put(cls, relaxation, way, pods, need)
        return (self.items[way.key], way) if way else None

    def withdraw(self, item: PodGroup, way: Way, number: int) -> None:
        """The last pods of an item, so many of those on the way, are planned no more, nor is any other from now on."""
        del item.pods[len(item.pods) - number :]
        self._caps[item.key] = len(item.pods)
        if not item.pods:
            del self.items[item.key]
        self._reckon(way, -number)

    def ways(self, cls: PodClass, number: int, need: Ints) -> Iterator[Way]:
        """Where new nodes could be had for pods of a class, at this relaxation."""
        for way in self._listed(cls, number, need) if not self._shut and cls.number != self._barred else ():
            if self._room(way.key) != 0 and way.route.begins() and way.route.affords(need) and way.route.clear():
                yield way

    def routes(self, cls: PodClass, number: int, need: Ints) -> list[Pins]:
        """The domains of all ways there are, however many pods are there already."""
        return [] if self._shut else [way.route.pins for way in self._listed(cls, number, need)]

    def _put_all(self, cls: PodClass, number: int, way: Way, pods: Sequence[Pod], need: Ints) -> int:
        """There is one way only, and it asks for nothing of others but to keep clear of them."""
        relaxation = cls.relaxations[number]
        if not way.route.begins():
            return 0
        if way.route.owners or way.route.inverse or way.route.company:
            done = 0
            while done < len(pods) and self._best(Choice([way]), cls, number, need) is not None:
                self._put(cls, relaxation, way, pods[done : done + 1], need)
                done += 1
            return done
        fitting = pods[: self._room(way.key)]
        self._put(cls, relaxation, way, fitting, need)
        return len(fitting)

    def _room(self, key: ItemKey) -> int | None:
        """How many more pods the item may have; None for any number."""
        cap, item = self._caps.get(key), self.items.get(key)
        return None if cap is None else max(cap - (len(item.pods) if item is not None else 0), 0)

    # --- choosing -----------------------------------------------------------------------------------------------
    def _best(self, choice: Choice, cls: PodClass, number: int, need: Ints) -> Way | None:
        """The way into the emptiest domains for the least money that constraints admit now."""
        relaxation = cls.relaxations[number]
        limits = self.limits(cls, number, need) if relaxation.over_domains else {}
        if choice.wide is not None:
            self._widen(choice, choice.wide, cls, number, need, limits)
        best: Way | None = None
        least: tuple[int, int, int, ItemKey] | None = None
        hosts, begins = tuple[TopologyConstraint, ...](), True
        for way in choice.ways:
            route = way.route
            if self._caps and self._room(way.key) == 0:
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
            rank = (crowd, way.cost, way.spent.amount // TURN, way.key)
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
        return any(way.route.begins() for way in self._listed(cls, number, need))

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
                for choice in self._choices_of(cls, number, need):
                    found += self._open_pins(choice, cls, need)
            known = self._pins[cls.number] = tuple(dict.fromkeys(found))
        return known

    def _open_pins(self, choice: Choice, cls: PodClass, need: Ints) -> list[Pins]:
        ways = [way for way in choice.ways if self._room(way.key) != 0] if self._caps else choice.ways
        found = [way.route.pins for way in ways if way.route.affords(need)]
        if choice.wide is not None:
            found += [((key, domain),) for key, domain in choice.wide.domains(self._cost(choice, cls, need))]
        return found

    def _put(self, cls: PodClass, relaxation: Relaxation, way: Way, pods: Sequence[Pod], need: Ints) -> None:
        if not pods:
            return
        item, self._turn = self.items.get(way.key), self._turn + 1
        if item is None:
            route, turn = way.route, self._turn
            self._packing.add(route)
            item = PodGroup(way.key, cls, relaxation, route.requirements, route.pins, need, route.unpinned, turn, turn)
            self.items[way.key] = item
        item.last = self._turn
        item.pods.extend(pods)
        self._reckon(way, len(pods))
        cls.bind(relaxation)

    def _reckon(self, way: Way, number: int) -> None:
        """So many more pods are planned on the way."""
        route = way.route
        for group, domain, arriving in route.first_arrivals() if route.arrivals else ():
            group.arrive(domain, arriving)
        way.spent.amount += way.cost * number
        for group, domain in route.counts:
            group.count(domain, number)
            if route.follows and group.kind == AFFINITY:
                group.follow(domain, route.follows, number)
        for group, domain in route.unsure:
            group.doubt(domain, number)
        for group, domain in route.owners:
            group.own(domain, number)
        for group, domain in route.founds:
            before, now = way.spent.beside(group, number)
            group.count(domain, bool(now) - bool(before))
        for group in route.fresh:
            group.fresh += number

    # --- ways ---------------------------------------------------------------------------------------------------
    def _listed(self, cls: PodClass, number: int, need: Ints) -> Iterator[Way]:
        return (way for choice in self._choices_of(cls, number, need) for way in choice.ways)

    def _choices_of(self, cls: PodClass, number: int, need: Ints) -> list[Choice]:
        """For each alternative of the volumes and each pool, heaviest first, the ways there are."""
        key = (cls.number, number)
        known = self._choices.get(key)
        if known is None:
            constraints = (cls.relaxations[number], cls.counted, cls.volumes)
            together, lists = self._alike.pop(constraints, ()), self._routes_of(cls, number, constraints)
            found = [self._choice(cls, number, one, need, together) for one in lists]
            known = self._choices[key] = [choice for choice in found if choice.ways or choice.wide is not None]
            self.work.total += 1 + bool(known)  # most of thousands of alternatives may have none
            if cls.daemon_spreads:
                expect_daemons(cls.relaxations[number], (way.route for one in known for way in one.ways))
        return known

    def _choice(self, cls: PodClass, number: int, found: _Routes, need: Ints, together: Sequence[Ints]) -> Choice:
        listed, wide = found
        company = 1 << (self._looking // max(len(listed), 1 if wide is None else wide.size)).bit_length()
        choice, asked = Choice([], wide, company), ask(need, cls.ports, company)
        alike = asks_of(together, company) if together else {}
        for route in listed:
            if alike:
                route.template.reckon(route.served, alike, company)
            self._add_way(choice, route, cls, number, need, asked)
        return choice

    def _add_way(self, choice: Choice, route: Route, cls: PodClass, number: int, need: Ints, asked: Ask) -> None:
        if (cost := route.costs.get(asked)) is None and asked not in route.costs:
            cost = route.template.unit_cost(route.served, need, cls.ports, choice.company)
        if cost is not None and (not cls.claiming or self._equips(cls, route)):
            key = (cls.number, number, route.alternative, route.pins)
            choice.ways.append(Way(route, cost, key, self._spent[route.pins]))

    def _cost(self, choice: Choice, cls: PodClass, need: Ints) -> Callable[[Requirements], int | None]:
        assert choice.wide is not None
        template = choice.wide.template
        return lambda served: (
            template.unit_cost(served, need, cls.ports, choice.company) if template.affords(served, need) else None
        )

    def _widen(
        self,
        choice: Choice,
        wide: Wide,
        cls: PodClass,
        number: int,
        need: Ints,
        limits: Mapping[TopologyConstraint, Bounds],
    ) -> None:
        """Add the way that constraints admit best now."""
        route = wide.best(
            limits,
            self._cost(choice, cls, need),
            lambda pins: self._room((cls.number, number, wide.alternative, pins)) == 0,
            choice.known,
        )
        if route is not None and all(way.route.pins != route.pins for way in choice.ways):
            self._add_way(choice, route, cls, number, need, ask(need, cls.ports, choice.company))

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
                for template in self._templates:
                    if not demand.tolerates(template.taints) or demand.requirements.conflict(volume):
                        continue
                    served = template.serve(demand.requirements & volume)
                    if served is not None:
                        known.append(routes(cls, relaxation, alternative, template, served))
        return known
