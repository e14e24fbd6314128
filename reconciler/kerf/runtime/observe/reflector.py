"""List and watch one kind, and report to the inbox: a small state machine that a thread turns, or that is stepped
inline.

A list that failed or was forbidden says nothing; in particular it is never reported as an empty one. Once reading is
forbidden, what was read before is not trusted either, until the kind was listed again. A watch that has been
silent for too long (no event and no bookmark) is not believed any more: the kind is listed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from kerf.model.backoff import Steps
from kerf.model.kinds import Kind
from kerf.ports import Change, Clock, Disconnected, Expired, Forbidden, Kube, PortError, Throttled, Watch
from kerf.runtime.inbox import Changed, Fresh, Inbox, Listed, Removed, Withheld

#: Bookmarks come about once a minute; after this long without any the watch is taken for dead.
SILENCE = timedelta(seconds=75)
#: A watch that ends sooner than this without having said anything counts as a failure.
SHORT_LIVED = timedelta(seconds=1)
STEPS = Steps(timedelta(milliseconds=500), timedelta(seconds=30))
#: Signs of life are reported at most this often.
TELL_FRESH = timedelta(seconds=5)


class Reflector:
    """See the module. `on_error` is called for every failure (for logs and metrics)."""

    def __init__(
        self,
        kind: Kind,
        kube: Kube,
        clock: Clock,
        inbox: Inbox,
        on_error: Callable[[Kind, PortError], None] = lambda kind, error: None,
    ) -> None:
        self.kind = kind
        self.synced = False
        #: Not before this instant is another request worth making.
        self.not_before: datetime | None = None
        self._kube, self._clock, self._inbox, self._on_error = kube, clock, inbox, on_error
        self._watch: Watch | None = None
        self._version = ""
        self._failures = 0
        self._opened = self._alive = self._told = clock.now()

    def step(self, timeout_seconds: float = 0.0) -> bool:
        """List, open the watch or read it, whichever is next. True when something was learnt.

        Waits for changes up to the time-out; during a back-off it returns at once.
        """
        now = self._clock.now()
        if self.not_before is not None and now < self.not_before:
            return False
        self.not_before = None
        try:
            if not self._version:
                self._list(now)
                return True
            if self._watch is None:
                self._watch = self._kube.watch(self.kind, self._version)
                self._opened = now
            changes = self._watch.read(timeout_seconds)
            return self._take(changes, self._clock.now() if timeout_seconds else now)
        except Expired as error:
            self._lost(error, relist=True)
        except Disconnected as error:
            self._lost(error, relist=False)
        except Forbidden as error:
            self._inbox.put(Withheld(self.kind))
            self._version = ""
            self._failed(error)
        except PortError as error:
            self._failed(error)
        except Exception as error:  # a bug: it is unknown what was lost with it
            self._version = ""
            self._failed(PortError(f"{type(error).__name__}: {error}"))
        return False

    def close(self) -> None:
        """End the watch, also when another thread is reading it."""
        if self._watch is not None:
            self._watch.close()

    def _list(self, now: datetime) -> None:
        listing = self._kube.list(self.kind)
        self._inbox.put(Listed(self.kind, listing.items, listing.resource_version, now))
        self._version, self.synced = listing.resource_version, True
        # A long list is no silence of the watch that follows it.
        self._alive, self._told = self._clock.now(), now
        self._calm()

    def _take(self, changes: Sequence[Change], now: datetime) -> bool:
        for change in changes:
            self._tell(change)
        if changes:
            self._alive = now
            self._calm()
            if now - self._told >= TELL_FRESH or any(c.type == "BOOKMARK" for c in changes):
                self._told = now
                self._inbox.put(Fresh(self.kind, now))
        elif now - self._alive > SILENCE:
            self._drop_watch()
            self._version = ""
            self._calm()
        return bool(changes)

    def _tell(self, change: Change) -> None:
        self._version = change.resource_version or self._version
        if change.value is None:
            return
        if change.type == "DELETED":
            meta = change.value.metadata
            self._inbox.put(Removed(self.kind, meta.namespace, meta.name, meta.uid))
        else:
            self._inbox.put(Changed(self.kind, change.value))

    def _lost(self, error: PortError, *, relist: bool) -> None:
        """The watch ended, as watches do; only one that keeps ending at once is a trouble.

        Any other ends a row of failures, though it may have had nothing to say.
        """
        lived = self._clock.now() - self._opened
        self._drop_watch()
        if relist:
            self._version = ""
        if lived < SHORT_LIVED:
            self._failed(error)
        else:
            self._calm()

    def _failed(self, error: PortError) -> None:
        self._drop_watch()
        self._failures += 1
        asked = timedelta(seconds=error.retry_after_seconds if isinstance(error, Throttled) else 0)
        self.not_before = self._clock.now() + max(STEPS.after(self._failures, self.kind.name), asked)
        self._on_error(self.kind, error)

    def _drop_watch(self) -> None:
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def _calm(self) -> None:
        self._failures, self.not_before = 0, None
