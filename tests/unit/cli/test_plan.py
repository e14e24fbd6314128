"""`kerf plan`: the page, formats, conditions, and what is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from typer.testing import CliRunner

from kerf.cli.answering import plan_page
from kerf.cli.app import app
from kerf.cli.demonstration.demo import manifests
from kerf.cli.verbs import plan
from kerf.cli.verbs.plan import main
from kerf.planning.changes import Change
from kerf.planning.forecast import Forecast, Manner, forecast, forecasts
from kerf.planning.outcomes import Waiting
from kerf.snapshots import files, naming
from kerf.snapshots.captured import Captured
from kerf.snapshots.writing import lines
from tests.gitops.repositories import repository, write
from tests.unit.snapshots.worlds import busy

#: For tests of what is printed: the first minutes of a change.
SOON = ("--horizon", "10m")
POOL: dict[str, Any] = next(one for one in manifests("NodePool") if one["metadata"]["name"] == "general")


@pytest.fixture(scope="module", autouse=True)
def simulated_once() -> Iterator[None]:
    """Tests that ask the same of the same cluster get one answer: a simulation takes seconds."""
    known: dict[tuple[object, ...], list[Forecast]] = {}

    def remembered(captured: Captured, changes: Sequence[Change], manner: Manner) -> list[Forecast]:
        key = (tuple(lines(captured, b"key")), repr(changes), manner.horizon, manner.simulate)
        if key not in known:
            known[key] = forecasts(captured, changes, manner)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kerf.planning.forecast.forecasts", remembered)
        yield


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("plan") / "now.snapshot"
    file.write_bytes(files.compressed(lines(busy(), b"key")))
    return str(file)


@pytest.fixture(scope="module")
def relabelled(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("plan") / "pool.yaml"
    changed = json.loads(json.dumps(POOL))
    changed["spec"]["template"]["metadata"]["labels"]["team"] = "web-platform"
    with file.open("w") as out:
        YAML().dump(changed, out)
    return str(file)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    said = capsys.readouterr()
    return code, said.out, said.err


def test_a_changed_label_replaces_the_nodes_of_its_pool(
    snapshot: str, relabelled: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, page, err = run(capsys, relabelled, "--snapshot", snapshot)
    assert (code, err) == (0, "")
    assert "Drifted" in page
    names = [name for name, one in busy().snapshot.node_claims.items() if one.pool_name == "general"]
    assert all(name in page for name in names)
    assert "NodePool general" in page
    assert "until nothing more happens" in page


def test_without_a_change_it_says_what_happens_anyway(snapshot: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, page, _ = run(capsys, "--snapshot", snapshot)
    assert code == 0
    assert "without the change" not in page


def test_json(snapshot: str, relabelled: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, text, _ = run(capsys, relabelled, "--snapshot", snapshot, *SOON, "-o", "json")
    found = json.loads(text)
    assert code == 0
    assert found["version"] == 1
    assert {one["reason"] for one in found["planned"]["departures"]} >= {"Drifted"}
    assert found["now"]["nodes"] == len(busy().snapshot.node_claims)


def test_markdown_has_a_table(snapshot: str, relabelled: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, text, _ = run(capsys, relabelled, "--snapshot", snapshot, *SOON, "-o", "markdown")
    assert code == 0
    assert text.startswith("### Kerf's plan")
    assert "| after | NodeClaim |" in text


@pytest.fixture(scope="module")
def found(relabelled: str) -> Forecast:
    """The plan of the changed label."""
    change = Change((json.loads(json.dumps(YAML(typ="safe").load(Path(relabelled)))),))
    return forecast(busy(), change, Manner(timedelta(hours=1)))


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("unschedulable", False),
        ("disruption>1%", True),
        ("disruption>100%", False),
        ("cost+500%", False),
    ],
)
def test_conditions(condition: str, holds: bool, found: Forecast) -> None:
    assert plan._conditions(condition) == [condition]
    assert plan._holds(condition, found) == holds


def test_a_price_that_rises_and_a_pod_without_a_place_are_conditions(found: Forecast) -> None:
    dearer = replace(found, planned=replace(found.planned, cost={"general": 2 * found.now.total}))
    assert plan._holds("cost+99%", dearer)
    assert not plan._holds("cost+101%", dearer)
    waiting = (*found.planned.waiting, Waiting("default/new-1", "no room"))
    assert plan._holds("unschedulable", replace(found, planned=replace(found.planned, waiting=waiting)))


def test_a_condition_that_holds_is_an_exit_code(
    snapshot: str, relabelled: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, relabelled, "--snapshot", snapshot, *SOON, "--fail-on", "unschedulable,disruption>0%")
    assert code == 1
    assert err == "kerf plan: --fail-on disruption>0%: is met\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--snapshot", "/nowhere"], "/nowhere: No such file or directory"),
        (["/nowhere.yaml", "--snapshot", "SNAPSHOT"], "/nowhere.yaml"),
        (["--snapshot", "SNAPSHOT", "-f", "x"], "--snapshot and -f exclude each other"),
        (["--snapshot", "SNAPSHOT", "--batch-idle-duration=1s"], "--snapshot and --batch-idle-duration=1s exclude"),
        (["--snapshot", "SNAPSHOT", "--horizon", "soon"], "--horizon: "),
        (["--snapshot", "SNAPSHOT", "--horizon", "0s"], "is no duration above 0"),
        (["--snapshot", "SNAPSHOT", "--horizon=-5m"], "is no duration above 0"),
        (["--snapshot", "SNAPSHOT", "--horizon", "9999999h"], "up to 8784h (a year)"),
        (["--snapshot", "SNAPSHOT", "--kubeconfig", "x"], "--snapshot and --kubeconfig exclude each other"),
        (["-f", "POOL", "--context", "x"], "-f and --context exclude each other"),
        (["--snapshot", "SNAPSHOT", "--fail-on", "cost+²%"], "--fail-on cost+²%: write"),
        (["--snapshot", "SNAPSHOT", "--fail-on", ",,"], "--fail-on : write"),
        (
            ["--snapshot", "SNAPSHOT", "--fail-on", "rain"],
            "--fail-on rain: write unschedulable, cost+N% or disruption>N%",
        ),
        (["--snapshot", "SNAPSHOT", "--delete", "Pod/a"], "--delete Pod/a: write KIND/NAME"),
        (["--snapshot", "SNAPSHOT", "--delete", "NodePool/none"], "NodePool none: "),
        (["EMPTY", "--snapshot", "SNAPSHOT"], "no object of a kind that changes a plan"),
        (["REFUSED", "--snapshot", "SNAPSHOT"], "NodePool general: "),
        (["--compare", "POOL", "POOL", "--snapshot", "SNAPSHOT"], "both changes are the same"),
        (["POOL", "--compare", "POOL", "EMPTY", "--snapshot", "SNAPSHOT"], "--compare and PATH exclude each other"),
        (["--compare", "POOL", "EMPTY", "--snapshot", "SNAPSHOT"], "empty.yaml: no object of a kind that changes"),
        (["--compare", "POOL", "/nowhere.yaml", "--snapshot", "SNAPSHOT"], "/nowhere.yaml"),
        (
            ["--compare", "POOL", "EMPTY", "--delete", "NodePool/a", "--snapshot", "SNAPSHOT"],
            "--compare and --delete exclude each other",
        ),
        (["POOL", "--snapshot", "PSEUDONYMS"], "the snapshot has pseudonyms in place of names"),
    ],
)
def test_what_is_wrong_is_said(
    arguments: list[str], words: str, snapshot: str, relabelled: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.yaml").write_text("kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n")
    refused = json.loads(json.dumps(POOL))
    refused["spec"]["weight"] = 1000
    (tmp_path / "refused.json").write_text(json.dumps(refused))
    (tmp_path / "hidden").write_bytes(files.compressed(naming.renamed(lines(busy(), b"key"))))
    places = {
        "SNAPSHOT": snapshot,
        "POOL": relabelled,
        "EMPTY": str(tmp_path / "empty.yaml"),
        "REFUSED": str(tmp_path / "refused.json"),
        "PSEUDONYMS": str(tmp_path / "hidden"),
    }
    code, out, err = run(capsys, *(places.get(one, one) for one in arguments))
    assert (code, out) == (2, "")
    assert words in err


# --- two changes, and no simulation -----------------------------------------------------------------------------
@pytest.fixture(scope="module")
def onto_demand(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same NodePool with on-demand nodes alone."""
    file = tmp_path_factory.mktemp("plan") / "other.json"
    changed = json.loads(json.dumps(POOL))
    row = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
    spec = changed["spec"]["template"]["spec"]
    spec["requirements"] = [*(one for one in spec["requirements"] if one["key"] != row["key"]), row]
    file.write_text(json.dumps(changed))
    return str(file)


def test_two_changes_side_by_side(
    snapshot: str, relabelled: str, onto_demand: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--compare", relabelled, onto_demand, "--snapshot", snapshot, "--no-simulate"]
    code, text, err = run(capsys, *asked, "-o", "json")
    rows = json.loads(text)["compared"]
    assert (code, err, [one["change"] for one in rows]) == (0, "", [relabelled, onto_demand])
    costs = [sum(one["planned"]["cost"].values()) for one in rows]
    assert costs[0] < costs[1]
    assert rows[0]["now"] == rows[1]["now"]
    code, page, _ = run(capsys, *asked)
    line = next(line for line in page.splitlines() if line.startswith("price"))
    assert [f"${cost / 1e6:,.3f}/h" in line for cost in costs] == [True, True]
    code, table, err = run(capsys, *asked, "-o", "markdown", "--fail-on", "disruption>0%")
    assert table.startswith("### Kerf's plans for two changes")
    assert (code, err.count("--fail-on disruption>0%: is met")) == (1, 2)
    assert err.startswith(f"kerf plan: {relabelled}: ")


def test_without_simulation_the_same_nodes_go(snapshot: str, relabelled: str, found: Forecast) -> None:
    change = Change((json.loads(json.dumps(YAML(typ="safe").load(Path(relabelled)))),))
    estimated = forecast(busy(), change, Manner(timedelta(hours=1), simulate=False))
    assert {one.node.name for one in estimated.caused} == {one.node.name for one in found.caused}
    assert len(estimated.newly_waiting) == len(found.newly_waiting)
    assert {one.started for one in estimated.caused} == {None}
    page = plan_page.page(estimated)
    assert "not simulated" in page
    assert "after  NodeClaim" not in page
    assert "Horizon" not in {one.code for one in estimated.risks}


def test_help_says_how() -> None:
    assert "kerf plan" in CliRunner().invoke(app, ["plan", "--help"]).output


@pytest.mark.parametrize("flag", [("--cluster-name", "x"), ("--cluster-name=x",), ("-cluster-name", "x")])
def test_a_setting_may_stand_before_the_path(
    flag: tuple[str, ...], relabelled: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, *flag, relabelled, "--kubeconfig", "/nowhere")
    assert (code, "/nowhere" in err) == (2, True)
    assert "needs a value" not in err
    assert run(capsys, "--isolated-vpc", *flag, relabelled, "--kubeconfig", "/nowhere")[2] == err


def test_each_wrong_setting_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "--batch-idle-duration=x", "--batch-max-duration=y", "--cluster-name=a")
    assert (code, out) == (2, "")
    assert [line.startswith("kerf plan: --batch-") for line in err.splitlines()] == [True, True]


def test_an_object_that_is_deleted_twice_is_deleted(snapshot: str, capsys: pytest.CaptureFixture[str]) -> None:
    twice = ["--delete", "NodePool/steady", "--delete", "nodepool/steady"]
    code, text, err = run(capsys, *twice, "--snapshot", snapshot, *SOON, "-o", "json")
    assert (code, err) == (0, "")
    assert {one["node"]["nodepool"] for one in json.loads(text)["planned"]["departures"]} == {"steady"}


def test_a_terminal_gets_no_escape_sequence(
    snapshot: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plan, "_text", lambda *_: "nodes\x1b]0;owned\x07\npods\n")
    assert run(capsys, "--snapshot", snapshot)[1] == "nodes\\x1b]0;owned\\x07\npods\n"


def test_a_name_that_no_api_server_has_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: str
) -> None:
    hostile = tmp_path / "hostile.snapshot"
    text = b"\n".join(files.lines(Path(snapshot).read_bytes()))
    hostile.write_bytes(text.replace(b'"steady"', b'"\\u001b[31m|@team"') + b"\n")
    code, out, err = run(capsys, "--snapshot", str(hostile))
    assert (code, out) == (2, "")
    assert "'\\x1b[31m|@team' label values begin and end" in err


# --- a change of another form -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        ({"metadata": ["a"]}, "NodePool: metadata.name is missing"),
        ({"spec": []}, "NodePool: metadata.name is missing"),
        ({"metadata": {"name": "a"}, "spec": []}, "NodePool a: spec: [] is a list, a map is needed"),
        ({"metadata": {"name": "a"}, "spec": {"template": 7}}, "NodePool a: "),
    ],
)
def test_a_manifest_of_another_form_is_refused(
    manifest: dict[str, Any], words: str, snapshot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "pool.json"
    file.write_text(json.dumps({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", **manifest}))
    code, out, err = run(capsys, str(file), "--snapshot", snapshot)
    assert (code, out) == (2, "")
    assert words in err


# --- what differs from a commit ---------------------------------------------------------------------------------
def _written(folder: Path, **objects: dict[str, Any]) -> dict[str, str]:
    return {f"{name}.yaml": json.dumps(one) for name, one in objects.items()}


def test_what_differs_from_a_commit_is_planned(
    snapshot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steady = next(one for one in manifests("NodePool") if one["metadata"]["name"] == "steady")
    made = repository(tmp_path / "repo", _written(tmp_path, general=POOL, steady=steady))
    monkeypatch.chdir(made)
    code, page, _ = run(capsys, "--changed-since", "main", "--snapshot", snapshot, *SOON, "-o", "json")
    assert (code, json.loads(page)["planned"]["departures"]) == (0, [])
    changed = json.loads(json.dumps(POOL))
    changed["spec"]["template"]["metadata"]["labels"]["team"] = "web-platform"
    write(made, {"general.yaml": json.dumps(changed)})
    code, page, _ = run(capsys, "--changed-since", "main", "--snapshot", snapshot, *SOON, "-o", "json")
    assert code == 0
    gone = {one["node"]["nodepool"] for one in json.loads(page)["planned"]["departures"]}
    assert gone == {"general"}


def test_a_file_that_is_gone_is_a_deletion(
    snapshot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steady = next(one for one in manifests("NodePool") if one["metadata"]["name"] == "steady")
    made = repository(tmp_path / "repo", _written(tmp_path, general=POOL, steady=steady))
    monkeypatch.chdir(made)
    (made / "steady.yaml").unlink()
    code, page, _ = run(capsys, "--changed-since", "main", "--snapshot", snapshot, *SOON, "-o", "json")
    assert code == 0
    assert {one["node"]["nodepool"] for one in json.loads(page)["planned"]["departures"]} == {"steady"}


def test_a_commit_that_is_not_there_is_named(
    snapshot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(repository(tmp_path / "repo", _written(tmp_path, general=POOL)))
    code, _, err = run(capsys, "--changed-since", "nowhere", "--snapshot", snapshot)
    assert code == 2
    assert "--changed-since nowhere: " in err


def test_nodes_that_are_disrupted_also_without_the_change_say_so(found: Forecast) -> None:
    assert "also without the change" not in plan_page.page(found)
    page = plan_page.page(replace(found, otherwise=replace(found.planned)))
    assert "Drifted, also without the change\n" in page
