"""`kerf plan -f`: the cluster is made of manifests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.sources import ROOT

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
