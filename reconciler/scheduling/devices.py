"""Devices by claim (dynamic resource allocation): pods that ask for some are refused, nobody here can allocate them.

Placed as if they asked for nothing, they would wait on a node that may lack the device, and be given another one in
vain. Source: scheduling reference §10.
"""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model import pods
from reconciler.model.objects import Pod
from reconciler.model.snapshot import Snapshot
from reconciler.scheduling.solution import PodRefusal

CODE = "ResourceClaims"
_UNSUPPORTED = "pod has Dynamic Resource Allocation requirements that are not yet supported by Kerf"
_ASKED_FOR = f"{_UNSUPPORTED}: IGNORE_DRA_REQUESTS is false, but devices cannot be allocated yet"


def device_refusals(snapshot: Snapshot, asked: Iterable[Pod]) -> dict[str, PodRefusal]:
    """The answer to each of these pods that claims devices, by key; the others are to be placed."""
    refusal = PodRefusal(CODE, _UNSUPPORTED if snapshot.settings.ignore_dra_requests else _ASKED_FOR)
    return {pod.key: refusal for pod in asked if _claims(pod)}


def _claims(pod: Pod) -> bool:
    try:
        return pods.claims_devices(pod)
    except Exception:  # what makes no sense is refused where it is read
        return False
