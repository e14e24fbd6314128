"""The verdicts of the sandbox's kube-scheduler on the worlds of the oracle, beside those of the plugins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kerf.model import kinds
from kerf.model.kinds import Kind
from kerf.sandbox.api.api_server import ApiServer
from kerf.sandbox.clock import START, Agenda, VirtualClock
from kerf.sandbox.scheduling.pod_requests import Manifest
from kerf.sandbox.scheduling.scheduler import Scheduler
from kerf.sandbox.weather import Weather
from tests.differential.draft import Json
from tests.oracle.client import ALL_NODES, Oracle
from tests.oracle.difference import Difference
from tests.oracle.sketch import key_of, kubernetes, pending

#: The sandbox refuses a node that the plugins allow; it allows a node that they refuse.
REFUSES: Final = "sandbox refuses"
ALLOWS: Final = "sandbox allows"
#: The kinds that the rules of the sandbox read, in the order in which they are created.
_LISTS: Final[Mapping[str, Kind]] = {
    "namespaces": kinds.NAMESPACE,
    "nodes": kinds.NODE,
    "storageClasses": kinds.STORAGE_CLASS,
    "persistentVolumes": kinds.PV,
    "csiNodes": kinds.CSI_NODE,
    "pods": kinds.POD,
    "persistentVolumeClaims": kinds.PVC,
}
#: A terminating pod has at least this grace, so that the sandbox keeps it.
_GRACE: Final = 3600


class SandboxJudge:
    """One world of the oracle in the sandbox: an API server with its objects, and a scheduler that binds none."""

    def __init__(self, world: Mapping[str, Any]) -> None:
        clock = VirtualClock(START)
        self._server = ApiServer(clock.now)
        self._scheduler = Scheduler(self._server, Agenda(clock), clock.now, Weather())
        for name in sorted({*_namespaces(world), "default"}):
            self._server.create(kinds.NAMESPACE, {"metadata": {"name": name}})
        for key, kind in _LISTS.items():
            for manifest in world.get(key) or ():
                self._add(kind, manifest)
        for pod in world.get("pods") or ():
            self._make_claims(pod)

    def verdicts(self, pod: str) -> dict[str, str]:
        """By node, the reason of the sandbox's scheduler against the pod; empty if it fits."""
        namespace, _, name = pod.partition("/")
        return self._scheduler.verdicts(self._server.get(kinds.POD, namespace, name).manifest)

    def bind(self, pod: str, node: str) -> None:
        """Bind the pod to a node, as the API server does."""
        namespace, _, name = pod.partition("/")
        self._server.bind(namespace, name, node, "2030-01-01T00:00:00Z")

    def _add(self, kind: Kind, manifest: Manifest) -> None:
        meta = manifest["metadata"]
        namespace, name = meta.get("namespace", ""), meta["name"]
        if kind is kinds.NAMESPACE:
            self._server.patch(kind, "", name, {"metadata": {"labels": meta.get("labels") or {}}})
            return
        if self._server.find(kind, namespace, name) is not None:
            return
        self._server.create(kind, self._owned(manifest))
        if kind is kinds.NODE:  # without the taint of a node that is not ready
            self._server.patch(kind, "", name, {"spec": {"taints": (manifest.get("spec") or {}).get("taints") or None}})
        if kind is not kinds.POD:
            return
        if manifest.get("status"):
            self._server.patch(kind, namespace, name, {"status": manifest["status"]}, subresource="status")
        if meta.get("deletionTimestamp"):
            self._server.delete(kind, namespace, name, grace_seconds=_GRACE)

    def _owned(self, manifest: Manifest) -> Manifest:
        """The object with the UIDs of the pods that own it: the API server gives its own ones."""
        meta = manifest["metadata"]
        owners = [
            {**owner, "uid": pod.manifest["metadata"]["uid"]}
            if owner["kind"] == "Pod" and (pod := self._server.find(kinds.POD, meta["namespace"], owner["name"]))
            else owner
            for owner in meta.get("ownerReferences") or ()
        ]
        return {**manifest, "metadata": {**meta, "ownerReferences": owners}} if owners else manifest

    def _make_claims(self, pod: Manifest) -> None:
        """The claims of the pod's ephemeral volumes, unless the world has them."""
        meta = self._server.get(kinds.POD, pod["metadata"]["namespace"], pod["metadata"]["name"]).manifest["metadata"]
        for volume in pod["spec"].get("volumes") or ():
            name = f"{meta['name']}-{volume['name']}"
            if volume.get("ephemeral") and self._server.find(kinds.PVC, meta["namespace"], name) is None:
                owner = {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": meta["name"],
                    "uid": meta["uid"],
                    "controller": True,
                }
                own = {"namespace": meta["namespace"], "name": name, "ownerReferences": [owner]}
                spec = volume["ephemeral"]["volumeClaimTemplate"]["spec"]
                self._server.create(kinds.PVC, {"metadata": own, "spec": spec})


def pairs(world: Json, oracle: Oracle) -> Iterator[Difference]:
    """Each pod that waits on each node, alone. The sandbox has no devices: pods that claim some are left out."""
    keys = [key_of(pod) for pod in pending(world) if not pod["spec"].get("resourceClaims")]
    if not keys:
        return
    judge = SandboxJudge(kubernetes(world))
    own = {key: judge.verdicts(key) for key in keys}
    for verdict in oracle.ask(kubernetes(world), verdicts=[(key, ALL_NODES) for key in keys]).verdicts:
        reason = own[verdict.pod][verdict.node]
        if verdict.fits and reason:
            yield Difference(REFUSES, verdict.pod, verdict.node, "sandbox", reason)
        elif not verdict.fits and not reason:
            yield Difference(ALLOWS, verdict.pod, verdict.node, verdict.plugin, verdict.message)


def _namespaces(world: Mapping[str, Any]) -> set[str]:
    """Every namespace that the world lists or an object of it lives in."""
    rows = [one["metadata"] for key in ("pods", "persistentVolumeClaims") for one in world.get(key) or ()]
    return {one["metadata"]["name"] for one in world.get("namespaces") or ()} | {row["namespace"] for row in rows}
