"""`kerf why` and `kerf plan` on a record: the cluster as of a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kerf.cli.answering.records import FORMS
from kerf.cli.app import app
from kerf.cli.verbs import plan, replay
from tests.worlds import node_pool

RECORD = Path("tests/unit/records/versions/1.record")
POD = "default/web-2337969feb-tpl5b"
EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T00:03:00Z"


def _why(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["why", *arguments])


@pytest.mark.parametrize(
    ("at", "decided", "words"),
    [
        (["--at", EARLY], "00:00:00Z", "gets a new node of NodePool general"),
        (["--at", "2026-01-01T00:03:00"], "00:03:00Z", "is already on node"),
        ([], "00:07:00Z", "is already on node"),
    ],
)
def test_a_pod_as_of_a_time(at: list[str], decided: str, words: str) -> None:
    done = _why("pod", POD, "--record", str(RECORD), *at)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith(f"The cluster of the decision of 2026-01-01T{decided}.\n\npod {POD} {words}")


def test_the_answer_is_that_of_the_saved_snapshot(tmp_path: Path) -> None:
    file = str(tmp_path / "then.snapshot")
    assert replay.main([str(RECORD), "--at", LATE, "-o", file]) == 0
    saved, recorded = (
        _why("nodepool", "general", "-o", "json", *source)
        for source in (["--snapshot", file], ["--record", str(RECORD), "--at", LATE])
    )
    assert saved.exit_code == 0
    assert saved.stdout == recorded.stdout


def test_a_plan_as_of_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    pages = []
    for at in (EARLY, LATE):
        assert plan.main(["--record", str(RECORD), "--at", at, "--no-simulate", "-o", "json"]) == 0
        pages.append(capsys.readouterr().out)
    assert ['"nodes": 0' in page for page in pages] == [True, False]
    assert [json.loads(page)["asOf"] for page in pages] == [EARLY, LATE]


@pytest.mark.parametrize("output", ["text", "markdown"])
def test_the_page_of_a_plan_begins_with_its_time(output: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan.main(["--record", str(RECORD), "--at", "2026-01-01T00:03:00.5Z", "--no-simulate", "-o", output]) == 0
    assert capsys.readouterr().out.startswith("The cluster of the decision of 2026-01-01T00:03:00Z.\n\n")


@pytest.mark.parametrize("kind", [["pod", POD], ["nodepool", "general"], ["node", "none"]])
def test_json_names_the_decision_and_finds_it_again(kind: list[str]) -> None:
    first = _why(*kind, "--record", str(RECORD), "--at", "2026-01-01T00:03:00.5Z", "-o", "json").stdout
    assert json.loads(first)["asOf"] == LATE
    assert _why(*kind, "--record", str(RECORD), "--at", LATE, "-o", "json").stdout == first


def test_json_of_two_changes_has_the_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / name for name in ("a.yaml", "b.yaml")]
    for weight, file in enumerate(files, 1):
        file.write_text(json.dumps(node_pool("general", {"weight": weight})))
    arguments = ["--record", str(RECORD), "--at", LATE, "--no-simulate", "-o", "json"]
    assert plan.main([*arguments, "--compare", *map(str, files)]) == 0
    assert json.loads(capsys.readouterr().out)["asOf"] == LATE


MISTAKES = [
    (["--at", LATE], "--at and --record belong together"),
    (["--record", str(RECORD), "--at", "noon"], "--at noon: it is no time; write a time of RFC 3339"),
    (["--record", str(RECORD), "--at", ""], f"--at: the time is empty; write {FORMS}"),
    (["--record", str(RECORD), "--at="], f"--at: the time is empty; write {FORMS}"),
    (["--record", ""], "--record: the path is empty; name a file or a folder, or leave the option out"),
    (["--snapshot="], "--snapshot: the path is empty; name a file or a folder, or leave the option out"),
    (
        ["--record", str(RECORD), "--at", "2020-01-01"],
        "--at 2020-01-01T00:00:00Z: the record has no decision up to then",
    ),
    (["--record", "/nowhere"], "/nowhere: No such file or directory"),
    (["--record", str(RECORD), "-f", "x"], "--record and -f exclude each other"),
    (["--record", str(RECORD), "--snapshot", "x"], "--snapshot and --record exclude each other"),
]


@pytest.mark.parametrize(("words", "message"), MISTAKES)
def test_a_mistake_ends_with_2(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = _why("pod", POD, *words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert plan.main(words) == 2
    assert message in capsys.readouterr().err


def test_a_setting_beside_a_record() -> None:
    done = _why("pod", POD, "--record", str(RECORD), "--batch-idle-duration=1s")
    assert (done.exit_code, "the settings are those of the record" in done.stderr) == (2, True)
