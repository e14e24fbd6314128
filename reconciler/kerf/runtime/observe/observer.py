"""Ask AWS at intervals: instances and their impairments, the node classes' selectors, the region's types and prices,
the interruption queue, launch templates and instance profiles.

Each question is a chore with a key; a chore that is being asked is not asked twice, one that failed waits longer each
time. Chores run in a pool, or inline in the sandbox; the answers go to the inbox. When the clock was set back, what was
asked later than now is asked again at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from kerf.model import kinds
from kerf.model.aws.cloud import ClusterFacts
from kerf.model.aws.inventory import PROFILE, TEMPLATE
from kerf.model.backoff import Steps
from kerf.ports import Clock, Cloud
from kerf.runtime.inbox import (
    ChoreFailed,
    ChoreRecovered,
    ClusterRead,
    Described,
    Examined,
    Inbox,
    Inventoried,
    News,
    PricesRead,
    Received,
    RegionRead,
    Resolved,
    ShiftsRead,
)
from kerf.runtime.state.backoff import Backoff
from kerf.runtime.state.state import State
from kerf.runtime.state.versions import CONFIRMED_AFTER
from kerf_api.v1.ec2nodeclass import EC2NodeClass

#: How often instances are described while some come or go, and while nothing does (a source is stale after 90 s).
INSTANCES_BUSY, INSTANCES_IDLE = timedelta(seconds=5), timedelta(seconds=60)
REGION_EVERY = timedelta(hours=12)
CLUSTER_EVERY = timedelta(minutes=5)
STATUSES_EVERY = timedelta(minutes=1)
SHIFTS_EVERY = timedelta(seconds=30)
INVENTORIES_EVERY = timedelta(minutes=30)
#: Receiving waits for messages by itself (long polling); without threads there is a pause between two looks.
QUEUE_EVERY_INLINE = timedelta(seconds=10)
STEPS = Steps(timedelta(seconds=1), timedelta(seconds=60))
#: Keys of the chores that read prices.
ON_DEMAND_PRICES, SPOT_PRICES = "on-demand prices", "spot prices"
_AT_ONCE = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Chore:
    """A question, when it is due, and how to ask it (with the instant of asking)."""

    key: str
    due: datetime
    ask: Callable[[datetime], News]


class Observer:
    """See the module. `run_due` and `next_due` belong to the loop's thread."""

    def __init__(
        self,
        cloud: Cloud,
        clock: Clock,
        inbox: Inbox,
        state: State,
        may_act: Callable[[], bool] = lambda: True,
        pool: ThreadPoolExecutor | None = None,
    ) -> None:
        self._cloud, self._clock, self._inbox, self._state, self._pool = cloud, clock, inbox, state, pool
        self._may_act = may_act
        self._lock = threading.Lock()
        self._busy: set[str] = set()
        self._asked: dict[str, datetime] = {}
        self._backoff = Backoff(STEPS)
        state.catalogues.await_prices(ON_DEMAND_PRICES, SPOT_PRICES)

    def run_due(self, now: datetime) -> bool:
        """Ask what is due; whether anything was."""
        due = [chore for chore in self._chores(now) if self._due(chore, now) <= now and self._claim(chore.key)]
        for chore in due:
            if self._pool is None:
                self._run(chore)
            else:
                self._pool.submit(self._run, chore)
        return bool(due)

    def next_due(self) -> datetime | None:
        """When the next question should be asked (one that is being asked says so itself)."""
        with self._lock:
            busy = frozenset(self._busy)
        now = self._clock.now()
        return min((self._due(chore, now) for chore in self._chores(now) if chore.key not in busy), default=None)

    # --- what is asked ------------------------------------------------------------------------------------------
    def _chores(self, now: datetime) -> Iterator[Chore]:
        state = self._state
        yield Chore("region", self._every("region", REGION_EVERY, now), self._read_region)
        for prices, ask in ((ON_DEMAND_PRICES, self._read_on_demand), (SPOT_PRICES, self._read_spot)):
            yield Chore(prices, self._every(prices, REGION_EVERY, now), ask)
        often = CLUSTER_EVERY if state.known_cluster.version.settled else CONFIRMED_AFTER
        yield Chore("cluster", self._every("cluster", often, now), self._read_cluster)
        yield Chore("instances", self._every("instances", self._pace(), now), self._describe)
        if state.synced:  # before that it is unknown which instances are ours
            yield self._examining(now)
        if self._may_act():  # only who acts deletes what nothing needs
            yield Chore("templates", self._every("templates", INVENTORIES_EVERY, now), self._list_templates)
            if not state.settings.isolated_vpc:
                yield Chore("profiles", self._every("profiles", INVENTORIES_EVERY, now), self._list_profiles)
        if state.settings.interruption_queue and self._may_act():  # who receives a message hides it from the leader
            pause = QUEUE_EVERY_INLINE if self._pool is None else timedelta(0)
            yield Chore("queue", self._every("queue", pause, now), self._receive)
        if state.settings.zonal_shift and state.known_cluster.facts is not None:
            ask = partial(self._read_shifts, state.known_cluster.facts)
            yield Chore("zonal shifts", self._every("zonal shifts", SHIFTS_EVERY, now), ask)
        if state.known_cluster.facts is not None:
            for node_class in state.cluster.objects(kinds.NODE_CLASS).values():
                yield self._resolving(node_class, state.known_cluster.facts, now)

    def _pace(self) -> timedelta:
        return INSTANCES_BUSY if self._state.busy else INSTANCES_IDLE

    def _idle(self, now: datetime) -> bool:
        """Whether no machine comes or goes, and no pod has just come whose batch may still wait for more."""
        state = self._state
        return not (state.busy or state.batch.asked_since(now - state.settings.batch_max))

    def _every(self, key: str, pause: timedelta, now: datetime) -> datetime:
        asked = self._asked.get(key)
        return _AT_ONCE if asked is None or asked > now else asked + pause

    def _resolving(self, node_class: EC2NodeClass, cluster: ClusterFacts, now: datetime) -> Chore:
        def ask(at: datetime) -> News:
            facts = self._cloud.resolve(node_class, cluster)
            return Resolved(node_class.name, node_class.metadata.uid, facts, at, cluster.kubernetes_version)

        due = self._state.catalogues.due_at(node_class, now, idle=self._idle(now))
        return Chore(f"class/{node_class.name}", due or _AT_ONCE, ask)

    def _examining(self, now: datetime) -> Chore:
        due = self._every("statuses", STATUSES_EVERY, now)
        ours = tuple(self._state.cluster.claims_by_instance) if due <= now else ()
        return Chore("statuses", due, partial(self._examine, ours))

    def _read_region(self, at: datetime) -> News:
        return RegionRead(self._cloud.region(), at)

    def _read_on_demand(self, at: datetime) -> News:
        return PricesRead(ON_DEMAND_PRICES, at, on_demand=self._cloud.on_demand_prices())

    def _read_spot(self, at: datetime) -> News:
        return PricesRead(SPOT_PRICES, at, spot=self._cloud.spot_prices())

    def _read_cluster(self, at: datetime) -> News:
        return ClusterRead(self._cloud.cluster(), at)

    def _describe(self, at: datetime) -> News:
        return Described(tuple(self._cloud.instances()), at)

    def _examine(self, ours: Sequence[str], at: datetime) -> News:
        return Examined(tuple(self._cloud.impairments(ours)), at)

    def _read_shifts(self, cluster: ClusterFacts, at: datetime) -> News:
        return ShiftsRead(tuple(self._cloud.zonal_shifts(cluster)), at)

    def _list_templates(self, at: datetime) -> News:
        return Inventoried(TEMPLATE, tuple(self._cloud.launch_templates()), at)

    def _list_profiles(self, at: datetime) -> News:
        return Inventoried(PROFILE, tuple(self._cloud.instance_profiles()), at)

    def _receive(self, at: datetime) -> News:
        return Received(tuple(self._cloud.receive()), at)

    # --- asking -------------------------------------------------------------------------------------------------
    def _due(self, chore: Chore, now: datetime) -> datetime:
        until = self._backoff.until(chore.key)
        if until is None or until > now + 2 * STEPS.longest:  # no back-off is that long
            return chore.due
        return max(chore.due, until)

    def _claim(self, key: str) -> bool:
        with self._lock:
            if key in self._busy:
                return False
            self._busy.add(key)
            return True

    def _run(self, chore: Chore) -> None:
        at = self._clock.now()
        asked: datetime | None = None
        try:
            self._inbox.put(chore.ask(at))
            if self._backoff.until(chore.key) is not None:
                self._inbox.put(ChoreRecovered(chore.key, self._clock.now()))
            self._backoff.succeeded(chore.key)
            asked = at
        except Exception as error:  # whatever it was: the question is asked again, later
            self._backoff.failed(chore.key, self._clock.now())
            self._inbox.put(ChoreFailed(chore.key, error, self._clock.now()))
        finally:
            with self._lock:
                self._busy.discard(chore.key)
                if asked is not None:  # what failed is due again when its back-off is over, not after its whole pause
                    self._asked[chore.key] = asked
            self._inbox.wake()
