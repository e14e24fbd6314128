"""`kerf demo` as a command: chooses the screen, plays the script, and prints the summary for people or for programs."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from kerf.cli import terminal
from kerf.cli.demonstration.screen import LineScreen, LiveScreen, SilentScreen
from kerf.cli.terminal import say

if TYPE_CHECKING:
    from kerf.cli.demonstration.demo import Summary

HOURS_PER_MONTH = 730
FRAME_SECONDS = 0.05
NEXT = """
Next:
  check your own NodePools:     kerf validate PATH
  convert older manifests:      kerf convert --diff PATH
  install Kerf on a cluster:    docs/getting-started.md"""


def demo(
    as_json_object: Annotated[bool, typer.Option("--json", help="print only the summary, as one JSON object")] = False,
    seed: Annotated[int, typer.Option(help="random seed")] = 7,
    speed: Annotated[float, typer.Option(min=0.1, max=1000, help="how many times as fast as usual")] = 1.0,
) -> None:
    """Run every task of Kerf in under a minute on an in-memory cluster, without Kubernetes or an AWS account."""
    from kerf.cli.demonstration.demo import Demo, as_json

    if as_json_object:
        summary = Demo(SilentScreen(), seed=seed, pause_seconds=0).run()
        print(json.dumps(as_json(summary), indent=2))
    else:
        summary = _played(_console(), seed, speed)
    if summary.unmet:
        sys.exit(1)


def _console() -> Console:
    """Without styles where no escape sequence may be written; the width is that of the terminal in any case."""
    return Console(
        force_terminal=False if terminal.plain() else None, color_system=None if terminal.plain() else "auto"
    )


def _played(console: Console, seed: int, speed: float) -> Summary:
    from kerf.cli.demonstration.demo import Demo

    if console.is_terminal:
        with LiveScreen(console) as screen:
            summary = Demo(screen, seed=seed, pause_seconds=FRAME_SECONDS / speed).run()
    else:
        summary = Demo(LineScreen(console, wrapped=sys.stdout.isatty()), seed=seed, pause_seconds=0).run()
    print_numbers(console, summary)
    say(NEXT)
    return summary


def print_numbers(console: Console, summary: Summary) -> None:
    """The summary as a table, and the goals that the run has missed."""
    before, after = summary.cost_before_usd_per_hour, summary.cost_after_usd_per_hour
    saved = f"{1 - after / before:.0%} saved, ${(before - after) * HOURS_PER_MONTH:,.0f} a month" if before else ""
    table = Table(title="\nSummary", title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_row("simulated time", f"{summary.virtual_minutes:.0f} minutes")
    table.add_row("pods running", f"{summary.pods_running}, and {summary.pods_pending} unschedulable")
    table.add_row("nodes", f"{summary.nodes} at the end, {summary.nodes_launched} launched in all")
    table.add_row("cost", f"${before:.3f} → ${after:.3f} an hour after consolidation ({saved})")
    table.add_row("spot reclaims", f"{summary.spot_reclaims_survived} survived")
    replaced = f"{summary.drifted_nodes_replaced} replaced, at most {summary.most_drifting_at_once} at a time"
    table.add_row("drifted nodes", replaced)
    console.print(table)
    for what in summary.unmet:
        console.print(f"\n[bold red]not reached:[/] {what}")
