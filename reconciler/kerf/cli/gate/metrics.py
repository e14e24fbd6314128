"""The metrics of the page's own process."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from kerf.telemetry.catalogue.names import METRICS

_REQUESTS: Final = "kerf_page_requests_total"
_REVIEWS: Final = "kerf_page_reviews_total"
_FAILURES: Final = "kerf_page_failures_total"
_SECONDS: Final = "kerf_page_views_duration_seconds"


class PageMetrics:
    """Counts and times, in a registry of their own. Belongs to any thread."""

    def __init__(self) -> None:
        self.registry: Final = CollectorRegistry()
        self._requests: Final = Counter(_REQUESTS, METRICS[_REQUESTS].about, ["code"], registry=self.registry)
        self._reviews: Final = Counter(_REVIEWS, METRICS[_REVIEWS].about, ["kind", "outcome"], registry=self.registry)
        self._failures: Final = Counter(_FAILURES, METRICS[_FAILURES].about, ["work"], registry=self.registry)
        seconds = METRICS[_SECONDS]
        self._seconds: Final = Histogram(_SECONDS, seconds.about, buckets=seconds.buckets, registry=self.registry)

    def answered(self, code: int) -> None:
        """Count a request by the HTTP status of its answer."""
        self._requests.labels(str(code)).inc()

    def reviewed(self, kind: str, outcome: str) -> None:
        """Count a review that was sent to the API server: allowed, denied or failed."""
        self._reviews.labels(kind, outcome).inc()

    def failed(self, work: str) -> None:
        """Count a failure of background work."""
        self._failures.labels(work).inc()

    def made(self, seconds: float) -> None:
        """Note the time to make the views of one set of namespaces."""
        self._seconds.observe(seconds)

    def text(self) -> str:
        """In the text format of Prometheus."""
        return generate_latest(self.registry).decode()
