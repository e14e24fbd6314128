"""What AWS made of each node class, and the instance types that follow; built again only when an input changed.

A class whose types cannot be worked out has no catalogue: they are not known, which is not the same as having none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from kerf.ec2.instance_types.built import Built, Inputs
from kerf.ec2.instance_types.formulas import Unresolvable
from kerf.ec2.nodeclass.validation import CONDITION, dated
from kerf.ec2.pricing.prices import priced
from kerf.model.aws.cloud import ClassFacts, DryRun, ProfileAttempt, Region
from kerf.model.aws.instance_type import Catalogue, OfferingKey
from kerf.model.settings import Settings
from kerf.runtime.inbox import ChoreRecovered, Polled, PricesRead, RegionRead
from kerf.runtime.state.learned import LearnedMemory, Machine
from kerf.runtime.state.notices import Notices, TypesFailed
from kerf_api.v1.ec2nodeclass import EC2NodeClass

#: How often a class is resolved while machines come or go, or are wanted, or while it is not Ready.
RESOLVE_EVERY = timedelta(seconds=60)
#: How often what was learned of nodes is taken over: everything that rests on a class's types is computed again then.
LEARN_EVERY = timedelta(minutes=5)
_NEVER = datetime.max.replace(tzinfo=UTC)

#: `kerf.ec2.instance_types.catalogue.build`.
Build = Callable[[EC2NodeClass, ClassFacts, Region, Settings], Catalogue]


@dataclass(frozen=True, slots=True)
class _Known:
    uid: str
    facts: ClassFacts
    at: datetime
    stale: bool = False


class Catalogues:
    """Facts and catalogues by class name. One thread uses it. A class that `build` fails with is noted in `notices`."""

    def __init__(self, settings: Settings, build: Build, notices: Notices | None = None) -> None:
        self._settings, self._build, self._notices = settings, build, notices or Notices()
        self._known: dict[str, _Known] = {}
        self._built = Built()
        self._facts_view: dict[str, ClassFacts] = {}
        self._problems: dict[str, tuple[str, str]] = {}
        self._attempts: dict[str, ProfileAttempt] = {}
        self._full: dict[str, datetime] = {}
        self._shifted: frozenset[str] = frozenset()
        #: What nodes show of their memory, and what of it counts already, since when.
        self.learned = LearnedMemory()
        self._memory: Mapping[Machine, int] = {}
        self._learned_at: datetime | None = None
        #: What AWS last said of a launch that was tried dry, by class name.
        self.dry_runs: dict[str, DryRun] = {}
        #: Types, zones and prices; None until types are known, and prices or that they cannot be read.
        self.region: Region | None = None
        self._types: Region | None = None
        self._on_demand: dict[str, int] = {}
        self._spot: dict[tuple[str, str], int] = {}
        self._awaited: set[str] = set()

    # --- the region -------------------------------------------------------------------------------------------------
    def await_prices(self, *keys: str) -> None:
        """Nothing is built before prices of each of these keys are read, or have failed to be read."""
        self._awaited.update(keys)

    def read(self, news: RegionRead | PricesRead | Polled) -> None:
        """Take in the region's types and zones, prices, or that AWS has not answered: then types get estimates.

        A price that AWS no longer gives stays as it was.
        """
        if isinstance(news, RegionRead):
            self._types = news.region
        else:
            if isinstance(news, PricesRead):
                self._on_demand.update(news.on_demand)
                self._spot.update(news.spot)
            elif isinstance(news, ChoreRecovered) or news.key not in self._awaited:
                return
            self._awaited.discard(news.key)
        self._renew_region()

    def _renew_region(self) -> None:
        """Equal regions keep their identity, so that nothing is built again for them."""
        if self._types is None or self._awaited:
            return
        region = priced(self._types, self._on_demand, self._spot)
        if region != self.region:
            self.region = region

    # --- node classes -----------------------------------------------------------------------------------------------
    def resolved(self, name: str, uid: str, facts: ClassFacts, at: datetime, *, current: bool = True) -> None:
        """Take in an answer. Equal facts keep their identity, so that nothing is built again for them.

        An answer that is not `current` rests on something that has changed since: AWS is asked again at once.
        """
        facts, before = self._marked(facts), self._known.get(name)
        if before is not None and before.uid == uid and before.facts == facts:
            facts = before.facts
        self._known[name] = _Known(uid, facts, at, stale=not current)
        self._renew_view()

    def full(self, subnets: Iterable[str], until: datetime) -> None:
        """These subnets have no address left; until then nothing is launched there."""
        self._full.update(dict.fromkeys(subnets, until))
        self._mark_anew()

    def forget_full(self, now: datetime) -> None:
        """Subnets that may have addresses again."""
        if over := [id_ for id_, until in self._full.items() if until <= now]:
            for id_ in over:
                del self._full[id_]
            self._mark_anew()

    def set_back(self, by: timedelta) -> None:
        """The clock was set back by so much: a full subnet stays full for as long as before."""
        self._full = {id_: until - by for id_, until in self._full.items()}

    def shift(self, zone_ids: Iterable[str]) -> None:
        """Traffic is shifted away from these zones, and from no others: nothing is launched there."""
        if (shifted := frozenset(zone_ids)) != self._shifted:
            self._shifted = shifted
            self._mark_anew()

    def learn(self, now: datetime) -> None:
        """Take over what has been learned, every few minutes and at the first look."""
        if self._learned_at is not None and self._learned_at <= now < self._learned_at + LEARN_EVERY:
            return
        self._learned_at, before = now, self._memory
        self._memory = self.learned.table(now)
        if self._memory != before:
            self._mark_anew()

    def _mark_anew(self) -> None:
        for name, known in self._known.items():
            if (facts := self._marked(known.facts)) != known.facts:
                self._known[name] = replace(known, facts=facts)
        self._renew_view()

    def _marked(self, facts: ClassFacts) -> ClassFacts:
        images = {image.id for image in facts.images}
        return replace(
            facts,
            full_subnets=frozenset(s.id for s in facts.subnets if s.id in self._full),
            shifted=frozenset(s.zone_id for s in facts.subnets if s.zone_id in self._shifted),
            memory_bytes={machine: memory for machine, memory in self._memory.items() if machine[1] in images},
        )

    def tried(self, name: str, found: DryRun) -> None:
        """A launch from this class was tried dry."""
        if name in self._known:
            self.dry_runs[name] = dated(found, self.dry_runs.get(name))

    def profile_attempted(self, name: str, attempt: ProfileAttempt | None) -> None:
        """Keep why the instance profile of a class could not be created; None once it was."""
        if self._attempts.get(name) == attempt:
            return
        self._attempts.pop(name, None)
        if attempt is not None and name in self._known:
            self._attempts[name] = attempt
        self._renew_view()

    def look_again(self, name: str = "") -> None:
        """Something that this class ("": all classes) rests on has changed: its facts are due at once."""
        for each in [name] if name else list(self._known):
            if (known := self._known.get(each)) is not None:
                self._known[each] = replace(known, stale=True)

    def forget(self, name: str) -> None:
        self._known.pop(name, None)
        self._built.forget(name)
        self._problems.pop(name, None)
        self._attempts.pop(name, None)
        self.dry_runs.pop(name, None)
        self._renew_view()

    def due_at(self, node_class: EC2NodeClass, now: datetime, *, idle: bool = False) -> datetime | None:
        """When a class should be resolved; None: at once, also when the clock was set back since it was.

        One that cannot be read selects who knows what: never. While all is `idle`, one that is settled has time.
        """
        if node_class.metadata.unreadable:
            return _NEVER
        known = self._known.get(node_class.name)
        if known is None or known.stale or known.uid != node_class.metadata.uid:
            return None
        if known.facts.generation != node_class.metadata.generation or known.at > now:
            return None
        return known.at + (self._settings.refresh if idle and _settled(node_class, known.facts) else RESOLVE_EVERY)

    @property
    def facts(self) -> Mapping[str, ClassFacts]:
        """By class name; that types could not be worked out from them is one more of their problems."""
        return self._facts_view

    @property
    def resolved_at(self) -> Mapping[str, datetime]:
        """As of when the facts of each class are, by its name."""
        return {name: known.at for name, known in self._known.items()}

    def offered(self, capacity_type: str) -> Iterator[OfferingKey]:
        """Every type in every zone of the region, as this capacity type."""
        known = self.region.zones_by_type if self.region is not None else {}
        return ((name, zone, capacity_type) for name, zones in known.items() for zone in zones)

    def _renew_view(self) -> None:
        self._facts_view = {name: self._told(name, known.facts) for name, known in sorted(self._known.items())}

    def _told(self, name: str, facts: ClassFacts) -> ClassFacts:
        problem, attempt = self._problems.get(name), self._attempts.get(name)
        facts = facts if attempt is None else replace(facts, profile_attempt=attempt)
        return facts if problem is None else replace(facts, problems={**facts.problems, CONDITION: problem})

    def catalogues(self, classes: Iterable[EC2NodeClass]) -> Mapping[str, Catalogue]:
        """The types of every class that is resolved and makes sense, by class name."""
        if self.region is None:
            return {}
        found = {}
        for node_class in classes:
            known = self._known.get(node_class.name)
            if known is None or known.uid != node_class.metadata.uid:
                continue
            catalogue = self._catalogue(self.region, node_class, known)
            if catalogue is not None:
                found[node_class.name] = catalogue
        return found

    def _catalogue(self, region: Region, node_class: EC2NodeClass, known: _Known) -> Catalogue | None:
        inputs = Inputs(region, known.facts, known.uid, node_class.metadata.generation)
        return self._built.get(node_class.name, inputs, lambda: self._try(node_class, known.facts, region))

    def _try(self, node_class: EC2NodeClass, facts: ClassFacts, region: Region) -> Catalogue | None:
        """The types of a class; None when they cannot be worked out, which concerns this class alone."""
        catalogue: Catalogue | None = None
        try:
            catalogue = self._build(node_class, facts, region, self._settings)
        except Unresolvable as error:  # the class says something that it should not; its condition reports it
            self._problems[node_class.name] = (error.reason, str(error))
        except Exception as error:
            words = f"its instance types cannot be worked out: {type(error).__name__}: {error}"
            self._problems[node_class.name] = ("InstanceTypesUnknown", words)
            self._notices.note(TypesFailed(node_class.name, error))
        else:
            self._problems.pop(node_class.name, None)
        self._renew_view()
        return catalogue


def _settled(node_class: EC2NodeClass, facts: ClassFacts) -> bool:
    """Whether no object waits for the class, and nothing of it has its own time: capacity reservations fill and end,
    and a subnet that is full may have addresses again."""
    ready = next((one for one in node_class.status.conditions if one.type == "Ready"), None)
    if ready is None or ready.status != "True" or ready.observed_generation != node_class.metadata.generation:
        return False
    full = facts.full_subnets or any(not subnet.free_addresses for subnet in facts.subnets)
    return not (full or facts.problems or node_class.spec.capacity_reservation_selector_terms)
