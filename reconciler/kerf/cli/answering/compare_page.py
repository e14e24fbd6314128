"""What `kerf plan --compare` prints: the plans of two changes side by side, as text or Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kerf.cli.answering.plan_page import MOST_ROWS, cells, duration, escaped, more, percent, price
from kerf.cli.terminal import columns
from kerf.planning.forecast import Forecast

#: Plans by the name of their change; all start from the same cluster.
Plans = Mapping[str, Forecast]


def page(found: Plans, *, most: int = MOST_ROWS) -> str:
    """The whole text, with a line break at its end."""
    lines = columns(list(_rows(found)))
    for name, one in found.items():
        points = [*_notes(one, most)]
        lines += ["", f"{name}:", *(f"  - {text}" for text in points)] if points else []
    return "\n".join(lines) + "\n"


def markdown(found: Plans, *, most: int = MOST_ROWS) -> str:
    """The same as Markdown; whatever comes from the cluster or a file name is escaped."""
    head, *rows = ([escaped(cell) for cell in row] for row in _rows(found))
    lines = ["### Kerf's plans for two changes", "", cells(head), "|---" * len(head) + "|", *map(cells, rows)]
    for name, one in found.items():
        points = [f"- {escaped(text)}" for text in _notes(one, most)]
        lines += ["", f"**{escaped(name)}**", "", *points] if points else []
    return "\n".join(lines) + "\n"


def _rows(found: Plans) -> Iterator[tuple[str, ...]]:
    plans = list(found.values())
    now = plans[0].now
    yield ("", "now", *found)
    yield ("nodes", str(now.nodes), *(str(_nodes(one)) for one in plans))
    yield ("disrupted nodes", "", *(str(len(one.planned.departures)) for one in plans))
    yield ("launched nodes", "", *(str(len(one.planned.arrivals)) for one in plans))
    yield ("evictions", "", *(str(len(one.planned.moves)) for one in plans))
    yield ("unschedulable pods", "", *(str(len(one.planned.waiting)) for one in plans))
    yield ("price", price(now.total), *(_priced(now.total, one.planned.total) for one in plans))
    for pool in sorted({*now.cost, *(name for one in plans for name in one.planned.cost)}):
        before, after = now.cost.get(pool, 0), [one.planned.cost.get(pool, 0) for one in plans]
        if {*after} != {before}:
            yield (f"  NodePool {pool}", price(before), *(_priced(before, then) for then in after))
    yield ("duration", "", *(duration(one.planned) for one in plans))
    yield ("risks", "", *(str(len(one.risks)) for one in plans))


def _nodes(one: Forecast) -> int:
    return one.now.nodes - len(one.planned.departures) + len(one.planned.arrivals)


def _priced(before: int, after: int) -> str:
    return f"{price(after)}{percent(before, after)}"


def _notes(one: Forecast, most: int) -> Iterator[str]:
    for row in one.newly_waiting[:most]:
        yield f"unschedulable because of the change: pod {row.pod}: {row.reason}"
    yield from more(len(one.newly_waiting), most)
    yield from (risk.text for risk in one.risks)
    yield from (f"assumed: {text}" for text in one.guesses)
