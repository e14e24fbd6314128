"""Karpenter's own scheduler on whole worlds, one after the other: one process that answers a line with a line.

A world is a cluster as plain manifests with a catalogue (see `karpenter/world.go`). Karpenter walks maps on its way, so
one world can have several answers: each is scheduled a few times, and whoever compares picks.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import msgspec

from benchmarks.peers.karpenter import PROGRAM, PeerOutcome, PeerUnavailable, find_program

TIMES: Final = 3


class WorldRefused(Exception):
    """The peer cannot read or schedule a world; the message is its own."""


class _Verdict(msgspec.Struct, frozen=True):
    runs: tuple[PeerOutcome, ...] | None = None
    error: str = ""


class PeerSession:
    """The running program; a context manager. Raises PeerUnavailable when there is none or it breaks off."""

    def __init__(self, program: Path, times: int = TIMES) -> None:
        asked = [str(program), "--worlds", "--times", str(times)]
        self._process = subprocess.Popen(asked, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    @classmethod
    def start(cls, announce: Callable[[str], None] | None = None) -> PeerSession:
        """With the program as it is built here, built first if need be."""
        return cls(find_program() if announce is None else find_program(announce))

    def ask(self, world: Any) -> tuple[PeerOutcome, ...]:
        """What comes of the world's pods, each time. Raises WorldRefused."""
        sink, source = self._process.stdin, self._process.stdout
        assert sink is not None
        assert source is not None
        try:
            sink.write(msgspec.json.encode(world) + b"\n")
            sink.flush()
            answer = source.readline()
        except BrokenPipeError:
            answer = b""
        if not answer:
            raise PeerUnavailable(f"{PROGRAM} broke off with exit code {self._process.wait()}")
        try:
            said = msgspec.json.decode(answer, type=_Verdict)
        except msgspec.DecodeError as error:
            raise PeerUnavailable(f"the answer of {PROGRAM} is not as expected: {error!r}") from error
        if said.error or not said.runs:
            raise WorldRefused(said.error or "no answer")
        return said.runs

    def close(self) -> None:
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):  # what it ended without reading is still to be written
                self._process.stdin.close()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process.wait()

    def __enter__(self) -> PeerSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
