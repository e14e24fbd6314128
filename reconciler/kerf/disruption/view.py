"""What every part of the room looks up: the snapshot, and what steps know of single objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kerf.disruption.command import Command, command_of
from kerf.model.aws.instance_type import InstanceType
from kerf.model.changes.pdbs import Pdbs
from kerf.model.kubernetes.objects import Pod
from kerf.model.memory import Memory, Step, Turn
from kerf.model.snapshot import Snapshot
from kerf_api.requirements import Requirements
from kerf_api.v1.nodepool import NodePool, parse_entries


@dataclass(frozen=True, slots=True)
class View:
    """`commands` are by claim name; claims that are being deleted have none (theirs is carried out).
    `ending` are claims that this very plan deletes by force. Steps see neither: they are about single objects.
    """

    turn: Turn
    snapshot: Snapshot
    commands: Mapping[str, Command] = field(default_factory=dict)
    ending: frozenset[str] = frozenset()

    @property
    def each(self) -> View:
        """What steps look at."""
        return View(self.turn, self.turn.noted)

    @property
    def supposed(self) -> bool:
        """Whether the world is not as this says, but is looked at as if it were: nothing is remembered of it."""
        return self.snapshot is not self.turn.snapshot

    @property
    def pdbs(self) -> Pdbs:
        return Pdbs(self.snapshot.pdb_selectors, self.snapshot.pdb_budgets)

    def command(self, claim_name: str) -> Command | None:
        """The command that a living claim carries; None when it cannot be read."""
        claim = self.snapshot.node_claims.get(claim_name)
        return None if claim is None or claim.metadata.deleting else command_of(claim.metadata.annotations)

    def pods_on(self, node_name: str) -> tuple[Pod, ...]:
        """Sorted by `namespace/name`."""
        found = self.snapshot.pods.by_node.get(node_name, {})
        return tuple(found[key] for key in sorted(found))

    def types_of(self, pool: NodePool) -> Mapping[str, InstanceType]:
        """A NodePool's instance types by name, as NodeOverlays have them."""
        return self.turn.one(_TYPES, self.each, pool.name)

    def requirements_of(self, pool: NodePool) -> Requirements | None:
        """What the template requires of labels; None when that cannot be read."""
        return self.turn.one(_REQUIREMENTS, self.each, pool.name)


def view(snapshot: Snapshot, turn: Turn | None = None) -> View:
    turn = turn or Memory().turn(snapshot)
    return View(turn, turn.snapshot, turn.all(_COMMANDS, View(turn, turn.noted)).spoken)


# --- what is known of single objects ----------------------------------------------------------------------------
def _types(view: View, pool_name: str) -> tuple[Mapping[str, InstanceType], None]:
    pool = view.snapshot.node_pools[pool_name]
    return {t.name: t for t in view.snapshot.types_for(pool_name, pool.class_name)}, None


def _requirements(view: View, pool_name: str) -> tuple[Requirements | None, None]:
    try:
        return parse_entries(view.snapshot.node_pools[pool_name].spec.template.spec.requirements), None
    except ValueError:
        return None, None


def _command(view: View, claim_name: str) -> tuple[Command | None, None]:
    return view.command(claim_name), None


_TYPES: Step[View, Mapping[str, InstanceType]] = Step("types", "node_pools", _types, speaks=lambda _: False)
_REQUIREMENTS: Step[View, Requirements | None] = Step(
    "requirements", "node_pools", _requirements, speaks=lambda _: False
)
_COMMANDS: Step[View, Command] = Step("commands", "node_claims", _command, speaks=lambda found: found is not None)  # type: ignore[arg-type]
