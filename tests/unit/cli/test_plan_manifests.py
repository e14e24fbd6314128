"""`kerf plan -f`: the cluster is made of manifests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kerf.model import kinds
from tests.simulation.plan_cases import Case, pool, web
from tests.simulation.plan_table import prepared
from tests.sources import ROOT
from tests.worlds import daemon_set, node_class

from .test_plan import run

PENDING = """\
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: shop}
spec: {containers: [{name: c, image: x, resources: {requests: {cpu: "1"}}}]}
"""
FOREIGN = """\
apiVersion: v1
kind: Node
metadata: {name: other, labels: {eks.amazonaws.com/nodegroup: ng, kubernetes.io/os: linux}}
spec: {providerID: "aws:///us-west-2a/i-00000000000000abc"}
status: {allocatable: {cpu: "2", memory: 4Gi, pods: "10"}, conditions: [{type: Ready, status: "True"}]}
"""


@pytest.mark.parametrize(("cluster", "waiting"), [("", 0), (FOREIGN, 0), (PENDING, 1)])
def test_a_cluster_without_nodes_of_kerf_has_a_plan(
    cluster: str, waiting: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cluster.yaml").write_text(cluster)
    code, text, err = run(capsys, "-f", str(tmp_path), "-o", "json")
    assert (code, err) == (0, "")
    assert len(json.loads(text)["planned"]["waiting"]) == waiting


def test_manifests_of_a_cluster_give_a_pod_its_node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pod.yaml").write_text(PENDING)
    example = ROOT / "manifests/examples/general-purpose.yaml"
    code, text, err = run(capsys, str(example), "-f", str(tmp_path), "-f", str(example), "-o", "json")
    assert (code, err) == (0, "")
    assert [one["pods"] for one in json.loads(text)["planned"]["arrivals"]] == [1]


# --- a live cluster as kubectl prints it --------------------------------------------------------------------------
@pytest.fixture(scope="module")
def exported() -> list[dict[str, Any]]:
    """The objects of a cluster with three nodes; the hash of its class covers a certificate that they do not have."""
    world, _ = prepared(Case((node_class(), pool(expireAfter="Never"), web())))
    return [
        {**one, "kind": kind.name, "apiVersion": kind.api_version}
        for kind in kinds.KNOWN
        for one in world.objects(kind.name)
    ]


def _planned(folder: Path, objects: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    file = folder / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    code, text, err = run(capsys, "-f", str(file), "-o", "json")
    assert (code, err) == (0, "")
    found: dict[str, Any] = json.loads(text)
    return found


def test_nodes_of_an_exported_cluster_stay(
    exported: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = _planned(tmp_path, exported, capsys)
    assert (found["now"]["nodes"], found["planned"]["departures"]) == (3, [])


def test_images_are_those_in_the_status_of_the_class(
    exported: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = json.loads(json.dumps(exported).replace('"ami-0', '"ami-a'))
    assert _planned(tmp_path, own, capsys)["planned"]["departures"] == []
    node_claims = [one for one in own if one["kind"] == "NodeClaim"]
    node_claims[0]["status"]["imageID"] = "ami-00000000000000bad"
    (gone,) = _planned(tmp_path, own, capsys)["planned"]["departures"]
    assert (gone["node"]["name"], gone["reason"]) == (node_claims[0]["metadata"]["name"], "Drifted")


def test_nodes_of_another_class_hash_have_drifted(
    exported: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = json.loads(json.dumps(exported))
    node_claims = [one for one in own if one["kind"] == "NodeClaim"]
    node_claims[1]["metadata"]["annotations"]["karpenter.k8s.aws/ec2nodeclass-hash"] = "1"
    (gone,) = _planned(tmp_path, own, capsys)["planned"]["departures"]
    assert gone["node"]["name"] == node_claims[1]["metadata"]["name"]


def test_a_missing_class_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pod.yaml").write_text(PENDING)
    file = tmp_path / "pool.json"
    file.write_text(json.dumps(pool()))
    for flags in ([], ["--no-simulate"]):
        code, text, err = run(capsys, str(file), "-f", str(tmp_path / "pod.yaml"), "-o", "json", *flags)
        (risk,) = json.loads(text)["risks"]
        assert (code, err, risk["code"], risk["subject"]) == (0, "", "NotReady", "nodepool/general")
        assert "launches no node: EC2NodeClass default does not exist; add its manifest" in risk["text"]


def test_objects_that_an_api_server_refuses_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The checks of `kerf simulate`, also of kinds that no webhook checks."""
    one = daemon_set("agent", {})
    wrong = {**one, "spec": {**one["spec"], "updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}}}
    (tmp_path / "pod.yaml").write_text(PENDING)
    for manifest, words in ((one, ""), (wrong, "spec.updateStrategy.rollingUpdate.maxUnavailable: it and maxSurge")):
        (tmp_path / "a.json").write_text(json.dumps(manifest))
        code, _, err = run(capsys, str(tmp_path / "a.json"), "-f", str(tmp_path / "pod.yaml"), "--no-simulate")
        assert (code == 2) is bool(words), err
        assert f"{tmp_path}/a.json:1: the API server refuses DaemonSet " in err if words else "refuses" not in err
        assert words in err


# --- two manifests of one object ----------------------------------------------------------------------------------
PDB = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": {"maxUnavailable": 1}}


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        (pool(), pool(weight=1), "NodePool general"),
        ({**PDB, "metadata": {"name": "a"}}, {**PDB, "metadata": {"name": "a", "namespace": "default"}}, "default/a"),
    ],
)
def test_two_manifests_of_one_object_are_named(
    first: dict[str, Any], second: dict[str, Any], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.json").write_text(json.dumps(first))
    (tmp_path / "b.json").write_text(json.dumps(second))
    (tmp_path / "pod.yaml").write_text(PENDING)
    code, out, err = run(capsys, str(tmp_path / "a.json"), str(tmp_path / "b.json"), "-f", str(tmp_path / "pod.yaml"))
    assert (code, out) == (2, "")
    both = f"{name}: two manifests in one change: {tmp_path}/a.json:1 and {tmp_path}/b.json:1; "
    assert both in err


def test_objects_of_one_name_in_two_namespaces_are_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spaces = []
    for space in ("one", "two"):
        manifest = {**PDB, "metadata": {"name": "a", "namespace": space}}
        (tmp_path / f"{space}.json").write_text(json.dumps(manifest))
        spaces.append(f"---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {space}}}\n")
    (tmp_path / "cluster.yaml").write_text("".join(spaces))
    code, _, err = run(capsys, f"{tmp_path}/*.json", "-f", str(tmp_path / "cluster.yaml"))
    assert (code, err) == (0, "")


def test_an_object_is_deleted_in_the_default_namespace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.json").write_text(json.dumps({**PDB, "metadata": {"name": "a"}}))
    twice = ["--delete", "PodDisruptionBudget/a", "--delete", "PodDisruptionBudget/default/a"]
    code, _, err = run(capsys, "-f", str(tmp_path), *twice)
    assert (code, err) == (0, "")
