"""The check of every request, before any view is made: the identity, and its permissions."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from flask import Flask, Response, request

from kerf.cli.gate import claims
from kerf.cli.gate.claims import Ambiguous, Sent, Unauthenticated
from kerf.cli.gate.kept_views import Unready
from kerf.cli.gate.limits import Crowded
from kerf.cli.gate.readings import Readings
from kerf.cli.gate.reviews import REQUIRED, Reviews
from kerf.cli.gate.viewed import ViewedBoards, Viewer, admit
from kerf.ports import PortError
from kerf_api.texts import counted

_LISTS: Final = ", ".join(kind.plural for kind in REQUIRED)


@dataclass(frozen=True, slots=True)
class Refused(Exception):
    """The answer to a request that is not admitted."""

    status: HTTPStatus
    text: str
    #: Of an answer to come back later: after so many seconds.
    seconds: int = 0


@dataclass(frozen=True, slots=True)
class Gate:
    """`proxies` are the names of certificates whose owners may vouch for users."""

    reviews: Reviews
    readings: Readings
    proxies: frozenset[str] = frozenset()

    def viewer(self, sent: Sent) -> Viewer:
        """The person of a request. Raises Refused."""
        try:
            who = claims.vouched(sent, self.proxies) or self.reviews.identity(claims.token(sent), sent.address)
            if who is None or who.anonymous:
                raise Unauthenticated("Authorization: the cluster does not accept the token for this page")
            if not self.reviews.may_look(who):
                raise Refused(HTTPStatus.FORBIDDEN, f"not permitted: the page needs permission to list {_LISTS}")
            reading = self.readings.latest
            if reading is None:
                raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "the cluster has not been read yet: try again")
            return Viewer(self.readings.views, self.reviews.namespaces(who, reading.namespaces), self.readings.failing)
        except Crowded as error:
            text = f"too many new tokens: try again in {counted(error.seconds, 'second')}"
            raise Refused(HTTPStatus.TOO_MANY_REQUESTS, text, error.seconds) from error
        except Ambiguous as error:
            raise Refused(HTTPStatus.BAD_REQUEST, str(error)) from error
        except Unauthenticated as error:
            raise Refused(HTTPStatus.UNAUTHORIZED, str(error)) from error
        except PortError as error:
            raise Refused(
                HTTPStatus.SERVICE_UNAVAILABLE, "the API server does not answer reviews: try again"
            ) from error


def install(app: Flask, gate: Gate, boards: ViewedBoards) -> None:
    """Let a request reach the views of an app only through the gate. Every address is behind it, files too.

    Pages that were made of the same views before are answered from `boards`, after the check.
    """

    @app.before_request
    def check() -> Response | None:
        try:
            # The worker's own record of the connection and the request; no header can set it.
            raw = request.environ["gunicorn.socket"]
            admit(gate.viewer(Sent(raw.headers, raw.peer, request.remote_addr or "")))
        except Refused as refused:
            return _answer(refused)
        try:
            return boards.kept()
        except Unready:
            text = "the views are being made: try again in 5 seconds"
            return _answer(Refused(HTTPStatus.SERVICE_UNAVAILABLE, text, 5))
        except Exception:  # the page of the error would need the same views
            app.logger.exception("the views cannot be made")
            text = "Kerf cannot make the views. This is a bug of Kerf: report it with the log of this page"
            return _answer(Refused(HTTPStatus.INTERNAL_SERVER_ERROR, text))

    @app.after_request
    def whole(response: Response) -> Response:
        """Answers have an end here: a browser that gets 204 asks no more for server-sent events."""
        if response.is_streamed and not response.direct_passthrough:
            response.close()
            return Response(status=HTTPStatus.NO_CONTENT)
        if not response.direct_passthrough:
            boards.keep(response)
        return response


def _answer(refused: Refused) -> Response:
    answer = Response(f"{refused.text}\n", refused.status, mimetype="text/plain")
    if refused.status is HTTPStatus.UNAUTHORIZED:
        answer.headers["WWW-Authenticate"] = "Bearer"
    if refused.seconds:
        answer.headers["Retry-After"] = str(refused.seconds)
    return answer
