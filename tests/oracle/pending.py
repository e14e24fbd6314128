"""Disagreements that are open: each is a defect of Kerf or of its referee, and has an entry until it is fixed.

An entry is no exception. `make oracle` prints the number of worlds of each; an entry that no world needs must go.
"""

from __future__ import annotations

from typing import Final

from tests.differential.draft import Json
from tests.oracle.difference import MISSED, PLANNED
from tests.oracle.exceptions import Case, Rule
from tests.oracle.features import FEATURES, hard
from tests.oracle.sketch import bound, key_of

_SPREAD_OVER_DAEMONS: Final = next(one.found for one in FEATURES if one.name == "spread: daemon pods")
_TOPOLOGY: Final = ("InterPodAffinity", "PodTopologySpread")


def _several_reasons(case: Case) -> bool:
    leaving = any("deletionTimestamp" in pod["metadata"] for pod in bound(case.world))
    return leaving and case.difference.plugin in _TOPOLOGY


def _daemons_of_new_nodes(case: Case) -> bool:
    own = next((pod["spec"] for pod in case.world["pods"] if key_of(pod) == case.difference.pod), {})
    if not hard(own) or not _SPREAD_OVER_DAEMONS(case.world):
        return False
    return case.difference.direction == MISSED or (case.difference.direction == PLANNED and _of_some_nodes(case.world))


def _of_some_nodes(world: Json) -> bool:
    specs = (one["spec"]["template"]["spec"] for one in world["daemonSets"])
    return any("nodeSelector" in spec or "nodeAffinity" in spec.get("affinity", {}) for spec in specs)


def _room_kept(case: Case) -> bool:
    specs = (one["spec"]["template"]["spec"] for one in case.world["daemonSets"])
    return case.difference.direction == MISSED and any("podAntiAffinity" in spec.get("affinity", {}) for spec in specs)


PENDING: tuple[Rule, ...] = (
    Rule(
        "daemon pods of new nodes",
        "a spread over zones does not foresee those of a DaemonSet of some instance types only, and a pod with a new "
        "node may fit on an existing one when it moves alone",
        _daemons_of_new_nodes,
    ),
    Rule("room for a daemon pod", "is kept on a node, although anti-affinity keeps the pod away", _room_kept),
    Rule("short grace, and more", "the exception is not seen beside another difference", _several_reasons),
)
