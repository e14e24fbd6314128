"""The pods of one node as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kerf.cli.answering.amounts import cores, gib
from kerf.cli.reports.escaping import visible
from kerf.cli.terminal import columns
from kerf.disruption.view import view
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.model.snapshot import Snapshot
from kerf.scheduling.facts.nodes import Needs
from kerf.views.cluster import CPU, MEMORY, amounts
from kerf_api.texts import counted

_HEAD: Final = ("NAMESPACE", "POD", "CPU", "MEMORY", "WORKLOAD")


def of_node(snapshot: Snapshot, name: str) -> str:
    """Those that have not ended, by namespace and name, with their requests."""
    own = [pod for pod in view(snapshot).pods_on(name) if not pods.terminal(pod)]
    rows = list(_rows(sorted(own, key=lambda pod: (pod.metadata.namespace, pod.metadata.name))))
    return "\n".join(
        [f"node {visible(name)}: {counted(len(own), 'pod')}", *(["", *columns([_HEAD, *rows])] if rows else [])]
    )


def _rows(own: list[Pod]) -> Iterator[tuple[str, ...]]:
    needs = Needs()
    for pod in own:
        known = amounts(needs, pod)
        amount = f"{gib(known.get(MEMORY, 0))} GiB"
        kind, name = pods.workload(pod) or ("", "")
        names = (visible(pod.metadata.namespace), visible(pod.metadata.name))
        yield *names, cores(known.get(CPU, 0)), amount, visible(f"{kind} {name}".strip())
