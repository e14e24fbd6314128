"""Every verb in terminals of all sorts: what it writes fits, and ends without a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import cache

import pytest

from kerf.cli import terminal
from kerf.cli.app import verbs
from tests.sources import ROOT, python_path
from tests.unit.cli import terminals

EXAMPLE = "manifests/examples/general-purpose.yaml"
SNAPSHOT = "tests/unit/snapshots/versions/1.snapshot"
RECORD = "tests/unit/records/versions/1.record"
#: By verb: words with an output of its own, where no cluster, controller or account is there, and the exit code.
CALLS: dict[str, tuple[Sequence[str], int]] = {
    "run": (["--help"], 0),
    "webhook": (["--help"], 0),
    "why": (["pod", "a/b", "-f", EXAMPLE], 1),
    "snapshot": (["-o", "/nowhere/file", "-f", EXAMPLE], 1),
    "plan": (["--snapshot", SNAPSHOT, "--horizon", "1m"], 0),
    "bundle": (["-o", "/nowhere/file", "--url", "http://127.0.0.1:9"], 2),
    "simulate": (["manifests/simulate/gpu-scarcity.yaml", "--chart"], 0),
    "replay": ([RECORD, "--list"], 0),
    "events": (["nod/x"], 2),
    "preflight": (["--cluster-name", "a"], 2),
    "settings": (["--cluster-name", "a"], 0),
    "status": (["--url", "http://127.0.0.1:9"], 2),
    "top": (["--snapshot", "/nowhere/file"], 2),
    "ui": (["--snapshot", "/nowhere/file"], 2),
    "ui-server": (["--bind", "0.0.0.0:8445"], 2),
    "debug": (["threads", "--url", "http://127.0.0.1:9"], 2),
    "migrate": (["check", "-f", EXAMPLE], 0),
    "release": ([], 1),
    "demo": ([], 0),
    "catalogue": (["--names"], 0),
    "validate": ([EXAMPLE], 0),
    "explain": (["KERF-NP-301"], 0),
    "default": ([EXAMPLE], 0),
    "convert": ([EXAMPLE], 0),
    "schema": (["NodePool"], 0),
}
#: Verbs that print YAML, JSON or names, which keep their lines.
DATA = {"default", "convert", "schema", "catalogue"}
COLUMNS = 60


def test_every_verb_is_tried() -> None:
    assert {*CALLS} == {*verbs()}


def _too_wide(text: str) -> list[str]:
    """Lines with a place to break that are wider than the terminal."""
    wide = [line for line in text.splitlines() if len(line) > COLUMNS]
    return [line for line in wide if " " in line.strip() and len(line.split()[-1]) < COLUMNS - 30]


@cache
def _plain(verb: str, columns: int) -> terminals.Shown:
    return terminals.run(verb, *CALLS[verb][0], columns=columns, rows=20, TERM="dumb")


@pytest.mark.parametrize("verb", CALLS)
def test_a_narrow_terminal_without_escape_sequences(verb: str) -> None:
    done = _plain(verb, COLUMNS)
    assert done.code == CALLS[verb][1], done.text
    assert "\x1b" not in done.text
    assert "Traceback" not in done.text
    assert verb in DATA or _too_wide(done.text) == []


@pytest.mark.parametrize("environment", [{}, {"TERM": "xterm", "NO_COLOR": "1"}], ids=str)
@pytest.mark.parametrize("verb", ["why", "plan", "simulate", "status", "validate"])
def test_a_terminal_without_a_name_or_colours_gets_what_a_dumb_one_gets(verb: str, environment: dict[str, str]) -> None:
    done = terminals.run(verb, *CALLS[verb][0], columns=COLUMNS, rows=20, **environment)
    assert (done.code, "\x1b" in done.text) == (CALLS[verb][1], False)
    assert [len(line) for line in done.text.splitlines()] == [
        len(line) for line in _plain(verb, COLUMNS).text.splitlines()
    ]


@pytest.mark.parametrize("verb", CALLS)
def test_helps_fit_a_narrow_terminal(verb: str) -> None:
    done = terminals.run(verb, "-h", columns=COLUMNS, rows=20, TERM="xterm")
    assert (done.code, _too_wide(done.text), "\x1b" in done.text) == (0, [], False)


def _in_a_shell(line: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": python_path(), "HOME": "/nonexistent"}
    env["kerf"] = f"{sys.executable} -m kerf.cli.main"
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, env=env, cwd=ROOT)


@pytest.mark.parametrize("verb", [pytest.param(v, marks=pytest.mark.long) if v == "demo" else v for v in CALLS])
def test_a_reader_that_stops_changes_no_exit_code(verb: str) -> None:
    words, code = CALLS[verb]
    done = _in_a_shell(f"$kerf {verb} {' '.join(words)} | true; exit ${{PIPESTATUS[0]}}")
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert "Broken pipe" not in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize(
    "verb",
    [
        verb
        for verb in CALLS
        if verb not in ("preflight", "release", "debug", "events", "snapshot", "bundle", "ui", "ui-server", "top")
    ],
)
def test_a_full_disk_ends_with_2_and_one_line(verb: str) -> None:
    done = _in_a_shell(f"$kerf {verb} {' '.join(CALLS[verb][0])} > /dev/full")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert verb == "status" or "the output cannot be written: No space left on device" in done.stderr


def _heed_signals() -> None:
    """A background job of a shell, and what `nohup` starts, ignore these signals, and so would the process."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGHUP, -signal.SIGHUP), (signal.SIGINT, 130)])
@pytest.mark.parametrize("words", [("validate", "-"), ("demo",)])
def test_a_closed_terminal_and_an_interrupt_end_it_without_a_traceback(
    words: Sequence[str], number: signal.Signals, code: int
) -> None:
    command = [sys.executable, "-m", "kerf.cli.main", *words]
    env = {**os.environ, "PYTHONPATH": python_path(), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=env,
        preexec_fn=_heed_signals,
    ) as process:
        _until_it_works(process, words)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert b"Traceback" not in err


def _until_it_works(process: subprocess.Popen[bytes], words: Sequence[str]) -> None:
    """The demo has printed its first line; the linter has opened standard input and waits for it."""
    if words[0] == "demo":
        assert process.stdout is not None
        process.stdout.readline()
        return
    while "pipe_read" not in (found := _waits_in(process.pid)) and "anon_pipe" not in found:
        time.sleep(0.05)


def _waits_in(pid: int) -> str:
    with open(f"/proc/{pid}/wchan", encoding="ascii") as file:
        return file.read()


@pytest.mark.parametrize(
    ("program", "columns", "rows"),
    [
        (terminals.SHORT_DEMO, COLUMNS, 20),
        pytest.param(terminals.KERF, COLUMNS, 20, marks=pytest.mark.long),
        pytest.param(terminals.KERF, 80, 24, marks=pytest.mark.long),
    ],
    ids=["short", "narrow", "usual"],
)
def test_the_live_demo_keeps_each_line_of_its_story(program: Sequence[str], columns: int, rows: int) -> None:
    live = terminals.run("demo", "--speed", "1000", columns=columns, rows=rows, program=program, TERM="xterm")
    plain = terminals.run("demo", columns=columns, rows=rows, program=program, TERM="dumb")
    kept = terminals.lines(live.text, columns, rows)
    story = [line for line in plain.text.split("\nSummary\n")[0].splitlines() if line.strip()]
    positions = [kept.index(line.rstrip()) for line in story]
    assert len(story) > 20
    assert positions == sorted(positions)
    assert sum(" pods running " in line for line in kept) == 1


def test_text_keeps_its_cells_below_each_other() -> None:
    row = "ab  cd    one two three four five six seven eight nine ten"
    assert (
        terminal.fitted(row, 30) == "ab  cd    one two three four\n          five six seven eight\n          nine ten"
    )
    assert terminal.fitted(row, 0) == row
    assert terminal.fitted("x" * 70, 30) == "x" * 70


def test_full_lines_of_prose_go_on_in_the_next_one() -> None:
    full = " ".join(["word"] * 22)
    text = f"{full}\nthe end.\n\n  --flag  about it\n"
    fitted = terminal.fitted(text, 60, prose=True)
    assert "word the end.\n\n  --flag  about it\n" in fitted
    assert all(len(line) <= 60 for line in fitted.splitlines())
