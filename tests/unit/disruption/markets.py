"""Worlds for the tests of consolidation, of which the real scheduler is asked: types and nodes of any size and price.

A type has 4 GiB for each CPU and is offered in the zones and markets that it has prices for, in millionths of a dollar
per hour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kerf.disruption.asking import Scheduler
from kerf.disruption.candidates.candidates import Blocker, Candidate, candidate
from kerf.disruption.consolidation.moves import Move, judge
from kerf.disruption.propose import propose
from kerf.disruption.view import view
from kerf.model.aws.instance_type import InstanceType, Offering, Reservation
from kerf.model.kubernetes.objects import Node, Pod
from kerf.model.settings import FeatureGates, Settings
from kerf.model.snapshot import Proposal
from kerf_api import labels
from kerf_api.requirements import IN, Requirements, requirement
from kerf_api.resources import Resources
from kerf_api.v1.meta import decode, encode
from tests.unit.disruption import worlds as w

ON_DEMAND, SPOT, RESERVED = labels.ON_DEMAND, labels.SPOT, labels.RESERVED
GATE = Settings("test", gates=FeatureGates(spot_to_spot_consolidation=True))
A, B, C = "us-west-2a", "us-west-2b", "us-west-2c"
GIB = 2**30


def machine(
    name: str,
    cpu: int,
    price: int | None = None,
    spot: int | None = None,
    *,
    offers: Mapping[tuple[str, str], int] = {},
    reserved: Mapping[str, int] = {},
    free: bool = False,
    zones: Sequence[str] = (A,),
) -> InstanceType:
    """`offers` are prices by zone and market beside `price` (on demand) and `spot` in all `zones`; `reserved` is how
    many instances each reservation of zone A has free. With `free` these cost nothing more, as AWS has it."""
    rows = {(zone, ON_DEMAND): price for zone in zones} | {(zone, SPOT): spot for zone in zones} | dict(offers)
    found = [Offering(name, zone, market, cost) for (zone, market), cost in rows.items() if cost is not None]
    found += [
        Offering(
            name,
            A,
            RESERVED,
            0 if free else 1,
            available=left > 0,
            reservation=Reservation(id_, left),
            on_demand=(price or 0) if free else 0,
        )
        for id_, left in reserved.items()
    ]
    own = [requirement(labels.INSTANCE_TYPE, IN, (name,)), requirement(labels.OS, IN, ("linux",))]
    own += [requirement(labels.ARCH, IN, ("amd64",))]
    own += [requirement(labels.ZONE, IN, tuple({o.zone for o in found}))]
    if not reserved:
        own += [requirement(labels.CAPACITY_TYPE, IN, tuple({o.capacity_type for o in found}))]
    room = Resources({"cpu": cpu * 1000, "memory": cpu * 4 * GIB, "pods": 110})
    return InstanceType(name, Requirements(own), room, room, tuple(found))


def host(
    name: str, type_: InstanceType, *, zone: str = A, node_labels: Mapping[str, str] = {}, **more: Any
) -> list[Any]:
    """A claim of this type with its node."""
    one = w.claim(name, instance_type=type_.name, **more)
    own = {**one.metadata.labels, labels.ZONE: zone, **node_labels}
    one = replace(one, metadata=replace(one.metadata, labels=own))
    raw = encode(w.node(one))
    raw["metadata"]["labels"][labels.HOSTNAME] = f"node-{name}"
    room = {"cpu": f"{type_.allocatable['cpu']}m", "memory": str(type_.allocatable["memory"]), "pods": "110"}
    raw["status"] |= {"allocatable": room, "capacity": room}
    return [one, decode(Node, raw)]


def pod(name: str, on: str = "", cpu: str = "500m", **more: Any) -> Pod:
    return w.pod(name, on, containers=[{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **more)


def waiting(name: str, cpu: str = "500m", **more: Any) -> Pod:
    """A pod that has no node yet."""
    told = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    return pod(name, cpu=cpu, phase="Pending", pod_conditions=told, **more)


def only(*markets: str, **more: Any) -> Any:
    """A NodePool that buys in these markets."""
    return w.pool(requirements=[wanted(labels.CAPACITY_TYPE, *markets), *more.pop("requirements", [])], **more)


def wanted(key: str, *values: str, least: int | None = None) -> dict[str, Any]:
    row: dict[str, Any] = {"key": key, "operator": "In" if values else "Exists"}
    row |= {"values": list(values)} if values else {}
    return row | ({"minValues": least} if least is not None else {})


# --- what comes of it -------------------------------------------------------------------------------------------
def proposed(*objects: Any, types: Sequence[InstanceType], **facts: Any) -> tuple[Proposal, ...]:
    """What the slow half finds."""
    return propose(w.snapshot(objects, catalogues={"default": tuple(types)}, **facts))


def moves(*objects: Any, types: Sequence[InstanceType], **facts: Any) -> list[tuple[str, str]]:
    """The nodes that go, and how."""
    return [("".join(sorted(p.candidates)), p.kind) for p in proposed(*objects, types=types, **facts)]


def bought(proposal: Proposal, key: str = labels.INSTANCE_TYPE) -> list[tuple[str, ...]]:
    """The values that the replacements allow of a label."""
    return [entry.values for claim in proposal.replacements for entry in claim.spec.requirements if entry.key == key]


def verdict(*objects: Any, types: Sequence[InstanceType], names: str = "a", **facts: Any) -> Move | Blocker:
    """What is said of the end of these nodes together."""
    seen = view(w.snapshot(objects, catalogues={"default": tuple(types)}, **facts))
    found = [candidate(seen, name) for name in names]
    blocked = next((one for one in found if isinstance(one, Blocker)), None)
    return blocked or judge(
        seen, [one for one in found if isinstance(one, Candidate)], Scheduler(seen.snapshot, seen.turn)
    )


def said(found: Move | Blocker) -> str:
    return found.code if isinstance(found, Blocker) else found.kind
