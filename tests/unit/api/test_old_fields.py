"""Fields of v1beta1 in objects of v1: the hint names their new place, and `kerf convert` knows each of them."""

from __future__ import annotations

from typing import Any

import pytest

from kerf_api import old_names
from kerf_api.conversion import pools
from kerf_api.lint import validate

from .manifests import BASES, changed

NODE = "spec.template.spec"
CASES: list[tuple[str, str, Any, str]] = [
    ("NodePool", "spec.disruption.expireAfter", "720h", f"move it to {NODE}.expireAfter"),
    ("NodePool", f"{NODE}.kubelet", {"maxPods": 110}, "move it to spec.kubelet of the EC2NodeClass"),
    ("NodePool", f"{NODE}.nodeClassRef.apiVersion", "karpenter.k8s.aws/v1beta1", "group: karpenter.k8s.aws"),
    ("NodePool", f"{NODE}.resources", {"requests": {"cpu": "1"}}, "remove it"),
    ("NodeClaim", "spec.kubelet", {"maxPods": 110}, "move it to spec.kubelet of the EC2NodeClass"),
    ("NodeClaim", "spec.nodeClassRef.apiVersion", "karpenter.k8s.aws/v1beta1", "group: karpenter.k8s.aws"),
]


@pytest.mark.parametrize(("kind", "path", "value", "hint"), CASES)
def test_the_hint_names_the_new_place(kind: str, path: str, value: Any, hint: str) -> None:
    (problem,) = (one for one in validate(changed(kind, path, value)) if one.severity == "error")
    assert (problem.rule, problem.path) == ("KERF-SCHEMA-UNKNOWN", path)
    assert hint in problem.hint
    assert "did you mean" not in problem.hint


def test_every_field_has_a_case_and_is_converted() -> None:
    known = {
        (kind, path)
        for table in (old_names.MOVED_FIELDS, old_names.GONE_FIELDS)
        for kind in table
        for path in table[kind]
    }
    assert known == {(kind, path) for kind, path, *_ in CASES}
    tables = {"NodePool": pools._NODE_POOL, "NodeClaim": pools._NODE_CLAIM}
    assert all(path.removesuffix(".apiVersion") in tables[kind] for kind, path in known)


@pytest.mark.parametrize("kind", list(BASES))
def test_another_field_has_its_usual_hint(kind: str) -> None:
    (problem,) = (one for one in validate(changed(kind, "spec.kubelets", {})) if one.severity == "error")
    assert old_names.field_advice(kind, problem.path) == ""
    assert problem.hint.startswith(("did you mean", "known here are"))
