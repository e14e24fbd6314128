"""What every part of the room looks up: the snapshot, and a few indexes made once per plan in one pass each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from api import labels
from api.requirements import Requirements
from api.v1.nodeclaim import NodeClaim
from api.v1.nodepool import NodePool, parse_entries
from reconciler.disruption.command import Command, command_of
from reconciler.model.instance_type import InstanceType
from reconciler.model.objects import Pod
from reconciler.model.pdbs import Pdbs
from reconciler.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class View:
    """`commands` are by claim name; claims that are being deleted have none (theirs is carried out).
    `ending` are claims that this very plan deletes by force.

    `types` maps a node class to its instance types by name.
    """

    snapshot: Snapshot
    pdbs: Pdbs
    commands: Mapping[str, Command]
    types: Mapping[str, Mapping[str, InstanceType]]
    ending: frozenset[str] = frozenset()
    #: What each NodePool's template requires of labels; None when that cannot be read.
    requirements: Mapping[str, Requirements | None] = field(default_factory=dict)

    def pods_on(self, node_name: str) -> tuple[Pod, ...]:
        """Sorted by `namespace/name`."""
        found = self.snapshot.pods.by_node.get(node_name, {})
        return tuple(found[key] for key in sorted(found))

    def types_of(self, pool: NodePool) -> Mapping[str, InstanceType]:
        return self.types.get(pool.class_name, {})


def view(snapshot: Snapshot, ending: frozenset[str] = frozenset()) -> View:
    return View(
        snapshot,
        Pdbs.of(snapshot.pdbs),
        _commands(snapshot.node_claims),
        {name: {t.name: t for t in catalogue} for name, catalogue in snapshot.catalogues.items()},
        ending,
        {name: _requirements(pool) for name, pool in snapshot.node_pools.items()},
    )


def _requirements(pool: NodePool) -> Requirements | None:
    try:
        return parse_entries(pool.spec.template.spec.requirements)
    except ValueError:
        return None


def managed(claim: NodeClaim) -> bool:
    """Whether the claim's node class is of the kind that we serve."""
    ref = claim.spec.node_class_ref
    return ref.group == labels.AWS_GROUP and ref.kind == "EC2NodeClass"


def _commands(claims: Mapping[str, NodeClaim]) -> dict[str, Command]:
    carrying = sorted(name for name, claim in claims.items() if labels.COMMAND in claim.metadata.annotations)
    read = ((name, command_of(claims[name].metadata.annotations)) for name in carrying)
    return {name: c for name, c in read if c is not None and not claims[name].metadata.deleting}
