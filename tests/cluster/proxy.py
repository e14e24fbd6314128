"""A proxy on loopback between the controller and its two servers, the API server and AWS, where a test can do harm.

    with Proxy(kube=cluster.server, ca_file=cluster.ca_file, aws=aws.endpoint_url) as proxy:
        proxy.rule = lambda request: Answer(429, headers={"Retry-After": "1"}) if request.is_watch else PASS

The controller speaks plain HTTP to `proxy.kube_url` and `proxy.aws_url`; credentials are passed on as they are, and the
API server is reached over TLS. Each request is put before the rule, one at a time and in order of arrival, and the
rule says what becomes of it: it passes, waits, is answered without its server, is lost before or after it took effect.
A watch is passed on line by line as it comes, and can be cut or fall silent in the middle.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeAlias, TypeVar
from urllib.parse import parse_qs

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

T = TypeVar("T")

KUBE, AWS = "kube", "aws"
LOOPBACK: Final = "127.0.0.1"
CONNECT_SECONDS: Final = 5.0
STOP_SECONDS: Final = 10.0
LARGEST_BODY: Final = 64 * 2**20
#: They speak of one connection, and each side of a proxy has its own (RFC 9110 §7.6.1); the length is counted anew.
HOP_BY_HOP: Final = frozenset(
    {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "content-length"}
)


@dataclass(frozen=True, slots=True)
class Request:
    """What the controller asks. `port` is KUBE or AWS, `path` has no query, `query` the last value of each name."""

    port: str
    method: str
    path: str
    query: Mapping[str, str]
    body: bytes
    #: What is asked in one word or two: `PATCH nodeclaims/status`, `POST pods/eviction`, `CreateFleet`.
    operation: str

    @property
    def is_watch(self) -> bool:
        return self.port == KUBE and self.query.get("watch") in ("true", "1")


# --- what can become of a request -------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Pass:
    """It is passed on, with another body if one is given, and its answer passed back."""

    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Delay:
    """It waits for so many seconds; then the other decision holds."""

    seconds: float
    then: Decision = field(default_factory=Pass)


@dataclass(frozen=True, slots=True)
class Answer:
    """It gets this answer. Its server never sees it; with `after` it takes effect, and only the answer is another."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    after: bool = False


@dataclass(frozen=True, slots=True)
class Lose:
    """The connection breaks without an answer, before the server sees the request or `after` it took effect.

    `first` is called just before the connection breaks. Until it returns nothing else passes this proxy.
    """

    after: bool = False
    first: Callable[[], object] | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """Of a watch: it breaks after so many seconds. With `silent` the connection stays, but nothing comes any more."""

    seconds: float
    silent: bool = False


Decision: TypeAlias = Pass | Delay | Answer | Lose | Cut
Rule: TypeAlias = Callable[[Request], Decision]
PASS: Final = Pass()


def pass_all(_: Request) -> Decision:
    """The rule of a proxy that does no harm."""
    return PASS


# --- the proxy --------------------------------------------------------------------------------------------------
class Proxy:
    """A thread of its own with two loopback ports. `rule` may be exchanged at any time, and is called in that thread.

    `kube` and `aws` are the servers' URLs; `ca_file` is the authority that the API server is trusted by.
    """

    def __init__(self, *, kube: str, ca_file: Path, aws: str, rule: Rule = pass_all) -> None:
        self.rule = rule
        self.kube_url = self.aws_url = ""
        self._upstream: Final = {KUBE: URL(kube), AWS: URL(aws)}
        self._tls: Final = ssl.create_default_context(cafile=str(ca_file))
        self._loop: Final = asyncio.new_event_loop()
        self._thread: Final = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Listen; return when both URLs are known."""
        self._thread.start()
        self._wait_for(self._open())

    def stop(self) -> None:
        """Break every connection and end the thread."""
        self._wait_for(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(STOP_SECONDS)
        self._loop.close()

    def break_watches(self) -> None:
        """Break every watch that is open now."""
        self._wait_for(self._break_watches())

    def silence_watches(self, operation: str) -> int:
        """Let every open watch that is this operation (`GET pods`) fall silent; how many did.

        It is half open from then on: it never ends, and whoever watches hears nothing more.
        """
        return self._wait_for(self._silence_watches(operation))

    def _wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(STOP_SECONDS)

    async def _open(self) -> None:
        # One request here is one request there: no body is decoded, and no time-out but for the connection.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._tls),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            auto_decompress=False,
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
        )
        #: What each open watch asked for; those of them that are half open.
        self._watches: dict[asyncio.Transport, str] = {}
        self._silent: set[asyncio.Transport] = set()
        self._runners: list[web.AppRunner] = []
        self.kube_url, self.aws_url = await self._listen(KUBE), await self._listen(AWS)

    async def _listen(self, port: str) -> str:
        async def handle(incoming: web.Request) -> web.StreamResponse:
            return await self._handle(port, incoming)

        app = web.Application(client_max_size=LARGEST_BODY)
        app.router.add_route("*", "/{path:.*}", handle)
        # A watch ends here too when the controller hangs up.
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        self._runners.append(runner)
        await web.TCPSite(runner, LOOPBACK, 0).start()
        return f"http://{LOOPBACK}:{runner.addresses[0][1]}"

    async def _close(self) -> None:
        await self._break_watches()
        for runner in self._runners:
            await runner.cleanup()
        await self._session.close()

    async def _break_watches(self) -> None:
        for transport in tuple(self._watches):
            transport.abort()

    async def _silence_watches(self, operation: str) -> int:
        found = {transport for transport, asked in self._watches.items() if asked == operation}
        self._silent |= found
        return len(found)

    # --- one request ----------------------------------------------------------------------------------------------
    async def _handle(self, port: str, incoming: web.Request) -> web.StreamResponse:
        body = await incoming.read()
        request = _request(port, incoming, body)
        decision = self.rule(request)
        while isinstance(decision, Delay):
            await asyncio.sleep(decision.seconds)
            decision = decision.then
        if request.is_watch and isinstance(decision, (Pass, Cut)):
            try:
                return await self._stream(incoming, request, decision)
            except aiohttp.ClientError:
                return _broken(incoming)
        if isinstance(decision, Pass) and decision.body is not None:
            body = decision.body
        # A request that was passed on takes effect, even if its sender dies meanwhile.
        return await asyncio.shield(asyncio.ensure_future(self._exchange(port, incoming, body, decision)))

    async def _exchange(self, port: str, incoming: web.Request, body: bytes, decision: Decision) -> web.StreamResponse:
        found: web.StreamResponse | None = None
        if not isinstance(decision, (Answer, Lose)) or decision.after:
            # Without a server, or when it hangs up, nothing is found, and so do we.
            with contextlib.suppress(aiohttp.ClientError):
                async with self._forward(port, incoming, body) as answer:
                    headers = _passed_on(answer.headers)
                    found = web.Response(status=answer.status, headers=headers, body=await answer.read())
        if isinstance(decision, Answer):
            return web.Response(status=decision.status, body=decision.body, headers=decision.headers)
        if isinstance(decision, Lose) and decision.first is not None:
            decision.first()
        return found if found is not None and not isinstance(decision, Lose) else _broken(incoming)

    @contextlib.asynccontextmanager
    async def _forward(self, port: str, incoming: web.Request, body: bytes) -> AsyncIterator[aiohttp.ClientResponse]:
        url = self._upstream[port].join(URL(incoming.raw_path, encoded=True))
        headers = _passed_on(incoming.headers)
        async with self._session.request(
            incoming.method, url, data=body or None, headers=headers, allow_redirects=False
        ) as answer:
            yield answer

    async def _stream(self, incoming: web.Request, request: Request, decision: Decision) -> web.StreamResponse:
        """Pass a watch on, until its server ends it, or it is cut, or falls silent."""
        transport = incoming.transport
        if transport is None:
            return _broken(incoming)
        self._watches[transport] = request.operation
        try:
            async with self._forward(KUBE, incoming, b"") as answer:
                outgoing = web.StreamResponse(status=answer.status, headers=_passed_on(answer.headers))
                outgoing.enable_chunked_encoding()
                await outgoing.prepare(incoming)
                seconds = decision.seconds if isinstance(decision, Cut) else None
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        async for chunk in answer.content.iter_any():
                            if transport in self._silent:
                                break
                            await outgoing.write(chunk)
                        if transport not in self._silent:
                            return outgoing
            if transport in self._silent or (isinstance(decision, Cut) and decision.silent):
                await asyncio.Event().wait()  # until the controller hangs up
            return _broken(incoming, outgoing)
        finally:
            del self._watches[transport]
            self._silent.discard(transport)


def _request(port: str, incoming: web.Request, body: bytes) -> Request:
    name = _kube_operation if port == KUBE else _aws_operation
    return Request(port, incoming.method, incoming.path, dict(incoming.query), body, name(incoming, body))


def _kube_operation(incoming: web.Request, _: bytes) -> str:
    """Verb, resource and subresource of a path of the API: `/api/v1/…` or `/apis/<group>/<version>/…`."""
    parts = incoming.path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if len(parts) > 2 and parts[0] == "namespaces":
        parts = parts[2:]
    return f"{incoming.method} {'/'.join(parts[:1] + parts[2:3]) or incoming.path}"


def _aws_operation(incoming: web.Request, body: bytes) -> str:
    """The action: in the target's header, in the form, or (the other services) the method and the path."""
    if target := incoming.headers.get("X-Amz-Target"):
        return target.rpartition(".")[2]
    actions = parse_qs(body.decode(errors="replace")).get("Action", []) if body.startswith(b"Action=") else []
    return actions[0] if actions else f"{incoming.method} {incoming.path}"


def _passed_on(headers: Mapping[str, str]) -> CIMultiDict[str]:
    """Those that go on to the other side. AWS writes the host it was asked at into the URLs it answers with."""
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in HOP_BY_HOP)


def _broken(incoming: web.Request, answer: web.StreamResponse | None = None) -> web.StreamResponse:
    """Reset the connection; what is returned is never sent."""
    if incoming.transport is not None:
        incoming.transport.abort()
    return answer or web.Response(status=502)
