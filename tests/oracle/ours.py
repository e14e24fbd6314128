"""The engine's answer to a world, and the nodes that it plans, as manifests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final, NamedTuple

import msgspec

from kerf.model import kinds
from kerf.model.aws.instance_type import Catalogue, InstanceType, Offering
from kerf.model.cluster import build
from kerf.model.kubernetes.objects import Pod
from kerf.model.plan import INTERNAL_ERROR
from kerf.model.settings import Settings
from kerf.model.snapshot import Snapshot
from kerf.provisioning.boundary import solve_apart
from kerf.provisioning.pending import pending_pods
from kerf.scheduling.answers.nodeclaims import to_claim
from kerf.scheduling.answers.solution import Solution
from kerf_api import labels
from kerf_api.v1.meta import Value, decode
from kerf_api.v1.nodeclaim import NodeClaim
from tests.differential.draft import Json
from tests.differential.ours import instance_type
from tests.oracle.sketch import as_joined
from tests.unit.scheduling.worlds import launched_as

NOW: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
_KINDS: Final = (
    (kinds.NODE_POOL, "nodePools"),
    (kinds.NODE, "nodes"),
    (kinds.NODE_CLAIM, "nodeClaims"),
    (kinds.POD, "pods"),
    (kinds.DAEMON_SET, "daemonSets"),
    (kinds.NAMESPACE, "namespaces"),
    (kinds.PV, "persistentVolumes"),
    (kinds.PVC, "persistentVolumeClaims"),
    (kinds.STORAGE_CLASS, "storageClasses"),
    (kinds.CSI_NODE, "csiNodes"),
)


@dataclass(frozen=True, slots=True)
class Ours:
    """The pods that the engine was asked about, and its answer; others were `refused` before."""

    snapshot: Snapshot
    pods: tuple[Pod, ...]
    solution: Solution
    refused: Mapping[str, str]

    @property
    def failures(self) -> tuple[str, ...]:
        """Errors of the engine: a boundary turns them into refusals."""
        refusals = (*self.solution.unplaced.values(), *self.solution.pool_problems.values())
        return tuple(sorted({why.text for why in refusals if why.code == INTERNAL_ERROR}))

    @property
    def homes(self) -> dict[str, str]:
        """The name of the node for each pod that has a place."""
        names = {key: self.snapshot.state_nodes[target].name for key, target in self.solution.placed.items()}
        new = {key: new_name(number) for number, one in enumerate(self.solution.new_nodes) for key in one.pods}
        return names | new


def answer(world: Json) -> Ours:
    snapshot = snapshot_of(world)
    pods, refused = pending_pods(snapshot)
    solution = solve_apart(snapshot, pods, accounts=0, spend=0)
    return Ours(snapshot, tuple(pods), solution, {key: str(why) for key, why in refused.items()})


def snapshot_of(world: Json) -> Snapshot:
    catalogue = tuple(instance_type(row, world["wellKnownLabels"]) for row in world["instanceTypes"])
    objects: list[Value] = [decode(kind.type, manifest) for kind, where in _KINDS for manifest in world[where]]
    settings = Settings("oracle", improve=timedelta(seconds=world["settings"].get("improveSeconds", 0)))
    return build(objects, now=NOW, settings=settings, catalogues={"default": catalogue})


# --- planned nodes ------------------------------------------------------------------------------------------------
def new_name(number: int) -> str:
    """Sorts after the names of all nodes that are there."""
    return f"planned-{number:02}"


class Launch(NamedTuple):
    """A choice among the types and offerings that a plan leaves open: by chance for each planned node, whose dice have
    this `number`; but the planned node of number `node` becomes its choice of number `option`."""

    number: int = 0
    node: int = -1
    option: int = 0


#: By chance for all nodes.
AT_FIRST: Final = Launch()


def planned_nodes(ours: Ours, launch: Launch = AT_FIRST) -> Iterator[Json]:
    """Each planned node as the plan promises it: one of its types and offerings, the labels and taints of its claim."""
    for number, new in enumerate(ours.solution.new_nodes):
        claim = to_claim(ours.snapshot, new, salt=str(number))
        options = _options(claim, ours.snapshot.catalogues["default"])
        dice = Random(f"launch {launch.number or ''}{number} {claim.name}")
        chosen = launched_as(claim, *(options[launch.option] if number == launch.node else dice.choice(options)))
        name = new_name(number)
        own = {**chosen.metadata.labels, labels.HOSTNAME: name, labels.REGISTERED: "true", labels.INITIALIZED: "true"}
        amounts: dict[str, Any] = {
            "capacity": dict(chosen.status.capacity),
            "allocatable": dict(chosen.status.allocatable),
        }
        node: Json = {
            "metadata": {"name": name, "uid": f"uid-{name}", "labels": own},
            "spec": {"providerID": chosen.status.provider_id, "taints": msgspec.to_builtins(chosen.spec.taints)},
            "status": amounts,
        }
        as_joined(node)
        yield node


def each_choice(ours: Ours) -> Iterator[Launch]:
    """Each choice of each planned node, beside the others as they are by default."""
    for number, new in enumerate(ours.solution.new_nodes):
        claim = to_claim(ours.snapshot, new, salt=str(number))
        for option in range(len(_options(claim, ours.snapshot.catalogues["default"]))):
            yield Launch(0, number, option)


def _options(claim: NodeClaim, catalogue: Catalogue) -> list[tuple[InstanceType, Offering]]:
    wanted = claim.requirements()
    return [
        (kind, offering)
        for kind in catalogue
        if wanted.allowed(labels.INSTANCE_TYPE).has(kind.name)
        for offering in kind.offerings
        if offering.available and offering.suits(wanted)
    ]
