"""The digests that approve a planned change, equal to those of the controller after the change is applied.

A plan shows the time after the approval, so no change waits in the simulation: the annotations are removed there. A
snapshot file lacks user data and annotations of templates. So the digest is computed from the manifests of the change,
and for other objects from the digests that the controller has written to the NodePool.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import ValidationError

from kerf.disruption.candidates.approval import seen_of
from kerf.model import kinds
from kerf.planning.changes import Change, key
from kerf.sandbox.world import World
from kerf.snapshots.captured import Captured
from kerf_api import approval, labels
from kerf_api.defaulting import default
from kerf_api.v1 import plan_digest
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import decode
from kerf_api.v1.nodepool import NodePool
from kerf_api.v1.plan_digest import Parts


@dataclass(frozen=True, slots=True)
class Approval:
    """A NodePool whose change waits for approval.

    Attributes:
        nodepool: its name.
        digest: the value of `kerf.sh/approved-plan` that approves the change; empty when it is not known.
        approved: whether the manifests or the cluster have the annotation already.
        unknown: the reason when the digest is not known.
    """

    nodepool: str
    digest: str = ""
    approved: bool = False
    unknown: str = ""


class Approvals:
    """The NodePools of a simulation whose changes wait for approval; after `note` none waits there.

    `guessed` has the names of EC2NodeClasses with unknown images.
    """

    def __init__(self, world: World, captured: Captured, guessed: Mapping[str, Any]) -> None:
        self._world, self._captured, self._guessed = world, captured, guessed
        self._written: dict[tuple[str, str, str], Mapping[str, Any]] = {}
        #: By NodePool, the digest that its annotation approves.
        self._waiting: dict[str, str] = {}

    def note(self, change: Change) -> None:
        """Record the changes that wait after an applied change, and approve them in the simulation."""
        self._written |= {key(one): one for one in change.written}
        setting, earlier = self._captured.snapshot.settings.plan_first, self._waiting
        classes = {one.key[1]: one.value.metadata.annotations for one in self._world.server.records(kinds.NODE_CLASS)}
        self._waiting = {}
        for record in self._world.server.records(kinds.NODE_POOL):
            pool: NodePool = record.value
            notes = pool.metadata.annotations
            kept = pool.name in earlier and labels.PLAN_FIRST not in notes
            if pool.managed and (kept or approval.of(notes, classes.get(pool.class_name, {}), setting).on):
                self._waiting[pool.name] = notes.get(labels.APPROVED_PLAN, "")
        for kind in (kinds.NODE_POOL, kinds.NODE_CLASS):
            for record in list(self._world.server.records(kind)):
                if labels.PLAN_FIRST in record.value.metadata.annotations:
                    removed = {"metadata": {"annotations": {labels.PLAN_FIRST: None}}}
                    self._world.server.patch(kind, *record.key, removed)

    def found(self) -> tuple[Approval, ...]:
        """Return the changes that need an approval, by NodePool, after the controller has read them."""
        rows = map(self._one, sorted(self._waiting))
        return tuple(row for row in rows if row is not None)

    def _one(self, name: str) -> Approval | None:
        record = self._world.server.find(kinds.NODE_POOL, "", name)
        if record is None:
            return None
        pool: NodePool = record.value
        before = self._captured.snapshot.node_pools.get(name)
        seen = seen_of(before, self._captured.snapshot.now) if before is not None else None
        found = self._parts(pool, self._real(seen.parts) if seen is not None else None)
        if isinstance(found, str):
            return Approval(name, unknown=found)
        if seen is not None and seen.settled is not None and self._real(seen.settled) == found:
            return None
        return Approval(name, found.digest, self._waiting[name] == found.digest)

    def _parts(self, pool: NodePool, seen: Parts | None) -> Parts | str:
        """Return the digests of a NodePool after the change, or the reason why they are not known."""
        record = self._world.server.find(kinds.NODE_CLASS, "", pool.class_name)
        if record is None or not record.value.status.amis or pool.class_name in self._guessed:
            return f"the images of EC2NodeClass {pool.class_name} are not known before the change is applied"
        before = self._captured.snapshot.node_pools.get(pool.name)
        noted = seen if before is not None and before.class_name == pool.class_name else None
        own = self._digest(kinds.NODE_POOL.name, pool, seen.node_pool if seen is not None else "")
        its = self._digest(kinds.NODE_CLASS.name, record.value, noted.node_class if noted is not None else "")
        if not own or not its:
            missing = f"NodePool {pool.name}" if not own else f"EC2NodeClass {pool.class_name}"
            return f"the snapshot does not have all of {missing}; add its manifest"
        images = plan_digest.of_images(image.id for image in record.value.status.amis)
        return Parts(node_pool=own, node_class=its, images=images)

    def _real(self, parts: Parts) -> Parts:
        """Return the digests in the cluster; a snapshot file has replaced them by other values."""
        real = self._captured.plans
        pool, node_class = (real.get(one, one) for one in (parts.node_pool, parts.node_class))
        return Parts(node_pool=pool, node_class=node_class, images=parts.images)

    def _digest(self, kind: str, value: NodePool | EC2NodeClass, noted: str) -> str:
        """Return the digest of one object; empty when it is not known."""
        written = self._written.get((kind, "", value.name))
        if written is not None:
            try:
                value = decode(type(value), default(dict(written)))
            except ValidationError:
                return ""
        elif self._captured.of_file:
            return noted
        return plan_digest.of_pool(value) if isinstance(value, NodePool) else plan_digest.of_class(value)
