"""Both adapters of the Kube port, each with a cluster behind it: the sandbox's world and the real control plane."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Protocol

from kerf.kube.client import KubeClient
from kerf.model.kinds import Kind, Ref
from kerf.ports import Kube
from kerf.sandbox.api.kinds import EVENT, LEASE, Plain
from kerf.sandbox.weather import Weather
from kerf.sandbox.world import World

#: A controller manager forgets the pods of a deleted node after 40 to 60 seconds; bookmarks come once a minute.
SECONDS = 150.0


class Cluster(Protocol):
    """A cluster with somebody in it who schedules and runs pods."""

    kube: Kube

    def eventually(self, holds: Callable[[], bool]) -> None:
        """Let the cluster live until this is so; fail when it does not come true."""
        ...

    def old_version(self) -> str:
        """A resource version from which nobody can watch any more."""
        ...

    def give(self, manifest: Mapping[str, Any]) -> None:
        """A user creates an object, of any kind."""
        ...

    def events_about(self, ref: Ref) -> list[dict[str, Any]]:
        """The events about an object, as JSON."""
        ...

    def delete_lease(self, namespace: str, name: str) -> None: ...


class SandboxCluster:
    """The sandbox's world."""

    def __init__(self) -> None:
        self._world = World(weather=Weather(ready_seconds=0.5, pod_start_seconds=0.3, pod_stop_seconds=0.3))
        self.kube: Kube = self._world.kube

    def eventually(self, holds: Callable[[], bool]) -> None:
        deadline = self._world.clock.now() + timedelta(seconds=SECONDS)
        while not holds() and self._world.clock.now() < deadline:
            self._world.run(None, timedelta(seconds=0.25))
        assert holds(), "did not come true in time"

    def old_version(self) -> str:
        self._world.server.compact()
        return "1"

    def give(self, manifest: Mapping[str, Any]) -> None:
        self._world.apply(manifest)

    def events_about(self, ref: Ref) -> list[dict[str, Any]]:
        return [one for one in self._world.objects(EVENT.name) if one["involvedObject"]["name"] == ref.name]

    def delete_lease(self, namespace: str, name: str) -> None:
        self._world.server.delete(LEASE, namespace, name)


class RealCluster:
    """The control plane of the cluster tests, seen through the real adapter."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self.kube: Kube = client

    def eventually(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not holds():
            assert time.monotonic() < deadline, "did not come true in time"
            time.sleep(0.1)

    def old_version(self) -> str:
        return "1"

    def give(self, manifest: Mapping[str, Any]) -> None:
        name = manifest["kind"]
        kind = Kind(name, manifest["apiVersion"], f"{name.lower()}s", Plain)
        self._client.request("POST", kind.path(manifest["metadata"].get("namespace", "")), manifest)

    def events_about(self, ref: Ref) -> list[dict[str, Any]]:
        path = EVENT.path(ref.namespace or "default") + f"?fieldSelector=involvedObject.name={ref.name}"
        found: list[dict[str, Any]] = self._client.request("GET", path)["items"]
        return found

    def delete_lease(self, namespace: str, name: str) -> None:
        self._client.request("DELETE", LEASE.path(namespace, name))
