"""The parts of every page: its views, as of now or of a time of the record, and pages of long lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final

from flask import abort, g, render_template, request
from werkzeug.exceptions import HTTPException

from kerf.cli.answering.boards import Boards, Views
from kerf.cli.answering.records import instant, words_of
from kerf.cli.arguments import Mistake
from kerf.cli.web.history import History
from kerf.views.board import Board

#: Rows of one page of a list.
ROWS: Final = 100


@dataclass(frozen=True, slots=True)
class Part:
    """One page of a list: the rows from number `first` (1 for the first one) of `count`; 0 for no such page."""

    rows: Sequence[Any]
    first: int
    count: int
    previous: int
    next: int

    @property
    def last(self) -> int:
        return self.first + len(self.rows) - 1


def part(rows: Sequence[Any], number: int) -> Part:
    """Page `number` of a list; the last one for a higher number."""
    pages = max(1, -(-len(rows) // ROWS))
    number = min(max(number, 1), pages)
    start = (number - 1) * ROWS
    return Part(rows[start : start + ROWS], start + 1, len(rows), number - 1, number + 1 if number < pages else 0)


def number() -> int:
    """The asked page of a list."""
    return request.args.get("page", 1, type=int)


@dataclass(frozen=True, slots=True)
class Sources:
    """The views of an origin, and its record if it has one."""

    boards: Views
    history: History | None = None

    def board(self) -> Board:
        """The views for a request: of `?at=TIME` or of the slider's `?moment=NUMBER`, or else the current ones."""
        at = self._asked()
        if at is None or self.history is None:
            return self.boards.current
        try:
            found = self.history.board(at)
        except Mistake as error:
            abort(HTTPStatus.BAD_REQUEST, str(error))
        g.board = found
        g.at = words_of(at)
        return found

    def board_of_error(self) -> Board:
        """The views of the request's time; the current ones when the time is wrong."""
        if "board" in g:
            return g.board  # type: ignore[no-any-return]
        try:
            return self.board()
        except HTTPException:
            return self.boards.current

    @property
    def when(self) -> str:
        """The time of the views in words; empty for the current ones."""
        return f" at {g.at}" if g.get("at") else ""

    def page(self, template: str, tab: str, found: Board, **values: Any) -> str:
        """The page of a template."""
        boards = self.boards
        return render_template(
            template,
            board=found,
            origin=boards.name,
            problem=boards.problem,
            failed_at=boards.failed_at if isinstance(boards, Boards) else None,
            live=boards.live,
            tab=tab,
            history=self.history,
            **values,
        )

    def _asked(self) -> datetime | None:
        given = request.args
        if "at" not in given and "moment" not in given:
            return None
        if self.history is None:
            abort(HTTPStatus.BAD_REQUEST, "at: the origin has no history: start kerf ui with --record DIR")
        if "moment" in given:
            return self._moment(self.history, given.get("moment", -1, type=int))
        try:
            return instant("at", given["at"])
        except Mistake as error:
            abort(HTTPStatus.BAD_REQUEST, str(error))

    def _moment(self, history: History, place: int) -> datetime:
        if not 0 <= place < len(history.moments):
            abort(HTTPStatus.BAD_REQUEST, f"moment: no such time: a number from 0 to {len(history.moments) - 1}")
        return history.moments[place].at
