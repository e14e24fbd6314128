"""Refusals of requests that no page of Kerf sends, headers of every answer, compression.

A page of another origin may send requests to the loopback address, also by a name that it lets resolve to it. So the
names in Host and Origin are checked. Every address only reads.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

from flask import Flask, Response, abort, request

#: No inline scripts and styles, nothing from another server.
_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_METHODS: Final = ("GET", "HEAD")
_FOREIGN: Final = ("cross-site", "same-site")
#: A shorter answer fits one packet.
_COMPRESSED_FROM: Final = 1400


def guard(app: Flask, hosts: Iterable[str], scheme: str) -> None:
    """Answer only reads for these hosts (`name:port`), and set the headers of every answer."""
    allowed = frozenset(hosts)
    origins = frozenset(f"{scheme}://{host}" for host in allowed)

    @app.before_request
    def refuse() -> Response | None:
        if request.method not in _METHODS:
            abort(HTTPStatus.METHOD_NOT_ALLOWED, valid_methods=_METHODS)
        if request.headers.get("Host", "").lower() not in allowed:
            return _bare("Host: not an address of this page: open it by an address that it was started with")
        if request.headers.get("Origin", "").lower() not in ("", *origins):
            return _bare("Origin: the request comes from another site: open the page itself")
        # An image or a script of another site has no Origin, but would take a stream of events or compute a page.
        if request.headers.get("Sec-Fetch-Site") in _FOREIGN and request.headers.get("Sec-Fetch-Mode") != "navigate":
            return _bare("Sec-Fetch-Site: the request comes from another site: open the page itself")
        return None

    @app.after_request
    def finished(response: Response) -> Response:
        for name, value in _HEADERS.items():
            response.headers[name] = value
        response.headers.setdefault("Cache-Control", "no-store")
        return _compressed(response)


def _bare(text: str) -> Response:
    """A refusal that shows nothing of the cluster: a foreign page may read it."""
    return Response(f"{text}\n", HTTPStatus.FORBIDDEN, mimetype="text/plain")


def _compressed(response: Response) -> Response:
    response.vary.add("Accept-Encoding")
    if request.accept_encodings["gzip"] <= 0 or response.direct_passthrough or response.is_streamed:
        return response
    data = response.get_data()
    if len(data) >= _COMPRESSED_FROM:
        response.set_data(gzip.compress(data, 5))
        response.headers["Content-Encoding"] = "gzip"
    return response
