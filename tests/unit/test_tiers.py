"""How `make test` runs its tiers: one stage after the other, the tiers of a stage side by side, all of them told."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.aws_calls import record as aws_calls
from tests.aws_calls.ledger import Account
from tests.cluster.binaries import ControlPlaneUnavailable
from tests.tiers import STAGES, Tier, main

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
    assert [line.split()[:2] for line in told.splitlines()[-4:-1]] == [[n, "passed"] for n in ("one", "two", "three")]
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


def test_every_file_of_tests_on_the_real_control_plane_is_in_one_tier() -> None:
    """Those that are named in a tier are there, in one tier only; the last takes all others."""
    files = {f"tests/cluster/{path.name}" for path in CLUSTER_TESTS.glob("test_*.py")}
    named = [
        argument
        for stage in STAGES
        for tier in stage
        for command in tier.commands
        for argument in command
        if argument.startswith("tests/cluster/test_")
    ]
    ignored = {
        argument.removeprefix("--ignore=")
        for stage in STAGES
        for tier in stage
        for command in tier.commands
        for argument in command
        if argument.startswith("--ignore=")
    }
    assert len(named) == len(set(named))
    assert set(named) == ignored
    assert ignored < files
