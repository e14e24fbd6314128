"""`kerf simulate`: objects without an effect, gated pods, deleted Namespaces, Deployments of a snapshot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kerf.cli.answering import captures
from kerf.cli.arguments import Mistake
from kerf.cli.verbs.simulation.loading import File
from kerf.cli.verbs.simulation.simulate import main
from tests.unit.cli.test_simulate_input import written
from tests.unit.simulating.changes import WORLD, objects, web
from tests.worlds import deployment, node_class, node_pool


@pytest.mark.parametrize(
    ("version", "kind", "fix"),
    [
        ("autoscaling/v2", "HorizontalPodAutoscaler", "describe the replicas in overTime of a workload"),
        ("batch/v1", "CronJob", "describe its pods as a workload"),
        ("batch/v1", "Job", "describe its pods as a workload"),
        ("v1", "ResourceQuota", "write requests and replicas as the cluster would admit them"),
    ],
)
def test_an_object_that_would_change_pods_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], version: str, kind: str, fix: str
) -> None:
    (tmp_path / "more.yaml").write_text(
        f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a, namespace: shop}}\n"
    )
    found = File(written(tmp_path, {"world": {**WORLD, "manifests": ["more.yaml"]}})).case().unused
    place = f"world.manifests[0]: {tmp_path}/more.yaml:1: {kind} shop/a"
    assert found == (f"{place} has no effect: the simulation does not run this kind; {fix}",)
    main([written(tmp_path, {"world": {**WORLD, "manifests": ["more.yaml"]}, "duration": "6m"})])
    assert capsys.readouterr().out.count(f"WARN  {found[0]}\n") == 1


def test_a_budget_that_selects_no_pod_is_a_warning(tmp_path: Path) -> None:
    def case(app: str, namespace: str) -> tuple[str, ...]:
        spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": app}}}
        meta = {"name": "keep", "namespace": namespace}
        kept = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": spec}
        return File(written(tmp_path, objects(kept))).case().unused

    assert case("web", "default") == ()
    for app, namespace in (("wob", "default"), ("web", "shop")):
        (found,) = case(app, namespace)
        assert f"world.objects[2]: PodDisruptionBudget {namespace}/keep has no effect: it selects no pod" in found


def test_a_gated_pod_has_that_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([written(tmp_path, web(pod={"schedulingGates": [{"name": "example.com/quota"}]}))])
    reason = "gated: nothing in the simulation removes its schedulingGates (example.com/quota)"
    assert reason in capsys.readouterr().out


def test_the_objects_of_a_deleted_namespace_are_deleted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    workload = {"name": "web", "namespace": "shop", "replicas": 2, "cpu": 1}
    step = {"at": "8m", "delete": ["Namespace/shop"]}
    end = [{"nodesAtEnd": {"atMost": 0}}, {"podsRunWithin": {"duration": "5m"}}]
    change = {"workloads": [workload], "timeline": [step], "assertions": end}
    assert main([written(tmp_path, change), "-o", "json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["figures"]["pods_started"] == 2
    assert run["figures"]["nodes_most"] > 0


@pytest.mark.parametrize(
    "label", ["node.kubernetes.io/instance-class", "kubernetes.io/role", "example.com/zon", "team"]
)
def test_labels_of_users_are_no_slips(tmp_path: Path, label: str) -> None:
    row = {"key": label, "operator": "In", "values": ["a"]}
    change = {**objects(node_pool("own", {"requirements": [row]})), **web(pod={"nodeSelector": {label: "a"}})}
    assert File(written(tmp_path, change)).case().scenario.workloads[0].pod["nodeSelector"] == {label: "a"}


# --- snapshots ------------------------------------------------------------------------------------------------------
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web-5d4f-x",
        "namespace": "default",
        "labels": {"app": "web", "pod-template-hash": "5d4f"},
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d4f", "uid": "set", "controller": True}
        ],
    },
    "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]},
}


def of_snapshot(folder: Path, *manifests: dict[str, Any]) -> str:
    """A scenario in the cluster of these manifests that scales the Deployment web."""
    (folder / "cluster.yaml").write_text(yaml.safe_dump_all([node_class(), node_pool("general", {}), *manifests]))
    options = captures.options(["--feature-gates", "CapacityBuffer=true"], offline=True)
    found, _ = captures.of_manifests([str(folder / "cluster.yaml")], options)
    (folder / "cluster.snapshot").write_bytes(captures.compressed(found))
    steps = [{"at": "1m", "scale": {"web": 3}}]
    return written(folder, {"world": {"snapshot": "cluster.snapshot"}, "workloads": [], "timeline": steps})


def test_a_deployment_of_a_snapshot_is_scaled_by_the_template_of_its_pods(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([of_snapshot(tmp_path, POD), "-o", "json"])
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["figures"]["pods_started"] == 3


def test_a_deployment_without_a_pod_cannot_be_scaled(tmp_path: Path) -> None:
    with pytest.raises(Mistake) as error:
        File(of_snapshot(tmp_path, deployment("web", {}))).case()
    words = "timeline[0].scale.web: Deployment web of the snapshot has no pod and no ReplicaSet, so its pod template is"
    assert words in str(error.value)
