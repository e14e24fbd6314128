"""While claims of devices are ignored (`IGNORE_DRA_REQUESTS`), pods that have some are refused.

Placed as if they asked for nothing, they would wait on a node that may lack the device, and be given another one in
vain.
"""

from __future__ import annotations

from collections.abc import Iterable

from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.scheduling.answers.solution import PodRefusal

CODE = "ResourceClaims"
_UNSUPPORTED = "pod has Dynamic Resource Allocation requirements that are not yet supported by Kerf"


def device_refusals(asked: Iterable[Pod]) -> dict[str, PodRefusal]:
    """The answer to each of these pods that claims devices, by key; the others are to be placed."""
    refusal = PodRefusal(CODE, _UNSUPPORTED)
    found: dict[str, PodRefusal] = {}
    for pod in asked:
        try:
            if pods.claims_devices(pod):
                found[pod.key] = refusal
        except Exception:  # what makes no sense is refused where it is read
            continue
    return found
