"""The two sides: a controller on a fresh control plane, with the node class and the NodePool of the load."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.peers import kwok
from benchmarks.scale_down.load import MOST_CPUS, VM_MEMORY_OVERHEAD, family_names, node_pool
from kerf_api import labels
from tests import worlds
from tests.cluster.control_plane import ControlPlane
from tests.cluster.installation import CLUSTER_NAME, Installation

Json = dict[str, Any]
#: From the launch until the node is there.
BOOT_SECONDS: Final = 1


@dataclass(frozen=True, slots=True)
class Running:
    """A controller that looks after a cluster; `pid` is its process's."""

    cluster: ControlPlane
    pid: Callable[[], int]


@contextmanager
def kerf(cluster: ControlPlane, folder: Path, rows: Sequence[Json]) -> Iterator[Running]:
    """Ours, installed by its charts, with AWS played by moto."""
    values = {"settings.vmMemoryOverheadPercent": f"{VM_MEMORY_OVERHEAD:g}"}
    with Installation(cluster, folder, families=family_names(rows), values=values) as installed:
        apply_for_aws(cluster, "KarpenterNodeRole", (labels.ON_DEMAND,))
        yield Running(cluster, installed.pid)


@contextmanager
def karpenter(cluster: ControlPlane, folder: Path, rows: Sequence[Json]) -> Iterator[Running]:
    """Karpenter's, with its KWOK provider. Raises PeerUnavailable when it cannot be built here."""
    with kwok.kwok_controller(cluster, folder, rows) as controller:
        ref = {"group": kwok.GROUP, "kind": kwok.NODE_CLASS_KIND, "name": "default"}
        apply(cluster, kwok.node_class(BOOT_SECONDS), node_pool(ref, []))
        yield Running(cluster, lambda: controller.pid)


def apply_for_aws(cluster: ControlPlane, role: str, markets: Sequence[str]) -> None:
    """Apply a node class with this role and the NodePool, as both controllers for AWS get them."""
    ref = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "default"}
    # The families are sold in larger sizes, too.
    small = {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Lt", "values": [str(MOST_CPUS + 1)]}
    apply(cluster, worlds.node_class(role=role, cluster=CLUSTER_NAME), node_pool(ref, [small], markets))


def apply(cluster: ControlPlane, *manifests: Json) -> None:
    """Apply objects, the NodePool `default` among them, and wait until it is ready."""
    cluster.kubectl("apply", "-f", "-", input="\n---\n".join(map(json.dumps, manifests)))
    cluster.kubectl("wait", "--for=condition=Ready", "nodepool/default", "--timeout=60s")
