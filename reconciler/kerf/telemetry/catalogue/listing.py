"""What a row of the tables of metrics and events says. The tables are what the code itself goes by: a metric has the
labels, the buckets and the help text of its row. `docs/reference/metrics.md` and `events.md` are rendered from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: How something compares with Karpenter's of the same name; anything else begins with `same;`, `renamed:` or `missing:`
#: and says what differs, or why.
SAME, OWN = "same", "Kerf's own"
COUNTER, GAUGE, HISTOGRAM, SUMMARY = "counter", "gauge", "histogram", "summary"
#: Families with a series for each object or market: words of DETAILED_METRICS. What is not named there is left out.
CONDITIONS, NODES, OFFERINGS, PODS = DETAILS = ("conditions", "nodes", "offerings", "pods")

_UP_TO_A_SECOND = (0.005, 0.01, 0.025, *(n / 100 for n in range(5, 50, 5)), *(n / 10 for n in range(5, 11)))
_UP_TO_TEN = (1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0)
_MINUTES = (15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0)
#: Seconds; the buckets of every duration that has none of its own.
DURATIONS: Final = (*_UP_TO_A_SECOND, *_UP_TO_TEN, *_MINUTES, 120.0, 150.0, 300.0, 450.0, 600.0)
#: The same up to a minute: those of `controller_runtime_reconcile_time_seconds`.
RECONCILES: Final = (*_UP_TO_A_SECOND, *_UP_TO_TEN, *_MINUTES)
#: The default of Prometheus' libraries.
LIBRARY: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Listed:
    """A metric. `about` is its help text; `detail` the word of DETAILED_METRICS without which it is left out.

    `process` serves it: the controller, or the webhook.
    """

    name: str
    kind: str
    labels: tuple[str, ...]
    about: str
    karpenter: str = SAME
    buckets: tuple[float, ...] = ()
    detail: str = ""
    process: str = "controller"

    @property
    def here(self) -> bool:
        """Whether there is such a metric; else the row says what became of Karpenter's."""
        return not self.karpenter.startswith(("missing:", "renamed:"))


def counter(name: str, labels: str, about: str, karpenter: str = SAME) -> Listed:
    """Labels are words; so they are below."""
    return Listed(name, COUNTER, tuple(labels.split()), about, karpenter)


def gauge(name: str, labels: str, about: str, karpenter: str = SAME, *, detail: str = "") -> Listed:
    return Listed(name, GAUGE, tuple(labels.split()), about, karpenter, detail=detail)


def histogram(
    name: str, labels: str, about: str, karpenter: str = SAME, *, buckets: tuple[float, ...] = DURATIONS
) -> Listed:
    return Listed(name, HISTOGRAM, tuple(labels.split()), about, karpenter, buckets)


def summary(name: str, labels: str, about: str, karpenter: str = SAME) -> Listed:
    return Listed(name, SUMMARY, tuple(labels.split()), about, karpenter)
