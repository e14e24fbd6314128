"""Small clusters for the views, from the worlds of disruption."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from benchmarks.scheduling import REFUSED
from kerf.cli.answering.captures import Origin
from kerf.model.kubernetes.objects import Pod
from kerf.model.snapshot import Snapshot
from tests.unit.disruption.worlds import claim, node, pdb, pod, pool, snapshot
from tests.unit.judgement.yards import worker

#: A script, Markdown, an escape sequence and a line break.
HOSTILE: Final = "<script>alert(1)</script>\x1b[2J\n&amp;\u202e"


def waiting(name: str, cpu: str, *, of: str = "web") -> Pod:
    """A pod that its scheduler has refused."""
    return replace(worker(name, "", cpu, of=of), status=REFUSED)


def labeled(made: Pod, namespace: str = "shop", **labels: str) -> Pod:
    """The pod in a namespace, with more labels."""
    meta = made.metadata
    return replace(made, metadata=replace(meta, namespace=namespace, labels={**meta.labels, **labels}))


def agent(on: str, cpu: str) -> Pod:
    """A pod of a DaemonSet."""
    return worker(f"agent-{on}", on, cpu, of="agent", kind="DaemonSet")


def cluster(*more: Any, **facts: Any) -> Snapshot:
    """Nodes `a` (half used, blocked by a PodDisruptionBudget) and `b` (empty but for a DaemonSet)."""
    a, b = claim("a"), claim("b")
    objects = [
        *(pool(), a, node(a), b, node(b), pdb("keep")),
        labeled(worker("web-1", "a", "500m"), team="checkout"),
        labeled(worker("etl-1", "a", "500m", of="etl"), namespace="batch"),
        *(agent("a", "100m"), agent("b", "100m")),
        *more,
    ]
    return snapshot(objects, **facts)


def origin(found: Snapshot) -> Origin:
    """An origin that has only this snapshot."""
    return Origin("a test", lambda: found)


def hostile() -> Snapshot:
    """Names and labels that no API server takes, but a file may have."""
    one = claim("h", pool_name=HOSTILE)
    machine = node(one)
    machine = replace(machine, metadata=replace(machine.metadata, name=f"node-{HOSTILE}"))
    bound = replace(pod("p", "h"), spec=replace(pod("p", "h").spec, node_name=f"node-{HOSTILE}"))
    return cluster(
        *(pool(HOSTILE), one, machine, labeled(bound, namespace=HOSTILE, team=HOSTILE)),
        labeled(waiting(HOSTILE, "900", of=HOSTILE), namespace=HOSTILE),
    )
