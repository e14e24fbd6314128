"""Orders before the close of a batch: which nodes are certain although more pods come, and when to look for them.

A node is certain when the pods that are there fill it at about the best price that there is: waiting could hardly make
it cheaper. Nodes in which pods to come may have a say wait for the close (`scheduling/improving/certain.py`), and so do
nodes of pods less important than others that keep coming. The pods of the other nodes are planned at the close, beside
those that were ordered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.model.plan import CreateNodeClaim
from kerf.model.snapshot import Batch, Snapshot
from kerf.provisioning.pending import leaving_pods
from kerf.scheduling.answers.solution import NewNode, Solution
from kerf_api import labels
from kerf_api.resources import Resources, total

#: Nodes are looked for so often, and less often when many pods wait: each adds so much. A look is a solve of all of
#: them, and takes about a fifth of that.
EVERY: Final = timedelta(milliseconds=500)
A_POD: Final = timedelta(microseconds=250)
#: After a look that found none, Kerf waits for this part of the time since the first pod came.
FRUITLESS: Final = 0.5
#: A node may cost so much more than its pods are worth.
LOSS: Final = 0.02
#: It is one of so many at least that the pods which are there need: a few large nodes are what more pods change most.
NODES: Final = 4
#: After its close a batch waits so long for the answers to orders from before.
ANSWERS: Final = timedelta(seconds=5)
#: The creation times of pods are in whole seconds.
_A_SECOND: Final = timedelta(seconds=1)


def next_try(snapshot: Snapshot, batch: Batch, closes: datetime) -> datetime | None:
    """When to look for nodes to order before the close; None when that is not before it, or never.

    Without another pod since the latest look there is nothing to find.
    """
    if batch.again or not snapshot.settings.early_orders:
        return None
    if batch.tried_at is not None and batch.last < batch.tried_at:
        return None
    due = batch.try_at or batch.first + EVERY
    return due if due < closes else None


def again_at(snapshot: Snapshot, batch: Batch, *, found: bool) -> datetime:
    """When to look again after a look now. One that `found` no node is followed by a longer pause: pods may wait for
    which there never is a node."""
    pause = max(EVERY, len(snapshot.pods.pending) * A_POD)
    return snapshot.now + (pause if found else max(pause, FRUITLESS * (snapshot.now - batch.first)))


def unanswered(snapshot: Snapshot) -> bool:
    """Whether the API server has not answered yet whether a NodeClaim is created: its pods may have a node or none.

    NodeClaims of static NodePools are made for no pod.
    """
    created = (action.claim for action in snapshot.under_way if isinstance(action, CreateNodeClaim))
    return any(claim.metadata.annotations.get(labels.PLANNED_PODS) for claim in created)


def enough(snapshot: Snapshot, pending: Iterable[Pod]) -> bool:
    """Whether the pending pods that are expected nowhere may need a node that is certain: they request together as much
    of some resource as the smallest instance type has, and with the pods that leave their nodes they are as many as
    nodes have to be needed."""
    there = snapshot.state_nodes
    expected = {one.pod_uid for one in snapshot.nominations if not one.over and one.target in there}
    waiting = [pod for pod in pending if pod.metadata.uid not in expected]
    asked, smallest = total(pods.requests(pod) for pod in waiting), _smallest(snapshot)
    if not any(asked[name] >= amount for name, amount in smallest.items()):
        return False
    return len(waiting) >= NODES or len(waiting) + len(leaving_pods(snapshot)[0]) >= NODES


def _smallest(snapshot: Snapshot) -> Resources:
    """The least that any instance type has of CPU, of memory and of pods."""
    types = [one.allocatable for catalogue in snapshot.catalogues.values() for one in catalogue]
    names = ("cpu", "memory", "pods") if types else ()
    return Resources({name: min(allocatable[name] for allocatable in types) for name in names})


def certain_part(snapshot: Snapshot, solution: Solution, pending: Sequence[Pod]) -> Solution:
    """The solution with those of its new nodes only that are certain, and without their probes and refusals."""
    least = _least_priority(snapshot, pending)
    most = solution.price // NODES
    nodes = tuple(n for n in solution.new_nodes if n.price <= most and _certain(snapshot, n, least))
    return replace(solution, new_nodes=nodes, bound=sum(node.value or 0 for node in nodes), unplaced={})


def _certain(snapshot: Snapshot, node: NewNode, least: int) -> bool:
    if node.value is None or node.price > (1 + LOSS) * node.value or node.probes or node.alternative_for:
        return False
    return all(snapshot.pods[key].spec.priority >= least for key in node.pods)


def _least_priority(snapshot: Snapshot, pending: Sequence[Pod]) -> int:
    """The greatest priority of pods that still come: one of them was created about when the latest pod was.

    Creation times are the API server's: they are held against each other, never against now.
    """
    created = [(pod.metadata.creation_timestamp, pod.spec.priority) for pod in pending]
    known = [at for at, _ in created if at is not None]
    since = max(known) - snapshot.settings.batch_idle - _A_SECOND if known else None
    return max((priority for at, priority in created if at is None or since is None or at >= since), default=0)
