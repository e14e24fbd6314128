"""What `kerf plan` prints: text for a terminal, Markdown for a pull request. Money is in US dollars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Final

from kerf.cli.terminal import columns
from kerf.planning.approvals import Approval
from kerf.planning.forecast import Forecast
from kerf.planning.outcomes import Departure, Outcome
from kerf_api import durations, labels
from kerf_api.texts import counted

#: A table is as long in a terminal and in a comment, unless all rows are asked for.
MOST_ROWS: Final = 40


def page(found: Forecast, *, most: int = MOST_ROWS) -> str:
    """The whole text, with a line break at its end."""
    lines = [*_summary(found), *_order(found, most), *_waiting(found, most), *_rest(found)]
    return "\n".join(lines) + "\n"


def markdown(found: Forecast, *, most: int = MOST_ROWS) -> str:
    """The same as Markdown; whatever comes from the cluster is escaped."""
    rows = [f"| {what} | {escaped(text)} |" for what, text in _figures(found)]
    lines = ["### Kerf's plan for this change", "", "| | |", "|---|---|", *rows]
    if found.planned.departures:
        head, *table = _rows(found, most)
        lines += ["", "<details><summary>Disrupted nodes</summary>", "", cells(head), "|---" * len(head) + "|"]
        lines += [cells(map(escaped, row)) for row in table]
        lines += [*more(len(found.planned.departures), most), "", "</details>"]
    for title, points in (("Pods", _pods(found, most)), ("Risks", _risks(found)), ("Assumed", found.guesses)):
        listed = [f"- {escaped(text)}" for text in points]
        lines += ["", f"**{title}**", "", *listed] if listed else []
    return "\n".join(lines) + "\n"


#: Mentions and references are looked for after all escapes have been read: a space without width breaks them.
_MARKS: Final = {"<": "&lt;", ">": "&gt;", "@": "&#64;&#8203;", "#": "\\#&#8203;"}
_COLUMNS: Final = ("after", "NodeClaim", "NodePool", "node", "pods", "reason")


def cells(row: Iterable[str]) -> str:
    """A row of a table of Markdown."""
    return f"| {' | '.join(row)} |"


# --- the parts --------------------------------------------------------------------------------------------------
def _summary(found: Forecast) -> list[str]:
    return columns(list(_figures(found)))


def _figures(found: Forecast) -> Iterator[tuple[str, str]]:
    planned, otherwise = found.planned, found.otherwise
    after = found.now.nodes - len(planned.departures) + len(planned.arrivals)
    yield "nodes", f"{found.now.nodes} now, {after} after; {_departing(found)}, {len(planned.arrivals)} launched"
    evicted, anyway = len(planned.moves), len(otherwise.moves)
    yield (
        "pods",
        f"{counted(evicted, 'eviction')}{f', {anyway} without the change' if otherwise is not planned else ''}",
    )
    new, placed = len(found.newly_waiting), len(found.newly_placed)
    changed = f"; {new} more and {placed} fewer than without the change" if otherwise is not planned else ""
    yield "unschedulable", f"{counted(len(planned.waiting), 'pod')} after{changed}"
    change = percent(found.now.total, planned.total)
    other = f"; without the change {price(otherwise.total)}" if otherwise is not planned else ""
    yield "price", f"{price(found.now.total)} now, {price(planned.total)} after{change}{other}"
    for pool in sorted({*found.now.cost, *planned.cost}):
        before, then = found.now.cost.get(pool, 0), planned.cost.get(pool, 0)
        if before != then:
            yield f"  NodePool {pool}", f"{price(before)} now, {price(then)} after{percent(before, then)}"
    yield "duration", duration(planned)
    for one in found.approvals:
        yield approval(one)


def approval(one: Approval) -> tuple[str, str]:
    """Whether a change of a NodePool is approved, or with which annotation it would be: a title and its text."""
    if one.unknown:
        return "approval", f"NodePool {one.nodepool}: the digest is not known: {one.unknown}"
    if one.approved:
        return "approved", f"NodePool {one.nodepool}: plan {one.digest}"
    return "approve with", f"{labels.APPROVED_PLAN}: {one.digest} (annotation of NodePool {one.nodepool})"


def _departing(found: Forecast) -> str:
    reasons = Counter(one.reason for one in found.planned.departures)
    counts = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
    anyway = len(found.planned.departures) - len(found.caused)
    also = f"; {anyway} of them also without the change" if anyway and found.otherwise is not found.planned else ""
    return f"{len(found.planned.departures)} disrupted{f' ({counts}{also})' if counts else ''}"


def duration(outcome: Outcome) -> str:
    """Until nothing more happens, in words."""
    if not outcome.simulated:
        return "not simulated"
    if not outcome.departures and not outcome.arrivals:
        return "nothing changes"
    length = durations.go_text(timedelta(seconds=round(outcome.duration.total_seconds())))
    return f"{length} until nothing more happens" if outcome.at_rest else f"not done after {length}"


def _order(found: Forecast, most: int) -> Iterator[str]:
    if not found.planned.departures:
        return
    yield ""
    yield "Disrupted nodes, in order:" if found.planned.simulated else "Disrupted nodes:"
    yield from (f"  {line}" for line in columns(list(_rows(found, most))))
    yield from (f"  {text}" for text in more(len(found.planned.departures), most))


def _rows(found: Forecast, most: int) -> Iterator[tuple[str, ...]]:
    """The head and the rows of the table; an estimate has no times."""
    rows = [_COLUMNS, *_departures(found, most)]
    yield from rows if found.planned.simulated else (row[1:] for row in rows)


def _departures(found: Forecast, most: int) -> Iterator[tuple[str, ...]]:
    caused = {one.node.name for one in found.caused}
    for one in found.planned.departures[:most]:
        reason = (
            one.reason
            if one.node.name in caused or found.otherwise is found.planned
            else f"{one.reason}, also without the change"
        )
        yield _after(found, one), one.node.name, one.node.nodepool, _node(one), str(one.node.pods), reason


def _after(found: Forecast, one: Departure) -> str:
    if one.started is None:
        return ""
    return durations.go_text(timedelta(seconds=round((one.started - found.planned.began).total_seconds())))


def _node(one: Departure) -> str:
    return " ".join(filter(None, (one.node.instance_type, one.node.zone, one.node.capacity_type)))


def more(count: int, most: int) -> list[str]:
    """A line for the rows that are not shown."""
    return [f"... and {count - most} more; --all shows them"] if count > most else []


def _waiting(found: Forecast, most: int) -> Iterator[str]:
    pods = list(_pods(found, most))
    yield from ("", *pods) if pods else ()


def _pods(found: Forecast, most: int) -> Iterator[str]:
    for one in found.newly_waiting[:most]:
        yield f"unschedulable because of the change: pod {one.pod}: {one.reason or 'its reason is not known'}"
    yield from more(len(found.newly_waiting), most)
    for one in found.newly_placed[:most]:
        yield f"schedulable because of the change: pods like {one.pod}"


def _rest(found: Forecast) -> Iterator[str]:
    for title, points in (("Risks", tuple(_risks(found))), ("Assumed", found.guesses)):
        if points:
            yield from ("", f"{title}:", *(f"  - {text}" for text in points))


def _risks(found: Forecast) -> Iterable[str]:
    return (one.text for one in found.risks)


# --- words ------------------------------------------------------------------------------------------------------
def price(amount: int) -> str:
    """Millionths of a dollar per hour, for a person."""
    return f"${amount / 1e6:,.3f}/h"


def percent(before: int, after: int) -> str:
    """The change in parentheses, after a space; empty when there is no price before."""
    return f" ({100 * (after - before) / before:+.1f} %)" if before else ""


def escaped(text: str) -> str:
    """For a cell or a point of Markdown: no markup, no HTML, no mention of a person."""
    text = " ".join(text.replace("&", "&amp;").split())
    for mark in "\\`*_{}[]<>()#|~@!":
        text = text.replace(mark, _MARKS.get(mark, f"\\{mark}"))
    return text.replace("://", "&#58;//").replace("www.", "www&#46;")
