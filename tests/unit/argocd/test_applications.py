"""The Applications as they are shipped: their order, how they apply and compare, and what they never delete."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

MANIFESTS: Final = Path(__file__).resolve().parents[3] / "manifests"
#: The waves, as the guide has them.
WAVES: Final = {"kerf-crd": "-1", "kerf-controller": "0", "node-classes": "1", "node-pools": "2"}
SYNC_OPTIONS: Final = "argocd.argoproj.io/sync-options"

Application = dict[str, Any]


def _read(path: Path) -> Application:
    (one,) = yaml.safe_load_all(path.read_text(encoding="utf-8"))
    assert (one["apiVersion"], one["kind"]) == ("argoproj.io/v1alpha1", "Application")
    return dict(one)


ROOT: Final = _read(MANIFESTS / "argocd/kerf.yaml")
PARTS: Final = {
    one["metadata"]["name"]: one for one in map(_read, sorted((MANIFESTS / "argocd/applications").glob("*.yaml")))
}


def test_waves() -> None:
    """In the order of the files, too."""
    annotations = {name: one["metadata"]["annotations"] for name, one in PARTS.items()}
    assert {name: row["argocd.argoproj.io/sync-wave"] for name, row in annotations.items()} == WAVES
    assert list(PARTS) == list(WAVES)


def test_everything_is_applied_and_compared_by_the_server() -> None:
    for one in PARTS.values():
        assert "ServerSideApply=true" in one["spec"]["syncPolicy"]["syncOptions"]
        assert one["metadata"]["annotations"]["argocd.argoproj.io/compare-options"] == "ServerSideDiff=true"


def test_no_difference_is_ignored() -> None:
    assert [name for name, one in PARTS.items() if "ignoreDifferences" in one["spec"]] == []


def test_pruning_asks_first() -> None:
    """Of a definition, a class or a pool; and an Application that goes takes nothing along."""
    for name in ("node-classes", "node-pools"):
        guard = PARTS[name]["spec"]["source"]["kustomize"]["commonAnnotations"].get(SYNC_OPTIONS)
        assert guard == "Prune=confirm,Delete=confirm"
    for one in (ROOT, PARTS["kerf-crd"]):
        assert one["spec"]["syncPolicy"]["automated"]["prune"] is False
    assert [one["metadata"]["name"] for one in (ROOT, *PARTS.values()) if "finalizers" in one["metadata"]] == []


def test_each_definition_comes_once() -> None:
    assert PARTS["kerf-controller"]["spec"]["source"]["helm"]["skipCrds"] is True
    for name in ("node-classes", "node-pools"):
        assert "SkipDryRunOnMissingResource=true" in PARTS[name]["spec"]["syncPolicy"]["syncOptions"]


def test_charts_and_versions_are_ours() -> None:
    for name in ("kerf-crd", "kerf-controller"):
        source = PARTS[name]["spec"]["source"]
        chart = yaml.safe_load((MANIFESTS.parent / source["path"] / "Chart.yaml").read_text(encoding="utf-8"))
        assert source["targetRevision"] == f"v{chart['version']}"
        assert source["helm"]["releaseName"] == chart["name"]
