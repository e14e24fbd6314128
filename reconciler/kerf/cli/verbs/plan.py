"""`kerf plan`: what a change of NodePools and EC2NodeClasses would do to a cluster, before it is made."""

from __future__ import annotations

import re
import sys
from argparse import Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from kerf.cli.arguments import Mistake, with_fix
from kerf.cli.parser import Parser
from kerf.cli.terminal import say

if TYPE_CHECKING:
    from kerf.cli.answering.changed import Changed
    from kerf.planning.changes import Change
    from kerf.planning.forecast import Forecast
    from kerf.snapshots.captured import Captured

FORMATS: Final = ("text", "json", "markdown")
_ABOUT: Final = """\
Show what a change of NodePools, EC2NodeClasses and other objects would do: disrupted and launched nodes in their order,
evictions, pods that become unschedulable or schedulable, price, and duration under budgets.

The cluster is simulated in memory, with the same controller, twice: with the change and without it. Neither the
cluster nor AWS is changed. Without files the plan is what will happen anyway.

--no-simulate answers in seconds in large clusters: disrupted nodes, unschedulable pods and price, without order and
duration. --compare shows two changes side by side, each planned on its own.
"""
_EPILOG: Final = """\
Settings are those of `kerf run` (flags or variables); CLUSTER_NAME (--cluster-name) is required for a live cluster.
With --snapshot and --record the settings are those of the file. KERF_DIGEST_KEY is the key with which a snapshot was
saved: without it, and with --record, user data is assumed unchanged.

Conditions of --fail-on, by commas: unschedulable (a pod becomes unschedulable), cost+N% (the price after is more than
N % above the price now), disruption>N% (more than N % of the nodes are disrupted because of the change).

Exit codes: 0 done; 1 a condition of --fail-on is met; 2 the command or a file is wrong, or something cannot be read."""
_DEFAULT_HORIZON: Final = "24h"
#: What never comes to rest is simulated to the horizon.
_LONGEST_HORIZON: Final = timedelta(days=366)
_PERCENTAGE: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


def main(arguments: Sequence[str]) -> int:
    """Read the command line, make the plan, print it; the exit code."""
    from kerf.runtime.settings import settings

    own, others = settings.apart(arguments)  # else the parser takes the value of --cluster-name for a PATH
    asked, rest = _parser().parse_known_args(others)
    rest = [*own, *rest]
    from kerf.cli.reports import escaping
    from kerf.planning.changes import BadChange
    from kerf.planning.worlds import Unplannable
    from kerf.ports import PortError

    try:
        conditions = _conditions(asked.fail_on)
        horizon = _horizon(asked.horizon)
        captured = _captured(asked, rest)
        named = _changes(asked, captured)
        found = _forecasts(captured, named, horizon, asked)
    except (Mistake, BadChange, Unplannable, PortError) as error:
        for line in with_fix(error).split("\n"):
            _note(line)
        return 2
    names = [name for name, _, _ in named]
    text = _text(names, found, captured.snapshot.now, asked)
    if asked.output == "text":
        say("\n".join(map(escaping.visible, text.split("\n"))), end="")
    else:
        sys.stdout.write(text)
    failed = [(name, text) for name, one in zip(names, found, strict=True) for text in conditions if _holds(text, one)]
    for name, one in failed:
        escaping.complain(f"kerf plan: {f'{name}: ' if name else ''}--fail-on {one}: is met")
    return 1 if failed else 0


def _parser() -> Parser:
    parser = Parser("kerf plan", description=_ABOUT, epilog=_EPILOG, formatter_class=RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("paths", nargs="*", metavar="PATH", help="changed manifests: a file, a folder, a pattern, or -")
    add("--delete", action="append", default=[], metavar="KIND/NAME", help="an object that is deleted; repeatable")
    since = "only what differs from this commit of Git; objects missing from the files are deleted"
    add("--changed-since", default="", metavar="REF", help=since)
    add("--snapshot", metavar="FILE", help="a file of `kerf snapshot`; neither cluster nor AWS is asked")
    add("--record", metavar="DIR", help="the record of a controller (RECORD_FOLDER): its last decision")
    add("--at", metavar="TIME", help="with --record: the cluster of the latest decision up to then")
    add("-f", "--file", action="append", default=[], metavar="PATH", help="a cluster from manifests; repeatable")
    add("--kubeconfig", default="", metavar="FILE", help="the cluster; as kubectl would without it")
    add("--context", default="", metavar="NAME", help="context of the kubeconfig")
    add("--horizon", default=_DEFAULT_HORIZON, metavar="DURATION", help=f"how far to simulate ({_DEFAULT_HORIZON})")
    add("--fail-on", default="", metavar="CONDITIONS", help="conditions under which the exit code is 1")
    add("-o", "--output", choices=FORMATS, default="text", help="format of the plan (text)")
    add("--no-simulate", action="store_true", help="no roll-out: neither order nor duration, but in seconds")
    two = "two changes side by side, instead of PATH; each a file or a folder"
    add("--compare", nargs=2, default=[], metavar=("A", "B"), help=two)
    add("--all", action="store_true", help="all nodes and pods, however many")
    return parser


def _horizon(text: str) -> timedelta:
    from kerf_api import durations

    try:
        found = durations.parse_go(text)
    except ValueError as error:
        raise Mistake(f"--horizon: {error}") from error
    if found is None or not timedelta(0) < found <= _LONGEST_HORIZON:
        raise Mistake(f"--horizon: {text!r} is no duration above 0 and up to 8784h (a year), such as 24h")
    return found


# --- what is planned --------------------------------------------------------------------------------------------
def _captured(asked: Namespace, rest: Sequence[str]) -> Captured:
    from kerf.cli.answering import captures

    captures.not_empty({"--snapshot": asked.snapshot, "--record": asked.record})
    sources = {"--snapshot": asked.snapshot, "--record": asked.record, "-f": asked.file}
    others = {**sources, "--kubeconfig": asked.kubeconfig, "--context": asked.context}
    source = next((flag for flag, given in sources.items() if given), "")
    saved = source in ("--snapshot", "--record")
    other = next(
        (flag for flag, given in others.items() if given and flag != source), rest[0] if saved and rest else ""
    )
    if source and other:
        raise Mistake(f"{source} and {other} exclude each other")
    if asked.record is not None or asked.at is not None:
        return captures.recorded("plan", asked.record, asked.at)
    if asked.snapshot:
        return captures.of_file(asked.snapshot)
    options = captures.options(rest, offline=bool(asked.file))
    if asked.file:
        return captures.of_manifests(asked.file, options)[0]
    return captures.live("plan", options, asked.kubeconfig, asked.context)


def _changes(asked: Namespace, captured: Captured) -> list[tuple[str, Change, list[str]]]:
    """The changes: a name where there are two, the objects, and what had to be assumed. Raises Mistake."""
    from kerf.cli.answering import changed

    if asked.compare:
        others = [("PATH", asked.paths), ("--changed-since", asked.changed_since), ("--delete", asked.delete)]
        if given := next((name for name, value in others if value), None):
            raise Mistake(f"--compare and {given} exclude each other; give both changes as files or folders")
        if len(set(asked.compare)) == 1:
            raise Mistake(f"--compare {' '.join(asked.compare)}: both changes are the same; name two files or folders")
        return [(path, *_change(changed.of_files([path], _faults), asked, captured)) for path in asked.compare]
    if asked.changed_since:
        found = changed.since(asked.paths or ["."], asked.changed_since, _note, _faults)
    else:
        found = changed.of_files(asked.paths, _faults)
    return [("", *_change(found, asked, captured))]


def _faults(manifest: Mapping[str, Any]) -> Iterable[tuple[tuple[str | int, ...], str]]:
    """Those of built-in kinds; the webhook of the simulation refuses others."""
    from kerf.cli.verbs.simulation import shapes
    from kerf.sandbox.api.kinds import CUSTOM

    return () if manifest["kind"] in CUSTOM or manifest["kind"] not in shapes.USED else shapes.faults(manifest)


def _change(found: Changed, asked: Namespace, captured: Captured) -> tuple[Change, list[str]]:
    """What is applied and deleted, and what had to be assumed. Raises Mistake."""
    from kerf.cli.answering import captures, changed

    key = None if asked.record else captures.digest_key()
    return changed.comparable(found, captured, key, map(_deleted, asked.delete))


def _note(words: str) -> None:
    from kerf.cli.reports import escaping

    escaping.complain(f"kerf plan: {words}")


def _deleted(text: str) -> tuple[str, str, str]:
    """`KIND/NAME` or `KIND/NAMESPACE/NAME`. Raises Mistake."""
    from kerf.planning.changes import KINDS, namespace_of

    kind, _, name = text.partition("/")
    known = {one.lower(): one for one in KINDS}
    if kind.lower() not in known or not name:
        raise Mistake(f"--delete {text}: write KIND/NAME, with one of {', '.join(sorted(KINDS))}")
    namespace, _, own = name.rpartition("/")
    return known[kind.lower()], namespace_of(known[kind.lower()], namespace), own


def _forecasts(
    captured: Captured, named: Sequence[tuple[str, Change, list[str]]], horizon: timedelta, asked: Namespace
) -> list[Forecast]:
    from dataclasses import replace

    from kerf.cli.answering.plan_progress import shown
    from kerf.planning.forecast import Manner, forecasts

    with shown(sys.stderr) as progress:
        manner = Manner(horizon, simulate=not asked.no_simulate, progress=progress)
        found = forecasts(captured, [change for _, change, _ in named], manner)
    rows = zip(found, named, strict=True)
    return [replace(one, guesses=(*assumed, *one.guesses)) for one, (_, _, assumed) in rows]


def _text(names: Sequence[str], found: Sequence[Forecast], at: datetime, asked: Namespace) -> str:
    """The plan in the format of `--output`; `at` is the time of the cluster."""
    from kerf.cli.answering import answers, compare_page, plan_page, records

    both = dict(zip(names, found, strict=True)) if len(found) > 1 else {}
    if asked.output == "json":
        return answers.compared_as_json(both, at) if both else answers.as_json(found[0], at)
    most = sys.maxsize if asked.all else plan_page.MOST_ROWS
    moment = f"{records.of_decision(at)}\n\n" if asked.record else ""
    if asked.output == "markdown":
        page = compare_page.markdown(both, most=most) if both else plan_page.markdown(found[0], most=most)
    else:
        page = compare_page.page(both, most=most) if both else plan_page.page(found[0], most=most)
    return moment + page


# --- conditions -------------------------------------------------------------------------------------------------
def _conditions(text: str) -> list[str]:
    """Raises Mistake."""
    found = [one.strip() for one in text.split(",")] if text else []
    for one in found:
        if one != "unschedulable" and _limit(one, "cost+") is None and _limit(one, "disruption>") is None:
            raise Mistake(f"--fail-on {one}: write unschedulable, cost+N% or disruption>N%")
    return found


def _limit(text: str, prefix: str) -> float | None:
    """The number of a condition such as `cost+10%`; None when it is another one."""
    number = text.removeprefix(prefix).removesuffix("%")
    if not text.startswith(prefix) or not text.endswith("%") or not _PERCENTAGE.fullmatch(number):
        return None
    return float(number)


def _holds(text: str, found: Forecast) -> bool:
    if text == "unschedulable":
        return bool(found.newly_waiting)
    if (most := _limit(text, "cost+")) is not None:
        return found.planned.total * 100 > found.now.total * (100 + most)
    most = _limit(text, "disruption>") or 0.0
    return len(found.caused) * 100 > found.now.nodes * most
