"""What the debug port answers, for who is called at night: status, stacks, a profile, the log level.

It listens on the loopback addresses alone (127.0.0.1 and ::1), and asks for a token, which only the controller's own
user can read. So `kubectl exec` leads there, and neither the cluster's network nor another process of a node whose
network the pod has. A web page in the browser of a user who forwards the port does not either: the Host must be a local
one, the page has no token, and a change is a PUT.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import TimeoutError as TooLate
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Final

import msgspec

from kerf.runtime.process import profiling
from kerf.runtime.process.health import JSON, TEXT, Answer, Asked, Server
from kerf.runtime.process.log_level import USUALLY, LogLevel
from kerf.runtime.process.profiling import Profiler
from kerf.runtime.secrets import debug_token
from kerf.runtime.status import Status
from kerf.sockets import loopback
from kerf_api import durations

_PROFILE_SECONDS: Final = 10.0
GZIP: Final = "application/gzip"
Query = Mapping[str, str]


class DebugServer(Server):
    """The debug port. Each request needs the token of the file, which this server writes unless one is `given`."""

    def __init__(self, port: int, asked: Mapping[Asked, Callable[[Query], Answer]], given: str = "") -> None:
        """Raises OSError (port taken, file not readable or writable), ValueError (no token in the file)."""
        token = debug_token.read(Path(given)) if given else debug_token.make()
        super().__init__(port, {}, loopback, asked=asked, local=True, token=token)
        self._file: Path | None = None
        if given:
            return
        try:
            self._file = debug_token.path(self.port)
            debug_token.write(self._file, token)
        except OSError:
            super().close()
            raise

    def close(self) -> None:
        super().close()
        if self._file is not None:
            with suppress(OSError):
                self._file.unlink()


def routes(
    status: Callable[[], Status], snapshot: Callable[[], bytes], log_level: LogLevel, turns: Callable[[], bytes]
) -> Mapping[Asked, Callable[[Query], Answer]]:
    """By method and path. `status` and `snapshot` (a file) raise TimeoutError when the loop does not answer."""
    return {
        ("GET", "/status"): lambda query: _of_loop(lambda: (200, JSON, msgspec.json.encode(status()) + b"\n")),
        ("GET", "/debug/snapshot"): lambda query: _of_loop(lambda: (200, GZIP, snapshot())),
        ("GET", "/debug/log-level"): lambda query: _said(log_level.level),
        ("PUT", "/debug/log-level"): lambda query: _change(log_level, query),
        **of_profiling(turns),
    }


def of_profiling(turns: Callable[[], bytes]) -> Mapping[Asked, Callable[[Query], Answer]]:
    """What says where time goes, and changes nothing: with ENABLE_PROFILING the port of the metrics has it too."""
    profiler = Profiler()
    return {
        ("GET", "/debug/threads"): lambda query: _said(profiling.threads()),
        ("GET", "/debug/profile"): lambda query: _profile(profiler, query),
        ("GET", "/debug/turns"): lambda query: (200, JSON, turns()),
    }


def _profile(profiler: Profiler, query: Query) -> Answer:
    """Of `seconds`, 10 by default."""
    try:
        seconds = float(query.get("seconds", _PROFILE_SECONDS))
        if not 0 < seconds <= profiling.LONGEST_SECONDS:
            raise ValueError
        return _said(profiler.profile(seconds))
    except ValueError:
        return _wrong(f"seconds: must be more than 0 and at most {profiling.LONGEST_SECONDS:g}")
    except profiling.Busy:
        return 409, TEXT, b"another profile is in progress\n"


def _of_loop(answer: Callable[[], Answer]) -> Answer:
    """A loop that does not answer is the answer: where it stands."""
    try:
        return answer()
    except TooLate:
        return (
            503,
            TEXT,
            f"the loop does not answer; these are the stacks of the threads\n\n{profiling.threads()}".encode(),
        )


def _change(log_level: LogLevel, query: Query) -> Answer:
    span = durations.parse_go(query["for"]) if "for" in query else USUALLY
    try:
        log_level.change(query.get("level", ""), span or timedelta(0))
    except ValueError as error:
        return _wrong(str(error))
    return _said(f"{log_level.level}, for {durations.go_text(span or USUALLY)}")


def _said(text: str) -> Answer:
    return 200, TEXT, f"{text.rstrip()}\n".encode()


def _wrong(text: str) -> Answer:
    return 400, TEXT, f"{text}\n".encode()
