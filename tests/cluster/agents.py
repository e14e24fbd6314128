"""What else runs in a cluster of AWS and is missing here: the agents that make volumes and that get nodes started.

    with Agents(cluster.kubeconfig):
        ...

A thread makes a volume for each claim for which the kube-scheduler has chosen a node, in that node's zone, as the EBS
driver would; and it takes the start-up taints off nodes that are ready, as a network agent would.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import kubernetes
from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
ZONE: Final = "topology.kubernetes.io/zone"
REQUEST_SECONDS: Final = 20.0
CONFLICT: Final = 409


class Agents:
    """See the module. `startup_taints` are the keys of the taints that it takes away."""

    def __init__(
        self, kubeconfig: Path, *, startup_taints: frozenset[str] = frozenset(), poll_seconds: float = 0.5
    ) -> None:
        connect: Any = kubernetes.config.new_client_from_config
        self._core: Any = kubernetes.client.CoreV1Api(connect(str(kubeconfig)))
        self._startup_taints, self._poll_seconds = startup_taints, poll_seconds
        self._made: set[str] = set()
        self._failure: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="agents", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        if self._failure is not None:
            raise RuntimeError("the agents have stopped") from self._failure

    def _follow(self) -> None:
        try:
            while not self._stop.wait(self._poll_seconds):
                with contextlib.suppress(HTTPError, OSError):
                    self._look()
        except BaseException as error:
            self._failure = error

    def _look(self) -> None:
        nodes = {one["metadata"]["name"]: one for one in self._list(self._core.list_node)}
        for claim in self._list(self._core.list_persistent_volume_claim_for_all_namespaces):
            chosen = nodes.get(claim["metadata"].get("annotations", {}).get(SELECTED_NODE, ""))
            if (
                chosen is not None
                and claim["metadata"]["uid"] not in self._made
                and not claim["spec"].get("volumeName")
            ):
                self._make_volume(claim, chosen["metadata"]["labels"][ZONE])
        for node in nodes.values():
            if any(self._ready(node)):
                self._take_taints(node)

    def _list(self, ask: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(ask(_preload_content=False, _request_timeout=REQUEST_SECONDS).data)[
            "items"
        ]
        return found

    def _make_volume(self, claim: dict[str, Any], zone: str) -> None:
        """Source: Kubernetes, "Storage Classes", volume binding mode; the volume controller binds it to its claim."""
        meta, spec = claim["metadata"], claim["spec"]
        term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
        made = {
            "metadata": {"name": f"pvc-{meta['uid']}"},
            "spec": {
                "capacity": spec["resources"]["requests"],
                "accessModes": spec["accessModes"],
                "storageClassName": spec["storageClassName"],
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": meta["namespace"],
                    "name": meta["name"],
                    "uid": meta["uid"],
                },
                "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": f"vol-{meta['uid']}"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            },
        }
        self._core.create_persistent_volume(made, _request_timeout=REQUEST_SECONDS)
        self._made.add(meta["uid"])

    def _ready(self, node: dict[str, Any]) -> Iterator[bool]:
        return (one["status"] == "True" for one in node["status"].get("conditions", []) if one["type"] == "Ready")

    def _take_taints(self, node: dict[str, Any]) -> None:
        before = node["spec"].get("taints", [])
        after = [taint for taint in before if taint["key"] not in self._startup_taints]
        if before == after:
            return
        version = node["metadata"]["resourceVersion"]  # of the list: what was written since must not be undone
        patch = {"metadata": {"resourceVersion": version}, "spec": {"taints": after}}
        try:
            self._core.patch_node(node["metadata"]["name"], patch, _request_timeout=REQUEST_SECONDS)
        except ApiException as error:
            if error.status != CONFLICT:
                raise
