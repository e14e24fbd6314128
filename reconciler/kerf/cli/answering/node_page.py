"""What `kerf why node` prints: the verdict in one line, then what it rests on, for a reader who has ten seconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Final

from kerf.model.instants import length, rfc3339
from kerf.scheduling.offerings import prices

if TYPE_CHECKING:
    from kerf.judgement.values import Budgets, End, Hold, Judgement, Stage

_WIDTH: Final = 15


def page(found: Judgement, now: datetime) -> str:
    """The whole text, with a line break at its end."""
    lines = [f"node {found.name} {found.text}{_when(found, now)}"]
    if found.similar:
        lines.append(f"  did you mean {', '.join(found.similar)}?")
    if found.about:
        lines.append(f"  {found.about}")
    if found.stage is not None:
        lines += _stage(found.stage, now, repeated=found.stage.text == found.text)
    if found.ends:
        lines += ["", "Possible disruption", *_ends(found, now)]
    if found.holds:
        lines += ["", "Blockers", *_holds(found, now)]
    remedied = [end for end in found.ends if end.remedies is not None]
    if remedied:
        lines += ["", "Changes that unblock it", *(line for end in remedied for line in _remedies(found, end))]
    if found.budgets is not None:
        lines += ["", *budgets(found.budgets, now)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _when(found: Judgement, now: datetime) -> str:
    if found.at is None:
        return ""
    if found.code == "Stays":
        return f"; is terminated by force {at(found.at, now)}"
    return f", since {at(found.at, now)}" if found.at <= now else f" {at(found.at, now)}"


def _stage(stage: Stage, now: datetime, *, repeated: bool) -> Iterator[str]:
    if not repeated and stage.code != "NotOurs":
        yield f"  {stage.text}" + (f" since {at(stage.since, now)}" if stage.since is not None else "")
    for fact in stage.facts:
        yield f"  - {fact.text}" + (f" {at(fact.at, now)}" if fact.at is not None else "")


def _ends(found: Judgement, now: datetime) -> Iterator[str]:
    for end in found.ends:
        yield f"  {end.code:<{_WIDTH}}{end.text}: {_outlook(found, end, now)}"
        yield from (f"  {'':<{_WIDTH}}- {fact}" for fact in end.facts)


def _outlook(found: Judgement, end: End, now: datetime) -> str:
    """When; of what is held, by which lines of the holds, and which of them do not end by themselves."""
    earliest, held = end.earliest(now), _numbers(found, end.holds)
    if earliest is None:
        lasting = _numbers(found, end.open)
        return f"blocked by {held}" + (f"; {lasting} must change" if lasting != held else "")
    if earliest <= now:
        return "now"
    when = f"at {at(earliest, now)}" if end.forceful else f"at the earliest {at(earliest, now)}"
    return f"{when}, blocked by {held}" if held else when


def _numbers(found: Judgement, holds: Iterable[Hold]) -> str:
    """The places of holds in the list of all."""
    places = {(hold.code, hold.text): n for n, hold in enumerate(found.holds, 1)}
    return ", ".join(str(n) for n in sorted({places[hold.code, hold.text] for hold in holds}))


def _holds(found: Judgement, now: datetime) -> Iterator[str]:
    for n, hold in enumerate(found.holds, 1):
        yield f"  {n:>2}  {_hold(hold, now)}"
        yield from (f"      - {fact}" for fact in hold.facts)


def _remedies(found: Judgement, end: End) -> Iterator[str]:
    """The changes that were tried and help; or that none would."""
    assert end.remedies is not None
    for one in end.remedies.found:
        saving = f" (saves {prices.dollars(one.saving)} an hour)" if one.saving else ""
        yield f"  {end.code:<{_WIDTH}}{one.text}{saving}"
    if end.remedies.found:
        return
    tried, halfway = end.remedies.tried, end.remedies.halfway
    several = f": {_numbers(found, end.open)} must change" if not tried and len(end.open) > 1 else ""
    tries = f"; {tried} were tried" if tried > 1 else ""
    yield f"  {end.code:<{_WIDTH}}no single change is enough{several}{tries}"
    if halfway is not None:
        yield f"  {'':<{_WIDTH}}- {halfway[0]}; but then: {halfway[1]}"


def _hold(hold: Hold, now: datetime) -> str:
    return str(hold) + (f", until {at(hold.until, now)}" if hold.until is not None else "")


def budgets(found: Budgets, now: datetime) -> Iterator[str]:
    """The lines about what the budgets of a NodePool allow."""
    busy = f", {found.disrupting} of them terminating or not Ready" if found.disrupting else ""
    plural = "" if found.nodes == 1 else "s"
    yield f"Budgets of NodePool {found.pool}: {found.nodes} node{plural}{busy}"
    reasons: dict[str, list[str]] = {}
    for row in found.allowances:
        many = "any number" if row.allowed is None else f"{row.allowed} of {found.nodes}"
        left = "" if row.allowed is None else f", {row.left} left"
        next_ = f"; a schedule changes that at {at(row.changes, now)}" if row.changes is not None else ""
        reasons.setdefault(f"{many} may be disrupted{left} ({row.row}){next_}", []).append(row.reason)
    for text, names in reasons.items():
        yield f"  {', '.join(names)}: {text}"


def at(at: datetime, now: datetime) -> str:
    """The instant, and how far away it is."""
    ahead = at >= now
    return f"{rfc3339(at)} ({'in ' if ahead else ''}{length(at - now if ahead else now - at)}{'' if ahead else ' ago'})"
