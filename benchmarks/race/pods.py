"""Follows the pods of a cluster by a watch, and notes when each of them was created, refused, Ready and gone."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

from benchmarks.race.records import Life
from kerf.kube.client import KubeClient
from kerf.model import kinds
from kerf.model.kubernetes.objects import Pod
from kerf.ports import PortError

NAMESPACE: Final = "default"
_READ_SECONDS: Final = 0.2
_ENDED: Final = ("Succeeded", "Failed")


@dataclass(slots=True)
class Seen:
    """A pod as it was last seen; times are seconds since the epoch."""

    pod: Pod
    created: float
    unschedulable: float | None = None
    ready: float | None = None
    gone: float | None = None

    def note(self, pod: Pod, now: float) -> None:
        """What this version of the pod shows for the first time."""
        self.pod = pod
        conditions = {one.type: one for one in pod.status.conditions}
        scheduled, ready = conditions.get("PodScheduled"), conditions.get("Ready")
        if self.unschedulable is None and scheduled is not None and scheduled.reason == "Unschedulable":
            self.unschedulable = now
        if self.ready is None and ready is not None and ready.status == "True":
            self.ready = now
        if pod.metadata.deletion_timestamp is not None or pod.status.phase in _ENDED:
            self.leave(now)

    def leave(self, now: float) -> None:
        self.gone = self.gone or now

    def life(self, begin: float) -> Life:
        """With times after `begin`."""
        later = (None if at is None else at - begin for at in (self.unschedulable, self.ready, self.gone))
        unschedulable, ready, gone = later
        app = self.pod.metadata.labels.get("app", "")
        return Life(app, self.created - begin, unschedulable, self.pod.spec.node_name, ready, gone)


class Pods:
    """The pods of the namespace `default` since it was entered; a context manager."""

    def __init__(self, kube: KubeClient) -> None:
        self._kube = kube
        self._seen: dict[str, Seen] = {}
        self._stop, self._lock = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._follow, name="pods", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def changed(self) -> float:
        """When a pod came, became Ready or went for the last time, in seconds since the epoch; 0 for none."""
        with self._lock:
            every = [(one.created, one.ready, one.gone) for one in self._seen.values()]
        return max((at or 0.0 for times in every for at in times), default=0.0)

    def ready(self) -> int:
        """How many pods are Ready and stay."""
        with self._lock:
            return sum(one.ready is not None and one.gone is None for one in self._seen.values())

    def all_ready(self) -> bool:
        """Whether there are pods, and all that stay are Ready."""
        with self._lock:
            stay = [one for one in self._seen.values() if one.gone is None]
        return bool(stay) and all(one.ready is not None for one in stay)

    def lives(self, begin: float) -> list[Life]:
        """Of all pods, as far as they have come."""
        with self._lock:
            return [one.life(begin) for one in self._seen.values()]

    def at(self, instant: float) -> list[Pod]:
        """The pods that were there at an instant, in seconds since the epoch."""
        with self._lock:
            every = list(self._seen.values())
        return [one.pod for one in every if one.created <= instant and (one.gone is None or one.gone > instant)]

    def note(self, type_: str, pod: Pod, now: float) -> None:
        """What an event of the watch says."""
        if pod.metadata.namespace != NAMESPACE:
            return
        with self._lock:
            one = self._seen.setdefault(pod.metadata.uid, Seen(pod, now))
            if type_ == "DELETED":
                one.leave(now)
            else:
                one.note(pod, now)

    def _follow(self) -> None:
        while not self._stop.is_set():
            try:
                self._watch()
            except PortError:  # the watch ended: a new list has all that was missed
                self._stop.wait(_READ_SECONDS)

    def _watch(self) -> None:
        listing = self._kube.list(kinds.POD)
        self._listed(listing.items)
        watch = self._kube.watch(kinds.POD, listing.resource_version)
        try:
            while not self._stop.is_set():
                changes, now = watch.read(_READ_SECONDS), time.time()
                for change in changes:
                    if isinstance(change.value, Pod):
                        self.note(change.type, change.value, now)
        finally:
            watch.close()

    def _listed(self, pods: Iterable[Pod]) -> None:
        now, there = time.time(), set[str]()
        for pod in pods:
            there.add(pod.metadata.uid)
            self.note("MODIFIED", pod, now)
        with self._lock:
            for uid, one in self._seen.items():
                if uid not in there:
                    one.leave(now)
