"""A controller in the sandbox with a debug port, for tests of the port and of the commands that ask it."""

from __future__ import annotations

import http.client
import io
from concurrent.futures import TimeoutError as TooLate
from typing import Self

from typer.testing import CliRunner

from kerf.cli.app import app
from kerf.decide import decide
from kerf.runtime import status
from kerf.runtime.observe.looking import captured
from kerf.runtime.process import debugging
from kerf.runtime.process.health import Server
from kerf.runtime.process.log_level import LogLevel
from kerf.runtime.status import Replica, Status
from kerf.sandbox.world import World
from kerf.snapshots.files import compressed
from kerf.snapshots.writing import lines
from kerf.sockets import loopback
from kerf.telemetry.log.logs import Threshold, make_logger
from tests.unit.runtime.loops import controller

REPLICA = Replica("pod-1_uuid", "0.1.0", "490ef94", "info", True, "kerf/karpenter-leader-election", "pod-1_uuid", ())


class Night:
    """A controller in the sandbox, and its debug port."""

    def __init__(self) -> None:
        self.world, self.stream, self.threshold = World(), io.StringIO(), Threshold()
        self.loop = controller(self.world, decide)
        self.log_level = LogLevel(self.threshold, make_logger(self.threshold, self.stream))
        self.replica, self.late = REPLICA, False
        asked = debugging.routes(self.status, self.snapshot, self.log_level, self.loop.telemetry.turns.as_json)
        self.server = Server(0, {}, loopback, asked=asked, local=True)
        self.url = f"http://127.0.0.1:{self.server.port}"

    def snapshot(self) -> bytes:
        return compressed(lines(captured(self.loop.state, self.world.clock.now()), b"key"))

    def status(self) -> Status:
        if self.late:
            raise TooLate
        return status.of(self.replica, self.loop.status())

    def close(self) -> None:
        self.log_level.close()
        self.server.close()

    def ask(self, method: str, path: str, **headers: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=10)
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        found = answer.status, answer.read().decode()
        connection.close()
        return found

    def kerf(self, *arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, [*arguments, "--url", self.url])
        return result.exit_code, result.output

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
