"""One run: a fresh control plane, a side, a load; and what came of it."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

from benchmarks.race.figures import bounds_by_minute
from benchmarks.race.loads import LOADS, Load
from benchmarks.race.pods import Pods
from benchmarks.race.prices import for_sale, price
from benchmarks.race.records import Key, Machine, Order, Run
from benchmarks.race.sides import SIDES, Running
from benchmarks.race.sizes import Size
from benchmarks.race.stage import Stage, Step
from benchmarks.scale_down.controllers import apply_for_aws
from benchmarks.scale_down.journal import EVICTED, AuditLog
from benchmarks.scale_down.load import Measure, catalogue, family_names
from benchmarks.usage import proportional_bytes, usage
from kerf.kube.client import KubeClient
from tests.cluster.agents import Agents
from tests.cluster.bootstrapper import MACHINES
from tests.cluster.control_plane import ControlPlane
from tests.cluster.processes import wait_until

Json = dict[str, Any]
LOOK_SECONDS: Final = 0.2
MEMORY_SECONDS: Final = 1.0
#: What is there before a load runs within so many seconds, and has rested for so many.
RUNNING_SECONDS, REST_SECONDS = 300.0, 60.0


@dataclass
class Used:
    """What the processes of a controller use, since it was made."""

    pid: Callable[[], int]
    peak_bytes: int = 0
    rest_bytes: int = 0
    before: float = field(init=False)
    due: float = 0.0

    def __post_init__(self) -> None:
        self.before = usage(self.pid()).cpu_seconds

    def look(self) -> None:
        """Read the memory, once a second at most."""
        if time.monotonic() >= self.due:
            self.due = time.monotonic() + MEMORY_SECONDS
            self.rest_bytes = proportional_bytes(self.pid())
            self.peak_bytes = max(self.peak_bytes, self.rest_bytes)

    @property
    def cpu_seconds(self) -> float:
        return usage(self.pid()).cpu_seconds - self.before


def measure(key: Key, folder: Path) -> Run:
    """Run a load under a side; logs go into `folder`. Raises PeerUnavailable."""
    load, size = LOADS[key.load], Size(key.pods)
    with _cluster(key, load, folder) as (stage, running, pods):
        load.before(stage, size)
        if load.rests:
            _rest(pods)
        steps = sorted(load.steps(size, stage.dice), key=lambda step: step[0])
        audit, used = AuditLog(folder / "audit.log"), Used(running.pid)
        audit.news()
        begin = time.time()
        _play(steps, begin, key.seconds, stage, used)
        news, bill = audit.news(), _Bill(running, begin)
        return Run(
            key=key,
            lives=tuple(pods.lives(begin)),
            machines=tuple(bill.machines()),
            orders=tuple(bill.orders()),
            calls=bill.calls(),
            evictions=len({change.name for change in news if change.what == EVICTED}),
            bounds=tuple(_bounds(pods, load, begin, key.seconds)),
            cpu_seconds=used.cpu_seconds,
            peak_bytes=used.peak_bytes,
            rest_bytes=used.rest_bytes,
            load_average=os.getloadavg()[0],
        )


@contextmanager
def _cluster(key: Key, load: Load, folder: Path) -> Iterator[tuple[Stage, Running, Pods]]:
    """A control plane with a side at work, whose NodePool is ready."""
    with ExitStack() as stack:
        cluster = stack.enter_context(ControlPlane(audit_log=folder / "audit.log"))
        running = stack.enter_context(SIDES[key.side](cluster, folder, family_names(catalogue()), key.boots))
        apply_for_aws(cluster, running.aws.role, load.markets)
        if load.volumes:
            stack.enter_context(Agents(cluster.kubeconfig))
        kube = KubeClient.from_kubeconfig(cluster.kubeconfig)
        pods = stack.enter_context(Pods(kube))
        yield Stage(cluster, kube, running.aws, Random(key.seed)), running, pods


def _rest(pods: Pods) -> None:
    """Wait until all pods run and none has come or gone for a minute."""
    wait_until(pods.all_ready, lambda: f"{pods.ready()} pods run", RUNNING_SECONDS)
    begin = time.monotonic()
    while (quiet := time.time() - pods.changed) < REST_SECONDS:
        if time.monotonic() - begin > RUNNING_SECONDS:
            raise RuntimeError("pods come and go without end")
        time.sleep(min(REST_SECONDS - quiet, 1.0))


def _play(steps: Sequence[Step], begin: float, seconds: float, stage: Stage, used: Used) -> None:
    """Take each step when it is due, until the end of the load."""
    todo = list(reversed(steps))
    while (now := time.time() - begin) < seconds:
        while todo and todo[-1][0] <= now:
            _at, act = todo.pop()
            act(stage)
        used.look()
        time.sleep(LOOK_SECONDS)


class _Bill:
    """What AWS knows of a run."""

    def __init__(self, running: Running, begin: float) -> None:
        self._aws, self._begin = running.aws, begin

    def machines(self) -> Iterator[Machine]:
        for one in self._aws.instances():
            kind, zone, market = one["instance_type"], one["zone"], one["capacity_type"]
            ended = None if one["ended"] is None else one["ended"] - self._begin
            what = kind, zone, market, price(kind, zone, market)
            yield Machine(one["id"], one["private_dns_name"], *what, one["launched"] - self._begin, ended)

    def orders(self) -> Iterator[Order]:
        for one in self._aws.fleets():
            yield Order(one.asked - self._begin, one.answered - self._begin, one.instances, one.errors)

    def calls(self) -> dict[str, int]:
        """Of the controller since the beginning, by action."""
        made = (one for one in self._aws.calls() if one.time >= self._begin and one.caller != MACHINES)
        return dict(Counter(one.action for one in made))


def _bounds(pods: Pods, load: Load, begin: float, seconds: float) -> list[float]:
    measure_ = Measure(for_sale(load.markets))
    return bounds_by_minute(seconds, lambda second: measure_.bound(pods.at(begin + second)))
