"""`kerf simulate`: run a scenario against NodePools, and judge the run by its assertions."""

from __future__ import annotations

import re
import shlex
import sys
from argparse import Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import typer

from kerf.cli.arguments import Mistake
from kerf.cli.parser import Parser
from kerf.cli.terminal import say

if TYPE_CHECKING:
    from kerf.cli.verbs.simulation.loading import File
    from kerf.cli.verbs.simulation.repeating import Job
    from kerf.cli.verbs.simulation.variants import Side
    from kerf.simulating.results import Result
    from kerf.simulating.world import Case

_ABOUT: Final = """\
Test NodePools against a scenario: a world, workloads over time, weather (spot interruptions, stock-outs, the loss of a
zone, quotas) and assertions (pods run in time, cost, evictions, disruptions). The controller of `kerf run` runs in a
simulated cluster with virtual time. Neither a cluster nor AWS is needed, asked or changed.

A scenario is a YAML file; docs/simulate.md describes its fields, --schema prints its JSON Schema.
"""
_EPILOG: Final = """\
--repeat N runs seeds SEED to SEED+N-1 in parallel processes. A seed has the same result in any process and order.
--shard I/N runs the part I (from 0) of N of all runs, for N machines.
--nodepools A B runs the scenario with the NodePools, EC2NodeClasses and NodeOverlays of each, and shows both side by
side.
--against runs it with models of other autoscalers, too: karpenter-double, threshold. They are models by Kerf's authors,
not Karpenter or Cluster Autoscaler itself; the result lists their limits.

Exit codes: 0 all assertions pass with Kerf; 1 an assertion fails with Kerf, or a result cannot be written after the
runs; 2 the command or a file is wrong."""
_TERMINAL: Final = "-"
_SVG: Final = ".svg"
_SHARD: Final = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")
#: Of runs, and of seeds; a scenario's own seed goes as far.
_HIGHEST: Final = 1_000_000_000


def simulate(context: typer.Context) -> None:
    """Test NodePools against a scenario of workloads, spot interruptions and other weather, with assertions."""
    raise typer.Exit(main(context.args))


def main(arguments: Sequence[str]) -> int:
    """Read the command line, run the scenarios, print the results; the exit code."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    if asked.chart not in ("", _TERMINAL) and not asked.chart.lower().endswith(_SVG):
        asked.scenarios.insert(0, asked.chart)  # --chart SCENARIO
        asked.chart = _TERMINAL
    if asked.schema:
        _print_schema()
        return 0
    if not asked.scenarios:
        parser.error(_missing(asked))
    if asked.chart == _TERMINAL and asked.output == "json":
        parser.error("--chart: JSON has no chart, but the series of a single run; remove --chart, or give it FILE.svg")
    try:
        return _simulated(asked, arguments)
    except Mistake as error:
        from kerf.cli.reports import escaping

        for line in str(error).split("\n"):
            escaping.complain(f"kerf simulate: {line}")
        return 2


def _missing(asked: Namespace) -> str:
    """The message for a command line without a scenario, which may be the last value of --nodepools."""
    *folders, last = asked.nodepools or [""]
    if folders:
        command = shlex.join(["kerf", "simulate", last, "--nodepools", *folders])
        return f"SCENARIO is missing, because --nodepools takes all paths after it; write SCENARIO first: {command}"
    first = "; write it before --nodepools" if last else ""
    return f"the following arguments are required: SCENARIO{first}"


def _parser() -> Parser:
    parser = Parser("kerf simulate", description=_ABOUT, epilog=_EPILOG, formatter_class=RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("scenarios", nargs="*", metavar="SCENARIO", help="a scenario file")
    add("--seed", type=_number, default=None, metavar="N", help="seed of the first run (that of the scenario)")
    add("--repeat", type=_number, default=1, metavar="N", help="number of runs, each with the next seed (1)")
    add("--jobs", type=_number, default=0, metavar="N", help="number of processes (all processors)")
    add("--shard", default="", metavar="I/N", help="only part I (from 0) of N of the runs")
    add("--nodepools", nargs="+", default=[], metavar="PATH", help="files or folders with NodePools, side by side")
    add("--against", default="", metavar="MODEL,…", help="models of other autoscalers, side by side with Kerf")
    add("-o", "--output", choices=("text", "json"), default="text", help="format of the result (text)")
    add("--junit", default="", metavar="FILE", help="write the result as JUnit's XML, too")
    words = "show nodes and cost over time as a chart, or write it to FILE.svg"
    add("--chart", nargs="?", const=_TERMINAL, default="", metavar="FILE.svg", help=words)
    add("--report", default="", metavar="FILE.html", help="write a report as one HTML file, too")
    add("--schema", action="store_true", help="print the JSON Schema of scenarios")
    return parser


def _number(text: str) -> int:
    """Raises ValueError, which the parser reports."""
    if not text.isascii() or not text.isdigit() or int(text) > _HIGHEST:
        raise ValueError(text)
    return int(text)


_number.__name__ = f"number from 0 to {_HIGHEST}"


def _print_schema() -> None:
    import json

    from kerf.simulating import reading

    say(json.dumps(reading.schema(), indent=2))


def _simulated(asked: Namespace, arguments: Sequence[str]) -> int:
    from kerf.cli.verbs.simulation import documents, drawing, outputs, variants
    from kerf.cli.verbs.simulation.loading import File

    chosen = variants.chosen(asked.nodepools, asked.against)
    files = [File(name) for name in asked.scenarios]
    cases = [(file, replace(file.case(one.node_pools), autoscaler=one.autoscaler)) for file in files for one in chosen]
    jobs = list(_jobs(asked, [case for _, case in cases]))
    written = {"--junit": asked.junit, "--report": asked.report, "--chart": _drawn(asked)}
    outputs.require_writable(written, asked.scenarios)
    outputs.require_output()
    found = _results(asked, cases, jobs)
    every = [variants.Side(one, results) for one, results in zip(chosen * len(files), found, strict=True)]
    groups = [every[first : first + len(chosen)] for first in range(0, len(every), len(chosen))]
    _print(asked, groups)
    texts = {
        "--junit": lambda: documents.as_junit(every),
        "--chart": lambda: drawing.drawn([sides for sides in groups if sides[0].results]),
        "--report": lambda: _report(files, cases[:: len(chosen)], groups, arguments),
    }
    done = [outputs.write(option, written[option], text) for option, text in texts.items()]
    passed = all(run.passed for one in every if one.variant.model is None for run in one.results)
    return 0 if passed and all(done) else 1


def _drawn(asked: Namespace) -> str:
    """The file of `--chart`, if there is one."""
    return "" if asked.chart == _TERMINAL else str(asked.chart)


def _report(
    files: Sequence[File],
    cases: Sequence[tuple[File, Case]],
    groups: Sequence[Sequence[Side]],
    arguments: Sequence[str],
) -> str:
    from kerf.cli.verbs.simulation import report

    parts = [
        report.Part(file.name, file.text, case.scenario, sides)
        for file, (_, case), sides in zip(files, cases, groups, strict=True)
        if sides[0].results
    ]
    return report.page(parts, arguments)


def _jobs(asked: Namespace, cases: Sequence[Case]) -> Iterator[Job]:
    """All runs, or those of a shard. Raises Mistake."""
    from kerf.cli.verbs.simulation.repeating import Job, shard

    if asked.repeat < 1:
        raise Mistake("--repeat: 0 runs have no result; give a number from 1")
    jobs = []
    for number, case in enumerate(cases):
        first = case.scenario.seed if asked.seed is None else asked.seed
        jobs += [Job(number, seed) for seed in range(first, first + asked.repeat)]
    if not asked.shard:
        return iter(jobs)
    found = _SHARD.fullmatch(asked.shard)
    index, count = map(int, found.groups()) if found else (0, 0)
    if index >= count:
        raise Mistake(f"--shard {asked.shard}: write I/N with I from 0 to N-1, such as 0/4")
    if option := "--nodepools" if asked.nodepools else "--against" if asked.against else "":
        raise Mistake(f"--shard and {option} exclude each other; a comparison needs all runs")
    return iter(shard(jobs, index, count))


def _results(asked: Namespace, cases: Sequence[tuple[File, Case]], jobs: Sequence[Job]) -> list[list[Result]]:
    """The results of each case. Raises Mistake."""
    from kerf.cli.verbs.simulation import repeating
    from kerf.simulating.reading import BadScenario

    found: list[list[Result]] = [[] for _ in cases]
    runs = repeating.run([case for _, case in cases], jobs, asked.jobs or repeating.processes())
    for job, result in zip(jobs, runs, strict=True):
        if isinstance(result, BadScenario):
            raise cases[job.case][0].mistake(result)
        found[job.case].append(result)
    return found


def _print(asked: Namespace, groups: Sequence[Sequence[Side]]) -> None:
    """Print the results."""
    from kerf.cli.reports import escaping
    from kerf.cli.verbs.simulation import documents, page

    ran = [sides for sides in groups if sides[0].results]
    nothing = f"--shard {asked.shard}: this part has no run; give --repeat at least as many runs as parts"
    if asked.output == "json":
        if not ran:
            escaping.complain(f"kerf simulate: {nothing}")
        sys.stdout.write(documents.as_json([one for sides in groups for one in sides]))
        return
    chart = asked.chart == _TERMINAL
    texts = [
        _compared(sides, chart=chart) if len(sides) > 1 else page.page(sides[0].results, chart=chart) for sides in ran
    ]
    say("\n".join(map(escaping.visible, "\n".join(texts or [f"{nothing}\n"]).split("\n"))), end="")


def _compared(sides: Sequence[Side], *, chart: bool) -> str:
    """The text for several variants."""
    from kerf.cli.verbs.simulation import bars, side_by_side

    table = side_by_side.table(sides)
    if not chart:
        return table
    drawn = [f"Nodes and cost over time, seed {sides[0].results[0].seed}"]
    drawn += bars.chart([(one.variant.name, one.results[0]) for one in sides])
    return "\n".join([table, *drawn, ""])
