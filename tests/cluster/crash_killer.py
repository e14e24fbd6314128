"""Who kills the controller (SIGKILL) at one of its writes: before the server sees the call, or after it took effect but
before the answer is delivered."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from .proxy import AWS, Decision, Lose, Pass, Request

#: A poll of the queue that outlives its process takes a message along, so polls are short here.
POLL_OF_QUEUE_SECONDS: Final = 1

WRITES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
#: News for people, leadership, and questions that are asked by POST.
NO_STATE: Final = frozenset({"events", "leases", "tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews"})
DRY_RUN: Final = b"DryRun=true"
READS_OF_AWS: Final = ("Describe", "Get", "List", "Receive", "Assume", "GET ")


def mutating(request: Request) -> bool:
    """Whether the call changes what a successor would find."""
    if request.port == AWS:
        return not request.operation.startswith(READS_OF_AWS) and DRY_RUN not in request.body
    method, _, resource = request.operation.partition(" ")
    return method in WRITES and resource.partition("/")[0] not in NO_STATE and "dryRun" not in request.query


@dataclass(frozen=True, slots=True)
class Point:
    """The `number`-th call that counts of a half (from 1), or of those of its calls that are an `operation`.

    `struck` is what the call turned out to be; empty: it was not made.
    """

    number: int
    after: bool
    operation: str = ""
    struck: str = ""

    def __str__(self) -> str:
        return f"{'after' if self.after else 'before'} call {self.number}, {self.struck or 'which was not made'}"


class Killer:
    """The proxy's rule: counts calls, by default mutating ones, and kills at the points it is aimed at, one after the
    other.

    What a dead process still had on the line is lost. `calls` are the operations since it was aimed, `struck` the
    points at which somebody died.
    """

    def __init__(self, kill: Callable[[], None], counted: Callable[[Request], bool] = mutating) -> None:
        self._kill, self._counted = kill, counted
        self._points: list[Point] = []
        self.calls: list[str] = []
        self.struck: list[Point] = []
        self.dead = False

    def aim(self, points: Iterable[Point]) -> None:
        """Count from here, for these points only."""
        self._points, self.calls = list(points), []

    def __call__(self, request: Request) -> Decision:
        if self.dead:
            return Lose()
        if request.operation == "ReceiveMessage":
            return Pass(json.dumps({**json.loads(request.body), "WaitTimeSeconds": POLL_OF_QUEUE_SECONDS}).encode())
        if not self._counted(request):
            return Pass()
        self.calls.append(request.operation)
        if self._points and self._reached(self._points[0]):
            point = replace(self._points.pop(0), struck=request.operation)
            return Lose(after=point.after, first=lambda: self._strike(point))
        return Pass()

    def _reached(self, point: Point) -> bool:
        if point.operation:
            return self.calls[-1] == point.operation and self.calls.count(point.operation) >= point.number
        return len(self.calls) == point.number

    def _strike(self, point: Point) -> None:
        self._kill()
        self.struck.append(point)
        self.dead = True
