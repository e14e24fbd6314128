"""`kerf demo` as a command: chooses the screen, plays the script, and prints the summary for people or for programs."""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from kerf.cli import terminal
from kerf.cli.demonstration.screen import LineScreen, LiveScreen, SilentScreen
from kerf.cli.terminal import say

if TYPE_CHECKING:
    from kerf.cli.demonstration.demo import Demo, Summary

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
    snapshot: Annotated[str, typer.Option(metavar="FILE", help="save the final cluster for `kerf ui --snapshot`")] = "",
) -> None:
    """Run every task of Kerf in under a minute on an in-memory cluster, without Kubernetes or an AWS account."""
    from kerf.cli.demonstration.demo import as_json

    _require_writable(snapshot)
    console = _console()
    played = _silent(seed) if as_json_object else _played(console, seed, speed)
    if as_json_object:
        print(json.dumps(as_json(played.summary), indent=2))
    else:
        print_numbers(console, played.summary)
        say(_saved(snapshot, played.summary) if snapshot else NEXT)
    if not _is_saved(played, snapshot) or played.summary.unmet:
        sys.exit(1)


def _require_writable(snapshot: str) -> None:
    """Exit with code 2 if the file cannot be written: the demo takes a minute."""
    from kerf.cli.arguments import Mistake
    from kerf.cli.verbs.simulation import outputs

    try:
        outputs.require_writable({"--snapshot": snapshot}, ())
    except Mistake as error:
        say(f"kerf demo: {error}", err=True)
        raise typer.Exit(2) from error


def _is_saved(played: Demo, snapshot: str) -> bool:
    """Write the file, if one is asked for; False after an error, which is printed."""
    if not snapshot:
        return True
    from kerf.cli.answering import captures, saved

    try:
        saved.write(snapshot, [captures.compressed(played.captured())])
    except OSError as error:
        say(f"kerf demo: --snapshot {error}", err=True)
        return False
    return True


def _saved(snapshot: str, summary: Summary) -> str:
    """The next commands with the saved cluster."""
    source = f"--snapshot {shlex.quote(snapshot)}"
    lines = [
        "\nNext:",
        f"  see the cluster in a browser: kerf ui {source}",
        f"  plan a change of NodePools:   kerf plan PATH {source}",
    ]
    lines += [f"  explain a pending pod:        kerf why pod {one['pod']} {source}" for one in summary.pods_refused[:1]]
    return "\n".join(lines)


def _silent(seed: int) -> Demo:
    """The demo after its run, without a screen."""
    from kerf.cli.demonstration.demo import Demo

    played = Demo(SilentScreen(), seed=seed, pause_seconds=0)
    played.run()
    return played


def _console() -> Console:
    """Without styles where no escape sequence may be written; the width is that of the terminal in any case."""
    return Console(
        force_terminal=False if terminal.plain() else None, color_system=None if terminal.plain() else "auto"
    )


def _played(console: Console, seed: int, speed: float) -> Demo:
    """The demo after its run on the console."""
    from kerf.cli.demonstration.demo import Demo

    if console.is_terminal:
        with LiveScreen(console) as screen:
            played = Demo(screen, seed=seed, pause_seconds=FRAME_SECONDS / speed)
            played.run()
    else:
        played = Demo(LineScreen(console, wrapped=sys.stdout.isatty()), seed=seed, pause_seconds=0)
        played.run()
    return played


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
