"""The pages of a record: its decisions with the Events of a live cluster, and the chart of the price over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from flask import Flask, Response, abort, request

from kerf.cli import charts
from kerf.cli.answering.plan_page import price
from kerf.cli.web.history import History, Moment
from kerf.cli.web.pages import Sources, number, part
from kerf.cli.web.reported import Events

_OTHERS: Final = "other NodePools"


@dataclass(frozen=True, slots=True)
class Trend:
    """The price of a NodePool over the record, in millionths of a dollar per hour."""

    name: str
    first: int
    highest: int
    last: int


def add(app: Flask, sources: Sources, events: Events | None) -> None:
    """Answer `/history` and `/charts/cost.svg`; without a record they explain how to get one."""

    @app.get("/history")
    def decisions() -> str:
        text, found = request.args.get("q", "").strip(), sources.history
        entries = [one for one in found.entries if not text or one.about(text)] if found is not None else []
        reported = events.found(text) if events is not None else None
        return sources.page(
            "history.html", "history", sources.board(), part=part(entries, number()), text=text, reported=reported
        )

    @app.get("/charts/cost.svg")
    def cost_chart() -> Response:
        if sources.history is None:
            abort(404, "the origin has no history: start kerf ui with --record DIR")
        return Response(chart(sources.history), mimetype="image/svg+xml")


def chart(history: History) -> str:
    """The price by NodePool over the time of the record."""
    moments, began = history.moments, history.began
    curves = [
        charts.Curve(name or "no NodePool", [(one.at - began, prices[name]) for one, prices in rows])
        for name, rows in _curves(moments)
    ]
    return charts.over_time("Price by NodePool", curves, moments[-1].at - began, lambda value: price(round(value)))


def trends(history: History) -> tuple[Trend, ...]:
    """The NodePools of the chart, the most expensive first."""
    found = ((name, [prices[name] for _, prices in rows]) for name, rows in _curves(history.moments))
    return tuple(Trend(name, values[0], max(values), values[-1]) for name, values in found)


def _curves(moments: Sequence[Moment]) -> Iterator[tuple[str, list[tuple[Moment, Counter[str]]]]]:
    """The most expensive NodePools, and the others as one, so that every curve has its colour."""
    highest = Counter[str]()
    for moment in moments:
        highest |= Counter(moment.prices)
    names = sorted(highest, key=lambda name: (-highest[name], name))
    shown = names if len(names) <= charts.MOST else names[: charts.MOST - 1]
    rows = list[tuple[Moment, Counter[str]]]()
    for moment in moments:
        own = Counter({name: moment.prices.get(name, 0) for name in shown})
        own[_OTHERS] = moment.price - own.total()
        rows.append((moment, own))
    yield from ((name, rows) for name in (*shown, *([_OTHERS] if shown is not names else [])))
