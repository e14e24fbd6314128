"""The rounds of a solve, and for few pods other strategies than the plain one, as far as the effort goes.

When packing fails for some (limits, say), what was learned bounds the next round's assignment, so that spreads stay
exact; rounds end because each takes something away. A strategy that serves more pods, the more important ones first, or
the same ones for less money is kept, and changed further.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, permutations
from math import lcm

from kerf.model.kubernetes.objects import Pod
from kerf.scheduling.devices.ledger import DeviceLedger
from kerf.scheduling.improving.leftovers import with_leftovers
from kerf.scheduling.nodes.table import ExistingNodes
from kerf.scheduling.offerings.instance_types import Columns
from kerf.scheduling.offerings.nodepools import NodeClaimTemplate
from kerf.scheduling.offerings.reservations import BOUGHT, Ledger
from kerf.scheduling.pack import Packer
from kerf.scheduling.packing.draft import needs_company
from kerf.scheduling.packing.effort import Effort
from kerf.scheduling.packing.finalize import Packed
from kerf.scheduling.packing.late_nodes import LateNodes
from kerf.scheduling.packing.planned_domains import brought_by, count_alike, outdated, overlooked, settled
from kerf.scheduling.packing.planned_hosts import beside_filled_hosts
from kerf.scheduling.packing.replay import holds
from kerf.scheduling.packing.sizes import PER_NODE
from kerf.scheduling.placing.as_kube_scheduler import KubeSchedulerOrder
from kerf.scheduling.placing.assign import Assignment, Supply
from kerf.scheduling.placing.classes import PodClass
from kerf.scheduling.placing.second_tries import on_existing_nodes
from kerf.scheduling.placing.strategy import PLAIN, Pins, Strategy
from kerf.scheduling.placing.ways import ItemKey, PodGroup
from kerf.scheduling.seating.reserved import on_reservations
from kerf.scheduling.topology.solve_counts import Topology
from kerf.scheduling.work import NO_TURNS, Turns, Work
from kerf_api.requirements import EMPTY

#: Rounds that learn exact bounds; after these, items that fail are given up whole; at last all new nodes are.
_EXACT_ROUNDS, _ROUNDS = 6, 16
#: Rounds that count the DaemonSet pods of planned nodes; after these, no item gets more pods than the round before had,
#: and none whose spread counts them where it had none: its own nodes may bring those that leave no place for it.
_FOLLOWED = 3
#: Other strategies are tried for so few pods. To assign these on one is as much work as to look for so many seats, and
#: one more for every so many pods; packing counts by itself.
_FEW_PODS, _SEATS_A_COURSE, _PODS_A_SEAT = 200, 8, 2
#: To hold so many nodes against pods that limits left over is as much work as to look for one seat.
_TRIALS_A_SEAT = 6
#: This share of the effort is left for a search on the best strategy.
_REST = 0.4
#: No more domains than these are tried for one class.
_MOST_DOMAINS = 12
#: How good an answer is, the smaller the better: pods without a place by priority, the highest first; preferences given
#: up; pods on NodePools of less than the highest weight, of less than the next, and so on; the price.
Worth = tuple[tuple[int, ...], int, tuple[int, ...], int]


@dataclass(slots=True, eq=False)
class Round:
    """One assignment with its packing; `left` are pods of each item for which no node could be had, the `ledger` has
    what is left of reservations."""

    assignment: Assignment
    ledger: Ledger
    packed: list[Packed] = field(default_factory=list)
    left: dict[PodGroup, int] = field(default_factory=dict)

    @property
    def failed(self) -> list[PodGroup]:
        return [item for item, number in self.left.items() if number]

    def cut_short(self) -> Round:
        """The round without a further one: the pods of failed items are left over."""
        for item in self.failed:
            self.assignment.cut.add(item.cls.number)
            self.assignment.left |= {pod.key: (item.cls, pod) for pod in item.pods[len(item.pods) - self.left[item] :]}
        return self


@dataclass(slots=True, eq=False)
class StrategySearch:
    """Rounds of assigning and packing until everything assigned is packed.

    When the `work` is used up before each class had its turn, all begins again in an order that is fair
    (`turns`). Virtual pods are the second wave. `reserved` is how many machines each capacity reservation has for us.
    Where there are such, or devices, all goes the plain strategy.
    """

    columns: Columns
    topology: Topology
    templates: Sequence[NodeClaimTemplate]
    places: ExistingNodes
    waves: Sequence[Sequence[PodClass]]
    promises: Mapping[str, str]
    open_new: bool
    scattered: type[KubeSchedulerOrder] | None
    effort: Effort
    most_types: int
    reserved: Mapping[str, int]
    devices: DeviceLedger | None
    work: Work = field(default_factory=Work)
    turns: Turns = NO_TURNS
    few: bool = False
    fair: bool = False

    def run(self) -> Round:
        """The answer: the last round that was run, for refusals are read off the counters as it left them."""
        done = self._answer()
        if not done.assignment.cut:
            return done
        self.fair = True
        self.work.restart()
        return self._rounds(PLAIN, Effort())

    def _answer(self) -> Round:
        pods = sum(len(cls.members) for classes in self.waves for cls in classes)
        special = bool(self.reserved) or self.devices is not None or self.scattered is not None
        if not self.effort.left or not self.open_new or special or pods > _FEW_PODS:
            return self._rounds(PLAIN, self.effort)
        self.few = True
        strategy, best, last = self._best_strategy(_SEATS_A_COURSE + pods // _PODS_A_SEAT)
        if self.effort.left and best.packed:
            last = self._rounds(strategy, self.effort)
            best = last if self._worth(last) <= self._worth(best) else best
        return best if best is last else self._rounds(strategy, Effort())

    # --- strategies ------------------------------------------------------------------------------------------------
    def _best_strategy(self, work: int) -> tuple[Strategy, Round, Round]:
        """From the plain strategy on: the first change for the better is kept, until none is or the effort ends.

        The best strategy, its round, and the round that was run last.
        """
        strategy, best = PLAIN, self._tried(PLAIN, work)
        last, worth, seen, rest = best, self._worth(best), {PLAIN}, int(self.effort.seats * _REST)
        better = not best.assignment.cut and bool(best.packed or self._waiting(best))  # cut short, all begins again
        while better and not self.work.worn:
            better = False
            for other in self._changes(strategy, best):
                if self.effort.left < max(work, rest) or self.work.worn:
                    return strategy, best, last
                if other in seen:
                    continue
                seen.add(other)
                last = self._tried(other, work)
                if (then := self._worth(last)) < worth:
                    strategy, best, worth, better = other, last, then, True
                    break
        return strategy, best, last

    def _tried(self, strategy: Strategy, work: int) -> Round:
        """A strategy without a search for cheaper nodes; what it takes is counted."""
        spent = Effort()
        done = self._rounds(strategy, spent)
        self.effort.used += spent.used + work
        return done

    def _worth(self, done: Round) -> Worth:
        lost = Counter(cls.sample.spec.priority for cls, _ in done.assignment.left.values())
        priorities = sorted({cls.sample.spec.priority for classes in self.waves for cls in classes}, reverse=True)
        weights = sorted({template.pool.spec.weight for template in self.templates}, reverse=True)
        given_up = sum(item.key[1] * len(item.pods) for item in done.assignment.items.values())
        pods, price = Counter[int](), 0
        for node in done.packed:
            pods[node.template.pool.spec.weight] += sum(number for _, number in node.content)
            price += int(node.template.shape(node.requirements).price_at[node.types].min()) + PER_NODE
        return (
            tuple(lost[priority] for priority in priorities),
            done.assignment.given_up + given_up,
            tuple(sum(number for lighter, number in pods.items() if lighter < weight) for weight in weights[:-1]),
            price,
        )

    def _changes(self, strategy: Strategy, done: Round) -> Iterator[Strategy]:
        """What might serve those who have no place, then what might cost less."""
        waiting = self._waiting(done)
        for cls in waiting:
            yield from self._for(cls, strategy)
        limited = any(template.remaining is not None for template in self.templates)
        if waiting and limited and not strategy.frugal:
            yield replace(strategy, frugal=True)
        turns = self._turns(strategy)
        for turn in turns:
            yield replace(strategy, turn=turn)
        if not strategy.late and any(needs_company(item.relaxation.hosts) for item in done.assignment.items.values()):
            yield replace(strategy, late=True)
        opened = list({item.key[0]: item.cls for item in done.assignment.items.values()}.values())
        for domains in _all_to_one(opened, strategy, done):
            yield replace(strategy, domains=domains)
        for domains in (one for cls in (*waiting, *opened) for one in _other_domains(cls, strategy, done)):
            yield replace(strategy, domains=domains)
            if waiting and limited and not strategy.frugal:
                yield replace(strategy, domains=domains, frugal=True)
        for domains in (one for cls in opened for one in _other_domains(cls, strategy, done)):
            yield from (replace(strategy, domains=domains, turn=turn) for turn in turns)
        yield from _first_or_split(opened, strategy, done)

    def _waiting(self, done: Round) -> list[PodClass]:
        """Classes of which some have no place, though by themselves they could have one."""
        found = {cls.number: cls for cls, _ in done.assignment.left.values()}
        return [cls for cls in found.values() if done.assignment.hopeful(cls)]

    def _for(self, cls: PodClass, strategy: Strategy) -> Iterator[Strategy]:
        if strategy.first[:1] != (cls.number,):
            yield replace(strategy, first=_to_front(cls, strategy))
        near = {group for relaxation in cls.relaxations for group in relaxation.near}
        if near:
            company = frozenset(c.number for c in self._all() if near.intersection(c.counted))
            if not company <= strategy.anew:
                for turn in (strategy.turn, *self._turns(strategy)):
                    there = replace(strategy, anew=strategy.anew | company, turn=turn)
                    yield there
                    yield replace(there, first=_to_front(cls, strategy))

    def _turns(self, strategy: Strategy) -> list[int]:
        """The other turns that the NodePools of equal weight can take: each order that they can be in has one."""
        orders = lcm(*Counter(template.pool.spec.weight for template in self.templates).values())
        return [(strategy.turn + further) % orders for further in range(1, orders)]

    def _all(self) -> Iterator[PodClass]:
        return (cls for classes in self.waves for cls in classes)

    # --- rounds -------------------------------------------------------------------------------------------------
    def _rounds(self, strategy: Strategy, effort: Effort) -> Round:
        """Rounds on one strategy; the first may look for cheaper nodes."""
        caps: dict[ItemKey, int] = {}
        bound = set[ItemKey]()
        self.topology.forget()
        new_nodes = True
        for number in range(_ROUNDS):
            done = self._round(strategy, caps, self.open_new, Effort() if caps else effort)
            if not done.failed:
                done = self._with_leftovers(done, strategy, effort)
                if number == _ROUNDS - 1:
                    return done
                if any(overlooked(self._all(), done.packed)):
                    items = {item.key: item for item in done.assignment.items.values() if item.cls.daemon_spreads}
                    bound |= {key for key, item in items.items() if _counts_daemons(item)}
                    if number >= _FOLLOWED:
                        caps.update((key, len(item.pods)) for key, item in items.items())
                        caps.update((key, 0) for key in bound - items.keys())
                    continue
                if not self._broken_by_late_pods(done, strategy, effort, capped=bool(bound), new_nodes=new_nodes):
                    if self.scattered is None and not self.work.worn:
                        beside_filled_hosts(done.assignment, done.packed)
                    return done
                new_nodes = False  # for pods that come late, in the same round again
                continue
            if self.work.over:
                return done.cut_short()
            for item in done.failed:
                exact = number < _EXACT_ROUNDS and not self.work.worn
                caps[item.key] = len(item.pods) - done.left[item] if exact else 0
        return self._round(strategy, caps, False, Effort())

    def _broken_by_late_pods(
        self, done: Round, strategy: Strategy, effort: Effort, *, capped: bool, new_nodes: bool
    ) -> bool:
        """Place pods that are left over for domains which the plan does not bring, for doubts about labels which it
        settles, or for the pods of DaemonSets in another one (`capped`), after all others; whether `new_nodes` for them
        break a spread of those.

        Then the spreads are as they were before.
        """
        if self.scattered is not None or self.work.worn:
            return False
        classes = list({cls.number: cls for cls, _ in done.assignment.left.values()}.values())
        spreads = dict.fromkeys(group for cls in classes for group in cls.daemon_spreads)
        brought_now = brought_by(done.packed) if capped and spreads else None
        groups = {group: brought_now(group) for group in spreads} if brought_now is not None else {}
        doubted = settled(classes, done.packed)
        groups = {**{group: group.brought for group in doubted}, **groups, **outdated(classes, done.packed)}
        if not any(cls.owns(groups.keys()) for cls in classes):
            return False
        assumed = {group: (group.brought, group.arriving) for group in self.topology.groups.values()}
        for group, brought in groups.items():
            group.brought = brought
        on_existing_nodes(done.assignment, groups.keys())
        before = done.packed
        if new_nodes:
            self._with_leftovers(done, strategy, effort, LateNodes(spreads))
        if done.packed == before:
            return False
        domains, daemons = overlooked(self._all(), done.packed)
        alike = count_alike(doubted, before, done.packed)
        if alike and not domains and not (daemons and not holds(done.assignment, self._all(), done.packed)):
            return False
        for group, (brought, arriving) in assumed.items():
            group.brought, group.arriving = brought, arriving
        return True

    def _with_leftovers(self, done: Round, strategy: Strategy, effort: Effort, late: LateNodes | None = None) -> Round:
        """The round with what limits left over, or all that has no place (`late`); nothing is tried where capacity
        reservations have their say, or where little work is left."""
        plain = self.open_new and not self.reserved and self.scattered is None
        if plain and not self.work.worn:
            templates = strategy.turned(self.templates)
            done.packed, trials = with_leftovers(
                done.assignment, templates, done.packed, self.most_types, frugal=strategy.frugal, late=late
            )
            effort.used += trials // _TRIALS_A_SEAT
        return done

    def _round(self, strategy: Strategy, caps: dict[ItemKey, int], open_new: bool, effort: Effort) -> Round:
        templates = strategy.turned(self.templates)
        self._begin(templates)
        supply = Supply(self.columns, self.places, templates, self.devices)
        kind = self.scattered or Assignment
        assignment = kind(supply, caps, open_new=open_new, strategy=strategy, work=self.work)
        for classes in self.waves:
            queue = strategy.queue(classes)
            assignment.run(self.turns.fairly(queue, _members) if self.fair else queue, self.promises)
        done = Round(assignment, Ledger(self.reserved))
        if self.fair or not assignment.cut:  # else all begins again
            done.left = {item: len(item.pods) for item in assignment.items.values()}
            self._pack(done, templates, strategy, effort)
        return done

    def _begin(self, templates: Sequence[NodeClaimTemplate]) -> None:
        """Nothing is planned."""
        self.topology.reset()
        for cls in self._all():
            cls.measured.clear()
        for template in templates:
            template.reset()
        self.work.begin()
        if self.devices is not None:
            self.devices.reset()

    def _pack(self, done: Round, templates: Sequence[NodeClaimTemplate], strategy: Strategy, effort: Effort) -> None:
        """New nodes for what is left, on reservations first, pool by pool."""
        within = BOUGHT if self.reserved else EMPTY
        packer = Packer(set(), self.most_types, effort, within, self.devices, strategy, self.few)
        for template in templates:
            if done.failed and self.reserved:
                others = [item for item in done.left if not item.cls.claiming]  # these are seated device by device
                seated, ledger = packer.seated, done.ledger
                done.packed += on_reservations(template, others, done.left, seated, self.most_types, ledger)
            if done.failed:
                done.packed += packer.pack(template, list(done.left), done.left)


def _counts_daemons(item: PodGroup) -> bool:
    """Whether a spread that its pods own counts DaemonSet pods of new nodes."""
    return any(constraint.group in item.cls.daemon_spreads for constraint in item.relaxation.constraints)


def _members(cls: PodClass) -> Sequence[Pod]:
    return cls.members


def _to_front(cls: PodClass, strategy: Strategy) -> tuple[int, ...]:
    return (cls.number, *(number for number in strategy.first if number != cls.number))


def _first_or_split(classes: Sequence[PodClass], strategy: Strategy, done: Round) -> Iterator[Strategy]:
    """Each class that others depend on before all others; then each over two domains."""
    for cls in classes:
        if cls.counted and strategy.first[:1] != (cls.number,):
            yield replace(strategy, first=_to_front(cls, strategy))
    for cls in classes:
        if len(cls.members) > 1:
            for two in islice(permutations(done.assignment.domains(cls), 2), _MOST_DOMAINS):
                yield replace(strategy, domains=tuple(sorted({**dict(strategy.domains), cls.number: two}.items())))


def _other_domains(
    cls: PodClass, strategy: Strategy, done: Round
) -> Iterator[tuple[tuple[int, tuple[Pins, ...]], ...]]:
    """Other domains for a class: one that it had not, in place of those that it is to have, or after them."""
    chosen = dict(strategy.domains)
    before = chosen.get(cls.number, ())
    for pins in done.assignment.domains(cls)[:_MOST_DOMAINS]:
        if pins not in before:
            for wished in dict.fromkeys(((pins,), (*before, pins))):
                yield tuple(sorted({**chosen, cls.number: wished}.items()))


def _all_to_one(
    classes: Sequence[PodClass], strategy: Strategy, done: Round
) -> Iterator[tuple[tuple[int, tuple[Pins, ...]], ...]]:
    """For each domain, that one for all classes that may have it."""
    found: dict[Pins, dict[int, tuple[Pins, ...]]] = {}
    for cls in classes:
        for pins in done.assignment.domains(cls)[:_MOST_DOMAINS]:
            found.setdefault(pins, {})[cls.number] = (pins,)
    for chosen in islice((together for together in found.values() if len(together) > 1), _MOST_DOMAINS):
        yield tuple(sorted({**dict(strategy.domains), **chosen}.items()))
