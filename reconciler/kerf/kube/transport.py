"""HTTP to the API server: the official client's configuration and pool, one request at a time, each with a time-out.

What had no effect is made again: once, when it was refused for its credentials, after those are read again (a token
file may have been rotated); and for a patient caller when the server was too busy. Nothing else is.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlencode

import msgspec
import urllib3
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject

from kerf.kube.errors import translate
from kerf.ports import Throttled, Unavailable

CONNECT_SECONDS, READ_SECONDS = 5.0, 30.0
CONNECTIONS = 64
#: A patient caller waits no longer at a time, whatever the server asks for.
LONGEST_WAIT_SECONDS = 5.0
#: Code, agent and text, as RFC 7234 has them; several may be in one header.
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Raises Unavailable with one line for a configuration that is not there or makes no sense."""
    try:
        yield
    except Exception as error:  # the library raises its own, YAML's and the system's
        raise Unavailable(f"{what}: {' '.join(str(error).split())}") from error


class Limiter:
    """At most `qps` requests a second, `burst` at once; `wait` blocks the caller as long as it takes."""

    def __init__(self, qps: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._qps, self._burst, self._clock = qps, burst, clock
        self._tokens, self._at = float(burst), clock()
        self._lock = threading.Lock()

    def reserve(self) -> float:
        """Take a turn; for how many seconds to wait before using it."""
        with self._lock:
            self._refill()
            self._tokens -= 1
            return max(-self._tokens / self._qps, 0.0)

    def take(self) -> float:
        """Take a turn if there is one now, and return 0; else return the seconds until there is one."""
        with self._lock:
            self._refill()
            if self._tokens < 1:
                return (1 - self._tokens) / self._qps
            self._tokens -= 1
            return 0.0

    def _refill(self) -> None:
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._qps)
        self._at = now

    def wait(self) -> float:
        """The seconds that it took."""
        if seconds := self.reserve():
            time.sleep(seconds)
        return seconds


class Watched(Protocol):
    """The receiver of each request; any thread may call it."""

    def answered(self, method: str, path: str, query: Mapping[str, str], status: int, seconds: float) -> None:
        """It was sent, and an answer began (status 0: none did)."""

    def held(self, seconds: float) -> None:
        """It waited for others of ours before it was sent."""


class Unwatched:
    """Discard it."""

    def answered(self, method: str, path: str, query: Mapping[str, str], status: int, seconds: float) -> None:
        """Nothing."""

    def held(self, seconds: float) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True)
class Sending:
    """How requests are sent: as whom, how many a second, and how many at once after a pause.

    A request that the server is too busy for is sent again, `patience` times at most: for callers who have no next
    look. The configuration is read again at most every `reload_every_seconds`.
    """

    user_agent: str = "karpenter/kerf"
    qps: float = 200.0
    burst: int = 300
    patience: int = 0
    reload_every_seconds: float = 5.0


class Transport:
    """See the module. `load` reads the configuration again.

    `on_warning` gets the warnings of the server beside an answer: fields that it does not know, versions that go;
    `watched` of each request.
    """

    def __init__(
        self,
        load: Callable[[], Configuration],
        sending: Sending,
        *,
        on_warning: Callable[[str], None] = lambda text: None,
        watched: Watched | None = None,
    ) -> None:
        self._load, self._sending = load, sending
        self._on_warning, self._watched = on_warning, watched or Unwatched()
        self._limiter = Limiter(sending.qps, sending.burst)
        self._lock = threading.Lock()
        self._reload()

    @property
    def configuration(self) -> Configuration:
        return self._configuration

    def _reload(self) -> None:
        configuration = self._load()
        configuration.connection_pool_maxsize = CONNECTIONS
        self._configuration = configuration
        self._pool = RESTClientObject(configuration).pool_manager
        self._loaded_at = time.monotonic()

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        *,
        content_type: str = "application/json",
        read_seconds: float = READ_SECONDS,
    ) -> bytes:
        """The answer's body. Raises PortError for every answer of 400 or above, and when there is none."""
        for _ in range(self._sending.patience):
            try:
                return self._request(method, path, query, body, content_type, read_seconds)
            except Throttled as busy:
                time.sleep(min(busy.retry_after_seconds or 1.0, LONGEST_WAIT_SECONDS))
        return self._request(method, path, query, body, content_type, read_seconds)

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Any,
        content_type: str,
        read_seconds: float,
    ) -> bytes:
        with self.open(method, path, query, body, content_type=content_type, read_seconds=read_seconds) as answer:
            try:
                return answer.data
            except urllib3.exceptions.HTTPError as error:
                raise Unavailable(f"{method} {path}: {error}") from error

    def open(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        *,
        content_type: str = "application/json",
        read_seconds: float = READ_SECONDS,
    ) -> urllib3.BaseHTTPResponse:
        """An answer below 400 whose body is still to be read. `read_seconds` is the longest silence on the line."""
        if waited := self._limiter.wait():
            self._watched.held(waited)
        url = path + ("?" + urlencode(query) if query else "")
        raw = None if body is None else msgspec.json.encode(body, enc_hook=_as_dict)
        pool = self._pool
        began = time.perf_counter()
        status = 0
        try:
            answer = self._send(method, url, raw, content_type, read_seconds)
            if answer.status == 401 and self._renewed(pool):
                answer.drain_conn()
                answer = self._send(method, url, raw, content_type, read_seconds)
            status = answer.status
        finally:
            self._watched.answered(method, path, query or {}, status, time.perf_counter() - began)
        for value in answer.headers.getlist("Warning"):
            for text in _WARNING.findall(value):
                self._on_warning(re.sub(r"\\(.)", r"\1", text))
        if answer.status < 400:
            return answer
        with answer:
            raise translate(f"{method} {path}", answer.status, _body(answer), dict(answer.headers))

    def _send(
        self, method: str, url: str, body: bytes | None, content_type: str, read_seconds: float
    ) -> urllib3.BaseHTTPResponse:
        configuration = self._configuration
        headers = {"Accept": "application/json", "User-Agent": self._sending.user_agent}
        if body is not None:
            headers["Content-Type"] = content_type
        with readable("the credentials"):  # a token file is read again every minute
            token = configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        if token:
            headers["Authorization"] = token
        timeout = urllib3.Timeout(connect=min(CONNECT_SECONDS, read_seconds), read=read_seconds)
        try:
            return self._pool.request(
                method,
                configuration.host + url,
                body=body,
                headers=headers,
                timeout=timeout,
                retries=False,
                preload_content=False,
            )
        except urllib3.exceptions.HTTPError as error:
            raise Unavailable(f"{method} {url.partition('?')[0]}: {error}") from error

    def _renewed(self, pool: object) -> bool:
        """Read the credentials again, unless another thread just did; whether that is worth another try."""
        with self._lock:
            if self._pool is not pool:
                return True
            if time.monotonic() - self._loaded_at < self._sending.reload_every_seconds:
                return False
            self._reload()
            return True


def _body(refusal: urllib3.BaseHTTPResponse) -> bytes:
    """What a refusal says of itself; nothing when the server dies over it. It is a refusal all the same."""
    try:
        return refusal.data
    except urllib3.exceptions.HTTPError:
        return b""


def _as_dict(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise NotImplementedError(f"{type(value).__name__} is not JSON")
