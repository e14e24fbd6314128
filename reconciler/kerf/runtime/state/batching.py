"""The batch window of pending pods: the first one opens it, each new one prolongs it, the plan that serves
them closes it. For a single pod it is short.

What still waits ten seconds after a plan served it asks again, because the world may have made room meanwhile. When a
node is initialized, pods that it was made for may have lost their capacity there to others: they have waited for a
batch already, and get another plan a second later. A CapacityBuffer never stops asking, half a minute after each plan:
its room may have been taken.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from kerf.model.instants import earliest
from kerf.model.settings import Settings
from kerf.model.snapshot import Batch
from kerf_api.v1.nodeclaim import NodeClaim

#: A pod (or a node that will be removed) that still waits asks again after this long.
AGAIN = timedelta(seconds=10)
BUFFERS_AGAIN = timedelta(seconds=30)
#: When no pod has come for so long, others seldom follow the next one: they come together, within milliseconds.
QUIET = timedelta(seconds=10)
#: Time for the kube-scheduler to bind pods to a node that is initialized; pods without a place there are looked for as
#: often, and no more when the node has been initialized for `RECHECK_FOR`.
RECHECK_EVERY = timedelta(seconds=1)
RECHECK_FOR = timedelta(seconds=5)


class BatchWindow:
    """Arrival times of triggers; a trigger is a pod's or a node's UID. CapacityBuffers are kept, also by UID."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._buffers: set[str] = set()
        self._batch: Batch | None = None
        self._served_at: datetime | None = None
        self._asked_at: datetime | None = None
        #: When nodes were initialized since the latest plan: the first and the last of them.
        self._opened: tuple[datetime, datetime] | None = None
        self._recheck_at: datetime | None = None

    def trigger(self, uid: str, now: datetime) -> None:
        """Something wants a place. The same UID counts once per window."""
        if uid in self._known:
            return
        self._known.add(uid)
        quiet = self._batch is None and not self.asked_since(now - QUIET)
        self._asked_at = now
        self._prolong(now, lone=quiet)

    def _prolong(self, now: datetime, *, lone: bool = False) -> None:
        open_ = self._batch or Batch(now, now)
        maiden, tried, again = self._served_at is None, open_.tried_at, open_.try_at
        self._batch = Batch(open_.first, now, maiden=maiden, lone=lone, tried_at=tried, try_at=again)

    def reopen(self, now: datetime) -> None:
        """There may be room now: what was served in vain need not wait for its turn."""
        if self._known and self._batch is None:
            self._batch = Batch(now, now, again=True)

    def keep(self, uid: str, now: datetime) -> None:
        """A CapacityBuffer is new, or another than it was."""
        self._buffers.add(uid)
        self._prolong(now)

    def keep_no_longer(self, uid: str, now: datetime) -> None:
        """A CapacityBuffer is gone: what it kept may be free."""
        if uid in self._buffers:
            self._buffers.remove(uid)
            self._prolong(now)

    def look_again(self, now: datetime) -> None:
        """Something that CapacityBuffers may refer to has changed."""
        if self._buffers:
            self._prolong(now)

    def set_back(self, by: timedelta) -> None:
        """The clock was set back by so much: times stay as long ago as they were."""
        if self._batch is not None:
            tried, again, ahead = self._batch.tried_at, self._batch.try_at, self._batch.ahead_at
            self._batch = replace(
                self._batch,
                first=self._batch.first - by,
                last=self._batch.last - by,
                tried_at=tried and tried - by,
                try_at=again and again - by,
                ahead_at=ahead and ahead - by,
            )
        self._served_at = self._served_at - by if self._served_at is not None else None
        self._asked_at = self._asked_at - by if self._asked_at is not None else None
        self._opened = (self._opened[0] - by, self._opened[1] - by) if self._opened is not None else None
        self._recheck_at = self._recheck_at - by if self._recheck_at is not None else None

    def forget(self, uid: str) -> None:
        """It has its place, or is gone."""
        self._known.discard(uid)
        if not self._known:
            self._opened = self._recheck_at = None

    def asked_since(self, then: datetime) -> bool:
        """Whether a pod came that wants a place, or a node began to be removed; what was served in vain does not
        count."""
        return self._asked_at is not None and self._asked_at >= then

    def tried(self, now: datetime, again: datetime) -> None:
        """A plan looked for nodes to order before the close of the batch; the next one does not before `again`."""
        if self._batch is not None:
            self._batch = replace(self._batch, tried_at=now, try_at=again)

    def looked(self, now: datetime, try_at: datetime | None, *, ahead: bool = False) -> None:
        """A plan left the batch open; see `tried` for `try_at`. If it was due, no pod has lost its capacity by now.
        `ahead`: the plan has a solution as of the close; another one is made for other pods only."""
        if try_at is not None:
            self.tried(now, try_at)
        if ahead and self._batch is not None:
            self._batch = replace(self._batch, ahead_at=now)
        if self._opened is not None and self._recheck_at is not None and self._recheck_at <= now:
            again = self._recheck_at + RECHECK_EVERY  # a look comes a little later than it is due
            again = again if again > now else now + RECHECK_EVERY
            self._recheck_at = again if again <= self._opened[1] + RECHECK_FOR else None

    def claim_changed(self, old: NodeClaim | None, new: NodeClaim | None, now: datetime) -> None:
        """Its node may be initialized now: the kube-scheduler binds the pods that it was made for, or others."""
        if old is None or new is None or old.is_true("Initialized") or not new.is_true("Initialized"):
            return
        if self._known and self._served_at is not None:
            first = self._opened[0] if self._opened is not None else now
            self._opened, self._recheck_at = (first, now), self._recheck_at or now + RECHECK_EVERY

    def served(self, now: datetime, *, again: bool = False) -> None:
        """A plan worked the batch off; `again` says that it left pods over for a next one, which follows at once."""
        self._batch = Batch(now, now, again=True) if again else None
        self._served_at, self._opened, self._recheck_at = now, None, None

    def at(self, now: datetime) -> Batch | None:
        """The open batch; one opens by itself when something that was served still waits."""
        again = self._again()
        if again is not None and now >= again:
            self._batch = Batch(now, now, again=True)
        recheck, asks = self._recheck_at, self._again()
        if recheck is None or self._opened is None or (self._batch is None and asks is None):
            return self._batch
        batch = self._batch or Batch(recheck, recheck, again=True, asks_at=asks)
        return replace(batch, opened_at=self._opened[0], recheck_at=recheck)

    def due(self, now: datetime, settings: Settings) -> datetime | None:
        """When the open batch ends, or what was served asks again; None when that is past, or nothing waits."""
        ends = self._again() if self._batch is None else self._batch.closes(settings)
        ends = None if ends is not None and self._batch is not None and ends <= now else ends
        recheck = self._recheck_at if self._recheck_at is not None and self._recheck_at > now else None
        return earliest((ends, recheck))

    def _again(self) -> datetime | None:
        if self._batch is not None or self._served_at is None or not (self._known or self._buffers):
            return None
        return self._served_at + (AGAIN if self._known else BUFFERS_AGAIN)
