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


def demo(
    as_json_object: Annotated[bool, typer.Option("--json", help="print only the summary, as one JSON object")] = False,
    seed: Annotated[int, typer.Option(help="another seed is another life of the same world")] = 7,
) -> None:
    """The whole job in under a minute, on an in-memory cluster: no Kubernetes, no AWS account."""
    from kerf.cli.demonstration.demo import Demo, as_json

    console = Console()
    if as_json_object:
        summary = Demo(SilentScreen(), seed=seed, pause_seconds=0).run()
        print(json.dumps(as_json(summary), indent=2))
    elif console.is_terminal:
        with LiveScreen(console) as screen:
            summary = Demo(screen, seed=seed).run()
        _print(console, summary)
    else:
        summary = Demo(LineScreen(console), seed=seed, pause_seconds=0).run()
        _print(console, summary)
    if summary.unmet:
        sys.exit(1)


def _print(console: Console, summary: Summary) -> None:
    """The summary as a table, and what was refused, each with its reason."""
    before, after = summary.cost_before_usd_per_hour, summary.cost_after_usd_per_hour
    saved = f"{1 - after / before:.0%} saved, ${(before - after) * HOURS_PER_MONTH:,.0f} a month" if before else ""
    table = Table(title="\nSummary", title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_row("simulated time", f"{summary.virtual_minutes:.0f} minutes")
    table.add_row("pods running", f"{summary.pods_running}, and {summary.pods_pending} that nobody can host")
    table.add_row("nodes", f"{summary.nodes} at the end, {summary.nodes_launched} launched in all")
    table.add_row("cost", f"${before:.3f} → ${after:.3f} an hour after consolidation ({saved})")
    table.add_row("spot reclaims", f"{summary.spot_reclaims_survived} survived")
    replaced = f"{summary.drifted_nodes_replaced} replaced, at most {summary.most_drifting_at_once} at a time"
    table.add_row("drifted nodes", replaced)
    console.print(table)
    for refused in summary.manifests_refused:
        console.print(f"\n[bold]{refused['manifest']} was refused:[/]")
        for problem in refused["problems"]:
            console.print(f"  {problem}", markup=False, soft_wrap=True)
    for pod in summary.pods_refused:
        console.print(f"\n[bold]pod {pod['pod']} has no place:[/]")
        console.print(f"  {pod['why']}", markup=False, soft_wrap=True)
    for what in summary.unmet:
        console.print(f"\n[bold red]not reached:[/] {what}")
    console.print("\nThe same controller runs on a real cluster: README.md, “Install it”.")
