"""Values as text in templates: amounts, times, names without invisible characters."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from flask import Flask, request

from kerf.cli.answering.amounts import cores, gib
from kerf.cli.answering.node_page import at
from kerf.cli.answering.plan_page import price
from kerf.cli.reports.escaping import visible
from kerf.model.instants import length


def install(app: Flask) -> None:
    """Make the filters of templates, and let every text of a value show its invisible characters."""
    app.jinja_env.filters |= {"price": price, "cores": cores, "gib": gib, "age": age, "many": many}
    app.jinja_env.globals |= {"at": _at, "link": _link}
    app.jinja_env.finalize = _shown


def _shown(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _link(page: int) -> str:
    """The query of another page of the same list."""
    return urlencode({**request.args.to_dict(), "page": page})


def _at(instant: datetime | None, now: datetime) -> str:
    return "" if instant is None else at(instant, now)


def age(span: timedelta | None) -> str:
    """`3d4h`; empty for an unknown one."""
    return "" if span is None else length(span)


def many(count: int, noun: str) -> str:
    """`1 pod`, `2 pods`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
