"""What goes on in the cluster meanwhile: pods are replaced, scheduled and started; nodes report their status.

The feed plays the kube-scheduler, the workload controllers and the kubelets. A replacement is five events: the old pod
is being deleted, its successor appears, the old one is gone, the successor is bound a second later, and runs.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable
from random import Random
from typing import Any, Final

from benchmarks.feed import services
from benchmarks.feed.services import Service
from benchmarks.feed.specimens import TIER
from benchmarks.feed.stamping import Running, World
from benchmarks.feed.store import Store, now_text
from kerf.model import kinds

Json = dict[str, Any]
EVENTS_PER_REPLACEMENT: Final = 5
#: Seconds after its creation at which a successor is bound, and runs.
BOUND_AFTER, RUNS_AFTER = 1.0, 2.0
_BEAT: Final = 0.02
#: One node event in so many changes an annotation instead of being a heartbeat.
_ANNOTATES: Final = 10


class Churn:
    """See the module. It goes on until its time is over; `now` asks are done between beats."""

    def __init__(self, store: Store, world: World, seed: int = 1) -> None:
        self._store, self._world, self._dice = store, world, Random(seed)
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()
        self.pods_changed = self.nodes_changed = 0
        self._burst: list[str] = []

    async def run(self, pod_events: float, node_events: float, seconds: float) -> None:
        """So many events a second, evenly spread, for so long; returns when the last pod runs."""
        began = done = time.monotonic()
        replaced = told = 0.0
        while done < began + seconds or self._agenda:
            await asyncio.sleep(_BEAT)
            now = time.monotonic()
            spent = min(now, began + seconds) - done if done < began + seconds else 0.0
            replaced, told = replaced + spent * pod_events / EVENTS_PER_REPLACEMENT, told + spent * node_events
            done = now
            while self._agenda and self._agenda[0][0] <= now:
                heapq.heappop(self._agenda)[2]()
            for _ in range(int(replaced)):
                self._replace()
            for _ in range(int(told)):
                self._node_event()
            replaced, told = replaced % 1, told % 1

    # --- pods ---------------------------------------------------------------------------------------------------------
    def _replace(self) -> None:
        running, slot = self._world.running, self._dice.randrange(len(self._world.running))
        old = running[slot]
        running[slot] = running[-1]
        running.pop()
        if not self._is_there(old):
            return  # it was evicted with its node, for good
        self._end(old)
        self._world.number += 1
        number, created = self._world.number, now_text()
        self._put(old.service.pod(number, created))
        self._later(BOUND_AFTER, lambda: self._gone(old))
        self._later(BOUND_AFTER, lambda: self._bind(old, number, created))
        self._later(RUNS_AFTER, lambda: self._run_pod(old, number))

    def _end(self, old: Running) -> None:
        value = self._store.value(kinds.POD, old.key)
        value["metadata"] |= {"deletionTimestamp": now_text(), "deletionGracePeriodSeconds": 30}
        self._put(value)

    def _gone(self, old: Running) -> None:
        if self._is_there(old):
            self._store.remove(kinds.POD, old.key)
            self.pods_changed += 1

    def _is_there(self, pod: Running) -> bool:
        return pod.key in self._store.tables["Pod"].objects

    def _bind(self, old: Running, number: int, created: str) -> None:
        self._put(old.service.pod(number, created, old.place.node, old.place.address))

    def _run_pod(self, old: Running, number: int) -> None:
        value = old.service.pod(number, now_text(), old.place.node, old.place.address, running=True)
        self._put(value)
        self._world.running.append(Running(old.service, _key(value), old.place))

    def _put(self, value: Json) -> None:
        self._store.put(kinds.POD, value)
        self.pods_changed += 1

    # --- nodes --------------------------------------------------------------------------------------------------------
    def _node_event(self) -> None:
        place = self._world.places[self._dice.randrange(len(self._world.places))]
        if place.node not in self._store.tables["Node"].objects:
            return
        value = self._store.value(kinds.NODE, place.node)
        if self._dice.randrange(_ANNOTATES) == 0:
            value["metadata"]["annotations"]["example.com/patched-at"] = now_text()
        for condition in value["status"]["conditions"]:
            condition["lastHeartbeatTime"] = now_text()
        self._store.put(kinds.NODE, value)
        self.nodes_changed += 1

    # --- pods without a place -----------------------------------------------------------------------------------------
    def unschedulable(self, count: int, pool: str, cpu_millis: int, name: str) -> None:
        """So many pods of a new Deployment for which the scheduler finds no place."""
        requests, wishes = {"cpu": f"{cpu_millis}m", "memory": "1024Mi"}, {"nodeSelector": {TIER: pool}}
        service = Service.of(name, "default", ("ReplicaSet", services.uid("replicaset", name)), requests, wishes)
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        for _ in range(count):
            self._world.number += 1
            value = service.pod(self._world.number, now_text())
            told = {**condition, "message": "0/5000 nodes are available", "lastTransitionTime": now_text()}
            value["status"]["conditions"] = [told]
            self._put(value)
            self._burst.append(_key(value))

    def delete_claim(self) -> str:
        """Of a node that is chosen by chance among those that nobody has tainted; the node's name."""
        nodes = self._store.tables["Node"].objects
        while True:
            place = self._world.places[self._dice.randrange(len(self._world.places))]
            if place.node in nodes and not self._store.value(kinds.NODE, place.node)["spec"].get("taints"):
                self._store.delete(kinds.NODE_CLAIM, place.claim, {}, "somebody")
                return place.node

    def remove_unschedulable(self) -> None:
        for key in self._burst:
            self._store.remove(kinds.POD, key)
        self._burst.clear()

    def _later(self, seconds: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (time.monotonic() + seconds, next(self._count), do))


def _key(value: Json) -> str:
    return f"{value['metadata']['namespace']}/{value['metadata']['name']}"
