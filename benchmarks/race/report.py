"""Medians and ranges of the runs of a race: tables for people and for the document, and what is to be reached."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import Final

from benchmarks.race import figures
from benchmarks.race.loads import LOADS
from benchmarks.race.records import Run
from benchmarks.race.store import KARPENTER, KERF
from benchmarks.table import Row

NAMES: Final = {KERF: "Kerf", KARPENTER: "Karpenter"}
#: To reach: dollars by Karpenter's, or by the bound.
MOST_OF_PEER, MOST_OF_BOUND = 1.00, 1.02
#: The runs of each side, by load.
Found = Mapping[str, Mapping[str, Sequence[Run]]]
Figure = Callable[[Run], float | None]
_MIB: Final = 2**20


def _wait(part: float) -> Figure:
    return lambda run: figures.share(figures.waits(run), part)


def _own(part: float) -> Figure:
    return lambda run: figures.share(figures.own_waits(run), part)


def _order(which: int) -> Figure:
    def found(run: Run) -> float | None:
        both = figures.first_and_last_order(run)
        return None if both is None else both[which]

    return found


def ratio(run: Run) -> float | None:
    """Dollars by the bound; None where nothing was needed."""
    bound = figures.bound_dollars(run)
    return figures.dollars(run) / bound if bound else None


def last_ratio(run: Run) -> float | None:
    """The same in the last minute."""
    bound = figures.bound_dollars_by_minute(run)[-1]
    return figures.dollars_by_minute(run)[-1] / bound if bound else None


#: Heading, how a value is written, and where it comes from.
WAITING: Final[tuple[tuple[str, str, Figure], ...]] = (
    ("p50, s", ".1f", _wait(0.5)),
    ("p95, s", ".1f", _wait(0.95)),
    ("worst, s", ".1f", _wait(1.0)),
    ("own p50, s", ".2f", _own(0.5)),
    ("own p95, s", ".2f", _own(0.95)),
    ("first order, s", ".1f", _order(0)),
    ("last order, s", ".1f", _order(1)),
    ("never ready", ".0f", figures.never_ready),
    ("$", ".3f", figures.dollars),
    ("bound, $", ".3f", figures.bound_dollars),
    ("ratio", ".3f", ratio),
    ("last minute", ".3f", last_ratio),
)
USE: Final[tuple[tuple[str, str, Figure], ...]] = (
    ("nodes", ".0f", lambda run: figures.nodes_at(run, run.seconds)),
    ("launched", ".0f", lambda run: sum(one.launched >= 0 for one in run.machines)),
    ("evictions", ".0f", lambda run: run.evictions),
    ("AWS calls", ".0f", lambda run: sum(run.calls.values())),
    ("CPU s", ".1f", lambda run: run.cpu_seconds),
    ("peak MiB", ".0f", lambda run: run.peak_bytes / _MIB),
    ("at rest MiB", ".0f", lambda run: run.rest_bytes / _MIB),
)


def table(found: Found, columns: Sequence[tuple[str, str, Figure]]) -> list[tuple[str, ...]]:
    """A heading, and a line for each load and side."""
    lines = [("load", "by", "runs", *(head for head, _form, _of in columns))]
    for load, by_side in found.items():
        for side, runs in by_side.items():
            cells = (spread(runs, form, of) for _head, form, of in columns)
            lines.append((f"{load}: {LOADS[load].title}", NAMES[side], f"{len(runs)}", *cells))
    return lines


def calls(found: Found) -> list[tuple[str, ...]]:
    """Calls to AWS by action, a column for each load and side; medians."""
    pairs = [(load, side, runs) for load, by_side in found.items() for side, runs in by_side.items()]
    actions = sorted({action for *_, runs in pairs for run in runs for action in run.calls})
    lines = [("action", *(f"{load} {NAMES[side]}" for load, side, _runs in pairs))]
    for action in actions:
        counts = (median(run.calls.get(action, 0) for run in runs) for *_, runs in pairs)
        lines.append((action, *(f"{count:.0f}" for count in counts)))
    return lines


def minutes(run: Run) -> Iterator[tuple[str, ...]]:
    """Dollars of a run minute by minute, beside the bound."""
    yield ("minute", "$", "bound, $", "ratio")
    both = zip(figures.dollars_by_minute(run), figures.bound_dollars_by_minute(run), strict=True)
    for number, (cost, least) in enumerate(both):
        yield (f"{number}", f"{cost:.4f}", f"{least:.4f}", f"{cost / least:.3f}" if least else "-")


def spread(runs: Sequence[Run], form: str, of: Figure) -> str:
    """The median of a figure, with its range where runs differ in what is shown."""
    values = [value for value in map(of, runs) if value is not None]
    if not values:
        return "-"
    least, most = format(min(values), form), format(max(values), form)
    middle = format(median(values), form)
    return middle if least == most else f"{middle} ({least} to {most})"


# --- to reach ---------------------------------------------------------------------------------------------------------
def targets(found: Found) -> list[Row]:
    """Two rows for each load that both sides have run."""
    rows: list[Row] = []
    for load, by_side in found.items():
        ours, theirs = by_side.get(KERF, ()), by_side.get(KARPENTER, ())
        if ours and theirs:
            rows += (_waiting(load, ours, theirs), _money(load, ours, theirs))
    return rows


def _waiting(load: str, ours: Sequence[Run], theirs: Sequence[Run]) -> Row:
    mine, other = _median(ours, _wait(0.95)), _median(theirs, _wait(0.95))
    missing = max(map(figures.never_ready, ours))
    text = f"{mine:.2f} s, Karpenter's {other:.2f} s" + (f", {missing} never Ready" if missing else "")
    return Row(f"race {load}, waiting p95", text, "below Karpenter's", mine < other and not missing)


def _money(load: str, ours: Sequence[Run], theirs: Sequence[Run]) -> Row:
    mine, other, least = (
        _median(ours, figures.dollars),
        _median(theirs, figures.dollars),
        _median(ours, figures.bound_dollars),
    )
    text = f"{mine:.3f} $, Karpenter's {other:.3f} $, bound {least:.3f} $"
    wanted = f"≤ {MOST_OF_PEER:.2f} times Karpenter's or ≤ {MOST_OF_BOUND:.2f} times the bound"
    return Row(f"race {load}, dollars", text, wanted, mine <= MOST_OF_PEER * other or mine <= MOST_OF_BOUND * least)


def _median(runs: Sequence[Run], of: Figure) -> float:
    """Of the runs that have the figure; 0 when none has, as where no pod had to wait."""
    values = [value for value in map(of, runs) if value is not None]
    return median(values) if values else 0.0
