"""The loop: process events, observe the state as of now, decide, act; again when something happens or is due.

With a virtual clock, `tick` also steps the reflectors and asks AWS; in real mode threads do, and `run` waits for them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from kerf.ec2 import interruptions
from kerf.model import kinds
from kerf.model.failures import DECIDE
from kerf.model.memory import Memory
from kerf.model.plan import Action, DeleteObject, EvictPod, Plan
from kerf.model.settings import Settings
from kerf.model.snapshot import Snapshot
from kerf.ports import PortError, Ports
from kerf.runtime.act.executor import Executor
from kerf.runtime.act.results import absorb, kind_of, known_of, subject, subjects
from kerf.runtime.inbox import ChoreFailed, Done, Inbox, News, Proposed, Reported
from kerf.runtime.noticed import tell_of
from kerf.runtime.observe.observer import Observer
from kerf.runtime.observe.reflector import Reflector
from kerf.runtime.parts import Parts
from kerf.runtime.process.clock import SteadyClock
from kerf.runtime.proposer import InlineProposer, ProcessProposer, Proposer
from kerf.runtime.questions import Questions
from kerf.runtime.repetition import Repetition
from kerf.runtime.secrets.launch_keys import LaunchKeys
from kerf.runtime.state.state import State
from kerf.runtime.status import Working, working
from kerf.telemetry.precedence import Precedence
from kerf.telemetry.reconciling import reconciling
from kerf.telemetry.telemetry import Telemetry

ACTION_THREADS, CHORE_THREADS, WATCH_SECONDS = 32, 6, 30.0
#: After actions the next look comes this soon: their outcome shows, and may allow the next step.
SOON = timedelta(milliseconds=10)
#: A look after a bug in deciding, and the longest time without any look at all.
AFTER_A_BUG, AT_LEAST_EVERY = timedelta(seconds=5), timedelta(seconds=30)
#: A kind that could not be listed is asked for this often, whatever the server or a clock that is set back say.
LONGEST_BACK_OFF = timedelta(minutes=5)
#: Who waits for the lease rehearses this often, and spends at most a tenth of its time on it.
REHEARSE_EVERY, REHEARSALS_PAUSE = timedelta(seconds=5), 10
#: Events that come within this time of each other are processed together; after a slow look there is a pause as long.
COALESCE_SECONDS, LONGEST_PAUSE_SECONDS = 0.005, 0.5


class Controller:
    """See the module. `may_act` says whether this process leads, and is asked before every single action."""

    def __init__(
        self,
        ports: Ports,
        parts: Parts = Parts(),  # noqa: B008 - it cannot be changed
        *,
        settings: Settings,
        inline: bool = False,
        may_act: Callable[[], bool] = lambda: True,
    ) -> None:
        ports = replace(ports, clock=(clock := SteadyClock.over(ports.clock)))
        self.telemetry = parts.telemetry or Telemetry.quiet(ports.kube, clock)
        self.inbox = Inbox() if parts.inbox is None else parts.inbox
        keys = parts.keys or LaunchKeys.of_the_process(settings.cluster_name)
        self.state = State(
            settings,
            build=parts.build,
            interpret=interruptions.parse,
            keys=keys,
        )
        self.next_due: datetime | None = clock.now()
        #: When the loop last looked: liveness.
        self.looked_at = clock.now()
        self._clock, self._may_act, self._decide, self._rehearse = clock, may_act, parts.decide, parts.rehearse
        self._rehearsed, self._rehearse_at = False, clock.now()
        self._memory, self._precedence = Memory(), parts.precedence or Precedence()
        self._inline, self._stopping = inline, threading.Event()
        self._actors = None if inline else ThreadPoolExecutor(ACTION_THREADS, "act")
        self._askers = None if inline else ThreadPoolExecutor(CHORE_THREADS, "ask")
        self._observer = Observer(ports.cloud, clock, self.inbox, self.state, may_act, self._askers)
        self._proposer = parts.proposer or self._own_proposer()
        self._repetition, self._threads = Repetition(clock.now()), list[threading.Thread]()
        self._latest, self.questions = Plan(), Questions(self.inbox.wake)
        self._reflectors = [
            Reflector(kind, ports.kube, clock, self.inbox, self.telemetry.watch_failed)
            for kind in kinds.watched(settings)
        ]
        self._executor = self._own_executor(ports, keys)
        self.telemetry.part_tried = lambda part, error: self.report(Reported.of(part, error, clock.now()))

    def _own_executor(self, ports: Ports, keys: LaunchKeys) -> Executor:
        return Executor(
            ports,
            self.inbox,
            fresh=lambda sources: self.state.fresh(sources, ports.clock.now()),
            may_act=self._may_act,
            marked=keys.marked,
            pool=self._actors,
        )

    def _own_proposer(self) -> Proposer:
        if self._inline:
            return InlineProposer(self.inbox)
        return ProcessProposer(self.inbox, self.telemetry.proposing_failed, on_answer=self.telemetry.proposed)

    def report(self, news: Reported) -> None:
        """To the loop, unless it says only that nothing fails, and nothing did. Any thread may call it."""
        if self.state.failures.is_new(news):
            self.inbox.put(news)

    @property
    def synced(self) -> bool:
        """Whether everything that is watched has been listed once."""
        return self.state.synced

    def missing(self) -> list[str]:
        """What has not been listed yet."""
        return self.state.missing()

    # --- one turn -----------------------------------------------------------------------------------------------
    def tick(self) -> Plan:
        """Process events, decide, act. The plan is returned for those who watch."""
        with self.telemetry.look():
            return self._turn()

    def _turn(self) -> Plan:
        started = self.looked_at = self._clock.now()
        self.state.under_way = self._executor.under_way
        if self._inline:
            self._observe_inline()
        news = self.inbox.drain()
        self._executor.news_drained()
        self._take_in(news)
        if not self._inline:
            self._observer.run_due(self._clock.now())
        if not self.state.synced or not self._may_act():
            self._stand_by(started)
            self.next_due = self._earliest(started + timedelta(seconds=1))
            return Plan()
        if not self._rehearsed:  # no standby: what the first look has to read, the first pods need not wait for
            self._rehearse_now(started)
        with self.telemetry.tick():
            plan, after = self._plan()
        self._latest = plan
        started_actions = self._act(plan)
        self._patience_until = self.looked_at if plan.provisioned else after
        self._propose()
        self.next_due = self._earliest(plan.next_due, after, started + SOON if started_actions else None)
        return plan

    def status(self) -> Working:
        """How the loop is doing. Only its own thread may ask; others ask by `questions`."""
        return working(
            self.state,
            self._latest,
            self._clock.now(),
            looked_at=self.looked_at,
            next_due=self.next_due,
            waiting=len(self.inbox),
            turns=self.telemetry.turns.latest(),
        )

    def _stand_by(self, now: datetime) -> None:
        """Who decides nothing waits for nothing of his own: what was due once must not keep the loop awake.

        But a replica that may have to decide any moment must not begin with an empty memory.
        """
        self._held_until = None
        self.state.marks.stand_by(now)
        self._repetition.due = max(self._repetition.due, now + self.state.settings.disruption_period)
        self._forget_changes()
        if self.state.synced and (now >= self._rehearse_at or self._rehearse_at > now + LONGEST_BACK_OFF):
            self._rehearse_now(now)

    def _rehearse_now(self, now: datetime) -> None:
        began = self._clock.monotonic()
        try:
            self._rehearse(self._snapshot(now), self._memory)
        except Exception as error:
            self.telemetry.deciding_failed(error)
            self.state.failures.read(Reported.of(DECIDE, error, now))
        took = timedelta(seconds=self._clock.monotonic() - began)
        self._rehearsed, self._rehearse_at = True, now + max(REHEARSE_EVERY, REHEARSALS_PAUSE * took)

    def _observe_inline(self) -> None:
        """Read what has changed, and ask until no answer makes another question due."""
        for reflector in self._reflectors:
            while reflector.step(0.0):
                pass
        self._take_in(self.inbox.drain())
        while self._observer.run_due(self._clock.now()):
            self._take_in(self.inbox.drain())

    def _take_in(self, news: Iterable[News]) -> None:
        now = self._clock.now()
        self.state.notice(now)
        for item in news:
            try:
                self._take_one(item, now)
            except Exception as error:
                self._not_taken(item, error, now)
            self._tell_noticed()

    def _take_one(self, item: News, now: datetime) -> None:
        if isinstance(item, Done):
            known = known_of(item.action, self.state)
            with reconciling(item.reconcile_id):
                absorb(replace(item, at=min(item.at, now)), self.state)
                self._tell_noticed()
                self._tell(partial(self.telemetry.done, item.action, item.outcome, item.value, item.error, known))
            return
        if isinstance(item, ChoreFailed):
            self.telemetry.chore_failed(item.key, item.error)
        if isinstance(item, Proposed):
            self._repetition.answered(item)
        self.state.take(item, now)

    def _not_taken(self, item: News, error: Exception, now: datetime) -> None:
        """A bug. What is half done is not relied on, and what it was about is not done again and again."""
        kind = kind_of(item)
        if kind is not None:
            self.state.doubt(kind)
        if isinstance(item, Done):
            self.state.actions.failed(subject(item.action), now)
        self.telemetry.taking_in_failed(type(item).__name__, error, kind)

    def _tell(self, tell: Callable[[], object]) -> None:
        """A bug in telling what happens changes nothing about what is known of the world."""
        try:
            tell()
        except Exception as error:
            self.telemetry.telling_failed(error)

    def _tell_noticed(self) -> None:
        noticed = self.state.notices.drain()
        telling = bool(noticed) and self._may_act()  # every replica sees everything; one of them reports it
        for one in noticed:
            self._tell(partial(tell_of, one, self.telemetry, telling=telling))

    def _snapshot(self, now: datetime) -> Snapshot:
        snapshot = self.state.snapshot(now)
        self._tell_noticed()  # before anything that may fail
        return snapshot

    def _plan(self) -> tuple[Plan, datetime | None]:
        """The plan, and when to look again although the plan does not say so. A bug in deciding ends here."""
        now = self._clock.now()
        try:
            snapshot = self._snapshot(now)
            plan = self._decide(snapshot, self._memory)
        except Exception as error:
            self.telemetry.deciding_failed(error)
            self.state.failures.read(Reported.of(DECIDE, error, now))
            return Plan(), now + AFTER_A_BUG
        self.state.failures.read(Reported.of(DECIDE, None, now))
        self._tell(partial(self.state.planned, plan, now))
        self._tell(partial(self.telemetry.planned, plan, snapshot))
        return plan, self.state.batch.due(now, self.state.settings)

    def _act(self, plan: Plan) -> bool:
        for event in plan.events:
            self._tell(partial(self.telemetry.events.write, event))
        ready, self._held_until = self._ready(plan.actions)
        return self._executor.submit(ready) > 0

    def _ready(self, actions: Iterable[Action]) -> tuple[list[Action], datetime | None]:
        """The actions that need not wait, and when the first of the others may go. A lane waits as a whole."""
        now, waiting, ready = self._clock.now(), dict[str, datetime](), list[Action]()
        for action in actions:
            until = self.state.held_until(action.key, _uid(action), subjects(action), now)
            if until is not None:
                waiting[action.lane] = until
            if action.lane not in waiting:
                ready.append(action)
        return ready, min(waiting.values(), default=None)

    def _propose(self) -> None:
        """Give the slow half something to think about, from time to time."""
        now = self._clock.now()
        if now < self._repetition.due <= now + self.state.settings.disruption_period:
            return
        if not self.state.cluster.count(kinds.NODE_CLAIM):
            self._forget_changes()
            return
        self._repetition.due = now + self.state.settings.disruption_period
        try:
            snapshot = self._snapshot(now)
            if self._repetition.same(snapshot, self.state.changes):
                if self._repetition.rests(now):
                    self._proposer.rest()
            elif self._proposer.start(snapshot, self.state.changes):
                self._repetition.asked(snapshot)
                self.state.changes.clear()
        except Exception as error:
            self.telemetry.proposing_failed(error)
            self._forget_changes()

    def _forget_changes(self) -> None:
        """No worker asks for them, and they would be kept for ever: the slow half will get everything instead."""
        self._proposer.forget()
        self._repetition.forget()
        self.state.changes.clear()

    def _earliest(self, *dues: datetime | None) -> datetime:
        now = self._clock.now()
        self.state.notice(now)
        waits = [reflector.not_before for reflector in self._reflectors] if self._inline else []
        claims = self.state.cluster.count(kinds.NODE_CLAIM)
        own = [self._held_until, self._observer.next_due(), self._repetition.due if claims else None]
        own.append(self.state.batch.due(now, self.state.settings))  # what the plan says may be of another clock
        every = [due for due in (*dues, *waits, *own) if due is not None]
        if len(self.inbox):
            every.append(now + SOON)
        return max(min(every, default=now + AT_LEAST_EVERY), now + timedelta(milliseconds=1))

    _held_until: datetime | None = None
    _patience_until: datetime | None = None

    # --- the real loop ------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Start the threads that watch."""
        for reflector in self._reflectors:
            thread = threading.Thread(target=self._watch, args=(reflector,), name=f"watch-{reflector.kind.name}")
            thread.daemon = True
            thread.start()
            self._threads.append(thread)

    def _watch(self, reflector: Reflector) -> None:
        while not self._stopping.is_set():
            try:
                reflector.step(WATCH_SECONDS)
            except Exception as error:  # a bug in reading one kind must not end its thread
                self.telemetry.watch_failed(reflector.kind, PortError(f"{type(error).__name__}: {error}"))
                self._stopping.wait(1.0)
            if reflector.not_before is not None:
                wait = min(reflector.not_before - self._clock.now(), LONGEST_BACK_OFF)
                self._stopping.wait(max(wait.total_seconds(), 0.0))
                reflector.not_before = None  # it was waited for, whatever the clock says now

    def run(self, stop: threading.Event, on_sync: Callable[[], None] = lambda: None) -> None:
        """Tick on events and when something is due, until `stop` is set. `on_sync`: called after the first lists."""
        told = False
        while not stop.is_set():
            began = self._clock.now()
            with self._precedence.turn(), self.telemetry.turns.timed():
                self.tick()
            self._tell(self.questions.answer)
            if self.synced and not told:
                told = True
                on_sync()
            due = self.next_due or self._clock.now() + AT_LEAST_EVERY
            stop.wait(self._pause((self._clock.now() - began).total_seconds()))
            left = min(min(due, began + AT_LEAST_EVERY) - self._clock.now(), AT_LEAST_EVERY)
            if left > timedelta(0) and not stop.is_set():
                self.inbox.wait(left.total_seconds())

    def _pause(self, took: float) -> float:
        """After a slow look others get to compute, too; but no pod waits for that when a batch closes, and not after it
        was served: that look was slow for its sake, and what comes next for its pods is quick."""
        until = self._patience_until
        left = LONGEST_PAUSE_SECONDS if until is None else (until - self._clock.now()).total_seconds()
        return max(min(took, left, LONGEST_PAUSE_SECONDS), COALESCE_SECONDS)

    def finish(self, seconds: float) -> bool:
        """Wait for what is under way, but no longer than that; False when something is still. `run` has ended."""
        return self._executor.finish(seconds)

    def close(self) -> None:
        """End the threads."""
        self._stopping.set()
        for reflector in self._reflectors:
            reflector.close()
        self._proposer.close()
        for pool in (self._actors, self._askers):
            if pool is not None:
                pool.shutdown(wait=False, cancel_futures=True)
        for thread in self._threads:
            thread.join(2.0)
        self.telemetry.close()


def _uid(action: Action) -> str:
    return action.uid if isinstance(action, (DeleteObject, EvictPod)) else ""
