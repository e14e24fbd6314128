"""Whoever was made to leave runs again: workloads whose pods the controller has evicted or deleted have all of them.

Which these are is told by the API server: every pod whose end began while a controller acted. How many there have to
be is what their workloads ask for now; a person may have scaled them since, or deleted them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

from kerf.model import kinds
from kerf.model.kinds import Kind
from kerf.model.kubernetes.objects import Pod
from kerf.sandbox.api.api_server import Record
from kerf.sandbox.world import World
from tests.simulation.arithmetic import at_work

#: What may control a pod, and how many pods one of it asks for.
_CONTROLLERS: dict[str, tuple[Kind, Callable[[Record], int]]] = {
    "ReplicaSet": (kinds.REPLICA_SET, lambda record: int(record.value.spec.replicas)),
    "StatefulSet": (kinds.STATEFUL_SET, lambda record: int(record.value.spec.replicas)),
    "DaemonSet": (kinds.DAEMON_SET, lambda record: int(record.manifest["status"]["desiredNumberScheduled"])),
}


class Evictions:
    """Listens from the start on. `acting` says whether what happens now is the controller's doing."""

    def __init__(self, world: World, acting: Callable[[], bool]) -> None:
        self._world, self._acting = world, acting
        #: How many pods were made to leave.
        self.count = 0
        #: Kind, namespace and name of the controllers of those that had one, and their apps.
        self._bereft: dict[tuple[str, str, str], str] = {}
        world.server.listen(self._heard)

    def _heard(self, old: Record | None, new: Record | None) -> None:
        if old is None or old.kind.name != "Pod" or not self._acting() or not at_work(old.value):
            return
        if new is None or new.value.metadata.deleting:
            self.count += 1
            pod: Pod = old.value
            for owner in pod.metadata.owner_references:
                if owner.controller and owner.kind in _CONTROLLERS:
                    self._bereft[owner.kind, pod.metadata.namespace, owner.name] = pod.metadata.labels.get("app", "")

    def missing(self, excused: Collection[str] = ()) -> list[str]:
        """The workloads that lost a pod and have fewer running than they ask for, but for the excused apps."""
        return [words for place, app in self._bereft.items() if app not in excused for words in self._lacking(*place)]

    def _lacking(self, kind_name: str, namespace: str, name: str) -> Iterator[str]:
        kind, asked = _CONTROLLERS[kind_name]
        record = self._world.server.find(kind, namespace, name)
        if record is None or record.value.metadata.deleting:
            return
        running = sum(_runs_for(one.value, record.value) for one in self._world.server.records(kinds.POD, namespace))
        if running < asked(record):
            yield f"{name} has {running} of {asked(record)} pods since the controller made some leave"


def _runs_for(pod: Pod, controller: Any) -> bool:
    owned = any(owner.uid == controller.metadata.uid for owner in pod.metadata.owner_references)
    return owned and at_work(pod) and pod.status.phase == "Running"
