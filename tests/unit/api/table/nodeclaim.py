"""The rows of NodeClaim."""

from __future__ import annotations

from typing import Final

from ..manifests import ABSENT
from .rows import BOUND, PATTERN, REQUIRED, Row, requirement

NC: Final = "NodeClaim"

ACCEPTED: Final = (
    Row(NC, "metadata.namespace", ("default", "Not a namespace!", "", None)),
    Row(NC, "spec.resources.requests.cpu", (2**63 - 1, -(2**63), "9" * 30, 2.0)),
    Row(NC, "spec.requirements", ([], [requirement("a", "Gte", ("1",)), requirement("a", "Lte", ("9",))])),
    Row(NC, "spec.requirements[0].values", (["not a label value!"],)),
    Row(NC, "spec.resources", ({}, {"requests": {"cpu": "100m", "memory": "1Gi"}})),
    Row(NC, "spec.expireAfter", ("Never", "1h")),
)

REFUSED: Final = (
    Row(NC, "spec.resources.requests.cpu", (2**63, -(2**63) - 1, 1e20), BOUND),
    Row(NC, "spec.requirements", (ABSENT,), REQUIRED),
    Row(NC, "spec.requirements[0].key", ("karpenter.sh/x",), "KERF-NC-008"),
    Row(NC, "spec.requirements[0].key", ("kubernetes.io/hostname",), "KERF-NC-009"),
    Row(NC, "spec.requirements[0].key", ("karpenter.k8s.aws/x",), "KERF-NC-010"),
    Row(NC, "spec.requirements[0].values", ([], ABSENT), "KERF-NC-005", "spec.requirements[0]"),
    Row(NC, "spec.requirements[0].operator", ("Gt",), "KERF-NC-006", "spec.requirements[0]"),
    Row(NC, "spec.requirements[0].minValues", (2,), "KERF-NC-007", "spec.requirements[0]"),
    Row(NC, "spec.nodeClassRef.name", ("",), "KERF-NC-004"),
    Row(NC, "spec.expireAfter", ("2562048h",), "KERF-NC-101"),
    Row(NC, "spec.resources.requests.cpu", ("1e1.5",), "KERF-NC-102"),
    Row(NC, "spec.resources.requests.cpu", ("one",), PATTERN),
)
