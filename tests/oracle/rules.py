"""All rules that are easily misread, by group and name."""

from __future__ import annotations

from typing import Final

from tests.oracle.known import Known
from tests.oracle.rules_of_nodes import NOMINATIONS, PORTS, RESIZES, VOLUMES
from tests.oracle.rules_of_topology import AFFINITIES, SPREADS

_GROUPS: Final = {
    "spread": SPREADS,
    "affinity": AFFINITIES,
    "port": PORTS,
    "resize": RESIZES,
    "volume": VOLUMES,
    "nomination": NOMINATIONS,
}
RULES: Final[dict[str, Known]] = {
    f"{group}: {name}": case for group, of in _GROUPS.items() for name, case in of.items()
}
