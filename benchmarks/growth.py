"""How time and memory of a pass grow with the pods and with the types; writes the figures of docs/performance.md.

    python -m benchmarks.growth

Measures mixed pods on generated types, by our scheduler and, up to 10,000 pods, by Karpenter's; and the cases of
`benchmarks.comparison`. All tables between markers and the plot are written anew; it takes some minutes.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from matplotlib import rc_context
from matplotlib.figure import Figure

from benchmarks import comparison, sides
from benchmarks.comparison import OURS, PEER, Found
from benchmarks.document import rewrite
from benchmarks.peers.karpenter import SOURCES, PeerUnavailable
from benchmarks.table import Row, markdown, text

DOCUMENT: Final = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
PLOT: Final = DOCUMENT.with_name("performance-growth.svg")
PODS: Final = (1000, 2000, 5000, 10_000, 20_000, 50_000)
TYPES: Final = (100, 200, 400, 800, 1200)
#: Pods while types grow, and types while pods grow; Karpenter's side is asked for what it does within a minute.
SOME_PODS, SOME_TYPES, MOST_OF_PEER = 10_000, 400, 10_000
#: By how many pods, or types, there were.
Grown = Mapping[int, Found]


# --- measuring ----------------------------------------------------------------------------------------------------
def by_pods(folder: Path, counts: Sequence[int] = PODS, most_of_peer: int = MOST_OF_PEER) -> dict[int, Found]:
    return {count: _measured(folder, count, SOME_TYPES, peer=count <= most_of_peer) for count in counts}


def by_types(folder: Path, counts: Sequence[int] = TYPES, pods: int = SOME_PODS) -> dict[int, Found]:
    return {count: _measured(folder, pods, count, peer=False) for count in counts}


def _measured(folder: Path, pods: int, types: int, *, peer: bool) -> Found:
    print(f"scheduling {pods:,} mixed pods on {types:,} types …", file=sys.stderr, flush=True)
    inputs = sides.write(folder, "mixed", pods, types, "on-demand")
    found = {OURS: sides.ours(inputs, judged=False)}
    if peer:
        try:
            found[PEER] = sides.peers(inputs)
        except PeerUnavailable as missing:
            print(missing, file=sys.stderr)
    return found


# --- writing ------------------------------------------------------------------------------------------------------
def write_growth(document: Path, picture: Path, pods: Grown, types: Grown) -> None:
    """Both tables of growth into the document, and its plot."""
    shown = f"![Time by pods, peak memory by pods, time by types]({picture.name})"
    tables = {"pods": table(pods, "pods"), "types": table(types, "types")}
    rewrite(document, {"machine": machine(), "plot": shown, **tables})
    plot(pods, types, picture)


def write_sides(document: Path, cases: Mapping[str, Found], targets: Sequence[Row]) -> None:
    """The comparison into the document."""
    told = f"```\n{text(targets)}\n```"
    rewrite(document, {"machine": machine(), "sides": markdown(comparison.lines(cases)), "targets": told})


def table(grown: Grown, what: str) -> str:
    """A line for each number of pods (or types); Karpenter's columns only where it was asked at all."""
    with_peer = any(PEER in both for both in grown.values())
    head = [what, "seconds", "CPU s", "nodes", "unplaced", "$/h", "peak MiB"]
    more = ["Karpenter: seconds", "CPU s", "nodes", "unplaced", "$/h", "peak MiB"] if with_peer else []
    lines = [[*head, *more]]
    for count, both in grown.items():
        cells = [f"{count:,}", *_cells(both[OURS])]
        if with_peer:
            cells += _cells(both[PEER]) if PEER in both else ["-"] * len(more)
        lines.append(cells)
    return markdown(lines)


def _cells(one: sides.Figures) -> tuple[str, ...]:
    return (
        f"{one.seconds:.2f}",
        f"{one.cpu_seconds:.2f}",
        f"{one.nodes:,}",
        f"{one.unplaced:,}",
        f"{one.cost_usd_per_hour:,.2f}",
        f"{one.peak_mib:.0f}",
    )


def machine() -> str:
    """What the figures were taken on, as a line."""
    peer = re.search(r"sigs\.k8s\.io/karpenter (v\S+)", (SOURCES / "go.mod").read_text())
    busy = os.getloadavg()[2]
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}, beside Karpenter "
        f"{peer[1] if peer else '?'}. Load average of the last 15 minutes: {busy:.1f}, the benchmark included."
    )


def plot(pods: Grown, types: Grown, path: Path) -> None:
    """Three panels: seconds by pods, memory by pods, seconds by types. The same figures make the same file."""
    figure = Figure(figsize=(12, 3.8), layout="constrained")
    seconds, memory, sorts = figure.subplots(1, 3)
    for by, colour in ((PEER, "tab:orange"), (OURS, "tab:blue")):
        rows = {count: both[by] for count, both in pods.items() if by in both}
        if rows:
            seconds.plot(list(rows), [one.seconds for one in rows.values()], "o-", color=colour, label=by)
            memory.plot(list(rows), [one.peak_mib for one in rows.values()], "o-", color=colour, label=by)
    sorts.plot(list(types), [both[OURS].seconds for both in types.values()], "o-", color="tab:blue", label=OURS)
    _labelled(seconds, f"pods ({SOME_TYPES} types)", "seconds", "Time of a pass", log=True)
    _labelled(memory, f"pods ({SOME_TYPES} types)", "MiB", "Peak memory of the process")
    _labelled(sorts, f"types ({SOME_PODS:,} pods)", "seconds", "Time of a pass")
    with rc_context({"svg.hashsalt": "growth", "svg.fonttype": "none"}):
        figure.savefig(path, format="svg", metadata={"Date": None})


def _labelled(axes: Any, x: str, y: str, title: str, *, log: bool = False) -> None:
    axes.set(xlabel=x, ylabel=y, title=title)
    if log:
        axes.set(xscale="log", yscale="log")
    else:
        axes.set(xlim=0, ylim=0)
    axes.grid(visible=True, alpha=0.3)
    axes.legend()


def main() -> int:
    """Measure everything, write the document and the plot."""
    with TemporaryDirectory() as name:
        write_growth(DOCUMENT, PLOT, by_pods(Path(name)), by_types(Path(name)))
    print(f"written: {PLOT.name}, and growth in {DOCUMENT.name}", flush=True)
    cases = comparison.all_cases()
    write_sides(DOCUMENT, cases, comparison.targets(cases))
    print(f"written: both sides in {DOCUMENT.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
