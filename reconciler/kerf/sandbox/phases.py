"""The end of a pod, as the parts of the world see it."""

from __future__ import annotations

from kerf.model.kubernetes.objects import Pod


def terminal(pod: Pod) -> bool:
    return pod.status.phase in ("Succeeded", "Failed")


def active(pod: Pod) -> bool:
    """Whether a controller counts the pod among its replicas."""
    return not terminal(pod) and not pod.metadata.deleting
