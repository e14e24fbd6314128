"""`kerf simulate`: run a scenario against NodePools, and judge the run by its assertions."""

from __future__ import annotations

import re
import sys
from argparse import Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import typer

from kerf.cli.arguments import Mistake
from kerf.cli.parser import Parser
from kerf.cli.terminal import say

if TYPE_CHECKING:
    from kerf.cli.verbs.simulation.loading import File
    from kerf.cli.verbs.simulation.repeating import Job
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

Exit codes: 0 all assertions pass; 1 an assertion fails; 2 the command or a file is wrong."""
_SHARD: Final = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")
_MOST_RUNS: Final = 1_000_000


def simulate(context: typer.Context) -> None:
    """Test NodePools against a scenario of workloads, spot interruptions and other weather, with assertions."""
    raise typer.Exit(main(context.args))


def main(arguments: Sequence[str]) -> int:
    """Read the command line, run the scenarios, print the results; the exit code."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    if asked.schema:
        _print_schema()
        return 0
    if not asked.scenarios:
        parser.error("the following arguments are required: SCENARIO")
    try:
        return _simulated(asked)
    except Mistake as error:
        from kerf.cli.reports import escaping

        for line in str(error).split("\n"):
            escaping.complain(f"kerf simulate: {line}")
        return 2


def _parser() -> Parser:
    parser = Parser("kerf simulate", description=_ABOUT, epilog=_EPILOG, formatter_class=RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("scenarios", nargs="*", metavar="SCENARIO", help="a scenario file")
    add("--seed", type=_number, default=None, metavar="N", help="seed of the first run (that of the scenario)")
    add("--repeat", type=_number, default=1, metavar="N", help="number of runs, each with the next seed (1)")
    add("--jobs", type=_number, default=0, metavar="N", help="number of processes (all processors)")
    add("--shard", default="", metavar="I/N", help="only part I (from 0) of N of the runs")
    add("--nodepools", nargs="+", default=[], metavar="PATH", help="files or folders with NodePools, side by side")
    add("-o", "--output", choices=("text", "json"), default="text", help="format of the result (text)")
    add("--junit", default="", metavar="FILE", help="write the result as JUnit's XML, too")
    add("--chart", action="store_true", help="show nodes and cost over time as a chart")
    add("--schema", action="store_true", help="print the JSON Schema of scenarios")
    return parser


def _number(text: str) -> int:
    """Raises ValueError, which the parser reports."""
    if not text.isascii() or not text.isdigit() or int(text) > _MOST_RUNS:
        raise ValueError(text)
    return int(text)


_number.__name__ = f"number from 0 to {_MOST_RUNS}"


def _print_schema() -> None:
    import json

    from kerf.simulating import reading

    say(json.dumps(reading.schema(), indent=2))


def _simulated(asked: Namespace) -> int:
    from kerf.cli.verbs.simulation.loading import File
    from kerf.cli.verbs.simulation.outputs import require_writable

    if asked.junit:
        require_writable("--junit", asked.junit)
    files = [File(name) for name in asked.scenarios]
    pools = asked.nodepools or [""]
    cases = [(file, file.case(one)) for file in files for one in pools]
    jobs = list(_jobs(asked, [case for _, case in cases]))
    found = _results(asked, cases, jobs)
    _write(asked, found, len(pools))
    return 0 if all(one.passed for results in found for one in results) else 1


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
    if asked.nodepools:
        raise Mistake("--shard and --nodepools exclude each other; a comparison needs all runs")
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


def _write(asked: Namespace, found: Sequence[Sequence[Result]], sets: int) -> None:
    """Print the results, and write the file of `--junit`. Raises Mistake."""
    from kerf.cli.gathering.sources import Source
    from kerf.cli.reports import escaping
    from kerf.cli.verbs.simulation import documents, page, side_by_side

    every = [one for results in found for one in results]
    if asked.junit:
        try:
            Source(asked.junit).write(documents.as_junit(every).encode())
        except OSError as error:
            raise Mistake(f"--junit {asked.junit}: {error.strerror or error}") from error
    if asked.output == "json":
        sys.stdout.write(documents.as_json(every))
        return
    if sets > 1:
        groups = [found[first : first + sets] for first in range(0, len(found), sets)]
        texts = [side_by_side.table(dict(zip(asked.nodepools, one, strict=True))) for one in groups]
    else:
        texts = [page.page(results, chart=asked.chart) for results in found if results]
    if not every:
        texts = [f"--shard {asked.shard}: this part has no run; give --repeat at least as many runs as parts\n"]
    say("\n".join(map(escaping.visible, "\n".join(texts).split("\n"))), end="")
