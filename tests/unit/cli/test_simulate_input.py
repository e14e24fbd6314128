"""Bad input of `kerf simulate`: each fault has exit code 2, its place and the fix; nothing is ignored silently."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from kerf.cli.verbs.simulation import repeating
from kerf.cli.verbs.simulation.loading import File
from kerf.cli.verbs.simulation.repeating import Job
from kerf.cli.verbs.simulation.simulate import main
from kerf.simulating.reading import BadScenario
from tests.unit.simulating.changes import SCENARIO, WORLD, event, objects, web
from tests.unit.simulating.faults import FAULTS
from tests.worlds import deployment


def written(folder: Path, change: dict[str, Any]) -> str:
    path = folder / "scenario.yaml"
    path.write_text(yaml.safe_dump({**SCENARIO, **change}, sort_keys=False))
    return str(path)


def refused(folder: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any]) -> str:
    assert main([written(folder, change)]) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert "Traceback" not in found.err
    return found.err


@pytest.mark.parametrize(
    ("change", "words"),
    FAULTS,
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_fault_is_refused_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], words: str
) -> None:
    found = refused(tmp_path, capsys, change)
    assert words in found
    line = int(found.partition("scenario.yaml:")[2].partition(":")[0])
    assert line > 1, "the place is that of a field"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1: not the names of the columns; write time,replicas"),
        ("time\n5m\n", "line 1: not the names of the columns; write time,replicas"),
        ("time,replicas\n", "line 2: there is no row"),
        ("time,replicas\n10m,2\n5m,3\n", "line 3: 5m is not after the time of the row before; sort the rows"),
        ("time,replicas\n5m,2\n5m,3\n", "line 3: 5m is not after the time"),
        ("time,replicas\n5m,-2\n", "line 2: '-2' is no number of replicas"),
        ("time,replicas\n5m,1.5\n", "line 2: '1.5' is no number of replicas"),
        ("time,replicas\n25m,2\n", "line 2: 25m is not before the end of the scenario (20m)"),
        ('time,replicas\n"5m,2\n', "line 2: unexpected end of data"),
        ("time,replicas\n5m," + "1" * 200_000 + "\n", "line 2: field larger than field limit"),
        ("time,replicas\n5m,2,3\n", "line 2: too many values"),
        ("time,replicas\n5m,\n", "line 2: '' is no number of replicas from 0 to 99999; write a duration and a number"),
        ("time,replicas\n5m,NaN\n", "line 2: 'NaN' is no number of replicas"),
        ("time,replicas\n5m,\u0663\n", "line 2: '\u0663' is no number of replicas"),
        ("time;replicas\n5m;3\n", "line 1: not the names of the columns; write time,replicas"),
        ("replicas,time\n3,5m\n", "line 1: not the names of the columns; write time,replicas"),
        ("time,replicas\n60,3\n", "line 2: '60' is not a duration"),
        ("time,replicas\n2024-01-01T00:00Z,3\n", "line 2: '2024-01-01T00:00Z' is not a duration"),
    ],
    ids=range(18),
)
def test_a_fault_of_a_csv_file_is_refused_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    (tmp_path / "web.csv").write_text(text)
    found = refused(tmp_path, capsys, web(replicasFile="web.csv"))
    assert f"workloads[0].replicasFile: web.csv: {words}" in found


def test_a_csv_file_that_is_no_text_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "web.csv").write_bytes(b"time,replicas\n5m,\xff\n")
    words = "workloads[0].replicasFile: web.csv: no text in UTF-8; save it as UTF-8"
    assert words in refused(tmp_path, capsys, web(replicasFile="web.csv"))


def test_a_byte_order_mark_of_a_csv_file_is_no_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "web.csv").write_bytes(b"\xef\xbb\xbftime,replicas\r\n5m,3\r\n")
    assert main([written(tmp_path, web(replicasFile="web.csv")), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["figures"]["pods_started"] == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "apiVersion: karpenter.sh/v1\nkind: Nodepool\n",
            "more.yaml:2:1: there is no kind Nodepool; did you mean NodePool?",
        ),
        (
            "apiVersion: apps/v1\nkind: Deploymnt\n",
            "more.yaml:2:1: there is no kind Deploymnt; did you mean Deployment?",
        ),
        (
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replica: 1}\n",
            "more.yaml:4:8: the API server refuses Deployment a: spec.replica: there is no field replica",
        ),
        (
            "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: a}\nspec: {minAvailable: most}\n",
            "PodDisruptionBudget a: spec.minAvailable: ",
        ),
        ("# nothing\n", "more.yaml: there is no object in it; add one, or remove the path"),
        ("time,replicas\n1m,2\n", "more.yaml:1:1: this is a single value, no object of Kubernetes; write a map with"),
        ("- kind: NodePool\n", "more.yaml:1:1: this is a list, no object of Kubernetes; write a map with"),
        ("# values\nimage:\n  tag: v1\n", "more.yaml:2:1: this is no object of Kubernetes: it has no kind; remove"),
        ("name: a\nassertions: []\n", "more.yaml:1:1: this is a scenario, not an object of Kubernetes"),
        (
            "kind: ConfigMap\nmetadata: {name: a}\nkind: Secret\n",
            "more.yaml:3:1: the key kind is written twice in one map, first in line 1; remove one of the two",
        ),
    ],
    ids=(
        *("kind", "built-in kind", "field", "budget", "empty", "scalar", "list", "values of a chart", "scenario"),
        "key twice",
    ),
)
def test_a_fault_of_a_manifest_file_is_refused_with_both_places(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    (tmp_path / "more.yaml").write_text(text)
    found = refused(tmp_path, capsys, {"world": {**WORLD, "manifests": ["more.yaml"]}})
    assert "world.manifests[0]: " in found
    assert words in found


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("-", "world.manifests[0]: - is standard input, which is not possible here; give a file or folder"),
        ("empty/", "empty/: no *.yaml, *.yml, *.json in this folder or below it"),
    ],
    ids=("standard input", "empty folder"),
)
def test_paths_without_manifests_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, words: str
) -> None:
    (tmp_path / "empty").mkdir()
    assert words in refused(tmp_path, capsys, {"world": {**WORLD, "manifests": [name]}})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"timeline": [{"at": "2m", "delete": ["Deployment/web"]}, {"at": "3m", "scale": {"web": 2}}]},
            "timeline[1].scale.web: there is no Deployment web to scale; check its name and namespace",
        ),
        (
            {
                **web(overTime=[{"at": "3m", "replicas": 3}]),
                "timeline": [{"at": "2m", "delete": ["Deployment/web"]}],
            },
            "workloads[0]: there is no Deployment default/web to scale",
        ),
        (
            objects(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}},
                {**deployment("b", {}), "metadata": {"name": "b", "namespace": "c"}},
            ),
            "world.objects[3]: the API server refuses Deployment b: ",
        ),
    ],
    ids=("timeline", "workload", "object"),
)
def test_a_refusal_during_a_run_has_the_index_of_its_entry(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], words: str
) -> None:
    assert words in refused(tmp_path, capsys, change)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("kerf.simulating.weather.Happenings.happen", "weather[0]: the simulated cluster cannot use an object: KeyErr"),
        ("kerf.simulating.asserting.judged", "assertions[0]: the simulated cluster cannot use an object: KeyError"),
    ],
    ids=("weather", "assertion"),
)
def test_a_fault_of_weather_or_an_assertion_has_its_index(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, target: str, words: str
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("a")

    monkeypatch.setattr(target, broken)
    assert words in refused(tmp_path, capsys, event("price", {"factor": 2}))


#: Kinds that a simulation does not use, and that change no pod.
OTHERS = (
    ("v1", "ConfigMap"),
    ("argoproj.io/v1alpha1", "Application"),
    ("autoscaling.x-k8s.io/v1", "ProvisioningRequest"),
    ("snapshot.storage.k8s.io/v1", "VolumeSnapshotClass"),
)


def test_kinds_of_other_controllers_have_no_effect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    others = [{"apiVersion": version, "kind": kind, "metadata": {"name": "a"}} for version, kind in OTHERS]
    (tmp_path / "more.yaml").write_text(yaml.safe_dump_all(others))
    assert main([written(tmp_path, {"world": {**WORLD, "manifests": ["more.yaml"]}})]) == 0
    assert "WARN" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "warning"),
    [
        (
            event("spotInterruption", {"zone": "us-west-2c", "nodePool": "general"}, "0s"),
            "weather[0].spotInterruption at 0s: there was no spot instance in us-west-2c of NodePool general",
        ),
        (
            event("instanceFailure", {"count": 7}, "10m"),
            "weather[0].instanceFailure at 10m: count is 7, but there were only 2 instances",
        ),
        (event("nodeNotReady", {}, "0s"), "weather[0].nodeNotReady at 0s: there was no node"),
        (
            event("throttle", {"calls": ["CreateFleet"], "for": "1s"}, "15m"),
            "weather[0].throttle at 15m: no effect: no request was refused",
        ),
        (event("price", {"factor": 1}), "weather[0].price at 5m: no effect: factor 1 changes no price"),
        (
            event("price", {"factor": 2, "instanceTypes": ["g5.xlarge"]}),
            "weather[0].price at 5m: no effect: no NodePool allows one of these offerings",
        ),
        (
            event("stockOut", {"zones": ["us-west-2a"], "for": "1s"}, "15m"),
            "weather[0].stockOut at 15m: no effect: no launch in this time tried one of these offerings",
        ),
        (
            event("quota", {"capacityType": "spot", "vcpus": 5000}, "0s"),
            "weather[0].quota at 0s: no effect: no launch reached the quota",
        ),
        (
            event("nodes", {"boot": "2m"}, "15m"),
            "weather[0].nodes at 15m: no effect: no instance was launched afterwards",
        ),
        (
            {**event("nodes", {"boot": "2m"}, "0s"), "world": {**WORLD, "nodes": {"boot": "2m"}}},
            "weather[0].nodes at 0s: no effect: new instances already have these values",
        ),
        (
            {**web(replicas=0), "assertions": [{"evictions": {"workload": "web"}}]},
            "assertions[0].evictions: workload default/web had no pod",
        ),
        (
            {**web(replicas=0), "assertions": [{"nodesAtEnd": {"atMost": 1, "nodePool": "general"}}]},
            "assertions[0].nodesAtEnd: NodePool general had no node",
        ),
    ],
    ids=(
        *("zone", "count", "node", "throttle", "factor", "price", "stock-out", "quota", "nodes", "behaviour"),
        *("workload", "NodePool"),
    ),
)
def test_what_has_nothing_to_act_on_is_a_warning_in_each_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], warning: str
) -> None:
    path, report = written(tmp_path, change), tmp_path / "report.xml"
    main([path, "--junit", str(report)])
    assert f"WARN  {warning}" in capsys.readouterr().out
    assert warning in (ElementTree.parse(report).getroot().findtext("testsuite/system-err") or "")
    main([path, "-o", "json"])
    (found,) = json.loads(capsys.readouterr().out)["runs"][0]["warnings"]
    assert warning in found


def test_a_warning_of_many_runs_has_their_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([written(tmp_path, event("nodeNotReady", {}, "0s")), "--repeat", "2"])
    assert "WARN  weather[0].nodeNotReady at 0s: there was no node (in 2 of 2 runs)" in capsys.readouterr().out


def test_a_run_without_a_miss_has_no_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([written(tmp_path, event("instanceFailure", {"count": 1}, "10m")), "-o", "json"])
    assert json.loads(capsys.readouterr().out)["runs"][0]["warnings"] == []


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_of_the_simulated_cluster_is_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    case = File(written(tmp_path, {})).case()

    def broken(*_: object) -> None:
        raise ValueError("'1x' is not a quantity")

    monkeypatch.setattr("kerf.sandbox.world.World.step", broken)
    for found in repeating.run([case], [Job(0, 0), Job(0, 1)], jobs):
        assert isinstance(found, BadScenario)
        assert "cannot use an object: ValueError: '1x' is not a quantity; check the fields" in str(found)
