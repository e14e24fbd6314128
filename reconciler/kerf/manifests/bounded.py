"""Run another program with bounds on time, output and memory.

The files under test may come from a stranger, so a program that reads them may run for ever, print without end, or take
all memory. A program that exceeds a bound is killed together with all that it started.
"""

from __future__ import annotations

import os
import resource
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Final

SECONDS: Final = 60
_CHUNK: Final = 1 << 16
_MOST_ERRORS: Final = 1 << 16


class Exceeded(Exception):
    """A program exceeded a bound: the message names the program and the bound."""


class Missing(Exception):
    """The program is not installed."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """`most` bytes of output, seconds until the end, and bytes of address space; 0 is no limit of that."""

    most: int
    seconds: float = SECONDS
    memory: int = 0


@dataclass(frozen=True, slots=True)
class Done:
    """The exit code of a program, its output, and the first 64 KiB of its standard error."""

    code: int
    out: bytes
    err: bytes


def run(
    command: Sequence[str],
    folder: str,
    environment: Mapping[str, str],
    bounds: Bounds,
    *,
    given: bytes = b"",
    name: str = "",
) -> Done:
    """Run a program in `folder` and wait for its end.

    Args:
        given: standard input.
        name: the program in messages; by default the file of the command.

    Raises:
        Exceeded: the program took longer, or printed more, than its bounds allow.
        Missing: the program is not installed.
    """
    name = name or os.path.basename(command[0])
    process = _started(command, folder, environment, bounds, given, name)
    with process:
        try:
            out, err = _read(process, name, bounds)
            code = process.wait()
        finally:
            # Also after a good end: a child that the program left behind would keep a runner busy.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
    return Done(code, out, err)


def _started(
    command: Sequence[str], folder: str, environment: Mapping[str, str], bounds: Bounds, given: bytes, name: str
) -> subprocess.Popen[bytes]:
    with tempfile.TemporaryFile() as stdin:
        stdin.write(given)
        stdin.seek(0)
        try:
            return subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                preexec_fn=_limits(bounds),
            )
        except FileNotFoundError as error:
            raise Missing(f"{name} is not installed, or not on the PATH") from error


def _limits(bounds: Bounds) -> Callable[[], None]:
    def limit() -> None:
        limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_CPU: int(bounds.seconds) + 1}
        if bounds.memory:
            limits[resource.RLIMIT_AS] = bounds.memory
        for bound, value in limits.items():
            # macOS refuses a limit of the address space; the other bounds remain.
            with suppress(ValueError, OSError):
                resource.setrlimit(bound, (value, value))

    return limit


def _read(process: subprocess.Popen[bytes], name: str, bounds: Bounds) -> tuple[bytes, bytes]:
    ends = time.monotonic() + bounds.seconds
    read: dict[IO[bytes], bytearray] = {}
    with selectors.DefaultSelector() as selector:
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ)
                read[stream] = bytearray()
        out, err = read.values()
        while selector.get_map():
            left = ends - time.monotonic()
            if left <= 0:
                raise Exceeded(f"{name} took longer than {bounds.seconds:g} s")
            for key, _ in selector.select(left):
                chunk = os.read(key.fd, _CHUNK)
                stream = next(stream for stream in read if stream is key.fileobj)
                read[stream] += chunk
                if not chunk:
                    selector.unregister(stream)
            del err[_MOST_ERRORS:]
            if len(out) > bounds.most:
                raise Exceeded(f"{name} printed more than {bounds.most} bytes")
    return bytes(out), bytes(err)
