"""Changes to the objects of a simulation: manifests to apply or delete, like those of a commit to Git."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kerf.model import kinds
from kerf.model.snapshot import Snapshot
from kerf.ports import AlreadyGone
from kerf.sandbox.api.admission import Refused
from kerf.sandbox.world import World
from kerf.snapshots.fields import ANNOTATIONS

#: Kinds of manifests that change the decisions of Kerf; others are ignored.
KINDS: Final = frozenset(
    {"NodePool", "EC2NodeClass", "NodeOverlay", "CapacityBuffer", "PodDisruptionBudget", "DaemonSet"}
)


#: Kind, namespace and name; the namespace of a cluster-scoped object is empty.
Key = tuple[str, str, str]


class BadChange(Exception):
    """A change that the API server or the webhook would refuse, with the reason."""


@dataclass(frozen=True, slots=True)
class Change:
    """Manifests to apply, in order, and objects to delete as (kind, namespace, name).

    `as_written` has the user's manifests when `applied` lacks the fields that a snapshot file lacks.
    """

    applied: tuple[Mapping[str, Any], ...] = ()
    deleted: tuple[Key, ...] = ()
    as_written: tuple[Mapping[str, Any], ...] | None = None

    @property
    def written(self) -> tuple[Mapping[str, Any], ...]:
        """The user's manifests."""
        return self.applied if self.as_written is None else self.as_written

    def __bool__(self) -> bool:
        return bool(self.applied or self.deleted)


#: No change.
NOTHING: Final = Change()


def apply(world: World, change: Change) -> None:
    """Apply a change to a simulation. Raises BadChange."""
    for manifest in sorted(change.applied, key=lambda one: one.get("kind") != kinds.NODE_CLASS.name):
        name = f"{manifest.get('kind')} {key(manifest)[2]}"
        if not key(manifest)[2]:
            raise BadChange(f"{manifest.get('kind')}: metadata.name is missing")
        try:
            world.apply(manifest)
        except Refused as refused:
            raise BadChange(f"{name}: {'; '.join(refused.problems)}") from refused
    for kind, namespace, name in change.deleted:
        try:
            world.delete(kind, name, namespace)
        except AlreadyGone as error:
            raise BadChange(f"{kind} {name}: {error}") from error


def key(manifest: Mapping[str, Any]) -> Key:
    """Return the key of a manifest; a namespaced object without a namespace is in `default`."""
    meta, kind = _fields(manifest.get("metadata")), str(manifest.get("kind", ""))
    return kind, namespace_of(kind, str(meta.get("namespace") or "")), str(meta.get("name", ""))


def namespace_of(kind: str, given: str) -> str:
    """Return the namespace of an object from the user's value, which may be empty."""
    known = kinds.BY_NAME.get(kind)
    return "" if known is None or known.cluster_scoped else given or "default"


def _fields(value: Any) -> Mapping[str, Any]:
    """Return the fields of a map; none for another value, which the API server refuses later."""
    return value if isinstance(value, dict) else {}


@dataclass(slots=True)
class Comparison:
    """Comparison of a change with a snapshot file, which lacks user data and annotations.

    `digest` computes the file's replacement for user data; None when its key is not known. `before` has the objects
    before the change, where they are known. `unknown` is the reason for a missing key. `assumed` lists the
    assumptions as text.
    """

    snapshot: Snapshot
    digest: Callable[[str], str] | None = None
    before: Mapping[Key, Mapping[str, Any]] = field(default_factory=dict)
    unknown: str = "KERF_DIGEST_KEY is not set"
    assumed: list[str] = field(default_factory=list)

    def comparable(self, change: Change) -> Change:
        """Return the change with the values of the file where they are unchanged."""
        return Change(tuple(map(self._comparable, change.applied)), change.deleted, change.written)

    def _comparable(self, manifest: Mapping[str, Any]) -> Mapping[str, Any]:
        if manifest.get("kind") == kinds.NODE_CLASS.name:
            return self._node_class(manifest)
        return self._pool(manifest) if manifest.get("kind") == kinds.NODE_POOL.name else manifest

    def _node_class(self, manifest: Mapping[str, Any]) -> Mapping[str, Any]:
        spec, name = _fields(manifest.get("spec")), key(manifest)[2]
        text, known = spec.get("userData"), self.snapshot.node_classes.get(name)
        if not isinstance(text, str) or not text or known is None or not known.spec.user_data:
            return manifest
        old = self.before.get(key(manifest))
        if self.digest is not None:
            text = self.digest(text)
        elif old is None or _fields(old.get("spec")).get("userData") == text:
            text = known.spec.user_data
        if self.digest is None and old is None:
            self.assumed.append(f"EC2NodeClass {name}: its user data is assumed unchanged: {self.unknown}")
        return {**manifest, "spec": {**spec, "userData": text}}

    def _pool(self, manifest: Mapping[str, Any]) -> Mapping[str, Any]:
        found, old = _template_annotations(manifest), self.before.get(key(manifest))
        kept = {name: text for name, text in found.items() if name in ANNOTATIONS}
        if kept == found or (old is not None and _template_annotations(old) != found):
            return manifest
        if old is None:
            words = "annotations of its template are assumed unchanged"
            self.assumed.append(f"NodePool {key(manifest)[2]}: {words}")
        template = manifest["spec"]["template"]
        whole = {**template, "metadata": {**template["metadata"], "annotations": kept}}
        return {**manifest, "spec": {**manifest["spec"], "template": whole}}


def _template_annotations(manifest: Mapping[str, Any]) -> Mapping[str, str]:
    template = _fields(_fields(manifest.get("spec")).get("template"))
    return _fields(_fields(template.get("metadata")).get("annotations"))


def relevant(manifest: Mapping[str, Any]) -> bool:
    """Whether a manifest is of a kind that changes a plan."""
    return str(manifest.get("kind")) in KINDS
