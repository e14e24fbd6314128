"""Which pods a provisioning pass is about: valid pending ones, and those on nodes that are being removed.

Source: scheduling reference §1.4 to §1.6.
"""

from __future__ import annotations

from kerf.model.boundaries import broken
from kerf.model.changes.pdbs import Pdbs
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.model.snapshot import Snapshot
from kerf.pods.requirements import own_problem
from kerf.scheduling.solve import PodRefusal


def pending_pods(snapshot: Snapshot) -> tuple[list[Pod], dict[str, PodRefusal]]:
    """Pending pods in order of their keys, and those for which no node is to be made, with the reason.

    A refusal without text is for a pod that has opted out: no event reports it.
    """
    good: list[Pod] = []
    refused: dict[str, PodRefusal] = {}
    for key in sorted(snapshot.pods.pending):
        pod = snapshot.pods.pending[key]
        problem = own_problem(pod)
        if problem is None:
            good.append(pod)
        else:
            refused[key] = PodRefusal("InvalidPod" if problem.text else "OptedOut", problem.text)
    return good, refused


def rehoused_pods(snapshot: Snapshot) -> list[Pod]:
    """Pods on nodes that are being deleted, as far as they will want another place, in order of their keys."""
    return leaving_pods(snapshot)[0]


def leaving_pods(snapshot: Snapshot) -> tuple[list[Pod], dict[str, PodRefusal]]:
    """`rehoused_pods`, and the pods of these nodes that cannot be read, with the error."""
    found: dict[str, Pod] = {}
    failed: dict[str, PodRefusal] = {}
    pdbs = Pdbs(snapshot.pdb_selectors, snapshot.pdb_budgets)
    for key in sorted(snapshot.state_nodes):
        state = snapshot.state_nodes[key]
        if not state.deleting or state.node is None:
            continue
        for pod in snapshot.pods.on(state.node.name):
            try:
                moves = _moves(snapshot, pdbs, pod)
            except Exception as error:
                reason = broken(error)
                failed[pod.key] = PodRefusal(reason.code, f"reading it failed: {reason.text}")
                continue
            if moves:
                found[pod.key] = pod
    return [found[key] for key in sorted(found)], dict(sorted(failed.items()))


def _moves(snapshot: Snapshot, pdbs: Pdbs, pod: Pod) -> bool:
    if not pods.reschedulable(pod):
        return False
    if pods.active(pod) and pods.protected(pod, snapshot.now):
        return False
    return not pdbs.forbids(pod, snapshot.now)
