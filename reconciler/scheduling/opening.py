"""New nodes for pods, domain by domain: which pool a pod goes to, and which values its topology labels get there.

A route is one such combination. What does not change while pods are placed (which routes there are, what a pod costs
there, what it counts) is worked out once for equal constraints; what is left for each pod is to look at a few counters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice, product
from typing import NamedTuple

from api import labels
from api.requirements import IN, Requirements, requirement
from reconciler.model.objects import Pod
from reconciler.scheduling import admits
from reconciler.scheduling.admits import Bounds
from reconciler.scheduling.classes import PodClass, Rung
from reconciler.scheduling.devices.ledger import DeviceLedger
from reconciler.scheduling.groups import ANTI, SPREAD, Bond, Group
from reconciler.scheduling.template import Template
from reconciler.scheduling.types import Ints

#: No more combinations of domains than these are looked at for a class in one pool.
_MOST_WAYS = 1024
#: Where nothing else decides, a domain gets pods for so much money (a dollar an hour) before the next one has its turn:
#: few pods share a node, many leave no domain empty that others must use.
_TURN = 1_000_000
#: What classes that differ in their size only have in common: a rung, who counts them, what their volumes demand.
_Constraints = tuple[Rung, tuple[Group, ...], tuple[Requirements, ...]]
Pins = tuple[tuple[str, str], ...]
#: What pods on new nodes are grouped by: class, rung, volume alternative, pinned labels.
ItemKey = tuple[int, int, int, Pins]


@dataclass(slots=True, eq=False)
class Item:
    """Equal pods that are to go on new nodes. `requirements`: the rung's, the volumes' and the pins together."""

    key: ItemKey
    cls: PodClass
    rung: Rung
    requirements: Requirements
    pins: Pins
    need: Ints
    pods: list[Pod] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class _Route:
    """Where pods with equal constraints may go, whatever their size.

    `served` are the pool's requirements narrowed to all of it. `gates` are constraints with the domain they would get a
    pod in; the pod is counted in `counts`, `owners` and as `fresh` (on a host that has no name yet).
    """

    template: Template
    alternative: int
    pins: Pins
    requirements: Requirements
    served: Requirements
    gates: tuple[tuple[Bond, str], ...]
    shunned: tuple[tuple[Group, str], ...]
    counts: tuple[tuple[Group, str], ...]
    owners: tuple[tuple[Group, str], ...]
    fresh: tuple[Group, ...]


class Way(NamedTuple):
    """A route with what a pod of one class costs on it: the price of the share of a node that it needs."""

    route: _Route
    cost: int
    key: ItemKey


class Opening:
    """The pods that are to go on new nodes; none while `shut`, when only the domains of possible nodes are asked for.

    `caps` limits how many an item may have (learned from a failed packing).

    `wished`: the domains that a class gets as long as it may, best first, by its number.
    """

    def __init__(
        self,
        templates: Sequence[Template],
        caps: Mapping[ItemKey, int],
        wished: Mapping[int, Sequence[Pins]] = {},
        devices: DeviceLedger | None = None,
        *,
        shut: bool = False,
    ) -> None:
        self._shut = shut
        self.items: dict[ItemKey, Item] = {}
        self._templates, self._caps, self._wished, self._devices = templates, dict(caps), wished, devices
        self._choices: dict[tuple[int, int], list[list[Way]]] = {}
        self._routes: dict[_Constraints, list[list[_Route]]] = {}
        self._domains: dict[int, dict[str, frozenset[str]]] = {}
        self._spent: dict[Pins, int] = {}
        self._looking = 1
        self._alike: dict[_Constraints, list[Ints]] = {}

    def expect(self, classes: Iterable[PodClass], needs: Mapping[int, Ints], looking: int) -> None:
        """So many pods look for a place, of these classes; what those with equal constraints cost is asked together."""
        self._looking, self._alike = looking, {}
        for cls in classes:
            if not cls.ports:
                for rung in cls.rungs:
                    self._alike.setdefault((rung, cls.counted, cls.volumes), []).append(needs[cls.number])

    def plan(self, cls: PodClass, number: int, pods: Sequence[Pod], need: Ints) -> int:
        """Plan as many of these pods of a class, at this rung of its ladder, as can be; how many (the first ones)."""
        rung = cls.rungs[number]
        if self._shut or not self._templates or not _starts_on_new_host(rung):
            return 0
        choices = self._choices_of(cls, number, need)
        if len(choices) == 1 and len(choices[0]) == 1 and not choices[0][0].route.gates:
            return self._put_all(cls, number, choices[0][0], pods, need)
        wished = self._wished.get(cls.number, ())
        if wished:
            first = [[way for way in ways if way.route.pins == pins] for pins in wished for ways in choices]
            choices = first + choices
        for done, pod in enumerate(pods):
            for ways in choices:
                way = self._best(ways, cls, number, need)
                if way is not None:
                    break
            else:
                return done
            self._put(cls, rung, way, (pod,), need)
        return len(pods)

    # --- once more ----------------------------------------------------------------------------------------------
    def lift(self) -> None:
        """Forget what items may have at most."""
        self._caps = {}
        self._domains = {}

    def retry(self, cls: PodClass, number: int, pods: Sequence[Pod], need: Ints) -> tuple[Item, Way] | None:
        """Plan all these pods on the way that is best now for the first of them; None when there is none."""
        rung = cls.rungs[number]
        if self._shut or not self._templates or not _starts_on_new_host(rung):
            return None
        found = (self._best(ways, cls, number, need) for ways in self._choices_of(cls, number, need))
        way = next((way for way in found if way is not None), None)
        if way is None:
            return None
        self._put(cls, rung, way, pods, need)
        return self.items[way.key], way

    def withdraw(self, item: Item, way: Way, number: int) -> None:
        """The last pods of an item, so many of those that were put on the way, are planned no more, nor is any other
        from now on."""
        del item.pods[len(item.pods) - number :]
        self._caps[item.key] = len(item.pods)
        if not item.pods:
            del self.items[item.key]
        self._reckon(way, -number)

    def ways(self, cls: PodClass, number: int, need: Ints) -> Iterator[Way]:
        """Where new nodes could be had for pods of a class, at this rung of its ladder."""
        if not self._shut and _starts_on_new_host(cls.rungs[number]):
            yield from (way for ways in self._choices_of(cls, number, need) for way in ways if self._room(way.key) != 0)

    def routes(self, cls: PodClass, number: int, need: Ints) -> list[Pins]:
        """The domains of all ways there are, however many pods are there already."""
        return [] if self._shut else [w.route.pins for ways in self._choices_of(cls, number, need) for w in ways]

    def _put_all(self, cls: PodClass, number: int, way: Way, pods: Sequence[Pod], need: Ints) -> int:
        """There is one way only, and it asks for nothing of others but to keep clear of them."""
        rung = cls.rungs[number]
        if way.route.owners or way.route.shunned:
            done = 0
            while done < len(pods) and self._best([way], cls, number, need) is not None:
                self._put(cls, rung, way, pods[done : done + 1], need)
                done += 1
            return done
        fitting = pods[: self._room(way.key)]
        self._put(cls, rung, way, fitting, need)
        return len(fitting)

    def _room(self, key: ItemKey) -> int | None:
        """How many more pods the item may have; None for any number."""
        cap, item = self._caps.get(key), self.items.get(key)
        return None if cap is None else max(cap - (len(item.pods) if item is not None else 0), 0)

    # --- choosing -----------------------------------------------------------------------------------------------
    def _best(self, ways: Sequence[Way], cls: PodClass, number: int, need: Ints) -> Way | None:
        """The way into the emptiest domains for the least money that constraints admit now."""
        limits = self.limits(cls, number, need)
        best: Way | None = None
        least: tuple[int, int, int, ItemKey] | None = None
        for way in ways:
            route = way.route
            if self._caps and self._room(way.key) == 0:
                continue
            if route.shunned and any(group.owners.get(domain, 0) for group, domain in route.shunned):
                continue
            crowd = _crowd(route, limits)
            if crowd is None or (least is not None and crowd > least[0]):
                continue
            rank = (crowd, way.cost, self._spent.get(route.pins, 0) // _TURN, way.key)
            if least is None or rank < least:
                best, least = way, rank
        return best

    def limits(self, cls: PodClass, number: int, need: Ints) -> dict[Bond, Bounds]:
        """The counts at which a domain, or a host, admits one more pod of the class now, by constraint."""
        rung, found = cls.rungs[number], dict[Bond, Bounds]()
        for bond in rung.bonds:
            if bond.group.kind != SPREAD:
                found[bond] = admits.current(bond)
        spreads = [bond for bond in rung.bonds if bond.group.kind == SPREAD]
        if spreads:
            makeable = self._makeable(cls, need) if _starts_on_new_host(rung) else {}
            for bond in spreads:
                cls.domains[bond] = _measured(bond, makeable, found)
                found[bond] = admits.current(bond, cls.domains[bond])
        return found

    def _makeable(self, cls: PodClass, need: Ints) -> dict[str, frozenset[str]]:
        """The domains, by key, in which a node for a pod of the class can be made now; its preferences bind nothing.

        Of hostnames there is no domain, but the key when there can be any node.
        """
        known = self._domains.get(cls.number)
        if known is None:
            found: dict[str, set[str]] = {}
            for number, rung in enumerate(cls.rungs):
                choices = self._choices_of(cls, number, need) if rung.demand.possible else ()
                for way in (way for ways in choices for way in ways):
                    if self._room(way.key) != 0 and way.route.template.affords(way.route.served, need):
                        found.setdefault(labels.HOSTNAME, set())
                        for key, domain in way.route.pins:
                            found.setdefault(key, set()).add(domain)
            known = self._domains[cls.number] = {key: frozenset(domains) for key, domains in found.items()}
        return known

    def _put(self, cls: PodClass, rung: Rung, way: Way, pods: Sequence[Pod], need: Ints) -> None:
        if not pods:
            return
        item = self.items.get(way.key)
        if item is None:
            item = self.items[way.key] = Item(way.key, cls, rung, way.route.requirements, way.key[3], need)
        item.pods.extend(pods)
        self._reckon(way, len(pods))

    def _reckon(self, way: Way, number: int) -> None:
        """So many more pods are planned on the way."""
        route = way.route
        self._spent[route.pins] = self._spent.get(route.pins, 0) + way.cost * number
        for group, domain in route.counts:
            group.count(domain, number)
        for group, domain in route.owners:
            group.own(domain, number)
        for group in route.fresh:
            group.fresh += number

    # --- ways ---------------------------------------------------------------------------------------------------
    def _choices_of(self, cls: PodClass, number: int, need: Ints) -> list[list[Way]]:
        """For each alternative of the volumes and each pool, heaviest first, the ways there are."""
        key = (cls.number, number)
        known = self._choices.get(key)
        if known is None:
            constraints = (cls.rungs[number], cls.counted, cls.volumes)
            together, lists = self._alike.pop(constraints, ()), self._routes_of(cls, number, constraints)
            found = [[*self._ways(cls, number, routes, need, together)] for routes in lists]
            known = self._choices[key] = [ways for ways in found if ways]
        return known

    def _ways(
        self, cls: PodClass, number: int, routes: Sequence[_Route], need: Ints, together: Sequence[Ints]
    ) -> Iterator[Way]:
        company = 1 << (self._looking // max(len(routes), 1)).bit_length()
        for route in routes:
            if together:
                route.template.reckon(route.served, together, company)
            cost = route.template.unit_cost(route.served, need, cls.ports, company)
            if cost is not None and self._equips(cls, route):
                yield Way(route, cost, (cls.number, number, route.alternative, route.pins))

    def _equips(self, cls: PodClass, route: _Route) -> bool:
        """Whether a node of the pool could have the devices that the class's pod claims."""
        if self._devices is None or not cls.claiming:
            return True
        table, shape = route.template.table, route.template.shape(route.served)
        return self._devices.possible(cls.sample, (table.names[int(i)] for i in shape.types), route.served)

    def _routes_of(self, cls: PodClass, number: int, constraints: _Constraints) -> list[list[_Route]]:
        known = self._routes.get(constraints)
        if known is None:
            known = self._routes[constraints] = []
            rung = cls.rungs[number]
            for alternative, volume in enumerate(cls.volumes):
                for template in self._templates:
                    if not rung.demand.tolerates(template.taints) or rung.demand.requirements.conflict(volume):
                        continue
                    served = template.serve(rung.demand.requirements & volume)
                    if served is not None:
                        known.append([*_routes(cls, rung, alternative, template, served)])
        return known


def _routes(cls: PodClass, rung: Rung, alternative: int, template: Template, served: Requirements) -> Iterator[_Route]:
    """One for each combination of domains that the pool has for the keys of constraints and of groups that count."""
    keys = sorted(({b.key for b in rung.bonds} | {g.key for g in cls.counted}) - {labels.HOSTNAME})
    lists: list[list[tuple[str, str]]] = []
    for key in keys:
        possible = template.open_domains(key, served)
        if possible:
            lists.append([(key, domain) for domain in possible])
        elif any(bond.key == key and bond.group.kind != ANTI for bond in rung.bonds):
            return
    for pins in islice(product(*lists), _MOST_WAYS):
        pinned = template.join(served, pin_requirements(pins)) if pins else served
        if pinned is not None:
            yield _route(cls, rung, alternative, template, pinned, pins)


@lru_cache(maxsize=4096)
def pin_requirements(pins: Pins) -> Requirements:
    return Requirements(requirement(key, IN, (value,)) for key, value in pins)


def _route(cls: PodClass, rung: Rung, alternative: int, template: Template, served: Requirements, pins: Pins) -> _Route:
    wanted = rung.demand.requirements & cls.volumes[alternative] & pin_requirements(pins)
    at = dict(pins)
    return _Route(
        template,
        alternative,
        pins,
        wanted,
        served,
        tuple((bond, at[bond.key]) for bond in rung.bonds if bond.key in at),
        tuple((g, at[g.key]) for g in cls.counted if g.kind == ANTI and g.key in at),
        tuple(
            (g, at[g.key])
            for g in cls.counted
            if g.key in at and (g.kind != SPREAD or g.admits_plan(template.requirements, wanted, template.taints))
        ),
        tuple((b.group, at[b.key]) for b in rung.bonds if b.group.kind == ANTI and b.required and b.key in at),
        tuple(g for g in cls.counted if g.key == labels.HOSTNAME),
    )


def _measured(bond: Bond, makeable: Mapping[str, frozenset[str]], others: Mapping[Bond, Bounds]) -> Set[str]:
    """The domains that a spread is measured over: of nodes there are, and of nodes that can be made for a pod now.

    None for hostnames while a node can be made. Where another constraint of the pod admits no pod, none is made.
    """
    if bond.key == labels.HOSTNAME and labels.HOSTNAME in makeable:
        return frozenset()
    domains, new = bond.group.standing(), makeable.get(bond.key, frozenset())
    for other, limits in others.items():
        if other.required and other.key == bond.key:
            counts = other.group.counts
            new = frozenset(domain for domain in new if limits.admits(counts.get(domain, 0)))
    return domains | new


def _crowd(route: _Route, limits: Mapping[Bond, Bounds]) -> int | None:
    """How many pods are in the route's domains of spread constraints; None when a constraint forbids one more."""
    crowd = 0
    for bond, domain in route.gates:
        count = bond.group.counts.get(domain, 0)
        if bond.group.kind == SPREAD:
            crowd += count
        if not limits[bond].admits(count):
            return None
    return crowd


def _starts_on_new_host(rung: Rung) -> bool:
    """Whether hostname constraints admit a node that is empty now, or pods that are already planned on new ones."""
    return all(admits.begins_host(bond) for bond in rung.bonds if bond.key == labels.HOSTNAME)
