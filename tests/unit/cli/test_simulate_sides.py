"""`kerf simulate` with several variants: sets of NodePools and models of other autoscalers, side by side."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from kerf.cli.verbs.simulation import side_by_side
from kerf.cli.verbs.simulation.simulate import main
from kerf.cli.verbs.simulation.variants import Side, Variant
from kerf.simulating.autoscalers.models import MODELS
from kerf.simulating.results import Figures, Result, Verdict
from tests.unit.cli.simulations import FEW, TOO_SMALL, furnished, pools, written
from tests.worlds import deployment, node_class, node_pool


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return furnished(tmp_path)


def printed(capsys: pytest.CaptureFixture[str]) -> tuple[list[str], dict[str, list[str]]]:
    """The names of the columns, and the cells of each row by its name; cells have two spaces between them."""
    lines = capsys.readouterr().out.rstrip().split("\n")
    rows = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines]
    return rows[0][1:], {row[0]: row[1:] for row in rows[1:] if row}


def result(seed: int, cost: float, passed: bool = True) -> Result:
    found = Figures(cost, 3, 2, 4, 1, 1, 6, 0, timedelta(seconds=seed))
    return Result("Seeds", seed, timedelta(hours=1), found, (Verdict("a rule", passed, "text"),), ())


def sides(*costs: list[float]) -> list[Side]:
    names = "abc"
    return [
        Side(Variant(names[number], names[number]), [result(seed, cost) for seed, cost in enumerate(row)])
        for number, row in enumerate(costs)
    ]


# --- sets of NodePools ----------------------------------------------------------------------------------------------
def test_three_folders_with_the_same_name_are_three_columns(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [pools(folder, f"{name}/nodepools", change) for name, change in (("a", {}), ("b", {}), ("c", TOO_SMALL))]
    assert main([written(folder, FEW), "--nodepools", *given]) == 1
    names, rows = printed(capsys)
    assert names == given
    assert rows["every pod runs within 5m"] == ["PASS", "PASS", "FAIL (0 of 1 passed)"]
    assert rows["cost"][0] == rows["cost"][1] != rows["cost"][2] == "$0.00"
    assert rows[f"cost against {given[0]}"] == ["-", "+0.0%", "-100.0%"]
    assert rows["pods not running at the end"] == ["0", "0", "4"]


def test_a_folder_without_an_ec2nodeclass_uses_that_of_the_scenario(folder: Path) -> None:
    alone = folder / "alone"
    alone.mkdir()
    (alone / "pool.yaml").write_text(yaml.safe_dump(node_pool("general", {})))
    assert main([written(folder, FEW), "--nodepools", str(alone)]) == 0
    (alone / "pool.yaml").write_text(yaml.safe_dump(node_class()))
    assert main([written(folder, FEW), "--nodepools", str(alone)]) == 0


def test_a_chart_has_a_line_for_each_folder_in_one_scale(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = [str(folder / "pools"), str(folder / "small")]
    assert main([written(folder, FEW), "--nodepools", *both, "--chart"]) == 1
    lines = capsys.readouterr().out.split("\n")
    first = lines.index("Nodes and cost over time, seed 0")
    nodes, none, cost, _, axis = lines[first + 1 : first + 6]
    assert nodes.split()[:2] == ["nodes", both[0]]
    assert "█" in nodes
    assert nodes.endswith("  0 to 2")
    assert none.split() == [both[1]], "the NodePool is too small: it has no node"
    assert cost.split()[:4] == ["$", "an", "hour", both[0]]
    assert axis.split() == ["0s", "12m"]


def test_a_chart_of_many_runs_is_that_of_the_first(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([written(folder, FEW), "--repeat", "2", "--seed", "3", "--chart"]) == 0
    nodes, cost = [line for line in capsys.readouterr().out.split("\n") if "  seed 3  " in line]
    assert nodes.split()[0] == "nodes"
    assert cost.split()[0] == "$"
    assert "█" in nodes


def test_a_chart_in_json_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([written(folder, FEW), "--chart", "-o", "json"])
    assert ended.value.code == 2
    assert "--chart: JSON has no chart" in capsys.readouterr().err


def test_all_sets_pass(folder: Path) -> None:
    assert main([written(folder, FEW), "--nodepools", str(folder / "pools"), pools(folder, "other")]) == 0


@pytest.mark.parametrize(
    ("paths", "words"),
    [
        (["pools", "pools/"], "--nodepools pools/: the same files as pools; list each set once"),
        (["pools", "empty"], "empty"),
        (
            ["pools", "scenario.yaml"],
            "--nodepools scenario.yaml: scenario.yaml:1:1: this is a scenario, not an object",
        ),
        (["pools", "deployment.yaml"], "--nodepools deployment.yaml: there is no NodePool or EC2NodeClass in it"),
        (["pools", "web.csv"], "--nodepools web.csv: web.csv:1:1: this is a single value, no object of"),
        (["pools", "nowhere"], "nowhere"),
        (["pools", "broken"], "broken/bad.yaml"),
        (["pools", "bytes"], "bytes/bad.yaml"),
        (["pools", "link"], "link/bad.yaml"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else None,
)
def test_a_set_that_cannot_be_used_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, paths: list[str], words: str
) -> None:
    for name in ("empty", "broken", "bytes", "link"):
        (folder / name).mkdir()
    (folder / "broken" / "bad.yaml").write_text("kind: [")
    (folder / "bytes" / "bad.yaml").write_bytes(b"kind: \xff\xfe")
    (folder / "link" / "bad.yaml").symlink_to("nothing")
    (folder / "deployment.yaml").write_text(yaml.safe_dump(deployment("web", {})))
    monkeypatch.chdir(folder)
    assert main([written(folder, FEW), "--nodepools", *paths]) == 2
    found = capsys.readouterr()
    assert words in found.err
    assert found.out == ""


def test_seeds_are_compared_in_pairs() -> None:
    table = side_by_side.table(sides([1.0, 2.0, 4.0], [0.9, 2.2, 3.0], [1.0, 1.0, 1.0]))
    rows = {line.split("  ")[0]: " ".join(line.split()) for line in table.split("\n")}
    assert "Seeds: 3 runs" in rows
    assert "$2.00 ($1.00 to $4.00, p95 $4.00)" in table
    assert "$2.20 ($0.90 to $3.00, p95 $3.00)" in table
    assert rows["cheaper than a"] == "cheaper than a - 2 of 3 seeds 2 of 3 seeds"
    # -10 %, +10 %, -25 %; 0, -50 %, -75 %
    assert rows["cost against a"] == "cost against a - -10.0% -50.0%"
    assert "Figures are medians" in table


def test_a_cost_of_zero_is_no_measure() -> None:
    assert side_by_side.difference(*reversed(sides([0.0], [1.0]))) is None
    assert side_by_side.difference(*sides([1.0], [2.0])) == pytest.approx(-0.5)


def test_repeats_of_two_sets_are_compared_by_seed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [str(folder / "pools"), str(folder / "small")]
    arguments = [written(folder, FEW), "--repeat", "2", "--seed", "1", "--nodepools", *given]
    assert main([*arguments, "-o", "json"]) == 1
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert [(one["nodepools"], one["seed"]) for one in runs] == [(one, seed) for one in given for seed in (1, 2)]
    assert {one["autoscaler"] for one in runs} == {"kerf"}
    assert main(arguments) == 1
    _, rows = printed(capsys)
    assert rows[f"cheaper than {given[0]}"] == ["-", "2 of 2 seeds"]
    assert rows["every pod runs within 5m"] == ["PASS", "FAIL (0 of 2 passed)"]


# --- models of other autoscalers ------------------------------------------------------------------------------------
#: Six pods of which five leave: the rest is a node of which less than half is used.
LEAVING: dict[str, Any] = {
    **FEW,
    "duration": "40m",
    "warmUp": "5m",
    "world": {"manifests": ["pools/"], "instanceTypes": ["c6i.xlarge"], "zones": ["us-west-2a"]},
    "workloads": [{"name": "web", "replicas": 9, "cpu": 1, "overTime": [{"at": "6m", "replicas": 3}]}],
    "assertions": [{"evictions": {"atMost": 0}}, {"nodesAtEnd": {"atMost": 3}}],
}


def test_models_have_columns_labels_and_limits(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([written(folder, LEAVING), "--against", "karpenter-double,threshold"])
    text = capsys.readouterr().out
    head = text.split("\n")[0]
    assert all(f"  {name}" in head for name in ("Kerf", "karpenter-double (model)", "threshold (model)"))
    assert "karpenter-double: a model by Kerf's authors, not Karpenter itself" in text
    assert "threshold: a model by Kerf's authors, not Cluster Autoscaler itself" in text
    assert text.count("    not modelled: ") == len(MODELS)
    assert "budgets with their windows have no effect" in text
    assert "distance: The distance from Cluster Autoscaler is not measured." in text


def test_a_model_removes_nodes_in_its_own_way(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kerf moves the pods together as soon as nodes are consolidatable, the threshold after ten minutes."""
    main([written(folder, LEAVING), "--against", "threshold,karpenter-double", "--seed", "3", "-o", "json"])
    runs = {one["autoscaler"]: one for one in json.loads(capsys.readouterr().out)["runs"]}
    assert list(runs) == ["kerf", "threshold", "karpenter-double"]
    assert runs["threshold"]["label"] == "a model by Kerf's authors, not Cluster Autoscaler itself"
    assert "label" not in runs["kerf"]
    assert runs["threshold"]["figures"]["cost"] > runs["karpenter-double"]["figures"]["cost"]
    assert runs["threshold"]["figures"]["cost"] > runs["kerf"]["figures"]["cost"]
    assert {one["figures"]["nodes_at_end"] for one in runs.values()} == {1}


def test_the_exit_code_and_junit_are_about_kerf(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kerf keeps nodes that are not consolidatable; the threshold knows no such policy and evicts."""
    kept = {"disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"}}
    pools(folder, "kept", kept)
    scenario = {**LEAVING, "world": {**LEAVING["world"], "manifests": ["kept/"]}}
    junit = folder / "junit.xml"
    arguments = [written(folder, scenario), "--against", "threshold", "--junit", str(junit), "-o", "json"]
    assert main(arguments) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["passed"], [one["passed"] for one in found["runs"]]) == (True, [True, False])
    assert [suite.get("name") for suite in ElementTree.parse(junit).getroot()] == ["Interruptions, seed 0"]


def test_each_set_runs_with_each_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [str(folder / "pools"), str(folder / "small")]
    assert main([written(folder, FEW), "--nodepools", *given, "--against", "threshold"]) == 1
    names, _ = printed(capsys)
    assert names == [f"{one}, {who}" for one in given for who in ("Kerf", "threshold (model)")]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--against", "treshold"], "--against treshold: unknown model; give one of karpenter-double, threshold"),
        (["--against", "threshold,other"], "--against other: unknown model"),
        (["--against", "threshold,threshold"], "threshold is listed twice; list each model once"),
        (["--against", "threshold", "--shard", "0/2"], "--shard and --against exclude each other"),
    ],
    ids=lambda value: value[1] if isinstance(value, list) else None,
)
def test_a_wrong_comparison_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert main([written(folder, FEW), *arguments]) == 2
    assert words in capsys.readouterr().err
