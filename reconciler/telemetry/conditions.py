"""The conditions of all objects as gauges, base of the alerts on Ready: kept as objects change, written when scraped.

With 5,000 node claims they are 30,000 series, nearly all as they were at the last scrape; so each object's lines are
kept as text, and a scrape writes only those that changed. Source: operations reference §2.10.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from api import labels
from api.v1.meta import ObjectMeta
from reconciler.telemetry.exposition import head, line
from reconciler.telemetry.precedence import GiveWay, at_once, in_steps

_OWN = {"nodeclaim": ("karpenter_sh_nodepool", "karpenter_k8s_aws_ec2nodeclass")}
_COMMON = ("namespace", "name", "type", "status", "reason")
_KINDS = ("nodeclaim", "nodepool", "ec2nodeclass", "capacitybuffer")
#: Objects whose lines are written in one step: about a millisecond.
_STEP = 20
_Row = tuple[str, ...]


class _Lines:
    """One object's rows, and their text once it was asked for."""

    __slots__ = ("rows", "text")

    def __init__(self, rows: tuple[_Row, ...]) -> None:
        self.rows, self.text = rows, ""


class ConditionGauges:
    """`see` belongs to the loop's thread, `text` to any."""

    def __init__(self) -> None:
        self._lines: dict[str, dict[tuple[str, str], _Lines]] = {kind: {} for kind in _KINDS}

    def see(self, kind: str, meta: ObjectMeta, value: Any | None) -> None:
        """The object of these metadata is as it is now, or (None) there no more. `kind` as metrics spell it."""
        address = (meta.namespace, meta.name)
        if value is None:
            self._lines[kind].pop(address, None)
            return
        own = _own_labels(value) if kind in _OWN else ()
        rows = tuple((*address, c.type, c.status, c.reason, *own) for c in value.status.conditions)
        known = self._lines[kind].get(address)
        if known is None or known.rows != rows:
            self._lines[kind][address] = _Lines(rows)

    def text(self, give_way: GiveWay = at_once) -> bytes:
        """All of them in Prometheus' text format."""
        return "".join(part for kind in _KINDS for part in self._written(kind, give_way)).encode()

    def _written(self, kind: str, give_way: GiveWay) -> Iterator[str]:
        name = f"operator_{kind}_status_condition_count"
        yield head(name, f"1 for each condition of each {kind}.")
        for lines in in_steps(list(self._lines[kind].values()), give_way, _STEP):
            if not lines.text:
                names = (*_COMMON, *_OWN.get(kind, ()))
                lines.text = "".join(line(name, zip(names, row, strict=True), 1) for row in lines.rows)
            yield lines.text


def _own_labels(claim: Any) -> tuple[str, str]:
    return claim.metadata.labels.get(labels.NODEPOOL, ""), claim.spec.node_class_ref.name
