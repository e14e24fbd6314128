"""From pods to fleet calls: the scheduler plans nodes of real instance types, and each becomes the call for EC2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kerf.ec2.launch import fleet
from kerf.ec2.launch.fleet import LaunchFacts
from kerf.model.aws.cloud import ClassFacts, FleetRequest
from kerf.model.aws.instance_type import Catalogue
from kerf.model.settings import Settings
from kerf.scheduling.solve import solve
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.ec2.ec2_facts import CLUSTER, NOW, SETTINGS, catalogue, facts, node_class, ready
from tests.unit.scheduling import worlds as w

#: General types of two architectures, and at least one of every special kind.
NAMES = (
    *("c5.large", "m5.large", "m5.xlarge", "m5.metal", "m6idn.32xlarge", "m7g.large", "m7i.large", "m7i-flex.large"),
    *("t3.large", "t3.xlarge", "g4dn.xlarge", "p4d.24xlarge", "inf1.xlarge", "inf2.xlarge", "trn1.2xlarge"),
    *("c6gn.16xlarge", "m5dn.24xlarge"),
)


@dataclass(frozen=True)
class Asked:
    """What a pass makes of pods: the calls, and the names of pods that have no place."""

    calls: tuple[FleetRequest, ...]
    pending: tuple[str, ...]

    @property
    def call(self) -> FleetRequest:
        """The only call, with every pod in its place."""
        assert self.pending == ()
        assert len(self.calls) == 1, f"{len(self.calls)} calls"
        return self.calls[0]

    @property
    def types(self) -> list[str]:
        """The types that the only call names, cheapest first."""
        return list(dict.fromkeys(override.instance_type for override in self.call.overrides))


def row(key: str, operator: str, *values: str, least: int | None = None) -> dict[str, Any]:
    """A requirement of a NodePool."""
    entry: dict[str, Any] = {"key": key, "operator": operator, "values": list(values)}
    return entry if least is None else {**entry, "minValues": least}


TYPE, FAMILY, ZONE = labels.INSTANCE_TYPE, "karpenter.k8s.aws/instance-family", labels.ZONE
BOUGHT = row(labels.CAPACITY_TYPE, "In", labels.ON_DEMAND)
ANY = row(labels.CAPACITY_TYPE, "Exists")


def asked(
    *pods: Any,
    of: EC2NodeClass | None = None,
    types: Catalogue | None = None,
    rows: Sequence[dict[str, Any]] = (BOUGHT,),
    settings: Settings = SETTINGS,
    **changes: Any,
) -> Asked:
    """One pass over these pods with a NodePool of these requirements (on demand), and the calls that follow.

    `changes` are facts about the class's surroundings (subnets, images, …).
    """
    found = facts(**changes)
    base = of or node_class()
    kinds = catalogue(*NAMES, of=base, settings=settings, **changes) if types is None else types
    snapshot = w.world(w.pool(requirements=list(rows)), list(pods), catalogue=kinds)
    solution = solve(snapshot, list(snapshot.pods.pending.values()))
    made = [_call(claim, ready(base, found), kinds, settings, found) for claim in w.claims(snapshot, solution)]
    return Asked(tuple(made), tuple(sorted(key.partition("/")[2] for key in solution.unplaced)))


def _call(claim: NodeClaim, of: EC2NodeClass, types: Catalogue, settings: Settings, found: ClassFacts) -> FleetRequest:
    known = LaunchFacts(of, types, CLUSTER, settings, {}, NOW, placement_group=found.placement_group)
    made = fleet.plan([claim], known)
    assert isinstance(made, FleetRequest), made
    return made


def pod(name: str = "a", cpu: str = "1", **more: Any) -> Any:
    """A pending pod; `needs` are further requests, `select` its node selector, `wants` rows of its node affinity."""
    select, rows = more.pop("select", {}), more.pop("wants", [])
    affinity: dict[str, Any] = {"affinity": w.node_affinity(rows)} if rows else {}
    return w.pod(name, cpu, "1Gi", requests=more.pop("needs", {}), nodeSelector=select, **affinity, **more)
