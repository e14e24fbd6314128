"""As much of the Kubernetes API over HTTP as the controller uses: lists in pages, watches with bookmarks, writes.

One asyncio loop serves all connections; bodies are the store's own bytes, joined. Not an API server: nothing is
validated, everybody may do everything.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import msgspec

from benchmarks.feed.store import Refusal, Store, Stored, encode
from kerf.model.kinds import Kind

Json = dict[str, Any]
#: Seconds between bookmarks on a watch, as the real API server sends them.
BOOKMARKS: Final = 55.0
_READ_LIMIT: Final = 2**20


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    query: Mapping[str, str]
    body: bytes
    #: Who asks, by the bearer token.
    agent: str


@dataclass(frozen=True, slots=True)
class Target:
    """What a path names: a kind, and perhaps a namespace, an object, a subresource."""

    kind: Kind
    namespace: str
    name: str
    subresource: str

    @property
    def key(self) -> str:
        return self.name if self.kind.cluster_scoped else f"{self.namespace}/{self.name}"


#: Answers a path of its own: status and JSON bytes.
Control = Callable[[Request], "tuple[int, bytes] | None"]


class Api:
    """See the module. `control` is asked first, for paths that are not Kubernetes'."""

    def __init__(self, store: Store, control: Control) -> None:
        self._store, self._control = store, control
        self._pages: dict[str, tuple[list[Stored], int]] = {}
        self._tokens = itertools.count(1)
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[Any] | None] = set()

    async def serve(self, port: int = 0) -> int:
        """Begin to serve on loopback; the port."""
        self._server = await asyncio.start_server(self._connection, "127.0.0.1", port, limit=_READ_LIMIT)
        address: tuple[str, int] = self._server.sockets[0].getsockname()
        return address[1]

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(asyncio.current_task())  # the loop itself holds tasks weakly
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            while (request := await _read(reader)) is not None:
                if request.query.get("watch") == "true":
                    await self._watch(request, writer)
                    break
                status, body = self._answer(request)
                writer.write(_head(status, len(body)) + body)
                await writer.drain()
        with contextlib.suppress(ConnectionError):
            writer.close()
        self._open.discard(asyncio.current_task())

    # --- one request --------------------------------------------------------------------------------------------------
    def _answer(self, request: Request) -> tuple[int, bytes]:
        try:
            known = self._control(request)
            return known if known is not None else self._kubernetes(request)
        except Refusal as refusal:
            return refusal.code, _status(refusal)

    def _kubernetes(self, request: Request) -> tuple[int, bytes]:
        if request.path == "/version":
            return 200, b'{"major":"1","minor":"36","gitVersion":"v1.36.3"}'
        target = self._target(request.path)
        verb = "LIST" if request.method == "GET" and not target.name else request.method
        self._store.requests[f"{verb} {target.kind.plural}"] += 1
        if request.method == "GET" and not target.name:
            return 200, self._list(target, request.query)
        if request.method == "GET":
            return 200, self._store.get(target.kind, target.key).raw
        return self._write(target, request)

    def _write(self, target: Target, request: Request) -> tuple[int, bytes]:
        store, kind = self._store, target.kind
        body: Json = msgspec.json.decode(request.body) if request.body else {}
        if request.method == "POST" and target.subresource == "eviction":
            store.delete(kind, target.key, body.get("deleteOptions") or {}, request.agent)
            return 201, b'{"kind":"Status","status":"Success"}'
        if request.method == "POST":
            return 201, store.create(kind, target.namespace, body, request.agent).raw
        if request.method == "PATCH":
            return 200, store.patch(kind, target.key, target.subresource, body, request.agent).raw
        if request.method == "PUT":
            return 200, store.replace(kind, target.key, body, request.agent).raw
        if request.method == "DELETE":
            store.delete(kind, target.key, body, request.agent)
            return 200, b'{"kind":"Status","status":"Success"}'
        raise Refusal(405, "MethodNotAllowed", request.method)

    def _target(self, path: str) -> Target:
        parts = path.strip("/").split("/")
        prefix = parts[:2] if parts[0] == "api" else parts[:3]
        rest, namespace = parts[len(prefix) :], ""
        if len(rest) > 2 and rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        kind = self._store.kinds.get("/" + "/".join([*prefix, *rest[:1]]))
        if kind is None:
            raise Refusal(404, "NotFound", f"the server does not serve {path}")
        name, subresource, *_ = [*rest[1:], "", ""]
        return Target(kind, namespace, name, subresource)

    # --- lists --------------------------------------------------------------------------------------------------------
    def _list(self, target: Target, query: Mapping[str, str]) -> bytes:
        token, limit = query.get("continue", ""), int(query.get("limit", "0"))
        if token:
            if token not in self._pages:
                raise Refusal(410, "Expired", "the continue token is not known any more")
            rest, version = self._pages.pop(token)
        else:
            rest, version = self._selected(target, query), self._store.version
        page, rest = (rest[:limit], rest[limit:]) if limit else (rest, [])
        meta: Json = {"resourceVersion": str(version)}
        if rest:
            meta["continue"] = str(next(self._tokens))
            self._pages[meta["continue"]] = (rest, version)
        head = {"kind": f"{target.kind.name}List", "apiVersion": target.kind.api_version, "metadata": meta}
        return encode(head)[:-1] + b',"items":[' + b",".join(stored.raw for stored in page) + b"]}"

    def _selected(self, target: Target, query: Mapping[str, str]) -> list[Stored]:
        objects = self._store.tables[target.kind.name].objects
        prefix, field = f"{target.namespace}/" if target.namespace else "", query.get("fieldSelector", "")
        rows = sorted((key, stored) for key, stored in objects.items() if key.startswith(prefix))
        if not field:
            return [stored for _, stored in rows]
        name, _, wanted = field.partition("=")
        if name == "spec.nodeName":
            return [stored for _, stored in rows if stored.node == wanted]
        if name == "metadata.name":
            return [stored for key, stored in rows if key.rpartition("/")[2] == wanted]
        raise Refusal(400, "BadRequest", f"field selector {field} is not known here")

    # --- watches ------------------------------------------------------------------------------------------------------
    async def _watch(self, request: Request, writer: asyncio.StreamWriter) -> None:
        target = self._target(request.path)
        self._store.requests[f"WATCH {target.kind.plural}"] += 1
        table, news = self._store.tables[target.kind.name], asyncio.Event()
        table.listeners.add(news.set)
        try:
            await self._stream(target.kind, request.query, writer, news)
        finally:
            table.listeners.discard(news.set)

    async def _stream(
        self, kind: Kind, query: Mapping[str, str], writer: asyncio.StreamWriter, news: asyncio.Event
    ) -> None:
        seen = int(query.get("resourceVersion") or self._store.version)
        ends = time.monotonic() + float(query.get("timeoutSeconds", "3600"))
        marked = time.monotonic()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        while time.monotonic() < ends and not writer.is_closing():
            news.clear()
            try:
                lines = list(self._store.since(kind, seen))
            except Refusal as refusal:
                writer.write(_chunk(b'{"type":"ERROR","object":' + _status(refusal) + b"}\n"))
                break
            for version, line in lines:
                writer.write(_chunk(line))
                seen = version
            if time.monotonic() - marked >= BOOKMARKS:
                marked, seen = time.monotonic(), max(seen, self._store.version)
                writer.write(_chunk(_bookmark(kind, seen)))
            await writer.drain()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), max(0.1, marked + BOOKMARKS - time.monotonic()))
        writer.write(b"0\r\n\r\n")
        await writer.drain()


# --- HTTP -------------------------------------------------------------------------------------------------------------
async def _read(reader: asyncio.StreamReader) -> Request | None:
    """The next request of a connection; None at its end."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *rows = head.decode("latin-1").split("\r\n")
    method, url, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (row.partition(":") for row in rows if row)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    parts = urlsplit(url)
    return Request(
        method, parts.path, dict(parse_qsl(parts.query)), body, headers.get("authorization", "").removeprefix("Bearer ")
    )


_REASONS: Final = {200: "OK", 201: "Created"}


def _head(status: int, length: int) -> bytes:
    words = f"HTTP/1.1 {status} {_REASONS.get(status, 'Refused')}\r\nContent-Type: application/json\r\n"
    return f"{words}Content-Length: {length}\r\n\r\n".encode()


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _status(refusal: Refusal) -> bytes:
    return encode(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "code": refusal.code,
            "reason": refusal.reason,
            "message": str(refusal),
        }
    )


def _bookmark(kind: Kind, version: int) -> bytes:
    value = {"kind": kind.name, "apiVersion": kind.api_version, "metadata": {"resourceVersion": str(version)}}
    return b'{"type":"BOOKMARK","object":' + encode(value) + b"}\n"
