"""`kerf demo` as a command: chooses the screen, plays the script, and prints the summary for people or for programs."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from kerf.cli.demonstration.screen import LineScreen, LiveScreen, SilentScreen

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

    console = Console()
    if as_json_object:
        summary = Demo(SilentScreen(), seed=seed, pause_seconds=0).run()
        print(json.dumps(as_json(summary), indent=2))
    elif console.is_terminal:
        with LiveScreen(console) as screen:
            summary = Demo(screen, seed=seed, pause_seconds=FRAME_SECONDS / speed).run()
        print_numbers(console, summary)
        _print_refusals(console, summary)  # the story is no longer on the screen
        console.print(NEXT)
    else:
        summary = Demo(LineScreen(console), seed=seed, pause_seconds=0).run()
        print_numbers(console, summary)
        console.print(NEXT)
    if summary.unmet:
        sys.exit(1)


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


def _print_refusals(console: Console, summary: Summary) -> None:
    """The rejected manifests and the unschedulable pods, each with its reasons."""
    for refused in summary.manifests_refused:
        console.print(f"\n[bold]{refused['manifest']} was rejected:[/]")
        for problem in refused["problems"]:
            console.print(f"  {problem}", markup=False, soft_wrap=True)
    for pod in summary.pods_refused:
        console.print(f"\n[bold]pod {pod['pod']} is unschedulable:[/]")
        console.print(f"  {pod['why']}", markup=False, soft_wrap=True)
