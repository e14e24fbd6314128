"""The definitions are complete, numbered, current where they are rendered, and agree with the names used in code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from kerf_api import crds, labels
from kerf_api.crds.__main__ import main, render, rendered, stale
from kerf_api.lint.expressions import cel
from tests.sources import ROOT

FOLDERS = ("manifests/crds", "charts/kerf-crd/files")


@pytest.mark.parametrize("folder", FOLDERS)
def test_rendered_definitions_are_current(folder: str) -> None:
    assert stale(ROOT / folder) == (), f"run python -m kerf_api.crds render {folder}"


def test_render_writes_every_kind_and_check_notices_a_change(tmp_path: Path) -> None:
    paths = render(tmp_path)
    assert [YAML(typ="safe").load(path)["spec"]["names"]["kind"] for path in paths] == list(crds.kinds())
    assert main(["render", "--check", str(tmp_path)]) == 0
    paths[0].write_text("stale")
    assert main(["render", "--check", str(tmp_path)]) == 1


def test_several_folders_are_rendered_and_checked_at_once(tmp_path: Path) -> None:
    folders = [str(tmp_path / "one"), str(tmp_path / "two")]
    assert main(["render", "--check", *folders]) == 1
    assert main(["render", *folders]) == 0
    assert main(["render", "--check", *folders]) == 0


@pytest.mark.parametrize("folder", FOLDERS)
def test_nothing_else_lies_where_they_are_rendered(folder: str) -> None:
    assert {path.name for path in (ROOT / folder).iterdir()} == set(rendered())


@pytest.mark.parametrize("kind", crds.kinds())
def test_rendered_text_is_safe_in_a_helm_template(kind: str) -> None:
    assert "{{" not in crds.text(kind)


def test_every_rule_has_an_id_of_its_own() -> None:
    ids = [rule.id for kind in crds.kinds() for rule in cel.rules(kind)]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"KERF-(NP|NC|EC2|NO|CB)-0\d\d", rule) for rule in ids)


@pytest.mark.parametrize("kind", crds.kinds())
def test_every_rule_compiles(kind: str) -> None:
    cel.prepare(kind)


@pytest.mark.parametrize("kind", crds.kinds())
def test_reserved_domains_let_exactly_the_well_known_labels_through(kind: str) -> None:
    known = labels.OVERLAY_LABELS if kind == "NodeOverlay" else labels.WELL_KNOWN
    lists = [
        set(re.findall(r"'(karpenter\.k8s\.aws/[a-z0-9-]+)'", rule.source))
        for rule in cel.rules(kind)
        if "k8s\\\\.aws(" in rule.source
    ]
    assert all(found == {*(labels.AWS_LABELS & known), labels.NODECLASS} for found in lists)
    assert bool(lists) == (kind not in ("EC2NodeClass", "CapacityBuffer"))


def _condition(name: str) -> str:
    return f'.status.conditions[?(@.type=="{name}")].status'


def _label(name: str) -> str:
    return f".metadata.labels.{name.replace('.', chr(92) + '.')}"


AGE = ("Age", "date", ".metadata.creationTimestamp", 0)
READY = ("Ready", "string", _condition("Ready"), 0)
#: What `kubectl get` prints: name, type, path and priority of each column (1 is shown by `-o wide` only).
COLUMNS = {
    "NodePool": [
        ("NodeClass", "string", ".spec.template.spec.nodeClassRef.name", 0),
        ("Nodes", "string", ".status.nodes", 0),
        READY,
        AGE,
        ("Weight", "integer", ".spec.weight", 1),
        ("CPU", "string", ".status.resources.cpu", 1),
        ("Memory", "string", ".status.resources.memory", 1),
    ],
    "NodeClaim": [
        ("Type", "string", _label("node.kubernetes.io/instance-type"), 0),
        ("Capacity", "string", _label("karpenter.sh/capacity-type"), 0),
        ("Zone", "string", _label("topology.kubernetes.io/zone"), 0),
        ("Node", "string", ".status.nodeName", 0),
        READY,
        AGE,
        ("ImageID", "string", ".status.imageID", 1),
        ("ID", "string", ".status.providerID", 1),
        ("NodePool", "string", _label("karpenter.sh/nodepool"), 1),
        ("NodeClass", "string", ".spec.nodeClassRef.name", 1),
        ("Drifted", "string", _condition("Drifted"), 1),
    ],
    "EC2NodeClass": [READY, AGE, ("Role", "string", ".spec.role", 1)],
    "NodeOverlay": [READY, AGE, ("Weight", "integer", ".spec.weight", 1)],
    "CapacityBuffer": [
        ("Strategy", "string", ".spec.provisioningStrategy", 0),
        ("PodTemplate", "string", ".status.podTemplateRef.name", 0),
        ("Replicas", "integer", ".status.replicas", 0),
        ("ConditionsType", "string", ".status.conditions[*].type", 0),
        ("ConditionsStatus", "string", ".status.conditions[*].status", 0),
        ("ConditionsReason", "string", ".status.conditions[*].reason", 0),
        AGE,
    ],
}


@pytest.mark.parametrize("kind", crds.kinds())
def test_what_kubectl_shows(kind: str) -> None:
    columns = crds.load(kind)["spec"]["versions"][0]["additionalPrinterColumns"]
    assert [(c["name"], c["type"], c["jsonPath"], c.get("priority", 0)) for c in columns] == COLUMNS[kind]


@pytest.mark.parametrize(
    ("kind", "version", "plural", "short", "categories", "scope"),
    [
        ("NodePool", "karpenter.sh/v1", "nodepools", [], ["karpenter"], "Cluster"),
        ("NodeClaim", "karpenter.sh/v1", "nodeclaims", [], ["karpenter"], "Cluster"),
        ("EC2NodeClass", "karpenter.k8s.aws/v1", "ec2nodeclasses", ["ec2nc", "ec2ncs"], ["karpenter"], "Cluster"),
        ("NodeOverlay", "karpenter.sh/v1alpha1", "nodeoverlays", ["overlays"], ["karpenter"], "Cluster"),
        (
            "CapacityBuffer",
            "autoscaling.x-k8s.io/v1beta1",
            "capacitybuffers",
            ["cb"],
            ["autoscaling"],
            "Namespaced",
        ),
    ],
)
def test_names_and_scope(
    kind: str, version: str, plural: str, short: list[str], categories: list[str], scope: str
) -> None:
    definition = crds.load(kind)
    names = definition["spec"]["names"]
    assert crds.api_version(kind) == version
    assert definition["metadata"]["name"] == f"{plural}.{version.partition('/')[0]}"
    assert (names["plural"], names["singular"]) == (plural, kind.lower())
    assert (names["kind"], names["listKind"]) == (kind, f"{kind}List")
    assert names.get("shortNames", []) == short
    assert names["categories"] == categories
    assert definition["spec"]["scope"] == scope
    assert crds.is_namespaced(kind) == (scope == "Namespaced")


@pytest.mark.parametrize("kind", crds.kinds())
def test_there_is_one_version_with_a_status_of_its_own(kind: str) -> None:
    (version,) = crds.load(kind)["spec"]["versions"]
    assert (version["served"], version["storage"]) == (True, True)
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.nodes"}
    assert version["subresources"] == {"status": {}} | ({"scale": scale} if kind == "NodePool" else {})
    assert crds.schema(kind).get("required", []) == ([] if kind == "EC2NodeClass" else ["spec"])


def test_conditions_have_the_form_that_every_client_knows() -> None:
    """NodeClaims are laxer about the reason; node classes keep theirs as one plain list."""
    found = {kind: crds.schema(kind)["properties"]["status"]["properties"]["conditions"] for kind in crds.kinds()}
    strict = found["NodePool"]
    assert (strict["x-kubernetes-list-type"], strict["x-kubernetes-list-map-keys"]) == ("map", ["type"])
    assert found["NodeOverlay"] == found["CapacityBuffer"] == strict
    assert "x-kubernetes-list-type" not in found["EC2NodeClass"]
    assert found["EC2NodeClass"]["items"] == strict["items"]
    lax = found["NodeClaim"]["items"]
    assert lax["required"] == ["lastTransitionTime", "status", "type"]
    assert "minLength" not in lax["properties"]["reason"]


def test_an_unknown_kind_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        crds.load("Provisioner")
