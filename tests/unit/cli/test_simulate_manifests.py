"""`kerf simulate` takes manifests that an API server takes: with null fields, empty texts and kinds of other groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from kerf.cli.verbs.simulation import objects
from kerf_api.lint.reading.stored import stored

POD = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, annotations: %(annotations)s}
spec:
  replicas: %(replicas)s
  strategy: {rollingUpdate: {maxSurge: %(surge)s}}
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      nodeSelector: %(selector)s
      schedulerName: %(scheduler)s
      tolerations:
      - {key: a, operator: Exists, effect: ""}
      - {key: b, operator: Exists, effect: NoExecute, tolerationSeconds: %(seconds)s}
      topologySpreadConstraints: %(spread)s
      volumes: [{name: tmp, emptyDir: {sizeLimit: %(size)s}}]
      containers:
      - name: main
        image: main
        resources: {limits: %(limits)s}
        ports: [{containerPort: 80, name: "", protocol: ""}, {containerPort: 81, name: ""}]
"""
FULL = {
    "annotations": "{}",
    "replicas": "1",
    "surge": "25%",
    "selector": "{}",
    "scheduler": "default-scheduler",
    "seconds": "60",
    "spread": "[]",
    "size": "1Gi",
    "limits": "{cpu: 1}",
}
#: Values that an API server drops, or takes.
TAKEN = {
    "annotations": ("null", ""),
    "replicas": ("null",),
    "surge": ("null", "200%"),
    "selector": ("null", ""),
    "scheduler": ("null", '""'),
    "seconds": ("null", "-1"),
    "spread": ("null",),
    "size": ("null", "1073741824"),
    "limits": ("null", "{cpu: null}"),
}
FOREIGN = (
    ("serving.knative.dev/v1", "Service"),
    ("apps.kruise.io/v1beta1", "StatefulSet"),
    ("policy.karmada.io/v1alpha1", "Namespace"),
)


def read(path: Path, text: str) -> list[str]:
    """The kinds of the objects that a simulation uses, and those that it does not in brackets."""
    path.write_text(text)
    others = list[str]()
    used = [str(one["kind"]) for _, one in objects.of(str(path), lambda _, one: others.append(f"({one['kind']})"))]
    return used + others


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in TAKEN.items() for value in values])
def test_what_an_api_server_takes_is_taken(tmp_path: Path, field: str, value: str) -> None:
    assert read(tmp_path / "a.yaml", POD % {**FULL, field: value}) == ["Deployment"]


@pytest.mark.parametrize(("version", "kind"), FOREIGN)
def test_a_kind_of_another_group_is_not_the_built_in_one(tmp_path: Path, version: str, kind: str) -> None:
    text = f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a}}\nspec: {{template: {{}}}}\n"
    assert read(tmp_path / "a.yaml", text) == [f"({kind})"]


def test_a_name_can_be_generated(tmp_path: Path) -> None:
    assert read(tmp_path / "a.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {generateName: runner-}\n") == [
        "Namespace"
    ]


def test_a_manifest_is_stored_without_nulls_and_its_lists_keep_their_entries() -> None:
    given = {"a": None, "b": [None, {"c": None}], "labels": {"x": None}, "effect": "", "value": ""}
    assert stored(given) == {"b": [None, {}], "labels": {"x": ""}, "value": ""}
