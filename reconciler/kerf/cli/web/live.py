"""Server-sent events: one for each new reading of a live cluster. The page's script then replaces its content."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http import HTTPStatus
from typing import Final

from flask import Flask, Response, abort

from kerf.cli.answering.boards import Boards

#: Streams at once. A stream occupies a thread of the server.
MOST_STREAMS: Final = 8
#: Seconds without an event before a comment, by which the server notices a closed connection.
_QUIET: Final = 2.0


def add(app: Flask, boards: Boards) -> None:
    """Answer `/events`; 404 for an origin that does not change, 503 when all streams are taken."""
    free = threading.BoundedSemaphore(MOST_STREAMS)

    @app.get("/events")
    def events() -> Response:
        if not boards.live:
            abort(HTTPStatus.NOT_FOUND, "events: the origin does not change")
        if not free.acquire(blocking=False):
            abort(HTTPStatus.SERVICE_UNAVAILABLE, f"events: {MOST_STREAMS} pages are open already: reload by hand")
        answer = Response(stream(boards), mimetype="text/event-stream")
        answer.call_on_close(free.release)
        return answer


def stream(boards: Boards, quiet: float = _QUIET) -> Iterator[str]:
    """An event `reading` for each new reading, until the views are stopped; a comment after `quiet` seconds."""
    seen = boards.readings
    yield f"retry: 5000\nid: {seen}\n\n"
    while not boards.stopped:
        readings = boards.wait(seen, quiet)
        if readings > seen:
            seen = readings
            yield f"event: reading\nid: {seen}\ndata: {seen}\n\n"
        else:
            yield ": quiet\n\n"
