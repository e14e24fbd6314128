"""Disagreements that are open: each is a defect of Kerf or of its referee, and has an entry until it is fixed.

An entry is no exception. `make oracle` prints the number of worlds of each; an entry that no world needs must go.
"""

from __future__ import annotations

from typing import Final

from tests.differential.draft import REQUIRED, Json
from tests.oracle.difference import BLAMED, LET_PASS, MISSED, Difference
from tests.oracle.exceptions import Case, Rule
from tests.oracle.features import FEATURES, hard
from tests.oracle.sketch import RACK, key_of

_FOUND: Final = {feature.name: feature.found for feature in FEATURES}
_DAEMONS: Final = (
    "affinity to daemon pods",
    "anti-affinity to daemon pods",
    "anti-affinity of daemon pods",
    "spread: daemon pods",
)
_TOPOLOGY: Final = ("InterPodAffinity", "PodTopologySpread")


def _spec(case: Case) -> Json:
    """The spec of the pod of a difference; empty for the whole answer."""
    return next((pod["spec"] for pod in case.world["pods"] if key_of(pod) == case.difference.pod), {})


def _topology(difference: Difference) -> bool:
    """Not about one node alone, as far as it shows."""
    return difference.plugin in _TOPOLOGY or difference.direction in (MISSED, BLAMED)


def _daemons(case: Case) -> bool:
    return _topology(case.difference) and any(_FOUND[name](case.world) for name in _DAEMONS)


def _several_terms(case: Case) -> bool:
    return _topology(case.difference) and bool(_FOUND["affinity: several terms"](case.world))


def _domains(case: Case) -> bool:
    return case.difference.direction in (MISSED, BLAMED) and bool(hard(_spec(case)))


def _custom_key(case: Case) -> bool:
    keys = {
        term["topologyKey"]
        for pod in case.world["pods"]
        for term in pod["spec"].get("affinity", {}).get("podAntiAffinity", {}).get(REQUIRED, [])
    }
    return case.difference.plugin == "InterPodAffinity" and RACK in keys


def _company(case: Case) -> bool:
    wanted = any(pod["spec"].get("affinity", {}).get("podAffinity", {}).get(REQUIRED) for pod in case.world["pods"])
    return case.difference.direction == MISSED and wanted


def _missing_daemons(case: Case) -> bool:
    allows = case.difference.direction == LET_PASS and case.difference.plugin == "NodeResourcesFit"
    return allows and bool(case.world["daemonSets"])


PENDING: tuple[Rule, ...] = (
    Rule("daemon pods", "they do not count for the topology of new nodes", _daemons),
    Rule("several affinity terms", "a pod that matches one of the terms counts for it", _several_terms),
    Rule("spread domains", "domains come from NodePools that the pod cannot use", _domains),
    Rule("referee: missing daemon pods", "on an existing node it keeps no resources for them", _missing_daemons),
    Rule("label of some NodePools", "a key counts as absent from nodes of a NodePool that has it", _custom_key),
    Rule("company", "a pod gets a new node with pods that want it near, although it fits elsewhere", _company),
)
