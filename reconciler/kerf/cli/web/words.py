"""Values as text in templates: amounts, times, names without invisible characters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote, urlencode

from flask import Flask, g, request

from kerf.cli.answering.amounts import cores, gib
from kerf.cli.answering.node_page import at
from kerf.cli.answering.plan_page import price
from kerf.cli.answering.records import words_of
from kerf.cli.reports.escaping import visible
from kerf.cli.web.history import Moment
from kerf.model.instants import length
from kerf.views.calendar import Cycle, Window
from kerf_api.texts import counted


def install(app: Flask) -> None:
    """Make the filters of templates, and let every text of a value show its invisible characters."""
    app.jinja_env.filters |= {
        "price": price,
        "cores": cores,
        "gib": gib,
        "age": age,
        "many": counted,
        "past": past,
        "span": span,
        "tone": tone,
        "spoken": spoken,
        "parts": parts,
        "place": place,
        "instant": words_of,
    }
    app.jinja_env.globals |= {"at": _at, "link": _link, "href": _href, "kept": _kept, "latest": _latest}
    app.jinja_env.finalize = _shown


def _shown(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _link(page: int) -> str:
    """The query of another page of the same list."""
    return urlencode({**request.args.to_dict(), **({"at": g.at} if g.get("at") else {}), "page": page})


def _kept() -> list[tuple[str, str]]:
    """The parts of the query that stay when the time of the views changes."""
    return [(name, value) for name, value in request.args.items() if name not in ("at", "moment", "page")]


def _latest() -> str:
    """The address of the same view as of now."""
    return f"{quote(request.path)}{'?' if _kept() else ''}{urlencode(_kept())}"


def _href(path: str, part: str = "", **query: str) -> str:
    """An address of the page that keeps the time of the views. `part` is the identifier of an element."""
    asked = {**query, **({"at": g.at} if g.get("at") else {})}
    return f"{quote(path)}{'?' if asked else ''}{urlencode(asked)}{f'#{part}' if part else ''}"


def _at(instant: datetime | None, now: datetime) -> str:
    return "" if instant is None else at(instant, now)


def age(span: timedelta | None) -> str:
    """`3d4h`; empty for an unknown one."""
    return "" if span is None else length(span)


def spoken(span: timedelta) -> str:
    """`20 minutes`, `2 hours`; `1m30s` for a time with seconds."""
    minutes, rest = divmod(span, timedelta(minutes=1))
    if rest:
        return length(span)
    return counted(minutes // 60, "hour") if not minutes % 60 else counted(minutes, "minute")


def parts(one: Window | Cycle) -> Sequence[Window]:
    """The windows of a cycle; none of a window."""
    return one.parts if isinstance(one, Cycle) else ()


def past(first: Window | Cycle) -> int:
    """The part of a day before its first window, in percent."""
    start = first.start
    return round(100 * (start.hour * 3600 + start.minute * 60 + start.second) / 86400)


def span(one: Window | Cycle) -> str:
    """A part of one day: `09:00-17:00`; its end is 24:00 at midnight."""
    end = one.end.strftime("%H:%M")
    return f"{one.start:%H:%M}-{'24:00' if end == '00:00' else end}"


def tone(one: Window | Cycle) -> str:
    """The class of a window's colour."""
    if isinstance(one, Cycle):
        return "r"
    return "d" if one.allowed is None else "p" if one.allowed else "u"


def place(moments: Sequence[Moment], at: datetime) -> int:
    """The number of the latest moment up to a time."""
    return max(sum(one.at <= at for one in moments) - 1, 0)
