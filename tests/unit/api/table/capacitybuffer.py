"""The rows of CapacityBuffer."""

from __future__ import annotations

from typing import Any, Final

from ..manifests import ABSENT
from .rows import BOUND, PATTERN, REQUIRED, SIZE, TYPE, UNKNOWN, Row

CB: Final = "CapacityBuffer"


def template(**fields: Any) -> dict[str, Any]:
    """A spec for the pods of a PodTemplate, with these fields."""
    return {"podTemplateRef": {"name": "web"}, **fields}


def workload(**fields: Any) -> dict[str, Any]:
    """A spec for the pods of a Deployment, with these fields."""
    return {"scalableRef": {"kind": "Deployment", "name": "web"}, **fields}


ACCEPTED: Final = (
    Row(CB, "spec.limits.cpu", (2**63 - 1, -(2**63), "9" * 30, 2.0)),
    Row(CB, "spec", (template(replicas=0), template(replicas=5), template(limits={}), template(limits={"cpu": "10"}))),
    Row(CB, "spec", (template(replicas=1, limits={"cpu": 1}), template(replicas=1, percentage=50))),
    Row(CB, "spec", (workload(), workload(replicas=1), workload(percentage=50, replicas=1), workload(limits={"x": 1}))),
    Row(CB, "spec", ({}, {"replicas": 1})),
    # advised against, and not refused
    Row(CB, "spec", (workload(replicas=0), workload(percentage=0, replicas=0), workload(limits={"cpu": 0}))),
    Row(CB, "spec.replicas", (0, 5, 2**31 - 1, 3.0, None)),
    Row(CB, "spec.percentage", (0, 1, 100, 250, 2**31 - 1, None, ABSENT)),
    Row(CB, "spec.limits", ({}, {"cpu": 1}, {"memory": "1.5Gi"}, {"example.com/x": "3."}, {"cpu": "-1"}, {"x": "1e3"})),
    Row(CB, "spec.provisioningStrategy", ("buffer.x-k8s.io/active-capacity", "example.com/own", "", None)),
    Row(CB, "spec.scalableRef.apiGroup", ("apps", "", ABSENT, "argoproj.io", "apps/v1")),
    Row(CB, "spec.scalableRef.kind", ("StatefulSet", "ReplicaSet", "Rollout", "deployment")),
    Row(CB, "spec.scalableRef.name", ("web", "a.b", "Any thing")),
    Row(CB, "metadata.namespace", (ABSENT, "", None)),
    Row(CB, "metadata.name", ("a" * 64, "a.b")),
    Row(CB, "status", ({}, {"replicas": 3, "podTemplateRef": {"name": "x"}, "podTemplateGeneration": 1})),
)

REFUSED: Final = (
    Row(CB, "spec.limits.cpu", (2**63, -(2**63) - 1, 1e20), BOUND),
    Row(CB, "spec", (ABSENT, None), REQUIRED),
    Row(CB, "spec", ([], "x"), TYPE),
    Row(CB, "spec.replicas", (-1, 2**31), BOUND),
    Row(CB, "spec.replicas", ("3", 1.5, True), TYPE),
    Row(CB, "spec.percentage", (-1, 2**31), BOUND),
    Row(CB, "spec.percentage", ("10%", "10", 0.1), TYPE),
    Row(CB, "spec", (template(), template(percentage=50), template(replicas=None)), "KERF-CB-001", "spec.replicas"),
    Row(CB, "spec", ({**template(replicas=1), **workload()},), "KERF-CB-002", "spec.scalableRef"),
    Row(CB, "spec.podTemplateRef", ({"name": "web"},), "KERF-CB-002", "spec.scalableRef"),
    Row(CB, "spec", ({"podTemplateRef": {}, "replicas": 1},), REQUIRED, "spec.podTemplateRef.name"),
    Row(CB, "spec", ({"podTemplateRef": {"name": ""}, "replicas": 1},), SIZE, "spec.podTemplateRef.name"),
    Row(CB, "spec", ({"podTemplateRef": {"name": 5}, "replicas": 1},), TYPE, "spec.podTemplateRef.name"),
    Row(CB, "spec", ({"podTemplateRef": "web", "replicas": 1},), TYPE, "spec.podTemplateRef"),
    Row(CB, "spec.podTemplateRef.namespace", ("other",), UNKNOWN),
    Row(CB, "spec.scalableRef", ({"kind": "Deployment"},), REQUIRED, "spec.scalableRef.name"),
    Row(CB, "spec.scalableRef", ({"name": "web"},), REQUIRED, "spec.scalableRef.kind"),
    Row(CB, "spec.scalableRef.name", ("",), SIZE),
    Row(CB, "spec.scalableRef.kind", ("",), SIZE),
    Row(CB, "spec.scalableRef.kind", (ABSENT, None), REQUIRED),
    Row(CB, "spec.scalableRef.apiGroup", (5, ["apps"]), TYPE),
    Row(CB, "spec.scalableRef.apiVersion", ("apps/v1",), UNKNOWN),
    Row(CB, "spec.limits", ([], 5), TYPE),
    Row(CB, "spec.limits.cpu", ("1GB", "", "1 ", "abc", "1\n"), PATTERN),
    Row(CB, "spec.limits.cpu", (1.5, True, {}), TYPE),
    Row(CB, "spec.limits.cpu", ("1e1.5", "1e999"), "KERF-CB-101"),
    Row(CB, "spec.provisioningStrategy", (5, True, []), TYPE),
    Row(CB, "spec.replica", (1,), UNKNOWN),
    Row(CB, "spec.podTemplate", ({},), UNKNOWN),
    Row(CB, "metadata.namespace", (5,), TYPE),
    Row(CB, "metadata.name", ("Default", "a_b", "a" * 254), "KERF-META-102"),
    Row(CB, "metadata.name", (ABSENT,), "KERF-META-101"),
    Row(CB, "apiVersion", ("autoscaling.x-k8s.io/v1alpha1", "autoscaling/v1beta1"), "KERF-SCHEMA-VERSION"),
    Row(CB, "kind", ("Capacitybuffer",), "KERF-SCHEMA-KIND"),
)
