"""All metrics there are, and all that Karpenter has, by name: the one table that the code and the page go by."""

from __future__ import annotations

from typing import Final

from kerf.telemetry.catalogue.listed_libraries import LIBRARIES
from kerf.telemetry.catalogue.listed_metrics import KARPENTERS
from kerf.telemetry.catalogue.listed_own import OURS
from kerf.telemetry.catalogue.listing import Listed

METRICS: Final[dict[str, Listed]] = {row.name: row for row in (*KARPENTERS, *LIBRARIES, *OURS)}
