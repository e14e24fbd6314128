"""`kerf replay`: the recorded decisions of a controller, made again in this process, listed, or saved as a snapshot."""

from __future__ import annotations

import sys
from argparse import Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from kerf.cli.arguments import Mistake
from kerf.cli.parser import Parser
from kerf.cli.terminal import say
from kerf_api.texts import counted, shortened

if TYPE_CHECKING:
    from kerf.cli.answering.records import Record
    from kerf.records.reading import Step

_ABOUT: Final = """\
Reproduce the recorded decisions of a controller: each is made again in this process, from the recorded snapshot, and
compared with the recorded plan. RECORD_FOLDER (--record-folder) makes the controller record its decisions.

With --list the decisions are listed, with their actions and reasons; nothing is decided. With --at the cluster as of
then is saved as a snapshot. `kerf why` and `kerf plan` read a record by themselves, with --record PATH --at TIME. With
--with each decision is made twice, for the recorded NodePools and EC2NodeClasses and for changed ones, and the
differences are listed. The cluster of each decision is the recorded one.
"""
_EPILOG: Final = """\
Times are RFC 3339, such as 2026-03-01T03:12:00Z; without a zone they are UTC. A record in a bucket is downloaded with
your own credentials; AWS_ENDPOINT_URL_S3 is the address of a store other than S3.

Exit codes: 0 all decisions are the same; 1 some differ; 3 some differ, and the record is of other versions of Kerf, of
a library or of the CPU; 2 the command is wrong, or a file cannot be read or is damaged. A last line that is not
complete, as after a crash, is left out, and reported."""
_NONE: Final = "there is no decision between these times"
_SHOWN: Final = 20
_NAMES: Final = 3
_SAME, _DIFFERENT, _UNREADABLE, _OTHER_VERSIONS = 0, 1, 2, 3


def main(arguments: Sequence[str]) -> int:
    """Read the command line and the record; the exit code."""
    asked = _parser().parse_args(arguments)
    from kerf.cli.reports import escaping
    from kerf.snapshots.reading import Unreadable

    try:
        return _done(asked)
    except (Mistake, OSError, Unreadable) as error:
        escaping.complain(f"kerf replay: {error}")
        return _UNREADABLE


def _parser() -> Parser:
    parser = Parser("kerf replay", description=_ABOUT, epilog=_EPILOG, formatter_class=RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("path", metavar="PATH", help="the folder of the record, one of its files, or s3://BUCKET/PREFIX")
    add("--list", action="store_true", help="list the decisions with actions")
    add("--since", metavar="TIME", help="skip the decisions before this time")
    add("--until", metavar="TIME", help="skip the decisions after this time")
    add("--at", metavar="TIME", help="save the cluster of the latest decision up to then; needs -o")
    add("--with", dest="change", default="", metavar="PATH", help="changed NodePools and EC2NodeClasses: what if?")
    add("-o", "--output", default="", metavar="FILE", help="the file for --at; with --with: text or json")
    add("--all", action="store_true", help="all differences, and decisions without actions too")
    return parser


def _done(asked: Namespace) -> int:
    from kerf.cli.answering import records

    at = records.instant("--at", asked.at)
    if asked.change:
        return _suppose(asked)
    if (at is None) != (not asked.output):
        raise Mistake("--at TIME and -o FILE belong together: the cluster as of TIME is saved to FILE")
    if at is not None and (asked.since or asked.until or asked.list):
        raise Mistake("--at and --list, --since or --until exclude each other")
    since, until = records.instant("--since", asked.since), records.instant("--until", asked.until)

    paths = records.found(asked.path)
    if at is not None:
        return _save(records.Record(paths, _note, until=at), asked.output)
    record = records.Record(paths, _note, since, until)
    return _list(record, everything=asked.all) if asked.list else _replay(record, everything=asked.all)


def _note(words: str) -> None:
    from kerf.cli.reports import escaping

    escaping.complain(f"kerf replay: {words}")


# --- made again with a change -----------------------------------------------------------------------------------
def _suppose(asked: Namespace) -> int:
    """Raises Mistake."""
    from kerf.cli.answering import records, supposed
    from kerf.cli.reports import escaping
    from kerf.model.memory import Memory
    from kerf.records.reading import Part
    from kerf.records.supposing import compared

    if asked.at is not None or asked.list:
        raise Mistake("--with and --at or --list exclude each other")
    if asked.output not in ("", "text", "json"):
        raise Mistake(f"--with: -o {asked.output}: it is neither text nor json")
    paths = records.found(asked.path)
    bounds = records.instant("--since", asked.since), records.instant("--until", asked.until)
    record = records.Record(paths, _note, *bounds)
    first = next((step.captured().snapshot for step, _, _ in record.decisions(Memory)), None)
    if first is None:
        raise Mistake(_NONE)
    replaced = partial(Part.replacing, supposed.substitutes(asked.change, first, _note))
    own, other = records.Record(paths, _note, *bounds), records.Record(paths, lambda _: None, *bounds, make=replaced)
    found = compared(own.pairs(other, lambda: (Memory(), Memory())))
    if asked.output == "json":
        sys.stdout.write(escaping.as_json(supposed.as_data(found)))
    else:
        say("\n".join(map(escaping.visible, supposed.page(found, sys.maxsize if asked.all else _SHOWN))))
    return _UNREADABLE if own.damaged else _SAME


# --- made again -------------------------------------------------------------------------------------------------
def _replay(record: Record, *, everything: bool) -> int:
    from kerf.cli.reports import escaping
    from kerf.records.replaying import Replay

    number = different = missed = 0
    span: list[datetime] = []
    for step, path, replay in record.decisions(Replay):
        outcome = replay.again(step)
        number, missed = number + 1, missed + step.decision.missed
        span = [*span[:1], step.decision.at]
        if outcome.same:
            continue
        different += 1
        if everything or different <= _SHOWN:
            say(f"{path.name}: the decision of {_time(step.decision.at)} differs")
            for line in outcome.difference():
                say(f"  {escaping.visible(line)}")
    if different > _SHOWN and not everything:
        say(f"... and {different - _SHOWN} more; --all lists them")
    if not number:
        raise Mistake(_NONE)
    say(f"{counted(number, 'decision')} from {_time(span[0])} to {_time(span[-1])}: {number - different} are the same")
    if missed:
        say(f"{counted(missed, 'decision')} not recorded: the recorder could not follow the controller")
    return _code(record, different)


def _code(record: Record, different: int) -> int:
    from kerf.cli.reports import escaping
    from kerf.records.replaying import other_versions
    from kerf.runtime.recording.software import software

    if different:
        own = software()
        others = sorted({words for found in record.software for words in other_versions(found, own)})
        if others:
            say(escaping.visible(f"recorded under other versions: {', '.join(others)}"))
        code = _OTHER_VERSIONS if others else _DIFFERENT
    else:
        code = _SAME
    return _UNREADABLE if record.damaged else code


# --- listed -----------------------------------------------------------------------------------------------------
def _list(record: Record, *, everything: bool) -> int:
    from kerf.cli.reports import escaping

    number = 0
    for step, _, _ in record.decisions(str):
        number += 1
        if everything or step.decision.actions:
            say("\n".join(map(escaping.visible, _lines(step))))
    say(f"{counted(number, 'decision')}")
    return _UNREADABLE if record.damaged else _SAME


def _lines(step: Step) -> Iterator[str]:
    decision = step.decision
    if decision.missed:
        yield f"({counted(decision.missed, 'decision')} before it not recorded)"
    yield f"{_time(decision.at)}  {_changed(step.changed)}"
    for act in decision.actions:
        yield f"    {act.key}  ({act.reason})"
    if decision.more_actions:
        yield f"    and {counted(decision.more_actions, 'action')} more"


def _changed(names: Sequence[str]) -> str:
    if not names:
        return "no object changed"
    return f"changed: {shortened(names, _NAMES)}"


# --- saved ------------------------------------------------------------------------------------------------------
def _save(record: Record, output: str) -> int:
    from kerf.cli.answering import records, saved
    from kerf.snapshots import files, writing

    found = records.captured(record)
    saved.write(output, [files.compressed(writing.lines(found, b""))])
    say(f"{output}: the cluster of the decision of {_time(found.snapshot.now)}", err=True)
    return _UNREADABLE if record.damaged else _SAME


def _time(at: datetime) -> str:
    from kerf.cli.answering import records

    return records.words_of(at)
