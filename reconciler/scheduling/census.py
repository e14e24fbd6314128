"""One pass over the cluster's pods: who runs where, who keeps others away, and each daemon set's newest pod."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.model import pods
from reconciler.model.objects import Namespace, Node, Pod
from reconciler.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class Census:
    """Bound, living pods with their keys; of them those with required anti-affinity; each daemon set's newest pod."""

    pods: tuple[tuple[str, Pod], ...]
    shunning: tuple[tuple[str, Pod], ...]
    newest_daemon_pod: Mapping[str, Pod]
    nodes: Mapping[str, Node]
    namespaces: Mapping[str, Namespace]


def take(snapshot: Snapshot) -> Census:
    """Count the pods that are bound to a known node and neither done nor going."""
    counted: list[tuple[str, Pod]] = []
    shunning: list[tuple[str, Pod]] = []
    newest: dict[str, Pod] = {}
    for key in sorted(snapshot.pods.by_key):
        pod = snapshot.pods.by_key[key]
        if pod.spec.node_name not in snapshot.nodes or not pods.active(pod):
            continue
        counted.append((key, pod))
        if pods.of_daemon_set(pod):
            _keep_newest(newest, pod)
        affinity = pod.spec.affinity
        if affinity is not None and affinity.pod_anti_affinity is not None and affinity.pod_anti_affinity.required:
            shunning.append((key, pod))
    return Census(
        tuple(counted),
        tuple(shunning),
        newest,
        snapshot.nodes,
        snapshot.namespaces,
    )


def _keep_newest(newest: dict[str, Pod], pod: Pod) -> None:
    for owner in pod.metadata.owner_references:
        if owner.kind == "DaemonSet":
            key = f"{pod.metadata.namespace}/{owner.name}"
            newest[key] = max((p for p in (newest.get(key), pod) if p is not None), key=_age)


def _age(pod: Pod) -> tuple[str, str]:
    created = pod.metadata.creation_timestamp
    return (created.isoformat() if created is not None else "", pod.key)
