"""How `make test`, `make e2e` and `make long` run their tiers, and that every test is in one of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.aws_calls import record as aws_calls
from tests.aws_calls.ledger import Account
from tests.cluster.binaries import ControlPlaneUnavailable
from tests.sources import ROOT, python_path
from tests.tiers.progress import Progress, state_of_the_sources
from tests.tiers.running import Tier, main
from tests.tiers.table import E2E, LONG, REAL, REAL_AND_LONG, STAGES

CLUSTER_TESTS = Path(__file__).resolve().parents[1] / "cluster"


def _python(source: str) -> tuple[str, ...]:
    return (sys.executable, "-c", source)


def _tier(name: str, *sources: str) -> Tier:
    return Tier(name, tuple(_python(source) for source in sources))


def _unavailable() -> None:
    raise ControlPlaneUnavailable("no Go toolchain here")


def test_when_all_pass_so_does_the_run(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([[_tier("one", "print('first words')")], [_tier("two", "pass"), _tier("three", "pass")]]) == 0
    told = capfd.readouterr().out
    assert "first words" in told
    assert [line.split()[:3] for line in told.splitlines()[-5:-2]] == [
        [number, name, "passed"] for number, name in (("1", "one"), ("2", "two"), ("3", "three"))
    ]
    assert told.splitlines()[-1] == "All tiers that this machine can run passed."


def test_the_calls_of_aws_of_all_runs_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(aws_calls.VARIABLE, str(tmp_path))
    aws_calls.write(tmp_path, Account({"clients": 3, "sandbox": 1000}, {"a": 3}))
    assert main([[_tier("one", "pass")]]) == 0
    assert "1,003 calls of AWS judged (clients 3, sandbox 1,000)" in capfd.readouterr().out


@pytest.mark.parametrize(
    "stages",
    [
        [[_tier("good", "pass")], [_tier("bad", "raise SystemExit(1)")], [_tier("last", "print('last words')")]],
        [[_tier("good", "pass"), _tier("bad", "raise SystemExit(1)"), _tier("last", "print('last words')")]],
        [[_tier("bad", "raise SystemExit(1)", "print('last words')"), _tier("good", "pass")]],
        [[_tier("bad", "raise SystemExit(1)", "print('last words')")]],
    ],
    ids=["after each other", "side by side", "two commands", "alone"],
)
def test_one_that_fails_fails_the_run_and_stops_nothing(
    stages: list[list[Tier]], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(stages) == 1
    told = capfd.readouterr().out
    assert "last words" in told
    assert told.splitlines()[-1] == "Failed: bad"


def test_tiers_of_a_stage_run_at_the_same_time(tmp_path: Path) -> None:
    """Each waits until the other has begun: one after the other, the first would never end well."""
    meeting = """
import pathlib, sys, time
mine, other = (pathlib.Path({folder!r}) / name for name in {names})
mine.touch()
ends = time.monotonic() + 30
while not other.exists():
    if time.monotonic() > ends:
        sys.exit(1)
    time.sleep(0.01)
"""
    there, back = (meeting.format(folder=str(tmp_path), names=names) for names in (("a", "b"), ("b", "a")))
    assert main([[_tier("there", there), _tier("back", back)]]) == 0


def test_what_tiers_that_run_side_by_side_say_is_not_mixed(capfd: pytest.CaptureFixture[str]) -> None:
    talk = "import sys, time\nfor i in range(5): print({name!r}, i, flush=True); time.sleep(0.02)"
    main([[_tier(name, talk.format(name=name)) for name in ("this", "that")]])
    said = [
        line.split()[0]
        for line in capfd.readouterr().out.splitlines()
        if line.split()[1:] in [[str(i)] for i in range(5)]
    ]
    assert said in (["this"] * 5 + ["that"] * 5, ["that"] * 5 + ["this"] * 5)


@pytest.mark.parametrize(("all_must_run", "code", "last"), [(False, 0, "All tiers"), (True, 1, "Failed: real")])
def test_what_a_machine_cannot_have_is_left_out_with_a_line(
    all_must_run: bool, code: int, last: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([[Tier("real", (_python("print('never')"),), needs=_unavailable)]], all_must_run=all_must_run) == code
    told = capfd.readouterr().out
    assert "left out: no Go toolchain here" in told
    assert "never" not in told
    assert told.splitlines()[-1].startswith(last)


def test_each_tier_is_told_with_the_number_of_its_tests(capfd: pytest.CaptureFixture[str]) -> None:
    pytest_ends = "print('2 failed, 1023 passed, 1 deselected in 37.63s (0:00:37)'); print('7 passed by hand')"
    main([[_tier("one", pytest_ends, "print('9 passed in 0.10s')")], [_tier("two", "pass")]])
    one, two, total, _ = capfd.readouterr().out.splitlines()[-4:]
    assert one.endswith("s  1,032 tests")
    assert two.endswith(" s")
    assert total.startswith("1,032 tests in ")


def _outcomes(told: str) -> list[list[str]]:
    return [line.split()[1:3] for line in told.partition("\nTiers:\n")[2].splitlines()[:-2]]


def test_a_run_that_was_stopped_goes_on_with_what_has_not_passed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file, mark = tmp_path / "build" / "tiers.json", tmp_path / "there"
    needs_mark = f"import pathlib, sys; sys.exit(not pathlib.Path({str(mark)!r}).exists())"
    stages = [[_tier("good", "pass"), _tier("bad", needs_mark)]]
    assert main(stages, progress=Progress(file, "a")) == 1
    assert _outcomes(capfd.readouterr().out) == [["good", "passed"], ["bad", "FAILED"]]
    mark.touch()
    assert main(stages, progress=Progress(file, "a")) == 0
    assert _outcomes(capfd.readouterr().out) == [["good", "before"], ["bad", "passed"]]
    assert main(stages, progress=Progress(file, "b")) == 0
    assert _outcomes(capfd.readouterr().out) == [["good", "passed"], ["bad", "passed"]]


def test_whatever_is_edited_is_another_state_of_the_sources(tmp_path: Path) -> None:
    assert state_of_the_sources(tmp_path) == ""
    assert not Progress(tmp_path / "none", "").passed
    git = ("git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.com")
    (tmp_path / "kept.py").write_text("a = 1\n")
    for command in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "-m", "one")):
        subprocess.run((*git, *command), check=True)
    seen = [state_of_the_sources(tmp_path)]
    (tmp_path / "kept.py").write_text("a = 2\n")
    seen.append(state_of_the_sources(tmp_path))
    (tmp_path / "new.py").write_text("b = 1\n")
    seen.append(state_of_the_sources(tmp_path))
    (tmp_path / "new.py").write_text("b = 2\n")
    seen.append(state_of_the_sources(tmp_path))
    assert len({*seen}) == len(seen)
    assert state_of_the_sources(tmp_path) == seen[-1]


def test_long_tests_that_have_passed_on_the_same_sources_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(
        "import pathlib, pytest\n"
        "@pytest.mark.parametrize('number', range(3))\n"
        "def test_some(number):\n"
        "    assert number != 1 or pathlib.Path(__file__).with_name('fixed').exists()\n"
    )
    file = tmp_path / "build" / "tests.txt"

    def run(state: str) -> tuple[int, str]:
        begin = f"import pathlib, tests.tiers.passed as passed; passed.begin(pathlib.Path({str(file)!r}), {state!r})"
        play = ("-m", "pytest", "-q", "-p", "tests.tiers.passed", "-n2", "-c", os.devnull, f"--rootdir={tmp_path}", ".")
        start = f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, *{play!r}]))"
        env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{python_path()}"}
        done = subprocess.run(
            _python(f"{begin}\n{start}"), capture_output=True, text=True, check=False, cwd=tmp_path, env=env
        )
        assert done.stdout, done.stderr
        return done.returncode, done.stdout.splitlines()[-1]

    assert run("a")[1].startswith("1 failed, 2 passed")
    (tmp_path / "fixed").touch()
    code, last = run("a")
    assert (code, last.split(" in ")[0]) == (0, "1 passed")
    assert run("a")[0] == 0
    assert run("b")[1].startswith("3 passed")


def _files(stages: Sequence[Sequence[Tier]], which: str) -> list[str]:
    """The files of tests on the real control plane that tiers name in runs of these tests (`-m`), as they name them."""
    return [
        argument
        for stage in stages
        for tier in stage
        for command in tier.commands
        if which in command
        for argument in command
        if argument.removeprefix("--ignore=").startswith("tests/cluster/test_")
    ]


def test_every_file_of_tests_on_the_real_control_plane_is_in_one_tier_of_e2e() -> None:
    """Those that are named in a tier are there, in one tier only; the last takes all others."""
    there = {f"tests/cluster/{path.name}" for path in CLUSTER_TESTS.glob("test_*.py")}
    all_ = _files(E2E, REAL)
    named = [file for file in all_ if not file.startswith("--ignore=")]
    assert len(named) == len(set(named))
    assert {f"--ignore={file}" for file in named} == {file for file in all_ if file.startswith("--ignore=")}
    assert {*named} < there


def test_every_file_of_long_tests_on_the_real_control_plane_is_in_one_tier_of_long() -> None:
    there = [
        f"tests/cluster/{path.name}"
        for path in sorted(CLUSTER_TESTS.glob("test_*.py"))
        if "mark.long" in path.read_text(encoding="utf-8")
    ]
    assert sorted(_files(LONG, REAL_AND_LONG)) == there


def test_make_test_has_a_part_of_e2e() -> None:
    assert 0 < len(_files(STAGES, REAL)) < len(_files(E2E, REAL))
    assert {*_files(STAGES, REAL)} < {*_files(E2E, REAL)}


def test_every_folder_of_long_tests_is_in_a_tier_of_long() -> None:
    arguments = {argument for stage in LONG for tier in stage for command in tier.commands for argument in command}
    tests = CLUSTER_TESTS.parent
    folders = {
        "/".join(("tests", path.relative_to(tests).parts[0]))
        for path in tests.rglob("test_*.py")
        if "mark.long" in path.read_text(encoding="utf-8") and path != Path(__file__)
    }
    assert folders - {"tests/cluster"} <= arguments
