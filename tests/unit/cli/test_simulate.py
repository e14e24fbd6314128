"""`kerf simulate`: results, formats, errors, repeats and comparisons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from kerf.cli.verbs.simulation import repeating
from kerf.cli.verbs.simulation.repeating import Job
from kerf.cli.verbs.simulation.simulate import main
from tests.sources import ROOT
from tests.unit.cli.simulations import SCENARIO, SHORT, furnished, written
from tests.worlds import node_pool

#: The number of instances in the snapshot of the tests.
INSTANCES = 10


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return furnished(tmp_path)


def runs(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["runs"]
    return found


def test_a_failed_assertion_is_told_with_time_and_reason(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([written(folder, SHORT), "--nodepools", str(folder / "small"), "--chart"]) == 1
    printed = capsys.readouterr().out
    assert "FAIL  every pod runs within 5m: 2 of 4 pods did not, first at 5m" in printed
    assert "pod default/web-" in printed
    assert "limit" in printed
    assert "1 of 2 assertions failed" in printed


def test_junit_has_a_case_for_each_assertion(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = folder / "report.xml"
    arguments = ["--nodepools", str(folder / "small"), "--junit", str(report), "-o", "json"]
    assert main([written(folder, SHORT), *arguments]) == 1
    (suite,) = ElementTree.parse(report).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert [case.find("failure") is not None for case in suite.iter("testcase")] == [True, False]
    (notices,) = suite.iter("system-err")
    assert notices.text is not None
    assert "4 pods had no node at the end" in notices.text
    (run,) = runs(capsys)
    assert [one["passed"] for one in run["verdicts"]] == [False, True]
    assert run["series"][0] == {"at": 0.0, "nodes": 0, "per_hour": 0.0}


def test_seeds_have_the_same_results_in_parallel_and_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(folder, SCENARIO)
    main([path, "--repeat", "4", "--jobs", "2", "-o", "json"])
    together = runs(capsys)
    main([path, "--repeat", "4", "--jobs", "1", "-o", "json"])
    assert runs(capsys) == together
    main([path, "--seed", "2", "-o", "json"])
    (alone,) = runs(capsys)
    del alone["series"]
    assert alone == together[2]
    assert len({json.dumps(one["figures"]) for one in together}) > 1
    shards = []
    for index in range(3):
        main([path, "--repeat", "4", "--shard", f"{index}/3", "-o", "json"])
        shards += runs(capsys)
    own = [{name: value for name, value in one.items() if name != "series"} for one in shards]
    assert sorted(own, key=lambda one: int(one["seed"])) == together


def test_many_runs_are_one_summary(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([written(folder, SHORT), "--repeat", "2", "--seed", "5"]) == 0
    printed = capsys.readouterr().out
    assert "Interruptions: 2 runs of 12m, seeds 5 to 6" in printed
    assert "PASS  every pod runs within 5m: passed in 2 of 2 runs" in printed
    assert "2 runs passed" in printed
    assert [line.split() for line in printed.splitlines()][1] == ["least", "median", "p95", "most"]


def test_many_runs_have_a_summary_in_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([written(folder, SCENARIO), "--repeat", "3", "-o", "json"])
    found = json.loads(capsys.readouterr().out)
    (summary,) = found["summaries"]
    assert (summary["scenario"], summary["runs"], summary["autoscaler"]) == ("Interruptions", 3, "kerf")
    for name in ("cost", "evictions", "slowest"):
        least, middle, most = sorted(run["figures"][name] for run in found["runs"])
        assert summary["figures"][name] == {"least": least, "median": middle, "p95": most, "most": most}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"duration": "soon"}, "scenario.yaml:2:1: duration: 'soon' is not a duration"),
        ({"world": {"manifests": ["none/"]}}, "world.manifests[0]: "),
        ({"world": {"snapshot": "none"}}, "world.snapshot: "),
        (
            {"world": {"objects": [node_pool("a", {"weight": 1000})]}},
            "world.objects[0].spec.weight: the API server refuses NodePool a: 1000 is more than",
        ),
        (
            {"world": {"instanceTypes": ["m5.huge"]}},
            "there is no instance type m5.huge; did you mean m5.large? `kerf catalogue --names`",
        ),
        ({"world": {"settings": {"BATCH_MAX_DURATION": "x"}}}, "world.settings: "),
        ({"workloads": [{"name": "a", "replicasFile": "no.csv"}]}, "workloads[0].replicasFile: no.csv: No such file"),
        (
            {"timeline": [{"at": "1m", "scale": {"api": 2}}]},
            "timeline[0].scale.api: there is no Deployment api; here are web",
        ),
        ({"timeline": [{"at": "1m", "delete": ["Pod/x"]}]}, "timeline[0].delete[0]: there is no Pod/x to delete"),
    ],
    ids=lambda value: None if isinstance(value, str) else next(iter(value)),
)
def test_an_error_names_its_place(
    folder: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], words: str
) -> None:
    assert main([written(folder, {**SHORT, **change})]) == 2
    found = capsys.readouterr()
    assert words in found.err
    assert found.out == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--shard", "3/3"], "--shard 3/3: write I/N with I from 0 to N-1"),
        (["--repeat", "0"], "--repeat: 0 runs have no result"),
        (["--shard", "0/2", "--nodepools", "pools"], "exclude each other"),
        (["--junit", "/nowhere/x"], "--junit /nowhere/x: No such file"),
    ],
    ids=str,
)
def test_an_impossible_option_is_refused(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    words: str,
) -> None:
    path = written(folder, SHORT)
    monkeypatch.chdir(folder)
    assert main([path, *arguments]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("assertion", "words"),
    [
        (
            {"evictions": {"atMost": 0, "workload": "wed"}},
            "assertions[0].evictions.workload: there is no workload wed; did you mean web?",
        ),
        ({"podsRunWithin": {"duration": "5m", "workload": "wed"}}, "there is no workload wed"),
        (
            {"nodesAtEnd": {"atMost": 9, "nodePool": "genral"}},
            "there is no NodePool genral; did you mean general?",
        ),
    ],
)
def test_an_assertion_about_something_that_never_existed_is_an_error(
    folder: Path, capsys: pytest.CaptureFixture[str], assertion: dict[str, Any], words: str
) -> None:
    assert main([written(folder, {**SHORT, "assertions": [assertion]})]) == 2
    assert words in capsys.readouterr().err


def test_pods_that_wait_since_the_warm_up_are_late(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = {**SHORT, "warmUp": "5m", "assertions": [{"podsRunWithin": {"duration": "2m"}}]}
    assert main([written(folder, scenario), "--nodepools", str(folder / "small")]) == 1
    assert "FAIL  every pod runs within 2m: " in capsys.readouterr().out


def test_without_any_pod_no_pod_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = {**SHORT, "workloads": [], "assertions": [{"podsRunWithin": {"duration": "2m"}}]}
    assert main([written(folder, scenario)]) == 1
    assert "there was no pod" in capsys.readouterr().out


def test_a_file_with_two_documents_is_no_scenario(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "two.yaml"
    path.write_text("a: 1\n---\nb: 2\n")
    assert main([str(path)]) == 2
    assert "a second YAML document begins here; a scenario is one document" in capsys.readouterr().err


def test_a_world_of_a_snapshot(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    snapshot = ROOT / "tests" / "unit" / "snapshots" / "versions" / "1.snapshot"
    scenario = {**SHORT, "world": {"snapshot": str(snapshot)}, "workloads": [], "duration": "5m"}
    code = main([written(folder, scenario), "-o", "json"])
    (run,) = runs(capsys)
    assert code == (0 if run["passed"] else 1)
    assert run["figures"]["nodes_most"] >= INSTANCES


def test_shards_are_all_runs() -> None:
    jobs = [Job(0, seed) for seed in range(10)]
    parts = [repeating.shard(jobs, index, 3) for index in range(3)]
    assert sorted((job for part in parts for job in part), key=lambda job: job.seed) == jobs
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
