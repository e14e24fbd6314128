"""Starting, watching and ending the control plane's programs.

Each program writes to a log file of its own. All of them share one process group with a tiny shell, the *reaper*, that
does nothing but wait for the test run to end: if that is killed outright, the reaper still ends the whole group and
removes the temporary folder, so that no forgotten API server keeps a developer's machine warm.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

READY_SECONDS: Final = 60.0
STOP_SECONDS: Final = 3.0  # an API server with open watches would take a minute
POLL_SECONDS: Final = 0.05
LOG_TAIL_LINES: Final = 15

# Below the range from which Linux hands out ports to outgoing connections: a component that restarts must find its
# port still free.
PORTS: Final = range(20_000, 30_000)
_claims: Final[list[socket.socket]] = []

REAPER: Final = 'cat >/dev/null; trap "" TERM; kill -TERM 0; sleep 1; rm -rf "$1"; kill -KILL 0'


class ComponentFailed(RuntimeError):
    """A program of the control plane died or never became ready; the message ends with the end of its log."""


class Component:
    """One program: how to start it, where its log is, and how to ask it whether it is ready."""

    def __init__(
        self, name: str, command: Sequence[str], log: Path, environment: Mapping[str, str], ready: Callable[[], bool]
    ) -> None:
        self.name: Final = name
        self.log: Final = log
        self._command = list(command)
        self._environment = dict(environment)
        self._ready = ready
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process id while it runs, else None."""
        running = self._process is not None and self._process.poll() is None
        return self._process.pid if self._process is not None and running else None

    def start(self, process_group: int) -> None:
        """Start the program in that process group, appending to its log."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment,
                process_group=process_group,
            )

    def wait_ready(self) -> None:
        """Return as soon as it is ready; raise ComponentFailed if it dies or takes too long."""
        wait_until(self._ready_while_alive, lambda: f"{self.name} was not ready\n{self.log_tail()}")

    def check(self) -> None:
        """Raise ComponentFailed if it is no longer running."""
        if self.pid is None:
            code = "no" if self._process is None else self._process.returncode
            raise ComponentFailed(f"{self.name} ended with exit code {code}\n{self.log_tail()}")

    def stop(self) -> None:
        """Ask it to end, insist after a while, and return once it is gone."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def kill(self) -> None:
        """End it as a machine does that loses its power; return once it is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def forget(self) -> None:
        """Collect the exit code of a program that something else has killed."""
        if self._process is not None:
            self._process.wait()

    def log_tail(self) -> str:
        """The last lines of its log, under the log's path."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n  ".join([f"{self.log}:", *lines[-LOG_TAIL_LINES:]])

    def _ready_while_alive(self) -> bool:
        self.check()
        return self._ready()


class ProcessGroup:
    """The process group of one control plane, and the temporary folder that dies with it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._reaper = subprocess.Popen(
            ["/bin/sh", "-c", REAPER, "reaper", str(folder)],
            stdin=subprocess.PIPE,  # closes when this process ends, however it ends
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )

    @property
    def id(self) -> int:
        """The process group's id."""
        return self._reaper.pid

    def end(self) -> None:
        """Kill everything in the group at once (nothing in it has anything worth saving) and remove the folder."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._reaper.pid, signal.SIGKILL)
        self._reaper.wait()
        if self._reaper.stdin is not None:
            self._reaper.stdin.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def wait_until(done: Callable[[], bool], complaint: Callable[[], str], seconds: float = READY_SECONDS) -> None:
    """Poll until `done`; after that many seconds raise ComponentFailed with the complaint."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise ComponentFailed(f"after {seconds:.0f} s: {complaint()}")
        time.sleep(POLL_SECONDS)


def free_ports(count: int) -> list[int]:
    """Distinct loopback TCP ports that nobody listens on, and that no other run of tests here is given meanwhile."""
    found: list[int] = []
    for port in random.sample(PORTS, len(PORTS)):
        if len(found) == count:
            break
        if _is_free(port) and _is_claimed(port):
            found.append(port)
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _is_claimed(port: int) -> bool:
    """Claim the number for this process until it ends: its UDP port, which nothing here listens on, is the claim.

    Seconds pass between the choice of a port and its program's listening on it. Test runs beside each other that only
    looked for a listener were given the same port now and then.
    """
    claim = socket.socket(type=socket.SOCK_DGRAM)
    try:
        claim.bind(("127.0.0.1", port))
    except OSError:
        claim.close()
        return False
    _claims.append(claim)
    return True
