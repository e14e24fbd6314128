"""Claims, and the fleet requests (or problems) that are made of them, in a region with a handful of types."""

from __future__ import annotations

from typing import Any

from kerf.ec2.launch import fleet
from kerf.ec2.launch.fleet import FleetProblem, LaunchFacts
from kerf.model.aws.cloud import FleetRequest
from kerf.model.aws.instance_type import Catalogue
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.ec2.ec2_facts import CLUSTER, NOW, SETTINGS, catalogue, claim, node_class, ready

TYPE, CAPACITY_TYPE, ZONE = labels.INSTANCE_TYPE, labels.CAPACITY_TYPE, labels.ZONE
CLASS = ready(node_class())
GENERIC = ("c5.large", "m5.large", "m5.xlarge", "m7g.large", "r5.large", "t3.large")


BOTH = (CAPACITY_TYPE, "In", ["spot", "on-demand"])


def planned(*claims: NodeClaim, types: Catalogue | None = None, **changes: Any) -> FleetRequest | FleetProblem:
    given: dict[str, Any] = {
        "node_class": CLASS,
        "catalogue": catalogue(*GENERIC) if types is None else types,
        "cluster": CLUSTER,
        "settings": SETTINGS,
        "out_of_stock": {},
        "now": NOW,
        **changes,
    }
    attempt = given.pop("attempt", 0)
    return fleet.plan(claims or (claim(),), LaunchFacts(**given), attempt=attempt)


def request(*claims: NodeClaim, **changes: Any) -> FleetRequest:
    found = planned(*claims, **changes)
    assert isinstance(found, FleetRequest), found
    return found


def problem(*claims: NodeClaim, **changes: Any) -> FleetProblem:
    found = planned(*claims, **changes)
    assert isinstance(found, FleetProblem), found
    return found


def names(found: FleetRequest) -> list[str]:
    return list(dict.fromkeys(override.instance_type for override in found.overrides))


def typed(*wanted: str) -> tuple[str, str, list[str]]:
    return (TYPE, "In", list(wanted))
