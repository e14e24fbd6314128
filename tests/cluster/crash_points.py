"""The controller dies at one of its writes, on real parts, and its successor must reach the same end.

A *run* is the life of one fresh node class, pool and Deployment, in two halves. Out: two nodes in two zones come up and
all pods run. In: a message arrives in the interruption queue, the Deployment is scaled to zero, all nodes are given
back, pool and class are deleted with all that was made for them in AWS. A proxy counts the controller's mutating calls
to the API server and AWS in each half, and at one of them it kills the process (SIGKILL): before the server sees the
call, or after it took effect but before the answer is delivered. The process that is started in its place carries on.

`python -m tests.cluster.crash_points` tries every call of both halves both ways and prints each (`make crash-points`).
The number of calls differs a little from run to run (status patches meet or miss each other): "call 17" is the 17th of
that very run, what it was is printed, and the search ends with the first run that makes fewer calls.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

from reconciler.ports import Unavailable

from .control_plane import ControlPlane
from .crash_world import AGENT, World, objects
from .installation import Installation
from .proxy import AWS, Decision, Lose, Pass, Request

POLL_SECONDS: Final = 0.2
READY_SECONDS: Final = 60.0
#: How long a state may take from the latest start of a controller, on a machine that has other things to do.
PATIENCE_SECONDS: Final = 180.0
#: A single replica (a dead leader's lease would only be waited for) that does not wait for more pods.
FLAGS: Final = ("--disable-leader-election", "--batch-idle-duration=200ms", "--batch-max-duration=1s")
FAMILIES: Final = ("c6a",)
#: A poll of the queue that outlives its process takes a message along, so polls are short here.
POLL_OF_QUEUE_SECONDS: Final = 1

WRITES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
#: News for people, leadership, and questions that are asked by POST.
NO_STATE: Final = frozenset({"events", "leases", "tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews"})
READS_OF_AWS: Final = ("Describe", "Get", "List", "Receive", "Assume")


def mutating(request: Request) -> bool:
    """Whether the call changes what a successor would find."""
    if request.port == AWS:
        return not request.operation.startswith(READS_OF_AWS)
    method, _, resource = request.operation.partition(" ")
    return method in WRITES and resource.partition("/")[0] not in NO_STATE and "dryRun" not in request.query


# --- killing ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Point:
    """The `number`-th mutating call of a half (from 1), or of those of its calls that are an `operation`.

    `struck` is what the call turned out to be; empty: it was not made.
    """

    number: int
    after: bool
    operation: str = ""
    struck: str = ""

    def __str__(self) -> str:
        return f"{'after' if self.after else 'before'} call {self.number}, {self.struck or 'which was not made'}"


class Killer:
    """The proxy's rule: counts mutating calls, and kills at the points it is aimed at, one after the other.

    What a dead process still had on the line is lost. `calls` are the operations since it was aimed, `struck` the
    points at which somebody died.
    """

    def __init__(self, kill: Callable[[], None]) -> None:
        self._kill = kill
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
        if not mutating(request):
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


# --- a run ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Outcome:
    """What the controller called in the two halves, where it died, and what was still amiss after a long wait."""

    calls_out: tuple[str, ...]
    calls_in: tuple[str, ...]
    struck: tuple[Point, ...]
    problems: tuple[str, ...]
    seconds: float


class Runs(Protocol):
    """Something on which one run after the other can be made."""

    def run(self, out: Sequence[Point] = (), in_: Sequence[Point] = ()) -> Outcome:
        """A run in which the controller dies at each of these points of its halves, one after the other."""
        ...


class Stage:
    """Kerf behind a proxy, and one run after the other."""

    def __init__(self, kerf: Installation) -> None:
        self.kerf = kerf
        self._names = (f"run-{number}" for number in itertools.count(1))
        self._apply(AGENT)

    def run(self, out: Sequence[Point] = (), in_: Sequence[Point] = ()) -> Outcome:
        name, begun = next(self._names), time.monotonic()
        world = World(self.kerf, name)
        killer = self.kerf.proxy.rule = Killer(self.kerf.kill_controller)
        killer.aim(out)
        problems = self._out(name, world, killer)
        calls_out = tuple(killer.calls)
        killer.aim(in_)
        problems += self._in(name, world, killer)
        struck, calls_in = tuple(killer.struck), tuple(killer.calls)
        return Outcome(calls_out, calls_in, struck, tuple(problems + world.doubled()), time.monotonic() - begun)

    def _out(self, name: str, world: World, killer: Killer) -> list[str]:
        self._apply(*objects(name))
        return self._until(world.amiss_at_height, killer)

    def _in(self, name: str, world: World, killer: Killer) -> list[str]:
        for instance_id in world.live()[:1]:
            self.kerf.aws.interrupt(instance_id, "rebalance")
        self.kerf.kubectl("scale", f"deployment/{name}", "--replicas=0")
        problems = self._until(world.amiss_when_empty, killer)
        self.kerf.kubectl("delete", f"nodepool/{name}", f"ec2nodeclass/{name}", f"deployment/{name}", "--wait=false")
        return problems + self._until(world.amiss_at_end, killer)

    def _apply(self, *manifests: dict[str, Any]) -> None:
        together = {"apiVersion": "v1", "kind": "List", "items": manifests}
        self.kerf.kubectl("apply", "-f", "-", input_=json.dumps(together))

    def _until(self, amiss: Callable[[], list[str]], killer: Killer) -> list[str]:
        """Wait until nothing is amiss, and see to it that a controller runs; else, in the end, what is amiss."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (found := _told(amiss)) or killer.dead:
            if killer.dead:
                self.kerf.start_controller(*FLAGS)
                killer.dead = False
                deadline = time.monotonic() + PATIENCE_SECONDS
            if time.monotonic() > deadline:
                return found
            time.sleep(POLL_SECONDS)
        return []


def _told(amiss: Callable[[], list[str]]) -> list[str]:
    """What is amiss; that nobody could be asked, on a machine that is busy, is amiss for the moment."""
    try:
        return amiss()
    except Unavailable as error:
        return [f"nobody can tell: {error}"]


@contextmanager
def stage(control_plane: ControlPlane, folder: Path) -> Iterator[Stage]:
    """Kerf ready behind a proxy; in the end the cluster is as it was, but for Kerf itself."""
    with Installation(control_plane, folder, webhook=False, families=FAMILIES, proxied=True) as kerf:
        kerf.stop_controller()
        kerf.start_controller(*FLAGS)
        kerf.wait(lambda: kerf.readiness()[0] == 200, READY_SECONDS, "the controller is ready")
        yield Stage(kerf)
        # Others may use this cluster after us, and count evictions too.
        kerf.kubectl("delete", "daemonset/agent", "-n", "kube-system")
        for namespace in ("default", "kube-system"):  # in one request each: there are thousands
            kerf.kubectl("delete", "--raw", f"/api/v1/namespaces/{namespace}/events")


# --- all points -------------------------------------------------------------------------------------------------
def every_point(runs: Runs, share: int = 0, shares: int = 1) -> Iterator[Outcome]:
    """Runs that die at call 1 of each half, before and after it, then at call 2, …; of `shares`, every so manieth.

    The last one is not among them, in which there were no such calls any more; unless something was amiss in it.
    """
    for number in itertools.count(1 + share, shares):
        for after in (False, True):
            outcome = runs.run([Point(number, after)], [Point(number, after)])
            if outcome.struck or outcome.problems:
                print(_line(outcome), flush=True)
                yield outcome
            if not outcome.struck:
                return


def _line(outcome: Outcome) -> str:
    where = "; ".join(map(str, outcome.struck)) or "nobody died"
    return f"{outcome.seconds:5.1f} s  {'; '.join(outcome.problems) or 'green':<8} {where}"


def summary(outcomes: Sequence[Outcome]) -> str:
    """How many points, of which kinds of calls, and how they went."""
    points = [point for outcome in outcomes for point in outcome.struck]
    red = sum(bool(outcome.problems) for outcome in outcomes)
    after = sum(point.after for point in points)
    kinds = Counter(point.struck for point in points)
    lines = [f"  {count:4} {kind}" for kind, count in sorted(kinds.items())]
    verdict = "all green" if not red else f"{red} of {len(outcomes)} runs NOT GREEN"
    total = f"{len(points)} points ({len(points) - after} before, {after} after) in {len(outcomes)} runs, {verdict}"
    return "\n".join([f"{len(kinds)} kinds of calls were hit:", *lines, total])


def _share(share: int, shares: int) -> list[Outcome]:
    with tempfile.TemporaryDirectory() as folder, ControlPlane() as cluster, stage(cluster, Path(folder)) as runs:
        return list(every_point(runs, share, shares))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--shares", type=int, default=2, help="clusters side by side, each with its share of the points"
    )
    shares = parser.parse_args().shares
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(shares, mp_context=context) as processes:
        parts = processes.map(_share, range(shares), [shares] * shares)
        outcomes = [outcome for part in parts for outcome in part]
    print(summary(outcomes))
    return 1 if not outcomes or any(outcome.problems for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
