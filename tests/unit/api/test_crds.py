"""The definitions are complete, numbered, current where they are rendered, and agree with the names used in code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from api import crds, labels
from api.crds.__main__ import main, render, stale
from api.lint import cel

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("manifests/crds", "charts/kerf-crd/templates")


@pytest.mark.parametrize("folder", FOLDERS)
def test_rendered_definitions_are_current(folder: str) -> None:
    assert stale(ROOT / folder) == (), f"run python -m api.crds render {folder}"


def test_render_writes_every_kind_and_check_notices_a_change(tmp_path: Path) -> None:
    paths = render(tmp_path)
    assert [YAML(typ="safe").load(path)["spec"]["names"]["kind"] for path in paths] == list(crds.kinds())
    assert main(["render", "--check", str(tmp_path)]) == 0
    paths[0].write_text("stale")
    assert main(["render", "--check", str(tmp_path)]) == 1


@pytest.mark.parametrize("kind", crds.kinds())
def test_rendered_text_is_safe_in_a_helm_template(kind: str) -> None:
    assert "{{" not in crds.text(kind)


def test_every_rule_has_an_id_of_its_own() -> None:
    ids = [rule.id for kind in crds.kinds() for rule in cel.rules(kind)]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"KERF-(NP|NC|EC2)-0\d\d", rule) for rule in ids)


@pytest.mark.parametrize("kind", crds.kinds())
def test_every_rule_compiles(kind: str) -> None:
    cel.prepare(kind)


@pytest.mark.parametrize("kind", crds.kinds())
def test_reserved_domains_let_exactly_the_well_known_labels_through(kind: str) -> None:
    usable = {*labels.AWS_LABELS, labels.NODECLASS}
    lists = [
        set(re.findall(r"'(karpenter\.k8s\.aws/[a-z0-9-]+)'", rule.source))
        for rule in cel.rules(kind)
        if "k8s\\\\.aws(" in rule.source
    ]
    assert all(found == usable for found in lists)
    assert bool(lists) == (kind != "EC2NodeClass")


@pytest.mark.parametrize(
    ("kind", "columns", "short", "subresources"),
    [
        ("NodePool", ["NodeClass", "Nodes", "Ready", "Age", "Weight", "CPU", "Memory"], [], {"status", "scale"}),
        (
            "NodeClaim",
            ["Type", "Capacity", "Zone", "Node", "Ready", "Age", "ImageID", "ID", "NodePool", "NodeClass", "Drifted"],
            [],
            {"status"},
        ),
        ("EC2NodeClass", ["Ready", "Age", "Role"], ["ec2nc", "ec2ncs"], {"status"}),
    ],
)
def test_what_kubectl_shows(kind: str, columns: list[str], short: list[str], subresources: set[str]) -> None:
    spec = crds.load(kind)["spec"]
    version = spec["versions"][0]
    assert [column["name"] for column in version["additionalPrinterColumns"]] == columns
    assert spec["names"].get("shortNames", []) == short
    assert spec["names"]["categories"] == ["karpenter"]
    assert spec["scope"] == "Cluster"
    assert set(version["subresources"]) == subresources


def test_an_unknown_kind_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        crds.load("Provisioner")
