"""HTTP/1.1 on bytes: where a request ends, and the answers that the server gives by itself.

gunicorn parses every head. A request reaches a thread only when it is complete, so no thread ever waits for a client.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec
from gunicorn.http.body import LengthReader
from gunicorn.http.errors import LimitRequestHeaders, LimitRequestLine, UnsupportedTransferCoding
from gunicorn.http.message import Request
from gunicorn.http.unreader import IterUnreader

from .connections import Connection, Limits

_END: Final = b"\r\n\r\n"
_JSON: Final = "application/json"
_STATUS: Final = (
    (LimitRequestLine, HTTPStatus.REQUEST_URI_TOO_LONG),
    (LimitRequestHeaders, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
    (UnsupportedTransferCoding, HTTPStatus.NOT_IMPLEMENTED),
)


class BadRequest(Exception):
    """The bytes are no request that the server accepts; `status` and the text are the answer."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


def complete(connection: Connection, limits: Limits, settings: Any) -> Any:
    """The gunicorn request at the front of the inbox, taken out of it; None while it is incomplete.

    `settings` are gunicorn's. Raises BadRequest.
    """
    if connection.message is None and not _head(connection, limits, settings):
        return None
    if len(connection.inbox) < connection.expected:
        return None
    request, body = connection.message, bytes(connection.inbox[: connection.expected])
    del connection.inbox[: connection.expected]
    connection.message, connection.searched = None, 0
    request.unreader.unread(body)
    return request


def _head(connection: Connection, limits: Limits, settings: Any) -> bool:
    inbox = connection.inbox
    end = inbox.find(_END, connection.searched)
    if max(end, connection.searched) > limits.head_bytes:
        text = f"the head of the request is larger than {limits.head_bytes} bytes"
        raise BadRequest(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, text)
    if end < 0:
        connection.searched = max(0, len(inbox) - len(_END) + 1)
        return False
    head = bytes(inbox[: end + len(_END)])
    del inbox[: len(head)]
    connection.requests += 1
    request = _parse(head, connection, settings)
    reader = request.body.reader
    if not isinstance(reader, LengthReader):
        raise BadRequest(HTTPStatus.LENGTH_REQUIRED, "the request needs a Content-Length")
    if reader.length > limits.body_bytes:
        text = f"the body is larger than {limits.body_bytes} bytes"
        raise BadRequest(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text)
    connection.message, connection.expected = request, reader.length
    return True


def _parse(head: bytes, connection: Connection, settings: Any) -> Any:
    try:
        return Request(settings, IterUnreader([head]), connection.address, connection.requests)
    except (Exception, StopIteration) as error:  # gunicorn's errors of a head have no base class of their own
        status = next((status for kind, status in _STATUS if isinstance(error, kind)), HTTPStatus.BAD_REQUEST)
        raise BadRequest(status, f"the request cannot be parsed: {error}{_bound(error, settings)}") from None


def _bound(error: BaseException, settings: Any) -> str:
    """The limits that a head has exceeded; empty for another error."""
    if not isinstance(error, LimitRequestHeaders):
        return ""
    return f": at most {settings.limit_request_fields} headers of {settings.limit_request_field_size} bytes each"


def answer(status: HTTPStatus, content: object = None) -> bytes:
    """A whole answer, after which the connection ends: text as it is, anything else as JSON."""
    kind, body = ("text/plain", content.encode()) if isinstance(content, str) else (_JSON, msgspec.json.encode(content))
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    return "\r\n".join((*head, "", "")).encode() + body


class Outbox:
    """The place of a socket for gunicorn's response: it collects the bytes, and the worker sends them.

    `peer` is the verified certificate of the TLS client, as `ssl.SSLSocket.getpeercert` returns it; None without one.
    `headers` are those of the request in its order, with names in upper case: WSGI joins repeated ones.
    """

    def __init__(self, peer: Mapping[str, Any] | None = None, headers: Sequence[tuple[str, str]] = ()) -> None:
        self._parts: list[bytes] = []
        self.peer: Final = peer
        self.headers: Final = headers

    def sendall(self, data: bytes) -> None:
        self._parts.append(bytes(data))

    send = sendall

    def content(self) -> bytes:
        return b"".join(self._parts)
