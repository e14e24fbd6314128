"""The check of every request, before any view is made: the identity, and its permissions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final

from flask import Flask, Response, g, request

from kerf.cli.gate import claims
from kerf.cli.gate.claims import Ambiguous, Identity, Sent, Unauthenticated
from kerf.cli.gate.kept_views import Unready
from kerf.cli.gate.limits import Crowded
from kerf.cli.gate.readings import Readings
from kerf.cli.gate.reviews import KEPT_SECONDS, PROMISED_SECONDS, REQUIRED, Reviews
from kerf.cli.gate.viewed import ViewedBoards, Viewer, admit, admitted
from kerf.ports import PortError
from kerf_api.texts import counted

_LISTS: Final = ", ".join(kind.plural for kind in REQUIRED)
#: Seconds after which the permissions of a request are checked again before its answer is sent.
_RECHECK_SECONDS: Final = 1.0
#: Seconds that the second check waits for reviews.
_CONFIRM_SECONDS: Final = 1.0
#: Seconds of the second check after which its first answers are too old for the promise.
_LONGEST_CHECK: Final = PROMISED_SECONDS - KEPT_SECONDS - _CONFIRM_SECONDS
_AGAIN: Final = "the permissions are being checked again: try again"
_STREAM: Final = "text/event-stream"


@dataclass(slots=True, eq=False)  # not frozen: Python notes the place of an exception in it
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
        with _refusals():
            who = self._person(sent)
            reading = self.readings.latest
            if reading is None:
                raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "the cluster has not been read yet: try again")
            views, answered = self.readings.views, self.reviews.namespaces(who, reading.namespaces)
            if answered.namespaces is None:
                return Viewer(views, answered, self.readings.failing)
            # Permissions that are not all known are of this moment only: no views are made and kept for them.
            find = views.within if answered.unanswered else views.seat
            shown = find(answered.namespaces)
            left_out = 0 if answered.unanswered else len(answered.namespaces - shown)
            return Viewer(views, replace(answered, namespaces=shown), self.readings.failing, left_out)

    def confirm(self, sent: Sent, viewer: Viewer) -> None:
        """Check again that the person of a request may see the views of its answer. Raises Refused."""
        shown, began = viewer.answered.namespaces, time.monotonic()
        with _refusals():
            now = self.reviews.namespaces(self._person(sent), shown or frozenset(), _CONFIRM_SECONDS).namespaces
        late = time.monotonic() - began > _LONGEST_CHECK  # of a slow API server; the next request finds the answers
        if late or (now is not None and (shown is None or not shown <= now)):
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, _AGAIN, 1)

    def _person(self, sent: Sent) -> Identity:
        """The user of a request, who may look. Raises Refused, and the errors of `viewer`."""
        who = claims.vouched(sent, self.proxies)
        token = "" if who is not None else claims.token(sent)
        who = who or self.reviews.identity(token, sent.address)
        if who is None or who.anonymous:
            raise Unauthenticated("Authorization: the cluster does not accept the token for this page")
        allowed = self.reviews.may_look(who)
        if token:
            self.reviews.settle(token, allowed)
        if not allowed:
            raise Refused(HTTPStatus.FORBIDDEN, f"not permitted: the page needs permission to list {_LISTS}")
        return who


@contextmanager
def _refusals() -> Iterator[None]:
    """Errors of the check as answers: raises Refused."""
    try:
        yield
    except Crowded as error:
        text = f"too many new tokens: try again in {counted(error.seconds, 'second')}"
        raise Refused(HTTPStatus.TOO_MANY_REQUESTS, text, error.seconds) from error
    except Ambiguous as error:
        raise Refused(HTTPStatus.BAD_REQUEST, str(error)) from error
    except Unauthenticated as error:
        raise Refused(HTTPStatus.UNAUTHORIZED, str(error)) from error
    except PortError as error:
        raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "the API server does not answer reviews: try again") from error


def install(app: Flask, gate: Gate, boards: ViewedBoards) -> None:
    """Let a request reach the views of an app only through the gate. Every address is behind it, files too.

    Pages that were made of the same views before are answered from `boards`, after the check.
    """

    @app.before_request
    def check() -> Response | None:
        try:
            g.began = time.monotonic()
            admit(gate.viewer(_sent()))
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
        if response.mimetype == _STREAM:
            response.close()
            return Response(status=HTTPStatus.NO_CONTENT)
        if not response.direct_passthrough:
            boards.keep(response)
        return _confirmed(gate, response)


def _confirmed(gate: Gate, response: Response) -> Response:
    """The answer, unless it took long and its permissions have been removed meanwhile."""
    viewer = admitted()
    if viewer is None or time.monotonic() - g.began < _RECHECK_SECONDS:
        return response
    try:
        gate.confirm(_sent(), viewer)
    except Refused as refused:
        response.close()
        return _answer(refused)
    return response


def _sent() -> Sent:
    """The current request."""
    # The worker's own record of the connection and the request; no header can set it.
    raw = request.environ["gunicorn.socket"]
    return Sent(raw.headers, raw.peer, request.remote_addr or "")


def _answer(refused: Refused) -> Response:
    answer = Response(f"{refused.text}\n", refused.status, mimetype="text/plain")
    if refused.status is HTTPStatus.UNAUTHORIZED:
        answer.headers["WWW-Authenticate"] = "Bearer"
    if refused.seconds:
        answer.headers["Retry-After"] = str(refused.seconds)
    return answer
