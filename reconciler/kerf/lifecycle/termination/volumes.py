"""The volumes of a drained Node: they must be detached before its instance is terminated, or the pods that moved wait
for them.

Volumes of pods that the drain leaves in place (they tolerate everything, or hang) are not waited for.
"""

from __future__ import annotations

from collections.abc import Iterator

from kerf.lifecycle.view import View
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Node, Pod


def attached(view: View, node: Node) -> list[str]:
    """Names of the persistent volumes that are still to be detached from the node, sorted."""
    names = {a.spec.source.persistent_volume_name for a in view.snapshot.attachments_by_node.get(node.name, ())} - {""}
    if not names:
        return []
    now = view.snapshot.now
    staying = (pod for pod in view.snapshot.pods.on(node.name) if not pods.drainable(pod, now))
    return sorted(names - {volume for pod in staying for volume in _volumes(view, pod)})


def _volumes(view: View, pod: Pod) -> Iterator[str]:
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            claim = volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            claim = f"{pod.metadata.name}-{volume.name}"
        else:
            continue
        found = view.snapshot.volume_claims.get(f"{pod.metadata.namespace}/{claim}")
        if found is not None and found.spec.volume_name:
            yield found.spec.volume_name
