"""Our side: a world as a snapshot, and what the provisioning room makes of its pods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from kerf.model import kinds
from kerf.model.aws.instance_type import InstanceType, Offering
from kerf.model.cluster import build
from kerf.model.kubernetes.objects import Pod
from kerf.model.plan import INTERNAL_ERROR
from kerf.model.settings import Settings
from kerf.model.snapshot import Snapshot
from kerf.provisioning.boundary import solve_apart
from kerf.provisioning.pending import pending_pods, rehoused_pods
from kerf.scheduling.answers.solution import Solution
from kerf_api import labels
from kerf_api.requirements import DOES_NOT_EXIST, IN, Requirements, requirement
from kerf_api.resources import Resources
from kerf_api.v1.meta import Value, decode
from tests.differential.draft import Json
from tests.referee import Violation, violations

_NOW: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
#: Where a world has the objects of a kind.
_LISTS: Final = (
    (kinds.NODE_POOL, lambda world: world["nodePools"]),
    (kinds.NODE, lambda world: [entry["node"] for entry in world["nodes"] if "node" in entry]),
    (kinds.NODE_CLAIM, lambda world: [entry["nodeClaim"] for entry in world["nodes"] if "nodeClaim" in entry]),
    (kinds.POD, lambda world: [*world["pods"], *(pod for entry in world["nodes"] for pod in entry.get("pods", []))]),
    (kinds.DAEMON_SET, lambda world: world["daemonSets"]),
    (kinds.NAMESPACE, lambda world: world["namespaces"]),
    (kinds.PV, lambda world: world["storage"].get("persistentVolumes", [])),
    (kinds.PVC, lambda world: world["storage"].get("persistentVolumeClaims", [])),
    (kinds.STORAGE_CLASS, lambda world: world["storage"].get("storageClasses", [])),
)


@dataclass(frozen=True, slots=True)
class Ours:
    """The pods that were asked about, and the answer; `refused` were not even asked about."""

    snapshot: Snapshot
    pods: tuple[Pod, ...]
    solution: Solution

    @property
    def placed(self) -> frozenset[str]:
        """The keys of all pods that have a place."""
        return frozenset(self.solution.placed) | {key for node in self.solution.new_nodes for key in node.pods}

    def violations(self) -> list[Violation]:
        """What the referee says."""
        plain: Any = self.solution  # frozen, whereas the referee's protocol asks for attributes that can be set
        return violations(self.snapshot, self.pods, plain)

    @property
    def failures(self) -> tuple[str, ...]:
        """Errors that nobody thought of: the provisioning room confines them, and refuses what they are about."""
        refusals = (*self.solution.unplaced.values(), *self.solution.pool_problems.values())
        return tuple(sorted({why.text for why in refusals if why.code == INTERNAL_ERROR}))

    def priority(self, key: str) -> int:
        return self.snapshot.pods[key].spec.priority

    def only(self, keys: frozenset[str]) -> Ours:
        """The answer when only these pods are to be placed."""
        some = tuple(pod for pod in self.pods if pod.key in keys)
        return Ours(self.snapshot, some, solve_apart(self.snapshot, some))


def answer(world: Json) -> Ours:
    """What the provisioning room answers, pods on nodes that go included."""
    snapshot = snapshot_of(world)
    pending, _ = pending_pods(snapshot)
    pods = (*pending, *rehoused_pods(snapshot))
    return Ours(snapshot, pods, solve_apart(snapshot, pods))


def snapshot_of(world: Json) -> Snapshot:
    told = world["settings"]
    settings = Settings(
        "differential",
        preference_policy=told.get("preferencePolicy", "Respect"),
        min_values_policy=told.get("minValuesPolicy", "Strict"),
    )
    catalogue = tuple(instance_type(row, world["wellKnownLabels"]) for row in world["instanceTypes"])
    objects: list[Value] = [decode(kind.type, manifest) for kind, listed in _LISTS for manifest in listed(world)]
    return build(objects, now=_NOW, settings=settings, catalogues={"default": catalogue})


def instance_type(row: Json, provider_labels: Sequence[str]) -> InstanceType:
    """As the cloud's room would make it: a label of the provider's that the type has not is told to be absent."""
    offers = tuple(_offering(row["name"], sold) for sold in row["offerings"])
    rows = [
        requirement(labels.INSTANCE_TYPE, IN, (row["name"],)),
        requirement(labels.ARCH, IN, (row["arch"],)),
        requirement(labels.OS, IN, (row["os"],)),
        requirement(labels.ZONE, IN, {o.zone for o in offers}),
        requirement(labels.CAPACITY_TYPE, IN, {o.capacity_type for o in offers}),
        *(requirement(key, IN, (value,)) for key, value in row["labels"].items()),
        *(requirement(key, DOES_NOT_EXIST) for key in provider_labels if key not in row["labels"]),
    ]
    capacity, allocatable = Resources.parse(row["capacity"]), Resources.parse(row["allocatable"])
    return InstanceType(row["name"], Requirements(rows), capacity, allocatable, offers)


def _offering(name: str, sold: Json) -> Offering:
    return Offering(name, sold["zone"], sold["capacityType"], round(sold["price"] * 1e6), sold["available"])
