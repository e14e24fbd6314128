"""Numbers of a plan for metrics; as which metrics they are shown is telemetry's matter."""

from __future__ import annotations

from enum import StrEnum, auto

#: Pairs of label and value.
Labels = tuple[tuple[str, str], ...]


class PlanGauge(StrEnum):
    """What a number counts, by its labels."""

    ALLOWED_DISRUPTIONS = auto()
    NODES_CONSUMING_BUDGETS = auto()
    ELIGIBLE_NODES = auto()
    PENDING_PODS_BY_ZONE = auto()
    REFUSED_PODS = auto()
    DELETIONS_HELD = auto()
    GARBAGE_COLLECTION_HELD = auto()
    NODE_MISMATCHES = auto()
    CHANGES_AWAITING_APPROVAL = auto()
