"""Requests to the API server and to AWS, counted and timed by the names that Karpenter's libraries give them.

Source: operations reference §2.11.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from kerf.telemetry.series.metrics import Metrics

#: What a request without an answer is counted as.
_NONE: Final = "0"
_VERBS: Final = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_BEGAN, _CALL = "kerf-began", "kerf-call"


class KubeRequests:
    """Of the transport: called for each request, by any thread."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def answered(self, method: str, path: str, query: Mapping[str, str], status: int, seconds: float) -> None:
        """It was sent, and an answer began (status 0: none did)."""
        self._metrics.kube_calls.labels(str(status) if status else "<error>", method).inc()
        if "watch" not in query:  # those go on for as long as nothing changes
            self._metrics.kube_seconds.labels(*resource(method, path)).observe(seconds)

    def held(self, seconds: float) -> None:
        """It waited for others of ours before it was sent."""
        self._metrics.kube_held.inc(seconds)


def resource(method: str, path: str) -> tuple[str, str, str, str, str]:
    """Verb, group, version, resource and subresource; of what is no resource (`/version`) only the verb."""
    parts, verb = path.strip("/").split("/"), _VERBS.get(method, method.lower())
    if parts[0] == "api" and len(parts) > 2:
        group, (version, *rest) = "", parts[1:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, *rest = parts[1:]
    else:
        return verb, "", "", "", ""
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    named = len(rest) > 1
    return verb if named or verb != "get" else "list", group, version, rest[0], rest[2] if len(rest) > 2 else ""


class AwsRequests:
    """Of boto3's clients: a call from when it is sent to its answer, its tries among them; any thread may call."""

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = time.perf_counter) -> None:
        self._metrics, self._clock = metrics, clock

    def install(self, client: Any) -> None:
        """Have a client's calls counted; what waits before it is sent waits before that."""
        events = client.meta.events
        events.register_last("before-call", self._begins, unique_id="kerf-requests-begin")
        events.register_first("after-call", self._ends, unique_id="kerf-requests-end")
        events.register_first("after-call-error", self._fails, unique_id="kerf-requests-fail")

    def _begins(self, model: Any, context: dict[str, Any], **_: Any) -> None:
        context[_BEGAN], context[_CALL] = self._clock(), (model.service_model.service_id, model.name)

    def _ends(self, parsed: Mapping[str, Any], context: Mapping[str, Any], **_: Any) -> None:
        meta = parsed.get("ResponseMetadata", {})
        self._count(context, str(meta.get("HTTPStatusCode", _NONE)), int(meta.get("RetryAttempts", 0)))

    def _fails(self, context: Mapping[str, Any], **_: Any) -> None:
        self._count(context, _NONE, 0)

    def _count(self, context: Mapping[str, Any], status: str, retries: int) -> None:
        if _CALL not in context:
            return
        call = context[_CALL]
        self._metrics.aws_calls.labels(*call, status).inc()
        self._metrics.aws_attempts.labels(*call, status).inc(1 + retries)
        self._metrics.aws_retries.labels(*call, status).observe(retries)
        self._metrics.aws_seconds.labels(*call, status).observe(self._clock() - context[_BEGAN])
