"""manifests/install/ is what the chart renders, and the overlay changes what it says, and nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from .binaries import find_binaries
from .charts import Helm, Objects, by_name, different
from .install_manifests import BASE, FILE, text

pytestmark = pytest.mark.cluster


def built(folder: Path) -> Objects:
    """What kustomize makes of a folder."""
    command = (str(find_binaries() / "kubectl"), "kustomize", str(folder))
    return by_name(subprocess.run(command, capture_output=True, text=True, check=True, timeout=180).stdout)


def test_the_manifests_are_the_chart(helm: Helm) -> None:
    assert FILE.read_text(encoding="utf-8") == text(helm), "run make install-manifests"


def test_the_base_has_all_of_them_and_nothing_that_takes_nodes_along(helm: Helm) -> None:
    found = built(BASE)
    rendered = by_name(text(helm))
    assert {name: found[name] for name in rendered} == rendered
    assert found.keys() - rendered.keys() == {("Namespace", "kerf")}
    assert not any(kind == "CustomResourceDefinition" for kind, _ in found)
    assert not any("helm" in yaml.safe_dump(one).lower() for one in found.values())


def test_the_overlay_changes_what_a_cluster_has_of_its_own() -> None:
    base, overlay = built(BASE), built(BASE.parent / "overlay")
    assert base.keys() == overlay.keys()
    changed = {name: paths for name, one in base.items() if (paths := different(one, overlay[name]))}
    pod = "spec.template.spec.containers"
    paths = changed.pop(("Deployment", "kerf"))
    assert {path for path in paths if not path.startswith(f"{pod}[controller].resources")} == {
        f"{pod}[controller].image",
        f"{pod}[controller].env[CLUSTER_NAME].value",
        f"{pod}[controller].env[INTERRUPTION_QUEUE].value",
    }
    assert changed == {
        ("ServiceAccount", "kerf"): {"metadata.annotations.eks.amazonaws.com/role-arn"},
        ("Deployment", "kerf-webhook"): {f"{pod}[webhook].image"},
    }
