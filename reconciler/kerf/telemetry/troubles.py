"""What went wrong, in words and numbers: reported once, and again only after a while."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from kerf.model.failures import PROPOSE, WRITE_EVENTS
from kerf.model.kinds import Kind
from kerf.telemetry.events import WRITTEN
from kerf.telemetry.log.logs import Logger
from kerf.telemetry.repeats import Repeats
from kerf.telemetry.series.metrics import LOOP, Metrics


class Troubles:
    """See the module. Only the loop's thread calls it, except where noted."""

    def __init__(self, log: Logger, metrics: Metrics) -> None:
        self.log, self.metrics = log, metrics
        self._repeats = Repeats()
        #: Hears of a part of this process (verb and object) that fails; without an error: that works again.
        self.part_tried: Callable[[tuple[str, str], Exception | None], None] = lambda part, error: None
        #: Whether a bug has ended the look that is under way, or was last.
        self.broken = False

    def trouble(
        self, message: str, subject: str, error: Exception | None, *, same: bool = False, **fields: Any
    ) -> None:
        """A line about something that went wrong, but for what was said a moment ago. Any thread may call it.

        `same`: whatever the error says, it is the same trouble.
        """
        quiet = self._repeats.news(f"{message} {subject}", "" if same else str(error))
        if quiet is not None:
            repeated = {"repeated": quiet} if quiet else {}
            what = {} if error is None else {"error": error}
            self.log.error(message, **fields, **what, **repeated)

    def warned(self, text: str) -> None:
        """The API server did what it was asked to, and has something to say about it. Any thread may call it."""
        quiet = self._repeats.news("the API server warns", text)
        if quiet is not None:
            self.log.info("the API server warns", warning=text, **({"repeated": quiet} if quiet else {}))

    def watch_failed(self, kind: Kind, error: Exception) -> None:
        """Any thread may call it."""
        self.metrics.errors.labels(f"watch/{kind.name}").inc()
        self.trouble("listing or watching failed", kind.name, error, kind=kind.name)

    def chore_failed(self, key: str, error: Exception) -> None:
        self.metrics.errors.labels(key.partition("/")[0]).inc()
        self.trouble("reading from AWS failed", key, error, what=key)

    def types_failed(self, class_name: str, error: Exception) -> None:
        """A bug, or a type that makes no sense: nothing is launched from this node class meanwhile."""
        self.metrics.errors.labels("types").inc()
        self.trouble("working out instance types failed", class_name, error, what=class_name, where=_where(error))

    def event_failed(self, error: Exception) -> None:
        """Any thread may call it."""
        self.metrics.errors.labels("events").inc()
        self.part_tried(WRITE_EVENTS, error)
        self.trouble("writing events failed", type(error).__name__, error, same=True)

    def event_tried(self, type_: str, outcome: str) -> None:
        """An event of this type was written, left out, or could not be written. Any thread may call it."""
        self.metrics.events.labels(type_, outcome).inc()
        if outcome == WRITTEN:
            self.part_tried(WRITE_EVENTS, None)

    def recording_failed(self, folder: str, error: Exception) -> None:
        """The flight recorder does not record; decisions are not affected. Any thread may call it."""
        self.metrics.errors.labels("recorder").inc()
        self.trouble("recording decisions failed", folder, error, folder=folder)

    def uploading_failed(self, address: str, error: Exception) -> None:
        """A copy of the record is not up to date; its folder is. Any thread may call it."""
        self.metrics.errors.labels("recorder_upload").inc()
        self.trouble("uploading the record failed", address, error, address=address)

    def deciding_failed(self, error: Exception) -> None:
        """A bug: nothing was decided in this look."""
        self.broken = True
        self.metrics.errors.labels("decide").inc()
        self.metrics.reconcile_errors.labels(LOOP).inc()
        self.trouble("deciding failed", _where(error), error, where=_where(error))

    def taking_in_failed(self, what: str, error: Exception, doubted: Kind | None = None) -> None:
        """A bug: an event was not processed. Nothing that rests on the doubted kind is destroyed until the next
        start."""
        self.metrics.errors.labels("take_in").inc()
        fields: dict[str, Any] = {"what": what, "where": _where(error)}
        if doubted is not None:
            fields["doubted"] = f"{doubted.name}: no disruption that depends on this kind until Kerf restarts"
        self.trouble("processing a watch event failed", f"{what} {fields['where']}", error, **fields)

    def safely(self, tell: Callable[..., object], *arguments: Any) -> None:
        """Report something. If that fails, report the failure instead."""
        try:
            tell(*arguments)
        except Exception as error:
            self.telling_failed(error)

    def telling_failed(self, error: Exception) -> None:
        """A bug in this room."""
        self.metrics.errors.labels("telemetry").inc()
        self.trouble("telling what happened failed", _where(error), error, where=_where(error))

    def proposing_failed(self, error: Exception) -> None:
        """Any thread may call it."""
        self.part_tried(PROPOSE, error)
        self.metrics.errors.labels("propose").inc()
        self.trouble("proposing failed", _where(error), error, where=_where(error))


def _where(error: Exception) -> str:
    """The innermost frame, as file:line; a whole trace would break the one line."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else ""
