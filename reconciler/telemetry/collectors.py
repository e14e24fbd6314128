"""Metrics that Prometheus' library does not have: quantiles of what was observed lately, and work that is under way."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable

from prometheus_client.core import GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

#: The quantiles of every summary, as Karpenter has them.
QUANTILES = (0.0, 0.5, 0.9, 0.99, 1.0)
#: Quantiles are of what was observed in so many seconds, of the latest so many.
LATELY_SECONDS, REMEMBERED = 600.0, 1000


class Summary(Collector):
    """A summary without labels. The loop's thread observes, any collects."""

    def __init__(self, name: str, text: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._text, self._clock = name, text, clock
        self._recent: deque[tuple[float, float]] = deque(maxlen=REMEMBERED)
        self._count, self._sum = 0, 0.0

    def observe(self, value: float) -> None:
        self._recent.append((self._clock(), value))
        self._count, self._sum = self._count + 1, self._sum + value

    def collect(self) -> Iterable[Metric]:
        since = self._clock() - LATELY_SECONDS
        recent = sorted(value for at, value in tuple(self._recent) if at >= since)
        family = SummaryMetricFamily(self._name, self._text)
        for quantile in QUANTILES:
            place = min(int(quantile * len(recent)), len(recent) - 1)
            value = recent[place] if recent else float("nan")
            family.add_sample(self._name, {"quantile": f"{quantile:g}"}, value)
        family.add_metric([], self._count, self._sum)
        yield family


class Unfinished(Collector):
    """The age of what is under way, if something is. The loop's thread sets `began`, any collects."""

    def __init__(self, name: str, text: str, labels: tuple[tuple[str, str], ...]) -> None:
        self._name, self._text, self._labels = name, text, labels
        #: By `time.perf_counter`; None while nothing is under way.
        self.began: float | None = None

    def collect(self) -> Iterable[Metric]:
        family = GaugeMetricFamily(self._name, self._text, labels=[label for label, _ in self._labels])
        if (began := self.began) is not None:
            family.add_metric([text for _, text in self._labels], time.perf_counter() - began)
        yield family
