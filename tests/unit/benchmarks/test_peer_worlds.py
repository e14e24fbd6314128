"""The conversation with the peer about whole worlds: a line, an answer; and what is said when it breaks off."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.peers.karpenter import PeerUnavailable
from benchmarks.peers.worlds import PeerSession, WorldRefused

RUN = (
    '{"seconds":0.1,"cpu_seconds":0.1,"parse_seconds":0,"nodes":0,"unplaced":1,"cost_usd_per_hour":0,'
    '"peak_mib":9,"timed_out":false,"errors":{"a":"no room"}}'
)


def program(folder: Path, *answers: str) -> Path:
    """One that reads a line for each of its answers."""
    made = folder / "peer"
    lines = "".join(f"read line\necho '{answer}'\n" for answer in answers)
    made.write_text(f"#!/bin/sh\n{lines}")
    made.chmod(0o755)
    return made


def test_each_world_is_answered_as_often_as_it_was_scheduled(tmp_path: Path) -> None:
    with PeerSession(program(tmp_path, f'{{"runs":[{RUN},{RUN}]}}', f'{{"runs":[{RUN}]}}')) as session:
        assert [run.errors for run in session.ask({"pods": []})] == [{"a": "no room"}] * 2
        assert len(session.ask({"pods": []})) == 1


def test_a_world_that_it_cannot_schedule_is_told_in_its_words(tmp_path: Path) -> None:
    with (
        PeerSession(program(tmp_path, '{"runs":null,"error":"no such field"}')) as session,
        pytest.raises(WorldRefused, match=r"^no such field$"),
    ):
        session.ask({})


def test_when_it_breaks_off_its_exit_code_is_told(tmp_path: Path) -> None:
    with (
        PeerSession(program(tmp_path)) as session,
        pytest.raises(PeerUnavailable, match=r"broke off with exit code 0$"),
    ):
        session.ask({})


def test_what_is_no_answer_is_said(tmp_path: Path) -> None:
    with PeerSession(program(tmp_path, "panic")) as session, pytest.raises(PeerUnavailable, match="is not as expected"):
        session.ask({})
