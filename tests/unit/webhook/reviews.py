"""AdmissionReviews for the tests."""

from __future__ import annotations

import base64
import json
from typing import Any, Final

RESOURCES: Final = {
    "NodePool": ("karpenter.sh", "nodepools"),
    "NodeClaim": ("karpenter.sh", "nodeclaims"),
    "EC2NodeClass": ("karpenter.k8s.aws", "ec2nodeclasses"),
    "NodeOverlay": ("karpenter.sh", "nodeoverlays"),
    "CapacityBuffer": ("autoscaling.x-k8s.io", "capacitybuffers"),
}


def review(
    new: Any, *, old: Any = None, operation: str = "CREATE", kind: str = "NodePool", **more: Any
) -> dict[str, Any]:
    """What the API server sends."""
    group, resource = RESOURCES.get(kind, ("apps", "deployments"))
    request = {
        "uid": "11111111-2222",
        "operation": operation,
        "name": "default",
        "resource": {"group": group, "version": "v1", "resource": resource},
        "object": new,
        "oldObject": old,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request | more}


def patch_of(response: dict[str, Any]) -> list[dict[str, Any]]:
    """The JSONPatch in an answer; empty when there is none."""
    if "patch" not in response:
        return []
    assert response["patchType"] == "JSONPatch"
    found: list[dict[str, Any]] = json.loads(base64.b64decode(response["patch"]))
    return found
