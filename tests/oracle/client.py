"""The running oracle: one process that answers each request in turn.

    with Oracle.started() as oracle:
        answer = oracle.ask({"nodes": [...], "pods": [...]}, verdicts=[("default/web", ALL_NODES)])

Objects are Kubernetes JSON, by kind: nodes, pods, namespaces, persistentVolumes, persistentVolumeClaims,
storageClasses, csiNodes, csiDrivers, resourceClaims, resourceClaimTemplates, resourceSlices, deviceClasses and the
others in the type `world` of the program. The program adds the fields that the API server and its controllers set:
defaults, UIDs, the claims of templates. A pod with `spec.nodeName` is bound; a request names only pods without it, as
"namespace/name".
"""

from __future__ import annotations

import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final

import msgspec

from tests.oracle.binaries import NEWEST, find_oracle

ALL_NODES: Final = "*"
#: Seconds for one answer. Small worlds take less than a millisecond.
PATIENCE: Final = 60.0

#: One core for one oracle. Small worlds are garbage at once, so fewer collections save time.
_ENVIRONMENT: Final = {"GOMAXPROCS": "1", "GOGC": "400"}
_CHUNK: Final = 1 << 20


class OracleFailed(Exception):
    """The oracle gave no answer: it died, or took too long."""


class WorldRefused(Exception):
    """The oracle cannot read a world or the questions about it; the message is its own."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a pod can run on a node; if not, the plugin that refuses it and its message."""

    pod: str
    node: str
    fits: bool
    plugin: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The plugin that refuses a node, and its message."""

    plugin: str
    message: str


@dataclass(frozen=True, slots=True)
class Binding:
    """The node that a pod of the queue is bound to; if there is none `node` is empty, and `refusals` has each node."""

    pod: str
    node: str
    refusals: Mapping[str, Refusal] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one request, in the order of its questions; a verdict on all nodes is one for each, by name."""

    id: int | None
    version: str
    verdicts: tuple[Verdict, ...] = ()
    queue: tuple[Binding, ...] = ()
    profile: tuple[str, ...] = ()
    error: str = ""


class Oracle:
    """The program; a context manager. A process that died is started again by the next request."""

    def __init__(self, program: Path, patience: float = PATIENCE) -> None:
        self._program = program
        self._patience = patience
        self._ids = count(1)
        self._errors: IO[bytes] = tempfile.TemporaryFile("a+b")  # noqa: SIM115
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""

    @classmethod
    def started(
        cls, version: str = NEWEST, *, patience: float = PATIENCE, announce: Callable[[str], None] = print
    ) -> Oracle:
        """The oracle of a Kubernetes version, such as "1.36", built first if need be. Raises OracleUnavailable."""
        return cls(find_oracle(version, announce), patience)

    def ask(
        self,
        world: Mapping[str, Sequence[Any]],
        *,
        verdicts: Sequence[tuple[str, str]] = (),
        queue: Sequence[str] = (),
        bind: Mapping[str, str] | None = None,
    ) -> Answer:
        """Judge pods of a world, each alone, then bind those of the queue in turn.

        Args:
            world: objects by kind.
            verdicts: pods and nodes; `ALL_NODES` for all.
            queue: pods, bound to the first node by name that no plugin refuses.
            bind: the node for a pod of the queue; if a plugin refuses that node, the pod stays unbound.

        Raises:
            WorldRefused: the world or a question cannot be read.
            OracleFailed: no answer in time, or the process died twice over this request.
        """
        asked = {"id": next(self._ids), "world": world, "verdicts": verdicts, "queue": queue, "bind": bind or {}}
        return self.ask_line(msgspec.json.encode(asked))

    def profile(self) -> tuple[str, ...]:
        """The plugins of the default profile that can refuse a pod or a node, by name."""
        return self.ask_line(b'{"profile": true}').profile

    def ask_line(self, line: bytes) -> Answer:
        """Put one line to the program as it is."""
        content = self._exchange(line) or self._exchange(line)
        if content is None:
            raise OracleFailed(f"the oracle died twice over one request: {self._last_words()}")
        try:
            answer = msgspec.json.decode(content, type=Answer)
        except msgspec.DecodeError as error:
            self.close()
            raise OracleFailed(f"the answer of the oracle is not as expected: {error}") from error
        if answer.error:
            raise WorldRefused(answer.error)
        return answer

    @property
    def pid(self) -> int | None:
        """The running process."""
        return self._process.pid if self._process else None

    def close(self) -> None:
        """End the process."""
        process, self._process, self._rest = self._process, None, b""
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        process.wait()

    def __enter__(self) -> Oracle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        self._errors.close()

    def _exchange(self, line: bytes) -> bytes | None:
        """One answer; None if the process died instead."""
        process = self._process or self._start()
        assert process.stdin is not None
        try:
            process.stdin.write(line + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            self.close()
            return None
        found = self._line(process)
        if found is None:
            self.close()
        return found

    def _start(self) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            [str(self._program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **_ENVIRONMENT},
        )
        return self._process

    def _line(self, process: subprocess.Popen[bytes]) -> bytes | None:
        assert process.stdout is not None
        deadline, parts = time.monotonic() + self._patience, [self._rest]
        with selectors.DefaultSelector() as waiting:
            waiting.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in parts[-1]:
                if not waiting.select(max(0.0, deadline - time.monotonic())):
                    self.close()
                    raise OracleFailed(f"the oracle gave no answer within {self._patience:g} s")
                read = os.read(process.stdout.fileno(), _CHUNK)
                if not read:
                    return None
                parts.append(read)
        line, _, self._rest = b"".join(parts).partition(b"\n")
        return line

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        # The first line of a panic says why; the stack follows.
        return next(
            (line for line in reversed(lines) if line.startswith(("panic:", "fatal error:"))), (lines or [""])[-1]
        )
