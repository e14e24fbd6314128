"""The conditions of all objects as gauges, base of the alerts on Ready: kept as objects change, rendered when scraped.

Source: operations reference §2.10.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from api import labels

_OWN = {"nodeclaim": ("karpenter_sh_nodepool", "karpenter_k8s_aws_ec2nodeclass")}
_COMMON = ("namespace", "name", "type", "status", "reason")
_Row = tuple[str, ...]


class ConditionGauges(Collector):
    """`see` belongs to the loop's thread, `collect` to any."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, tuple[_Row, ...]]] = {k: {} for k in ("nodeclaim", "nodepool", "ec2nodeclass")}

    def see(self, kind: str, name: str, value: Any | None) -> None:
        """An object is as it is now, or (None) there no more. `kind` as metrics spell it."""
        if value is None:
            self._rows[kind].pop(name, None)
            return
        own = _own_labels(value) if kind in _OWN else ()
        self._rows[kind][name] = tuple(("", name, c.type, c.status, c.reason, *own) for c in value.status.conditions)

    def collect(self) -> Iterable[Metric]:
        for kind, by_name in self._rows.items():
            family = GaugeMetricFamily(
                f"operator_{kind}_status_condition_count",
                f"1 for each condition of each {kind}.",
                labels=(*_COMMON, *_OWN.get(kind, ())),
            )
            for rows in list(by_name.values()):
                for row in rows:
                    family.add_metric(row, 1.0)
            yield family


def _own_labels(claim: Any) -> tuple[str, str]:
    return claim.metadata.labels.get(labels.NODEPOOL, ""), claim.spec.node_class_ref.name
