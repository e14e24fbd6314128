"""Act: perform a plan's actions through the ports and report each outcome to the inbox.

Actions of one lane run in order, lanes run in parallel (inline in the sandbox). A lane that is under way takes no new
actions: they were decided without its outcome, and are decided again once it shows. Nothing is retried here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from kerf.model.plan import Action, Source
from kerf.ports import (
    AlreadyExists,
    AlreadyGone,
    Conflict,
    EvictionBlocked,
    Forbidden,
    IdempotencyMismatch,
    Invalid,
    NotLeading,
    PortError,
    Ports,
    TemplateMissing,
    Throttled,
    Unavailable,
    WorldChanged,
)
from kerf.runtime.act.performing import perform, target
from kerf.runtime.inbox import Done, Inbox
from kerf.telemetry.reconciling import reconcile_id, reconciling

STALE, NOT_LEADING, FAILED, OK = "stale_source", "not_leading", "failed", "ok"
#: What stopped an action, by the error. The first that fits counts.
OUTCOMES: tuple[tuple[type[Exception], str], ...] = (
    (AlreadyGone, "gone"),
    (AlreadyExists, "exists"),
    (Conflict, "conflict"),
    (WorldChanged, "world_changed"),
    (NotLeading, NOT_LEADING),
    (EvictionBlocked, "blocked"),
    (Throttled, "throttled"),
    (Forbidden, "forbidden"),
    (Invalid, "invalid"),
    (TemplateMissing, "template_missing"),
    (IdempotencyMismatch, "idempotency_mismatch"),
    (Unavailable, "unavailable"),
)
#: After these the next action of the lane may follow: what it was to bring about is there.
_GOES_ON = frozenset({OK, "gone", "exists"})


class Executor:
    """See the module. Without a pool it performs inline.

    `fresh` says whether sources are recent enough for an action that destroys; `may_act` whether the lease holds;
    `marked` adds the launch mark that an action asks for, or raises PortError.
    """

    def __init__(
        self,
        ports: Ports,
        inbox: Inbox,
        *,
        fresh: Callable[[frozenset[Source]], bool],
        may_act: Callable[[], bool],
        marked: Callable[[Action], Action] = lambda action: action,
        pool: ThreadPoolExecutor | None = None,
    ) -> None:
        self._kube, self._cloud, self._clock, self._inbox = ports.kube, ports.cloud, ports.clock, inbox
        self._fresh, self._may_act, self._marked, self._pool = fresh, may_act, marked, pool
        self._busy: dict[str, Sequence[Action]] = {}
        #: Lanes whose outcome is not among the events of this reconcile.
        self._unknown: frozenset[str] = frozenset()
        self._idle = threading.Condition()

    def news_drained(self) -> None:
        """A decision from these events does not know the outcome of actions under way, though they may end
        meanwhile."""
        with self._idle:
            self._unknown = frozenset(self._busy)

    def submit(self, actions: Iterable[Action]) -> int:
        """Start these, but for lanes that are under way, or were when the inbox was emptied: what is asked of these may
        have been done since. How many were started."""
        lanes: dict[str, list[Action]] = {}
        for action in actions:
            lanes.setdefault(action.lane, []).append(action)
        started = 0
        for lane, queue in lanes.items():
            if self._claim(lane, queue):
                started += len(queue)
                self._start(lane, queue)
        return started

    def finish(self, seconds: float) -> bool:
        """Wait until nothing is under way; False when the time was too short."""
        with self._idle:
            return self._idle.wait_for(lambda: not self._busy, seconds)

    @property
    def under_way(self) -> tuple[Action, ...]:
        """What is being done, by lane. Who asks before draining the inbox misses nothing: what is over is in there."""
        with self._idle:
            return tuple(action for lane in sorted(self._busy) for action in self._busy[lane])

    def _claim(self, lane: str, queue: Sequence[Action]) -> bool:
        with self._idle:
            if lane in self._busy or lane in self._unknown:
                return False
            self._busy[lane] = queue
            return True

    def _start(self, lane: str, queue: Sequence[Action]) -> None:
        if self._pool is None:
            self._run(lane, queue, reconcile_id())
        else:
            self._pool.submit(self._run, lane, queue, reconcile_id())

    def _run(self, lane: str, queue: Sequence[Action], look: str) -> None:
        """A lane, in order, up to the first action that does not come off; all that was decided in one look."""
        try:
            for action in queue:
                with reconciling(look):
                    done = replace(self._perform(action), reconcile_id=look)
                self._inbox.put(done)
                if done.outcome not in _GOES_ON:
                    return
        finally:
            with self._idle:
                self._busy.pop(lane, None)
                self._idle.notify_all()
            self._inbox.wake()

    def _perform(self, action: Action) -> Done:
        """How it went, in any case: without an outcome it would be decided again and again."""
        try:
            return self._tried(action)
        except Exception as error:  # a bug must not take the lane, or the loop, with it
            return Done(action, FAILED, self._clock.now(), error=error)

    def _tried(self, action: Action) -> Done:
        if not self._may_act():
            return Done(action, NOT_LEADING, self._clock.now())
        if not self._fresh(action.sources):
            return Done(action, STALE, self._clock.now())
        try:
            value = perform(self._marked(action), self._kube, self._cloud, self._may_act)
        except PortError as error:
            return self._stopped(action, error)
        return Done(action, OK, self._clock.now(), value)

    def _stopped(self, action: Action, error: PortError) -> Done:
        outcome = next((name for type_, name in OUTCOMES if isinstance(error, type_)), FAILED)
        value = self._read_again(action) if isinstance(error, (AlreadyExists, Conflict)) else None
        return Done(action, outcome, self._clock.now(), value, error)

    def _read_again(self, action: Action) -> object | None:
        """The object as it is now, so that the next decision need not wait for the watch; None when it can't be had."""
        ref = target(action)
        if ref is None:
            return None
        try:
            return self._kube.get(ref)  # type: ignore[no-any-return]
        except PortError:
            return None
