"""All metrics there are, and all that Karpenter has, by name: the one table that the code and the page go by."""

from __future__ import annotations

from typing import Final

from reconciler.telemetry.listed_libraries import LIBRARIES
from reconciler.telemetry.listed_metrics import KARPENTERS
from reconciler.telemetry.listed_own import OURS
from reconciler.telemetry.listing import Listed

METRICS: Final[dict[str, Listed]] = {row.name: row for row in (*KARPENTERS, *LIBRARIES, *OURS)}
