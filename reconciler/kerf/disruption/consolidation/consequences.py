"""What a move means for those whom it concerns: which pods are evicted, and whose they are; which nodes come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.scheduling.answers.solution import NewNode
from kerf.scheduling.offerings import prices
from kerf_api.texts import counted, shortened

#: So many workloads, and pods without a controller, are named; of a new node so many types.
_MOST = 5


def evicted(leaving: Iterable[Pod]) -> Iterator[str]:
    """In a line, how many pods will want a place elsewhere, by what they belong to; nothing when there are none."""
    moved = [pod for pod in leaving if pods.reschedulable(pod)]
    if not moved:
        return
    count = counted(len(moved), "pod")
    yield f"evicts {count}: {'; '.join(_whose(moved))}"


def _whose(moved: Iterable[Pod]) -> Iterator[str]:
    """The workloads, those with most of them first; then pods that nothing controls."""
    numbers = Counter(owner_of(pod) for pod in moved)
    owned = sorted((owner for owner in numbers if owner), key=lambda owner: (-numbers[owner], owner))
    if owned:
        yield listed(f"{numbers[owner]} of {owner}" for owner in owned)
    if numbers[""]:
        yield f"{listed(pod.key for pod in moved if not owner_of(pod))}, which no controller creates again"


def listed(rows: Iterable[str]) -> str:
    """The first ones, and how many more there are."""
    return shortened(list(rows), _MOST)


def owner_of(pod: Pod) -> str:
    """`Deployment shop/web`; empty when nothing controls the pod."""
    found = pods.workload(pod)
    return f"{found[0]} {pod.metadata.namespace}/{found[1]}" if found is not None else ""


def coming(new: Iterable[NewNode]) -> Iterator[str]:
    """A line for each node that comes."""
    for one in new:
        types = listed(one.instance_types)
        where = f"{' or '.join(one.capacity_types)} in {', '.join(one.zones)}"
        yield f"new node: {where}, from {prices.dollars(one.price)} an hour, of NodePool {one.pool}: {types}"
