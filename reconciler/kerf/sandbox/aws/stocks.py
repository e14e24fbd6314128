"""The limits of EC2's capacity that a test or a scenario sets."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(slots=True)
class Stocks:
    """Offerings (type, zone, capacity type) without capacity until a time, and quotas of vCPUs by capacity type."""

    outs: dict[tuple[str, str, str], datetime] = field(default_factory=dict)
    quotas: dict[str, int] = field(default_factory=dict)
