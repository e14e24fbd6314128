"""A record for the verbs that read one: its files in order, and their decisions."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import islice, repeat
from pathlib import Path
from typing import Any, Final, TypeVar, TypeVarTuple

from kerf.cli.answering import saved
from kerf.cli.arguments import Mistake
from kerf.model.instants import rfc3339
from kerf.records.ordering import by_time
from kerf.records.reading import Part, Step, times
from kerf.runtime.recording.ring import SUFFIX, parts
from kerf.snapshots import files
from kerf.snapshots.captured import Captured
from kerf.snapshots.reading import Unreadable

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
#: Called with a sentence about a file.
Note = Callable[[str], object]


@dataclass(slots=True)
class Record:
    """The parts of a record between two times; None is no bound. `note` gets each problem of a file, in words.

    Attributes:
        damaged: whether a file could not be read to its end, apart from a last line that is not complete.
        software: the versions of each part that was read.
    """

    paths: Sequence[Path]
    note: Note
    since: datetime | None = None
    until: datetime | None = None
    make: Callable[[], Part] = Part
    damaged: bool = False
    software: list[dict[str, Any]] = field(default_factory=list)
    _told: set[str] = field(default_factory=set)

    def decisions(self, each: Callable[[], T]) -> Iterator[tuple[Step, Path, T]]:
        """The decisions between the times, by time, with their files; a step holds until the next one is asked for.

        Files of several processes overlap in time. `each` is called once for a file; its value comes with all steps.
        """
        return self._ordered(lambda path: zip(self.steps(path), repeat(path), repeat(each())))

    def pairs(self, other: Record, each: Callable[[], T]) -> Iterator[tuple[Step, Step, T]]:
        """The decisions as `decisions` returns them, each with that of another reader of the same files."""
        return self._ordered(lambda path: zip(self.steps(path), other.steps(path), repeat(each())))

    def last(self) -> Step | None:
        """The latest decision between the times; None when there is none. Raises Mistake."""
        runs, unsound = self._runs(), set[Path]()
        while found := [one for _, paths in runs if (one := self._last(paths, unsound)) is not None]:
            _, path, number = max(found, key=lambda row: row[0])
            step = next(islice(self.steps(path), number - 1, None), None)
            if step is not None:
                return step
            if path in unsound or not path.exists():
                raise Mistake(f"{path}: it was deleted while it was read; copy the folder and read the copy")
            unsound.add(path)  # objects before that decision are damaged, which the times do not show
        return None

    def _last(self, paths: Sequence[Path], unsound: Container[Path]) -> tuple[datetime, Path, int] | None:
        """The time of the latest decision of a process, its file, and its number among the file's decisions."""
        for path in reversed(paths):
            try:
                if path in unsound:
                    raise Unreadable("its objects are damaged")
                found = [at for at in _times(path) if self._between(at)]
            except (OSError, Unreadable):  # `steps` reports it, and reads the decisions before it
                found = [step.decision.at for step in self.steps(path)]
            if found:
                return found[-1], path, len(found)
        return None

    def steps(self, path: Path) -> Iterator[Step]:
        """The decisions of a file between the times; each holds until the next one is asked for."""
        part = self.make()
        try:
            for step in part.steps(files.lines(saved.pieces(path), partial(self._tell, f"{path}: {_TORN}"))):
                if self._between(step.decision.at):
                    yield step
        except FileNotFoundError:
            self._tell(f"{path}: the controller has deleted it meanwhile, as its bounds ask for")
        except (OSError, Unreadable) as error:
            self.damaged = True
            self._tell(f"{path}: {_words(error)}")
        finally:
            self.software.append(dict(part.start.software) if part.start is not None else {})

    def _tell(self, text: str) -> None:
        """Note a problem once, although `last` may read a file twice."""
        if text not in self._told:
            self._told.add(text)
            self.note(text)

    def _between(self, at: datetime) -> bool:
        """A decision that follows a later one, as after a step of the clock, is looked at too."""
        return (self.until is None or at <= self.until) and (self.since is None or at >= self.since)

    def _ordered(self, read: Callable[[Path], Iterator[tuple[Step, *Ts]]]) -> Iterator[tuple[Step, *Ts]]:
        def rows(paths: Sequence[Path]) -> Iterator[tuple[Step, *Ts]]:
            for path in paths:
                if self._concerned(path):
                    yield from read(path)

        return by_time(((began, rows(paths)) for began, paths in self._runs()), lambda row: row[0].decision.at)

    def _concerned(self, path: Path) -> bool:
        """Whether a file can have a decision between the times. Times of other files decide nothing: a clock may have
        been set back."""
        if self.since is None and self.until is None:
            return True
        try:
            return any(map(self._between, _times(path)))
        except (OSError, Unreadable):
            return True

    def _runs(self) -> list[tuple[datetime, list[Path]]]:
        """The files of each process in their order, with the time of its first one."""
        runs: dict[str, list[_Head]] = {}
        for path in self.paths:
            head = _head(path)
            others = runs.setdefault(head.run, [])
            if (copied := next((one for one in others if one.same(head)), None)) is None:
                others.append(head)
                continue
            more, less = sorted((copied, head), key=lambda one: one.readable, reverse=True)
            others[others.index(copied)] = more
            self._tell(f"{less.path}: it is a copy of {more.path}, and left out")
        return [(min(one.began for one in run), [one.path for one in sorted(run)]) for run in runs.values()]


@dataclass(frozen=True, slots=True, order=True)
class _Head:
    """The start of a file; `number` is 0 when its name has none. The order is that of the files of one process."""

    number: int
    began: datetime
    path: Path
    run: str

    def same(self, other: _Head) -> bool:
        """Whether both are copies of one part, whatever their damage.

        Parts may begin at the same time: a file with another number is a copy only with the same lines.
        """
        if (self.run, self.began) != (other.run, other.began):
            return False
        if 0 in (self.number - other.number, self.number, other.number):
            return True
        return all(one == two for one, two in zip(self.lines(), other.lines(), strict=False))

    def lines(self) -> Iterator[bytes]:
        """Those before the first that cannot be read."""
        with suppress(OSError, Unreadable):
            yield from files.lines(saved.pieces(self.path), lambda: None)

    @property
    def readable(self) -> tuple[int, bool]:
        """The number of decisions whose inputs can be read, and whether the file has no damage. Of two copies of a
        part one may be older, and so shorter."""
        number = 0
        try:
            for _ in Part().steps(files.lines(saved.pieces(self.path), lambda: None)):
                number += 1
        except (OSError, Unreadable):
            return number, False
        return number, True


def _head(path: Path) -> _Head:
    """That of a file without a readable header is the earliest there is, of a process of its own."""
    part = Part()
    digits = path.stem.rpartition("-")[2]
    number = int(digits) if digits.isdecimal() else 0
    try:
        began = part.head(files.lines(saved.pieces(path), lambda: None))
    except (OSError, Unreadable):
        return _Head(number, datetime.min.replace(tzinfo=UTC), path, f"/{path}")
    return _Head(number, began, path, part.start.run if part.start is not None else "")


def _times(path: Path) -> Iterator[datetime]:
    """Raises OSError, Unreadable."""
    return times(files.lines(saved.pieces(path), lambda: None))


#: The times that options accept.
FORMS: Final = "a time of RFC 3339 such as 2026-03-01T03:12:00Z, or a date; without a zone it is UTC"
_TORN: Final = "its end is missing: the controller is still writing it, or stopped meanwhile; its last line is left out"


def _words(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def is_address(path: str) -> bool:
    """Whether a path names a folder of a bucket."""
    return path.startswith("s3://")


def found(path: str) -> list[Path]:
    """The files of a record: one, those of a folder, or those of a bucket. Raises Mistake."""
    place = Path(path)
    try:
        if is_address(path):
            from kerf.cli.answering import stored_records  # a folder needs no client of AWS

            return stored_records.downloaded(path)
        if not place.is_dir():
            if not place.exists() or place.is_file():
                with place.open("rb"):
                    return [place]
            raise Mistake(f"{path}: it is no file, and a record is read more than once; save it as a file first")
        if of_folder := parts(place):
            return of_folder
    except OSError as error:
        raise Mistake(f"{path}: {error.strerror or error}") from error
    raise Mistake(f"{path}: there is no file *{SUFFIX}; RECORD_FOLDER of the controller names the folder of its record")


def captured(record: Record) -> Captured:
    """The cluster of the latest decision up to the record's `until`. Raises Mistake."""
    step = record.last()
    if step is None:
        then = "" if record.until is None else f"--at {rfc3339(record.until)}: "
        raise Mistake(f"{then}the record has no decision up to then; kerf replay --list --all lists its decisions")
    try:
        return step.captured()
    except Unreadable as error:
        raise Mistake(f"the decision of {rfc3339(step.decision.at)}: {error}") from error


def words_of(at: datetime) -> str:
    """A time in UTC with its fractions: --at of the same words finds the same decision."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def of_decision(at: datetime) -> str:
    """The sentence with the time of a recorded cluster."""
    return f"The cluster of the decision of {words_of(at)}."


def instant(option: str, text: str | None) -> datetime | None:
    """A time of the command line; None when it is not given. Without a zone it is UTC. Raises Mistake."""
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text.upper())  # RFC 3339 permits t and z
    except ValueError as error:
        given = f"{option} {text}: it is no time" if text else f"{option}: the time is empty"
        raise Mistake(f"{given}; write {FORMS}") from error
    try:
        return at.astimezone(UTC) if at.tzinfo is not None else at.replace(tzinfo=UTC)
    except OverflowError as error:
        raise Mistake(f"{option} {text}: the time is out of range") from error
