"""A storm: a rule for the proxy by which servers that have too much to do refuse most of what they are asked."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Collection

from .proxy import KUBE, Answer, Decision, Lose, Request, pass_all

#: Of ten requests in a storm so many fail.
FAILING = 6


class Storm:
    """A rule by which six requests of ten fail, in the manners in which servers that have too much to do refuse."""

    def __init__(self, ports: Collection[str]) -> None:
        self._ports, self._dice = ports, random.Random(4)
        #: How many requests failed so far, by port.
        self.refused: Counter[str] = Counter()

    def __call__(self, request: Request) -> Decision:
        if request.port not in self._ports:
            return pass_all(request)
        roll = self._dice.randrange(10)
        if roll >= FAILING:
            return pass_all(request)
        self.refused[request.port] += 1
        if request.is_watch and roll == _TAKES_EFFECT:  # a watch has no effect, and no end
            return Lose()
        return _KUBE_REFUSALS[roll] if request.port == KUBE else refusal(request, *_AWS_REFUSALS[roll])


def _status(code: int, reason: str) -> bytes:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return json.dumps(status | {"message": "the server has too much to do"}).encode()


_JSON = {"Content-Type": "application/json"}
_BUSY = Answer(429, _status(429, "TooManyRequests"), _JSON | {"Retry-After": "1"})
_KUBE_REFUSALS = (
    _BUSY,
    Answer(500, _status(500, "InternalError"), _JSON),
    _BUSY,
    Answer(503, _status(503, "ServiceUnavailable"), _JSON),
    Answer(504, _status(504, "Timeout"), _JSON, after=True),
    Lose(),
)
_TAKES_EFFECT = 4
_AWS_REFUSALS = (
    (503, "RequestLimitExceeded"),
    (500, "InternalError"),
    (400, "Throttling"),
    (503, "Unavailable"),
    (503, "RequestLimitExceeded"),
    (500, "InternalError"),
)


def refusal(request: Request, status: int, code: str) -> Answer:
    """Of a call of AWS, in the wire format of EC2, of IAM, or of the services that speak JSON."""
    error = f"<Error><Code>{code}</Code><Message>too much to do</Message></Error>"
    if b"Version=2016-11-15" in request.body:
        body = f"<Response><Errors>{error}</Errors><RequestID>drill</RequestID></Response>"
    elif request.body.startswith(b"Action="):
        body = f"<ErrorResponse>{error}<RequestId>drill</RequestId></ErrorResponse>"
    else:
        body = json.dumps({"__type": code, "message": "too much to do"})
    return Answer(status, body.encode(), {"Content-Type": "text/xml" if body.startswith("<") else "application/json"})
