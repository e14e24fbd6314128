"""The lives of nodes at which a controller may die, in two halves each, and what must have become of them.

*Scaling*, with a fresh node class, pool and Deployment each time. Out: two nodes in two zones come up and all pods run.
In: a message arrives in the interruption queue, the Deployment is scaled to zero, all nodes are given back, pool and
class are deleted with all that was made for them in AWS.

*Replacing*, on a pool that stays, with one node and two pods of which a PodDisruptionBudget lets one go at a time.
First the template changes: the node has drifted and gets its successor by a command. Then that one falls sick, and is
repaired.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from kerf.ports import Unavailable

from .control_plane import ControlPlane
from .crash_killer import Killer, Point
from .crash_world import AGENT, PODS, World, objects, one_node
from .fleet import sicken
from .installation import Installation

POLL_SECONDS: Final = 0.2
READY_SECONDS: Final = 60.0
#: How long a state may take from the latest start of a controller, on a machine that has other things to do.
PATIENCE_SECONDS: Final = 180.0
#: A single replica (a dead leader's lease would only be waited for) that does not wait for more pods.
FLAGS: Final = ("--disable-leader-election", "--batch-idle-duration=200ms", "--batch-max-duration=1s")
FAMILIES: Final = ("c6a",)
VALUES: Final = {"settings.featureGates.nodeRepair": "true"}
#: What is bought although all is as it should be would come within this time.
LATE_SECONDS: Final = 2.0
#: Longer than any sickness is borne.
SICK_SECONDS: Final = 31 * 60.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where the controller died in a run, and what was still amiss after a long wait, or had been on the way."""

    struck: tuple[Point, ...]
    problems: tuple[str, ...]
    seconds: float


class Runs(Protocol):
    """Something on which one run after the other can be made."""

    def run(self, first: Sequence[Point] = (), second: Sequence[Point] = ()) -> Outcome:
        """A run in which the controller dies at each of these points of its halves, one after the other."""
        ...


class Stage:
    """Kerf behind a proxy whose rule is a killer."""

    def __init__(self, kerf: Installation) -> None:
        self.kerf = kerf
        self.apply(AGENT)

    def killer(self) -> Killer:
        """A new one, in the place of the one before."""
        made = self.kerf.proxy.rule = Killer(self.kerf.kill_controller)
        return made

    def apply(self, *manifests: dict[str, Any]) -> None:
        together = {"apiVersion": "v1", "kind": "List", "items": manifests}
        self.kerf.kubectl("apply", "-f", "-", input_=json.dumps(together))

    def until(self, amiss: Callable[[], list[str]], killer: Killer) -> list[str]:
        """Wait until nothing is amiss, and see to it that a controller runs; else, in the end, what is amiss."""
        return outlived(self.kerf, amiss, killer, FLAGS)


def outlived(
    kerf: Installation, amiss: Callable[[], list[str]], killer: Killer, flags: Sequence[str], seconds: float = 0.0
) -> list[str]:
    """Wait until nothing is amiss, for `seconds` or PATIENCE_SECONDS from the latest start of a controller, of which
    there is one whenever the one before has died; else, in the end, what is amiss."""
    patience = seconds or PATIENCE_SECONDS
    deadline = time.monotonic() + patience
    while (found := _told(amiss)) or killer.dead:
        if killer.dead:
            kerf.start_controller(*flags)
            killer.dead = False
            deadline = time.monotonic() + patience
        if time.monotonic() > deadline:
            print(kerf.tail("controller", 200), flush=True)
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
    with Installation(control_plane, folder, webhook=False, families=FAMILIES, proxied=True, values=VALUES) as kerf:
        kerf.stop_controller()
        kerf.start_controller(*FLAGS)
        kerf.wait(lambda: kerf.readiness()[0] == 200, READY_SECONDS, "the controller is ready")
        yield Stage(kerf)
        # Others may use this cluster after us, and count evictions too.
        kerf.kubectl("delete", "daemonset/agent", "-n", "kube-system")
        for namespace in ("default", "kube-system"):  # in one request each: there are thousands
            kerf.kubectl("delete", "--raw", f"/api/v1/namespaces/{namespace}/events")


class Scaling:
    """Out and in; see the module."""

    def __init__(self, on: Stage) -> None:
        self._on, self._kerf = on, on.kerf
        self._names = (f"run-{number}" for number in itertools.count(1))

    def run(self, first: Sequence[Point] = (), second: Sequence[Point] = ()) -> Outcome:
        name, begun = next(self._names), time.monotonic()
        world, killer = World(self._kerf, name), self._on.killer()
        killer.aim(first)
        problems = self._out(name, world, killer)
        killer.aim(second)
        problems += self._in(name, world, killer)
        return Outcome(tuple(killer.struck), tuple(problems + world.doubled()), time.monotonic() - begun)

    def _out(self, name: str, world: World, killer: Killer) -> list[str]:
        self._on.apply(*objects(name))
        return self._on.until(world.amiss_at_height, killer)

    def _in(self, name: str, world: World, killer: Killer) -> list[str]:
        for instance_id in world.live()[:1]:
            self._kerf.aws.interrupt(instance_id, "rebalance")
        self._kerf.kubectl("scale", f"deployment/{name}", "--replicas=0")
        problems = self._on.until(world.amiss_when_empty, killer)
        self._kerf.kubectl("delete", f"nodepool/{name}", f"ec2nodeclass/{name}", f"deployment/{name}", "--wait=false")
        return problems + self._on.until(world.amiss_at_end, killer)


class Replacing:
    """A node that has drifted, then a sick one; see the module. A context manager: in the end nothing is left."""

    NAME: Final = "replaced"

    def __init__(self, on: Stage) -> None:
        self._on, self._kerf = on, on.kerf
        self._versions = itertools.count(1)

    def __enter__(self) -> Replacing:
        self._begin()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _begin(self) -> None:
        self._world = World(self._kerf, self.NAME, nodes=1)
        self._on.apply(*one_node(self.NAME))
        assert not self._on.until(self._world.amiss_at_height, self._on.killer())

    def _end(self) -> None:
        gone = [f"{kind}/{self.NAME}" for kind in ("deployment", "pdb", "nodepool", "ec2nodeclass")]
        self._kerf.kubectl("delete", "--wait=false", *gone)
        assert not self._on.until(self._world.amiss_at_end, self._on.killer())

    def run(self, first: Sequence[Point] = (), second: Sequence[Point] = ()) -> Outcome:
        begun, killer = time.monotonic(), self._on.killer()
        problems = self._replaced(killer, first, self._drift, least_running=PODS - 1)
        if not problems:
            problems = self._replaced(killer, second, self._sicken, least_running=0)
        if problems:  # the next run begins with what it should
            self._end()
            self._begin()
        return Outcome(tuple(killer.struck), tuple(problems), time.monotonic() - begun)

    def _replaced(
        self, killer: Killer, points: Sequence[Point], begin: Callable[[str], None], *, least_running: int
    ) -> list[str]:
        """Whatever AWS has before this half is none of it: what it makes is one instance."""
        ((old, node),) = self._world.nodes_by_claim().items()
        world = World(self._kerf, self.NAME, nodes=1)
        killer.aim(points)
        begin(node)
        problems = self._on.until(lambda: world.amiss_after(old), killer)
        if not problems:
            time.sleep(LATE_SECONDS)
            problems = world.amiss_after(old)
        problems += world.doubled()
        if world.fewest_running < least_running:
            problems.append(f"only {world.fewest_running} of {PODS} pods ran")
        return problems

    def _drift(self, _: str) -> None:
        labels = {"version": str(next(self._versions))}
        patch = json.dumps({"spec": {"template": {"metadata": {"labels": labels}}}})
        self._kerf.kubectl("patch", "nodepool", self.NAME, "--type=merge", "-p", patch)

    def _sicken(self, node: str) -> None:
        sicken(self._kerf, node, SICK_SECONDS)
