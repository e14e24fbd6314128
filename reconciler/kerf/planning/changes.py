"""Changes to the objects of a world: manifests that are applied or deleted, as a commit to Git would bring them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kerf.model import kinds
from kerf.model.snapshot import Snapshot
from kerf.ports import AlreadyGone
from kerf.sandbox.api.admission import Refused
from kerf.sandbox.world import World
from kerf.snapshots.fields import ANNOTATIONS

#: Kinds of manifests that change what Kerf does; others are passed over.
KINDS: Final = frozenset(
    {"NodePool", "EC2NodeClass", "NodeOverlay", "CapacityBuffer", "PodDisruptionBudget", "DaemonSet"}
)


class BadChange(Exception):
    """A change that the API server or the webhook would refuse, and why."""


@dataclass(frozen=True, slots=True)
class Change:
    """Manifests to apply, in order, and objects to delete as (kind, namespace, name)."""

    applied: tuple[Mapping[str, Any], ...] = ()
    deleted: tuple[tuple[str, str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.applied or self.deleted)


#: No change at all.
NOTHING: Final = Change()


def apply(world: World, change: Change) -> None:
    """Apply a change to a world. Raises BadChange."""
    for manifest in sorted(change.applied, key=lambda one: one.get("kind") != kinds.NODE_CLASS.name):
        name = f"{manifest.get('kind')} {(manifest.get('metadata') or {}).get('name', '')}"
        try:
            world.apply(manifest)
        except Refused as refused:
            raise BadChange(f"{name}: {'; '.join(refused.problems)}") from refused
    for kind, namespace, name in change.deleted:
        try:
            world.delete(kind, name, namespace)
        except AlreadyGone as error:
            raise BadChange(f"{kind} {name}: {error}") from error


def comparable(change: Change, snapshot: Snapshot, digest: Callable[[str], str] | None) -> tuple[Change, list[str]]:
    """A change to compare with a snapshot from a file, which lacks user data and annotations; and what was assumed.

    `digest` makes what the file has in place of user data; None when its key is not known.
    """
    assumed: list[str] = []
    found = tuple(_comparable(manifest, snapshot, digest, assumed) for manifest in change.applied)
    return Change(found, change.deleted), assumed


def _comparable(
    manifest: Mapping[str, Any], snapshot: Snapshot, digest: Callable[[str], str] | None, assumed: list[str]
) -> Mapping[str, Any]:
    kind, name = manifest.get("kind"), (manifest.get("metadata") or {}).get("name", "")
    spec = manifest.get("spec") or {}
    if kind == kinds.NODE_CLASS.name and (text := spec.get("userData")):
        known = snapshot.node_classes.get(name)
        before = known.spec.user_data if known is not None else None
        told = digest(text) if digest is not None else before
        if digest is None:
            assumed.append(f"EC2NodeClass {name}: its user data is taken to be unchanged: KERF_DIGEST_KEY is not set")
        return {**manifest, "spec": {**spec, "userData": told if told is not None else text}}
    if kind == kinds.NODE_POOL.name:
        template = spec.get("template") or {}
        meta = template.get("metadata") or {}
        own = {key: text for key, text in (meta.get("annotations") or {}).items() if key in ANNOTATIONS}
        if own != (meta.get("annotations") or {}):
            assumed.append(f"NodePool {name}: annotations of its template are taken to be unchanged")
            whole = {**template, "metadata": {**meta, "annotations": own}}
            return {**manifest, "spec": {**spec, "template": whole}}
    return manifest


def relevant(manifests: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Those of kinds that change what Kerf does."""
    return tuple(one for one in manifests if one.get("kind") in KINDS)
