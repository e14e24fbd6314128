"""Disagreements that are open: each is a defect of Kerf or of its referee, and has an entry until it is fixed.

An entry is no exception. `make oracle` prints the number of worlds of each; an entry that no world needs must go.
"""

from __future__ import annotations

from typing import Final

from tests.oracle.difference import MISSED
from tests.oracle.exceptions import Case, Rule
from tests.oracle.features import FEATURES, hard

_SPREAD_OVER_DAEMONS: Final = next(one.found for one in FEATURES if one.name == "spread: daemon pods")


def _daemons_of_new_nodes(case: Case) -> bool:
    if not hard(case.spec) or not _SPREAD_OVER_DAEMONS(case.world):
        return False
    return case.difference.direction == MISSED or case.difference.plugin == "PodTopologySpread"


PENDING: tuple[Rule, ...] = (
    Rule(
        "daemon pods of new nodes",
        "a spread over zones does not foresee those of a DaemonSet of some instance types only, nor those of a plan "
        "that differs each time it is made; a pod with a new node may fit on an existing one when it moves alone",
        _daemons_of_new_nodes,
    ),
)
