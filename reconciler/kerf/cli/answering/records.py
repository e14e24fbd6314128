"""A record for the verbs that read one: its files in order, and their decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

from kerf.cli.answering import saved
from kerf.cli.arguments import Mistake
from kerf.model.instants import rfc3339
from kerf.records.reading import Part, Step
from kerf.runtime.recording.ring import SUFFIX, parts
from kerf.snapshots import files
from kerf.snapshots.captured import Captured
from kerf.snapshots.reading import Unreadable

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

    def parts(self) -> Iterator[tuple[Path, Iterator[Step]]]:
        """Each file with its decisions between the times; a step holds until the next one is asked for."""
        for path, following in zip(self.paths, [*self.paths[1:], None], strict=True):
            if self.since is not None and following is not None and self._head(following) <= self.since:
                continue
            if self.until is not None and self._head(path) > self.until:
                continue
            yield path, self.steps(path)

    def last(self) -> Step | None:
        """The latest decision between the times; None when there is none. Raises Mistake."""
        counts = ((path, sum(1 for _ in steps)) for path, steps in reversed([*self.parts()]))
        path, number = next(((path, number) for path, number in counts if number), (None, 0))
        if path is None:
            return None
        step = next(islice(self.steps(path), number - 1, None), None)
        if step is None:
            raise Mistake(f"{path}: it was deleted while it was read; copy the folder and read the copy")
        return step

    def steps(self, path: Path) -> Iterator[Step]:
        """The decisions of a file between the times; each holds until the next one is asked for."""
        part = self.make()
        try:
            for step in part.steps(files.lines(saved.pieces(path), partial(self.note, f"{path}: {_TORN}"))):
                if self._between(step.decision.at):
                    yield step
        except FileNotFoundError:
            self.note(f"{path}: the controller has deleted it meanwhile, as its bounds ask for")
        except (OSError, Unreadable) as error:
            self.damaged = True
            self.note(f"{path}: {_words(error)}")
        finally:
            self.software.append(dict(part.start.software) if part.start is not None else {})

    def _between(self, at: datetime) -> bool:
        """A decision that follows a later one, as after a step of the clock, is looked at too."""
        return (self.until is None or at <= self.until) and (self.since is None or at >= self.since)

    def _head(self, path: Path) -> datetime:
        """The first time in a file; that of one without a readable header is the earliest there is."""
        try:
            return Part().head(files.lines(saved.pieces(path), lambda: None))
        except (OSError, Unreadable):
            return datetime.min.replace(tzinfo=UTC)


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


def instant(option: str, text: str) -> datetime | None:
    """A time of the command line; None for an empty one. Without a zone it is UTC. Raises Mistake."""
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise Mistake(f"{option} {text}: it is no time, such as 2026-03-01T03:12:00Z") from error
    try:
        return at.astimezone(UTC) if at.tzinfo is not None else at.replace(tzinfo=UTC)
    except OverflowError as error:
        raise Mistake(f"{option} {text}: the time is out of range") from error
