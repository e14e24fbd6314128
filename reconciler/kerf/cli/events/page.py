"""The output of `kerf events`: a line for each record, or JSON."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from kerf.cli.events.reading import Found
from kerf.cli.events.records import CONDITION, Record, Subject
from kerf.cli.reports.escaping import visible
from kerf.cli.terminal import columns
from kerf.model.instants import length, rfc3339

_HEAD = ("AGE", "OBJECT", "REASON", "COUNT", "MESSAGE")


def text(found: Found, limit: int, now: datetime) -> str:
    """The table, the newest first, at most `limit` rows (0: all), with a line about the rest."""
    shown = found.rows[: limit or None]
    lines = columns([_HEAD, *(_cells(one, now) for one in shown)]) if shown else []
    left = len(found.rows) - len(shown)
    if left:
        lines.append(f"… {left} older: --limit 0 prints all")
    return "".join(f"{line}\n" for line in [*lines, *(f"not checked: {one}" for one in found.not_checked)])


def _cells(one: Record, now: datetime) -> tuple[str, ...]:
    count = "" if one.source == CONDITION else str(one.count)
    message = " ".join(one.message.split())
    return length(now - one.at), visible(str(one.ref)), visible(one.reason), count, visible(message)


def as_json(found: Found, subject: Subject, limit: int) -> str:
    """One object, with a line break at its end. `left` counts the older records that `limit` leaves out."""
    shown = found.rows[: limit or None]
    whole: dict[str, Any] = {
        "version": 1,
        "subject": str(subject),
        "events": [_plain(one) for one in shown],
        "left": len(found.rows) - len(shown),
        "notChecked": found.not_checked,
    }
    return json.dumps(whole, indent=2) + "\n"


def _plain(one: Record) -> dict[str, Any]:
    return {
        "at": rfc3339(one.at),
        "since": rfc3339(one.since),
        "object": str(one.ref),
        "source": one.source,
        "type": one.type,
        "reason": one.reason,
        "message": one.message,
        "count": one.count,
    }
