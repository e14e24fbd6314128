"""The Flask app: doors, health and metrics.

Everything that arrives here comes from the API server, or from a client that pretends to be it. So bodies are bounded
and checked before anything reads them, and whatever goes wrong is an answer in JSON, never a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Final

import msgspec
from flask import Flask, Response, request
from gunicorn.http.errors import ParseException
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from werkzeug.exceptions import HTTPException

from kerf_api import lint

from . import verdict
from .review import NotAReview, Review, parse
from .verdict import Verdict

Judge = Callable[[Review, int], Verdict]

_JSON: Final = "application/json"
_BUCKETS: Final = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.0)


@dataclass(frozen=True, slots=True)
class Settings:
    """`body_bytes` bounds a request (the API server's own limit by default); `most_problems` bounds a refusal."""

    body_bytes: int = 3 * 1024 * 1024
    most_problems: int = 10


class Metrics:
    """Counts and times of one app, in a registry of its own, so that two apps in one process do not meet."""

    def __init__(self, certificate_ends: Callable[[], float] | None = None) -> None:
        """`certificate_ends` returns the expiry of the served certificate, in Unix seconds."""
        self.registry: Final = CollectorRegistry()
        self.reviews: Final = Counter(
            "kerf_webhook_reviews_total",
            "Admission reviews, by path, resource and outcome (allowed, denied, skipped).",
            ("path", "resource", "outcome"),
            registry=self.registry,
        )
        self.rejected: Final = Counter(
            "kerf_webhook_bad_requests_total",
            "Requests that are not admission reviews, by HTTP status.",
            ("code",),
            registry=self.registry,
        )
        self.seconds: Final = Histogram(
            "kerf_webhook_duration_seconds",
            "Time to answer an admission review, without network and TLS.",
            ("path",),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.dropped: Final = Counter(
            "kerf_webhook_connections_dropped_total",
            "Connections that the webhook closed, by reason (slow: out of time; crowded: too many, or too many bytes; "
            "handshake: no TLS).",
            ("reason",),
            registry=self.registry,
        )
        if certificate_ends is not None:
            Gauge(
                "kerf_webhook_certificate_expiry_timestamp_seconds",
                "Expiry of the webhook's certificate.",
                registry=self.registry,
            ).set_function(certificate_ends)

    @contextmanager
    def timed(self, path: str) -> Iterator[None]:
        """Measure what happens inside."""
        began = perf_counter()
        try:
            yield
        finally:
            self.seconds.labels(path).observe(perf_counter() - began)


def create_app(settings: Settings | None = None, metrics: Metrics | None = None) -> Flask:
    """The app, ready to answer: every rule is compiled before it returns. It counts in `metrics`."""
    chosen, metrics = settings or Settings(), metrics or Metrics()
    lint.prepare()
    app = Flask("webhook", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = chosen.body_bytes
    judges = (("/mutate", verdict.mutate), ("/validate", verdict.check), ("/annotations", verdict.check_annotations))
    for path, judge in judges:
        app.add_url_rule(path, path[1:], _door(path, judge, chosen, metrics), methods=["POST"])
    app.add_url_rule("/healthz", "healthz", _ok)
    app.add_url_rule("/readyz", "readyz", _ok)
    app.add_url_rule("/metrics", "metrics", lambda: _exposed(metrics))
    app.register_error_handler(NotAReview, lambda problem: _refused(400, str(problem), metrics))
    app.register_error_handler(HTTPException, lambda problem: _http(problem, chosen, metrics))
    return app


def _door(path: str, judge: Judge, settings: Settings, metrics: Metrics) -> Callable[[], Response]:
    def door() -> Response:
        with metrics.timed(path):
            if request.mimetype != _JSON:
                return _refused(415, f"the Content-Type must be {_JSON}", metrics)
            review = parse(_body())
            found = judge(review, settings.most_problems)
            resource = review.resource if review.resource in verdict.resources() else "other"
            metrics.reviews.labels(path, resource, found.outcome).inc()
            return _json(200, found.answer)

    return door


def _body() -> bytes:
    """The request's body. Raises NotAReview when it breaks off or its chunks make no sense."""
    try:
        return request.get_data(cache=False)
    except (OSError, ParseException) as problem:
        raise NotAReview(f"the body cannot be read: {problem}") from None


def _json(code: int, content: object) -> Response:
    return Response(msgspec.json.encode(content), status=code, mimetype=_JSON)


def _refused(code: int, message: str, metrics: Metrics) -> Response:
    metrics.rejected.labels(str(code)).inc()
    _drain()
    return _json(code, {"error": message})


def _drain() -> None:
    """Read the rest of the body. A connection that is closed on unread bytes is reset, and then the answer
    may be lost on its way; who sends more than we take has to bear that."""
    with suppress(HTTPException, OSError, ParseException):
        request.get_data(cache=False)


def _http(problem: HTTPException, settings: Settings, metrics: Metrics) -> Response:
    """Werkzeug's own refusals (unknown path, wrong method, body too large) and our bugs, as JSON.

    The headers stay: a 405 says which methods there are.
    """
    code = problem.code or 500
    message = f"the body is larger than {settings.body_bytes} bytes" if code == 413 else problem.description or ""
    answer = _refused(code, message, metrics)
    answer.headers.extend([header for header in problem.get_headers() if header[0].lower() == "allow"])
    return answer


def _ok() -> Response:
    return Response("ok\n", mimetype="text/plain")


def _exposed(metrics: Metrics) -> Response:
    return Response(generate_latest(metrics.registry), content_type=CONTENT_TYPE_LATEST)
