"""The client of the oracle: worlds that cannot be read, and a process that dies or stops."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.cluster.binaries import kubernetes_version
from tests.oracle.binaries import OracleUnavailable, find_oracle
from tests.oracle.client import Oracle, OracleFailed, WorldRefused
from tests.oracle.objects import node, pod

WORLD = {"nodes": [node("n1")], "pods": [pod("web")]}
VERDICTS = [("default/web", "n1")]


def test_the_plugins_are_those_of_the_control_plane(oracle: Oracle) -> None:
    assert oracle.ask(WORLD).version == kubernetes_version()


def test_a_line_that_cannot_be_read_is_refused_and_the_next_is_answered(oracle: Oracle) -> None:
    with pytest.raises(WorldRefused, match="unexpected end of JSON input"):
        oracle.ask_line(b'{"id": 7, "world": {')
    assert oracle.ask(WORLD, verdicts=VERDICTS).verdicts[0].fits


@pytest.mark.parametrize(
    ("world", "asked", "message"),
    [
        ({"nodes": [node("n1", allocatable={"cpu": "four"})]}, [], "quantities must match"),
        ({"nodes": [node("n1"), node("n1")]}, [], "node n1 is in the world twice"),
        ({"nodes": [node("n1")], "pods": [pod("web"), pod("web")]}, [], "pod default/web is in the world twice"),
        ({"nodes": [None]}, [], "is null"),
        (WORLD, [("default/other", "n1")], "no pod default/other without a node in the world"),
        (WORLD, [("default/web", "n2")], "no node n2 in the world"),
    ],
)
def test_a_world_or_question_that_makes_no_sense_is_refused(
    world: dict[str, list[object]], asked: list[tuple[str, str]], message: str, oracle: Oracle
) -> None:
    with pytest.raises(WorldRefused, match=message):
        oracle.ask(world, verdicts=asked)


def program(folder: Path, script: str) -> Path:
    path = folder / "oracle"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_a_process_that_was_killed_is_started_again(oracle: Oracle) -> None:
    assert oracle.pid is not None
    os.kill(oracle.pid, signal.SIGKILL)
    assert oracle.ask(WORLD, verdicts=VERDICTS).verdicts[0].fits


def test_a_process_that_dies_over_a_request_says_why(tmp_path: Path) -> None:
    broken = program(tmp_path, "read line; echo 'panic: no such plugin' >&2; echo 'goroutine 1' >&2; exit 2")
    with (
        Oracle(broken) as one,
        pytest.raises(OracleFailed, match=r"died twice over one request: panic: no such plugin$"),
    ):
        one.ask(WORLD)


def test_a_process_that_does_not_answer_is_not_waited_for(tmp_path: Path) -> None:
    with Oracle(program(tmp_path, "exec sleep 60"), patience=0.2) as one:
        with pytest.raises(OracleFailed, match=r"no answer within 0\.2 s"):
            one.ask(WORLD)
        assert one.pid is None


def test_an_answer_of_another_form_is_an_error(tmp_path: Path) -> None:
    with (
        Oracle(program(tmp_path, "read line; echo '[]'")) as one,
        pytest.raises(OracleFailed, match="is not as expected"),
    ):
        one.ask(WORLD)


def test_an_oracle_that_cannot_be_built_says_why(tmp_path: Path) -> None:
    with pytest.raises(OracleUnavailable, match=r"^no Go toolchain to build the oracle with$"):
        find_oracle(environment={}, cache=tmp_path)
    with pytest.raises(OracleUnavailable, match=r"^no oracle for Kubernetes 1\.2: the versions are "):
        find_oracle("1.2", cache=tmp_path)
    broken = program(tmp_path, "echo no such module >&2; exit 1").rename(tmp_path / "go")
    with pytest.raises(OracleUnavailable, match=r"^go build of the oracle failed: no such module$"):
        find_oracle(announce=lambda _: None, environment={"PATH": str(broken.parent)}, cache=tmp_path / "cache")
