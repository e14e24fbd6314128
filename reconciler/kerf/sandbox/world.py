"""A whole world in memory: cluster, cloud and time. `World.run` lets it live, with a controller in it or without.

    world = World(seed=1)
    world.apply(node_class); world.apply(node_pool); world.apply(deployment)
    world.run(controller, until=timedelta(minutes=10))

The world's parts act until nothing is left to do at this instant; then the controller looks, if anything changed or
its time has come; then the clock jumps to whatever is due next. The same seed lives the same life.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

from kerf.model import kinds as model
from kerf.model.aws.cloud import Region, Subnet
from kerf.model.kinds import Kind
from kerf.ports import PortError, Ports
from kerf.sandbox.api import kinds
from kerf.sandbox.api.admission import Refused
from kerf.sandbox.api.api_server import ApiServer, Record
from kerf.sandbox.api.eviction import DisruptionController
from kerf.sandbox.api.kube import SandboxKube
from kerf.sandbox.api.manifests import copied
from kerf.sandbox.aws import account, catalogue
from kerf.sandbox.aws.cloud import SandboxCloud
from kerf.sandbox.aws.ec2 import Ec2
from kerf.sandbox.clock import START, Agenda, VirtualClock
from kerf.sandbox.controllers.csi import NodeDrivers
from kerf.sandbox.controllers.daemon_sets import DaemonSets
from kerf.sandbox.controllers.garbage import GarbageCollector
from kerf.sandbox.controllers.namespaces import Namespaces
from kerf.sandbox.controllers.volumes import Volumes
from kerf.sandbox.controllers.workloads import Deployments, ReplicaSets, StatefulSets
from kerf.sandbox.faults import Faults
from kerf.sandbox.nodes.differences import Differences
from kerf.sandbox.nodes.kubelets import Kubelets
from kerf.sandbox.nodes.node_lifecycle import NodeLifecycle
from kerf.sandbox.scheduling.scheduler import Scheduler
from kerf.sandbox.weather import Weather
from kerf_api import lint
from kerf_api.defaulting import default

ZONES = ("us-west-2a", "us-west-2b", "us-west-2c")
#: More rounds than this at one instant mean that two parts undo each other's work for ever.
_ROUNDS = 1000


class Unsettled(Exception):
    """The world, or the controller in it, does not come to rest."""


class ControllerLike(Protocol):
    """What the loop drives. `next_due` is when it wants to look again although nothing has changed."""

    @property
    def next_due(self) -> datetime | None: ...

    def tick(self) -> object: ...


class Part(Protocol):
    """A part of the world. `settle` does what there is to do now and says whether there was anything."""

    def settle(self) -> bool: ...


class World:
    """See the module. `types` keeps only some of the catalogue's instance types."""

    def __init__(
        self,
        *,
        seed: int = 0,
        start: datetime = START,
        cluster_name: str = "sandbox",
        zones: tuple[str, ...] = ZONES,
        types: Iterable[str] | None = None,
        weather: Weather | None = None,
        faults: Faults | None = None,
    ) -> None:
        self.weather = weather or Weather()
        self.faults = faults or Faults()
        self.clock = VirtualClock(start)
        self.agenda = Agenda(self.clock)
        self.server = ApiServer(self.clock.now, seed=seed)
        region, subnets = self._place(cluster_name, zones, types)
        self.ec2 = Ec2(self.clock.now, self.agenda, region, subnets, self.weather, seed)
        self.kube = SandboxKube(self.server, self.clock.now, self.faults)
        self.cloud = SandboxCloud(self.ec2, self.clock, self.faults, cluster_name)
        self.ports = Ports(self.kube, self.cloud, self.clock)
        differences = Differences(self.server, self.ec2, self.agenda, seed)
        self.kubelets = Kubelets(self.server, self.ec2, differences, self.agenda, self.clock.now)
        volumes = Volumes(self.server, self.agenda, zones, self.weather.detach_seconds)
        drivers = NodeDrivers(self.server, differences.attachable)
        self._parts: tuple[Part, ...] = (
            Namespaces(self.server),
            GarbageCollector(self.server),
            NodeLifecycle(self.server, self.ec2, self.kubelets, self.agenda, self.clock.now),
            Deployments(self.server),
            ReplicaSets(self.server),
            StatefulSets(self.server),
            DaemonSets(self.server),
            DisruptionController(self.server),
            volumes,
            drivers,
            Scheduler(self.server, self.agenda, self.clock.now, self.weather),
        )
        self._furnish()

    def _furnish(self) -> None:
        """What every cluster has from the start."""
        for name in ("default", "kube-system"):
            self.server.create(model.NAMESPACE, {"metadata": {"name": name, "labels": {_NAME_LABEL: name}}})

    def _place(
        self, cluster_name: str, zones: tuple[str, ...], types: Iterable[str] | None
    ) -> tuple[Region, tuple[Subnet, ...]]:
        """The region with its instance types, and the account's subnets."""
        tagged = account.subnets(cluster_name, zones)
        subnets = tuple(one.thing for one in tagged if isinstance(one.thing, Subnet))
        return catalogue.region(zones, types), subnets

    # --- a user's hands -------------------------------------------------------------------------------------------
    def apply(self, manifest: Mapping[str, Any]) -> None:
        """Create or change an object, as `kubectl apply` would. Raises Refused with the problems' text."""
        kind = self._kind(manifest.get("kind"), manifest)
        meta = manifest.get("metadata") or {}
        namespace = "" if kind.cluster_scoped else meta.get("namespace") or "default"
        old = self.server.find(kind, namespace, meta.get("name", ""))
        wanted = dict(manifest)
        if kind.name in kinds.CUSTOM:
            wanted = default(wanted)
            problems = lint.validate(wanted, None if old is None else dict(old.manifest))
            if errors := [str(problem) for problem in problems if problem.severity == "error"]:
                raise Refused(f"{kind.name} {meta.get('name', '')}", errors)
        try:
            self._write(kind, namespace, wanted, old)
        except PortError as error:
            raise Refused(str(error)) from error

    def _write(self, kind: Kind, namespace: str, wanted: dict[str, Any], old: Record | None) -> None:
        if old is None:
            self.server.create(kind, wanted)
            return
        name = wanted["metadata"]["name"]
        body = {part: value for part, value in wanted.items() if part not in ("metadata", "status")}
        gone = {part: None for part in old.manifest if part not in wanted and part not in ("metadata", "status")}
        spec = _replacing(old.manifest.get("spec"), body.get("spec"))
        patch = {**gone, **body, **({"spec": spec} if "spec" in body else {}), "metadata": wanted["metadata"]}
        self.server.patch(kind, namespace, name, patch)

    def delete(self, kind_name: str, name: str, namespace: str = "") -> None:
        """As `kubectl delete` would, without waiting. Raises AlreadyGone."""
        kind = self._kind(kind_name)
        self.server.delete(kind, namespace or "default", name)

    def scale(self, namespace: str, deployment: str, replicas: int) -> None:
        """Raises AlreadyGone."""
        self.server.patch(model.DEPLOYMENT, namespace, deployment, {"spec": {"replicas": replicas}})

    def resize(self, namespace: str, pod: str, requests: Mapping[str, str]) -> None:
        """Change the requests of a pod's first container in place. Raises AlreadyGone."""
        first, *others = self.server.get(model.POD, namespace, pod).manifest["spec"]["containers"]
        resources = first.get("resources") or {}
        wanted = {**resources, "requests": {**(resources.get("requests") or {}), **requests}}
        containers = [{**first, "resources": wanted}, *others]
        self.server.patch(model.POD, namespace, pod, {"spec": {"containers": containers}})

    def objects(self, kind_name: str) -> list[dict[str, Any]]:
        """Copies of all objects of a kind, by namespace and name."""
        found = self.server.select(self._kind(kind_name), "", "", "")
        return [copied(record.manifest) for record in found]

    def _kind(self, name: object, manifest: Mapping[str, Any] | None = None) -> Kind:
        """A served kind, or one made up from the manifest: any object can be kept."""
        known = self.server.kinds.get(str(name))
        if known is not None:
            return known
        if manifest is None or "apiVersion" not in manifest:
            raise Refused(f"no kind {name} is known here")
        cluster_scoped = "namespace" not in (manifest.get("metadata") or {})
        made = Kind(str(name), manifest["apiVersion"], f"{str(name).lower()}s", kinds.Plain, cluster_scoped)
        return self.server.kinds.setdefault(made.name, made)

    # --- time -----------------------------------------------------------------------------------------------------
    def step(self) -> datetime | None:
        """Do everything that is due now; when the world is due next (None: never). Raises Unsettled."""
        for _ in range(_ROUNDS):
            busy = self.agenda.run_due()
            for part in self._parts:
                busy |= part.settle()
            if not busy:
                return self.agenda.next_due()
        raise Unsettled(f"the world does not become idle at {self.clock.now()}")

    def run(
        self,
        controller: ControllerLike | None,
        until: datetime | timedelta,
        stop_when: Callable[[], bool] | None = None,
    ) -> None:
        """Live until an instant (or for a while), or until `stop_when` says so. Raises Unsettled."""
        end = until if isinstance(until, datetime) else self.clock.now() + until
        seen: tuple[int, int] | None = None
        rounds, instant = 0, self.clock.now()
        while True:
            due = self.step()
            if stop_when is not None and stop_when():
                return
            if controller is not None and self._wakes(controller, seen):
                rounds = rounds + 1 if self.clock.now() == instant else 1
                instant = self.clock.now()
                if rounds > _ROUNDS:
                    raise Unsettled(f"the controller does not become idle at {instant}")
                seen = self._changes()
                controller.tick()
                continue
            if controller is not None and controller.next_due is not None:
                due = controller.next_due if due is None else min(due, controller.next_due)
            if due is None or due > end:
                self.clock.jump(end)
                return
            self.clock.jump(due)

    def _wakes(self, controller: ControllerLike, seen: tuple[int, int] | None) -> bool:
        due = controller.next_due
        return self._changes() != seen or (due is not None and due <= self.clock.now())

    def _changes(self) -> tuple[int, int]:
        return self.server.loud_changes, self.ec2.changes


_NAME_LABEL = "kubernetes.io/metadata.name"


def _replacing(old: Any, new: Any) -> Any:
    """A merge patch that makes `old` into `new`: what is missing there is removed."""
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return new
    removed = {name: None for name in old if name not in new}
    return {**removed, **{name: _replacing(old.get(name), value) for name, value in new.items()}}
