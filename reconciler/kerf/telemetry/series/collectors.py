"""Metrics that Prometheus' library does not have: quantiles of what was observed lately, and times that go on."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

#: The quantiles of every summary, as Karpenter has them.
QUANTILES = (0.0, 0.5, 0.9, 0.99, 1.0)
#: Quantiles are of what was observed in so many seconds, of the latest so many.
LATELY_SECONDS, REMEMBERED = 600.0, 1000


class _Window:
    """One series of a summary: what was observed lately, and how much in all."""

    __slots__ = ("count", "recent", "sum")

    def __init__(self) -> None:
        self.recent: deque[tuple[float, float]] = deque(maxlen=REMEMBERED)
        self.count, self.sum = 0, 0.0

    def observe(self, at: float, value: float) -> None:
        self.recent.append((at, value))
        self.count, self.sum = self.count + 1, self.sum + value

    def lately(self, since: float) -> list[float]:
        return sorted(value for at, value in tuple(self.recent) if at >= since)


class Summary(Collector):
    """A summary; without labels it is there before anything was observed. The loop's thread observes, any collects."""

    def __init__(
        self, name: str, text: str, labels: Sequence[str] = (), clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name, self._text, self._labels, self._clock = name, text, tuple(labels), clock
        self._windows: dict[tuple[str, ...], _Window] = {} if labels else {(): _Window()}

    def observe(self, value: float, *labels: str) -> None:
        """`labels` are the values of the summary's, in their order."""
        self._windows.setdefault(labels, _Window()).observe(self._clock(), value)

    def collect(self) -> Iterable[Metric]:
        since = self._clock() - LATELY_SECONDS
        family = SummaryMetricFamily(self._name, self._text, labels=self._labels)
        for values, window in sorted(self._windows.copy().items()):
            recent, own = window.lately(since), dict(zip(self._labels, values, strict=True))
            for quantile in QUANTILES:
                place = min(int(quantile * len(recent)), len(recent) - 1)
                value = recent[place] if recent else float("nan")
                family.add_sample(self._name, {**own, "quantile": f"{quantile:g}"}, value)
            family.add_metric(values, window.count, window.sum)
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


class Unsynced(Collector):
    """How long it took so far until everything was known; 0 from then on."""

    def __init__(self, name: str, text: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._text, self._clock, self._began = name, text, clock, clock()
        #: Set by the loop's thread.
        self.synced = False

    def collect(self) -> Iterable[Metric]:
        yield GaugeMetricFamily(self._name, self._text, value=0.0 if self.synced else self._clock() - self._began)
