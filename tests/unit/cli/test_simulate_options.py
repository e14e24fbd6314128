"""Options and results of `kerf simulate` that are no part of a scenario file."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from kerf.cli.verbs.simulation import repeating, shapes
from kerf.cli.verbs.simulation.simulate import main
from kerf.simulating.checking import REASONS
from kerf.simulating.scenario import Workload
from tests.sources import ROOT
from tests.unit.cli.test_simulate_input import written
from tests.unit.simulating.changes import PAGES


def test_a_part_without_a_run_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([written(tmp_path, {}), "--shard", "1/2"]) == 0
    assert "--shard 1/2: this part has no run; give --repeat" in capsys.readouterr().out
    assert main([written(tmp_path, {}), "--shard", "1/2", "-o", "json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"version": 1, "passed": True, "runs": []}
    assert "--shard 1/2: this part has no run; give --repeat" in printed.err


@pytest.mark.parametrize(
    ("paths", "words"),
    [
        (["a", "b", "s.yaml"], "write SCENARIO first: kerf simulate s.yaml --nodepools a b"),
        (["a"], "required: SCENARIO; write it before --nodepools"),
    ],
    ids=("three", "one"),
)
def test_a_scenario_after_nodepools_gets_the_right_command_line(
    capsys: pytest.CaptureFixture[str], paths: list[str], words: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--nodepools", *paths])
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_a_file_that_fails_after_the_runs_costs_no_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kerf.manifests.regular.write", full)
    report = tmp_path / "j.xml"
    assert main([written(tmp_path, {}), "--junit", str(report)]) == 1
    printed = capsys.readouterr()
    assert "1 assertion passed" in printed.out
    assert f"--junit {report}: No space left on device; the results are not in this file" in printed.err


def test_a_full_standard_output_is_refused_before_the_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeating, "run", lambda *_: pytest.fail("a run began"))
    with open("/dev/full", "w", encoding="utf-8") as stream:
        monkeypatch.setattr("sys.stdout", stream)
        assert main([written(tmp_path, {})]) == 2
    assert "the output cannot be written: No space left on device" in capsys.readouterr().err


def test_a_report_that_cannot_be_written_is_refused_before_the_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeating, "run", lambda *_: pytest.fail("a run began"))
    path, closed = written(tmp_path, {}), tmp_path / "closed"
    closed.write_text("old")
    closed.chmod(stat.S_IRUSR)
    monkeypatch.setattr("os.access", lambda name, mode: name != str(closed))
    for name, words in (
        (str(tmp_path / "none" / "x.xml"), "No such file or directory"),
        (str(tmp_path), "it is a folder; give a file"),
        ("-", "standard output is not possible here; give a file"),
        ("/dev/full", "this is a character device; give a regular file"),
        (str(closed), "Permission denied; give a file that can be written"),
    ):
        assert main([path, "--junit", name]) == 2
        assert f"--junit {name}: {words}" in capsys.readouterr().err
    assert closed.read_text() == "old"


def test_the_reasons_of_the_guide_are_those_of_the_code() -> None:
    guide = (ROOT / "docs" / "simulate.md").read_text(encoding="utf-8")
    listed = guide.partition("`reasons` are ")[2].partition(".")[0]
    assert [word.strip("` \n") for word in listed.replace(" and ", ", ").split(",")] == [*REASONS]


def test_a_name_with_line_breaks_prints_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([written(tmp_path, {"name": "a\n\nPASS  everything"})])
    assert "\nPASS  everything" not in capsys.readouterr().out


def test_a_file_that_is_no_table_is_not_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "secret").write_text("root:hidden:20228\n")
    assert main([written(tmp_path, {"workloads": [{"name": "web", "replicas": 1, "replicasFile": "secret"}]})]) == 2
    assert "hidden" not in capsys.readouterr().err


def test_replicas_come_from_a_file_or_from_the_scenario(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"at": "1m", "replicas": 2}]
    workload = {"name": "web", "replicas": 1, "replicasFile": "web.csv", "overTime": rows}
    assert main([written(tmp_path, {"workloads": [workload]})]) == 2
    assert "workloads[0].overTime: replicasFile gives the replicas already" in capsys.readouterr().err


def test_huge_pages_beside_the_cpu_of_the_workload_are_valid() -> None:
    pod = {"containers": [{"name": "main", "resources": PAGES}]}
    assert list(shapes.workload_faults(Workload(name="web", replicas=1, cpu=1, pod=pod))) == []
