"""An API server in memory: objects of every kind as JSON-ready data, with the rules of the real one.

One increasing resource version; UIDs; generations that move with the spec; deletion that waits for finalizers and
for a pod's grace; merge patches with the status apart from the rest; preconditions. A write that changes nothing
leaves no trace. The parts of the world that act on objects listen to changes and read shared, immutable values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from kerf.model.kinds import POD, Kind
from kerf.ports import AlreadyExists, AlreadyGone, Conflict, Invalid, Unavailable
from kerf.sandbox.api import admission, kinds, selectors
from kerf.sandbox.api.history import Entry, History
from kerf.sandbox.api.manifests import Manifest, copied, digest, instant, merged, suffix, timestamp
from kerf_api.v1.meta import decode

#: (namespace, name); the namespace of a cluster-scoped object is empty.
Key = tuple[str, str]

_OWNED_BY_SERVER = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)


#: What a client may send without effect; another deletion time than the server's is refused.
#: The most names that are drawn for an object with `generateName`.
_DRAWS = 8
_SILENTLY_KEPT = frozenset({*_OWNED_BY_SERVER, "resourceVersion"}) - {"deletionTimestamp"}


class Record:
    """One stored object: its manifest, and the typed value that is decoded once per version."""

    __slots__ = ("_value", "kind", "manifest")

    def __init__(self, kind: Kind, manifest: Manifest) -> None:
        self.kind, self.manifest = kind, manifest
        self._value: Any = None

    @property
    def value(self) -> Any:
        """The shared typed value; for the sandbox's own parts, which never change one."""
        if self._value is None:
            self._value = decode(self.kind.type, self.manifest)
        return self._value

    @property
    def key(self) -> Key:
        meta = self.manifest["metadata"]
        return ("" if self.kind.cluster_scoped else meta.get("namespace", ""), meta["name"])

    @property
    def version(self) -> int:
        return int(self.manifest["metadata"]["resourceVersion"])


class Table(dict[Key, Record]):
    """Objects of a kind by key, and pods also by the node that they are bound to: drains ask for these repeatedly."""

    def __init__(self) -> None:
        super().__init__()
        self.on_node: dict[str, dict[Key, Record]] = {}

    def __setitem__(self, key: Key, record: Record) -> None:
        super().__setitem__(key, record)
        if node := _node_of(record):
            self.on_node.setdefault(node, {})[key] = record

    def __delitem__(self, key: Key) -> None:
        node = _node_of(self[key])
        super().__delitem__(key)
        if node:
            del self.on_node[node][key]


def _node_of(record: Record) -> str:
    return str(record.manifest["spec"].get("nodeName") or "") if record.kind.name == "Pod" else ""


#: Changes an object before it is stored, as a mutating admission plugin does.
Plugin = Callable[[Kind, Manifest], Manifest]
#: Called after each change with the record before (None: created) and after (None: removed).
Listener = Callable[[Record | None, Record | None], None]


class ApiServer:
    """The store. `now` is the world's clock; `seed` makes UIDs and generated names."""

    def __init__(self, now: Callable[[], datetime], *, seed: int = 0) -> None:
        self._now, self._seed = now, seed
        self._objects = defaultdict[str, Table](Table)
        self._histories: dict[str, History] = {}
        self._listeners: list[Listener] = []
        self._plugins: list[Plugin] = []
        self._made = 0
        #: Every kind that is served, by name.
        self.kinds: dict[str, Kind] = dict(kinds.BY_NAME)
        #: The latest resource version, and how many changes may interest a controller.
        self.version = 0
        self.loud_changes = 0

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def admit(self, plugin: Plugin) -> None:
        """Let the plugin change each object that is created or changed from now on."""
        self._plugins.append(plugin)

    # --- reading --------------------------------------------------------------------------------------------------
    def records(self, kind: Kind, namespace: str = "") -> Iterator[Record]:
        """In the order of creation."""
        for (space, _), record in self._table(kind).items():
            if not namespace or space == namespace:
                yield record

    def within(self, namespace: str) -> list[Record]:
        """All objects of a namespace, by kind in the order of creation."""
        tables = list(self._objects.values())
        return [record for table in tables for (space, _), record in table.items() if space == namespace]

    def find(self, kind: Kind, namespace: str, name: str) -> Record | None:
        return self._table(kind).get(("" if kind.cluster_scoped else namespace, name))

    def get(self, kind: Kind, namespace: str, name: str) -> Record:
        """Raises AlreadyGone."""
        record = self.find(kind, namespace, name)
        if record is None:
            raise AlreadyGone(f'{kind.plural} "{name}" not found')
        return record

    def select(self, kind: Kind, namespace: str, fields: str, labels: str) -> list[Record]:
        """Records that both selectors accept, by namespace and name. Raises Invalid."""
        tests = [selectors.field_test(kind.name, fields)] if fields else []
        tests += [selectors.label_test(labels)] if labels else []
        asked = self._on_node(fields) if kind.name == "Pod" and fields else None
        records = self.records(kind, namespace) if asked is None else (r for r in asked if namespace in ("", r.key[0]))
        chosen = (r for r in records if all(test(r.manifest) for test in tests))
        return sorted(chosen, key=lambda record: record.key)

    def _on_node(self, fields: str) -> list[Record] | None:
        """The pods of the node that a field selector names first; None when it names none."""
        path, _, name = fields.partition(",")[0].partition("=")
        if path != "spec.nodeName" or not name or name.startswith("="):
            return None
        return [*self._objects["Pod"].on_node.get(name, {}).values()]

    def history(self, kind: Kind) -> History:
        known = self._histories.get(kind.name)
        if known is None:
            known = self._histories[kind.name] = History()
        return known

    def compact(self) -> None:
        """Forget all history, as etcd does from time to time: watches that lag behind expire."""
        for history in self._histories.values():
            history.forget_all(self.version)

    # --- writing --------------------------------------------------------------------------------------------------
    def create(self, kind: Kind, manifest: Manifest) -> Record:
        """Raises AlreadyExists, AlreadyGone (no such namespace), Invalid, Unavailable (it names a version: a 500)."""
        kind = self.kinds.get(kind.name, kind)
        fresh = copied(manifest)
        given = fresh.get("metadata") or {}
        if given.get("resourceVersion"):
            raise Unavailable("resourceVersion should not be set on objects to be created")
        namespace = "" if kind.cluster_scoped else given.get("namespace") or "default"
        name = given.get("name") or self._generated(kind, namespace, given.get("generateName", ""))
        if not name:
            raise Invalid(f"{kind.name}: name or generateName is required")
        if self.find(kind, namespace, name) is not None:
            raise AlreadyExists(f'{kind.plural} "{name}" already exists')
        if namespace and ("", namespace) not in self._objects.get("Namespace", {}):
            raise AlreadyGone(f'namespaces "{namespace}" not found')
        meta = {key: value for key, value in given.items() if key not in (*_OWNED_BY_SERVER, "resourceVersion")}
        meta |= {"name": name, "uid": self._uid(), "generation": 1, "creationTimestamp": timestamp(self._now())}
        if namespace:
            meta["namespace"] = namespace
        classes = (record.manifest for record in self.records(kinds.PRIORITY_CLASS))
        stored = admission.on_create(kind, {**fresh, "metadata": meta}, classes)
        return self._store(kind, self._plugged(kind, stored), None)

    def restore(self, kind: Kind, manifest: Manifest) -> Record:
        """Put in an object as another API server had it: with its UID, times, generation and status.

        Its resource version is a new one. Raises Invalid.
        """
        return self._store(kind, {"apiVersion": kind.api_version, "kind": kind.name, **copied(manifest)}, None)

    def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        patch: Manifest,
        *,
        subresource: str = "",
        resource_version: str = "",
    ) -> Record:
        """Raises AlreadyGone, Conflict, Invalid."""
        old = self.get(kind, namespace, name)
        if subresource not in ("", "status") or (subresource and kind.name not in kinds.WITH_STATUS):
            raise AlreadyGone(f"{kind.plural}/{subresource} is not served")
        change = copied(patch)
        wanted = resource_version or str((change.get("metadata") or {}).get("resourceVersion") or "")
        if wanted and wanted != str(old.version):
            raise Conflict(f'{kind.plural} "{name}" has been modified; {wanted} is not its latest version')
        return self._replace(old, merged(old.manifest, change), subresource)

    def delete(self, kind: Kind, namespace: str, name: str, *, uid: str = "", grace_seconds: int | None = None) -> None:
        """Raises AlreadyGone, Conflict (another UID)."""
        old = self.get(kind, namespace, name)
        meta = old.manifest["metadata"]
        if uid and uid != meta["uid"]:
            raise Conflict(f'{kind.plural} "{name}": the UID in the precondition is not {meta["uid"]}')
        grace = _grace(old, grace_seconds)
        if "deletionTimestamp" in meta:
            self._hurry(old, grace_seconds, grace)
        elif not grace and not meta.get("finalizers"):
            self._remove(old)
        else:
            end: dict[str, Any] = {"deletionTimestamp": timestamp(self._now() + timedelta(seconds=grace))}
            end |= {"deletionGracePeriodSeconds": grace, "generation": meta.get("generation", 1) + 1}
            self._settle(old, {**old.manifest, "metadata": {**meta, **end}})

    def bind(self, namespace: str, name: str, node_name: str, moment: str) -> None:
        """The pod's binding subresource: place it on a node. Raises AlreadyGone, Conflict (bound already)."""
        old = self.get(POD, namespace, name)
        spec, status = old.manifest["spec"], old.manifest["status"]
        if spec.get("nodeName"):
            raise Conflict(f'pods "{name}" is bound already')
        others = [c for c in status.get("conditions", ()) if c.get("type") != "PodScheduled"]
        bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": moment}
        after = {"spec": {**spec, "nodeName": node_name}, "status": {**status, "conditions": [*others, bound]}}
        self._settle(old, {**old.manifest, **after})

    def _hurry(self, old: Record, asked: int | None, grace: int) -> None:
        """A second deletion may only shorten the grace of the first."""
        meta = old.manifest["metadata"]
        before = meta["deletionGracePeriodSeconds"]
        if asked is None or grace >= before:
            return
        end = instant(meta["deletionTimestamp"]) - timedelta(seconds=before - grace)
        sooner = {"deletionTimestamp": timestamp(end), "deletionGracePeriodSeconds": grace}
        self._settle(old, {**old.manifest, "metadata": {**meta, **sooner}})

    # --- the rules ------------------------------------------------------------------------------------------------
    def _replace(self, old: Record, wanted: dict[str, Any], subresource: str) -> Record:
        before = old.manifest
        if subresource == "status":
            after = {**before, "status": wanted.get("status") or {}}
        else:
            after = {**wanted, "apiVersion": before["apiVersion"], "kind": before["kind"]}
            if old.kind.name in kinds.WITH_STATUS:
                after.pop("status", None)
                after |= {"status": before["status"]} if "status" in before else {}
            after["metadata"] = _kept(before["metadata"], wanted.get("metadata") or {})
            after = dict(self._plugged(old.kind, admission.on_change(old.kind, after, before)))
        if after == before:
            return old
        if _spec(after) != _spec(before):
            after["metadata"] = {**after["metadata"], "generation": before["metadata"].get("generation", 1) + 1}
        return self._settle(old, after)

    def _plugged(self, kind: Kind, manifest: Manifest) -> Manifest:
        for plugin in self._plugins:
            manifest = plugin(kind, manifest)
        return manifest

    def _settle(self, old: Record, manifest: Mapping[str, Any]) -> Record:
        """Store the manifest, or remove the object when nothing holds it any more."""
        meta = manifest["metadata"]
        if meta.get("deletionTimestamp") and not meta.get("finalizers") and not meta.get("deletionGracePeriodSeconds"):
            return self._remove(Record(old.kind, manifest), old)
        return self._store(old.kind, manifest, old)

    def _store(self, kind: Kind, manifest: Manifest, old: Record | None) -> Record:
        self.version += 1
        meta = {**manifest["metadata"], "resourceVersion": str(self.version)}
        record = Record(kind, {**manifest, "metadata": meta})
        try:
            _ = record.value
        except ValueError as error:
            self.version -= 1
            raise Invalid(f'{kind.plural} "{meta["name"]}": {error}') from error
        self._table(kind)[record.key] = record
        self._note("ADDED" if old is None else "MODIFIED", old, record, record)
        return record

    def _remove(self, last: Record, old: Record | None = None) -> Record:
        self.version += 1
        meta = {**last.manifest["metadata"], "resourceVersion": str(self.version)}
        record = Record(last.kind, {**last.manifest, "metadata": meta})
        del self._table(last.kind)[record.key]
        self._note("DELETED", old or last, None, record)
        return record

    def _note(self, type_: str, old: Record | None, new: Record | None, shown: Record) -> None:
        self.history(shown.kind).add(Entry(self.version, type_, shown.manifest))
        if shown.kind.name not in kinds.QUIET:
            self.loud_changes += 1
        for listener in self._listeners:
            listener(old, new)

    def _table(self, kind: Kind) -> Table:
        return self._objects[kind.name]

    def _uid(self) -> str:
        self._made += 1
        text = digest("uid", self._seed, self._made)
        return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-8{text[17:20]}-{text[20:32]}"

    def _generated(self, kind: Kind, namespace: str, prefix: str) -> str:
        """A name with this prefix; empty without one. A name that is taken is drawn again, as by Kubernetes 1.32."""
        if not prefix:
            return ""
        drawn = [prefix + suffix("name", self._seed, self._made, prefix)]
        while self.find(kind, namespace, drawn[-1]) is not None and len(drawn) < _DRAWS:
            drawn.append(prefix + suffix("name", self._seed, self._made, prefix, len(drawn)))
        return drawn[-1]


def _spec(manifest: Manifest) -> dict[str, Any]:
    return {name: part for name, part in manifest.items() if name not in ("metadata", "status")}


def _kept(before: Manifest, wanted: Manifest) -> dict[str, Any]:
    """Metadata that a client may change, over what only the server may (a deletion it will refuse)."""
    own = {key: before[key] for key in (*_OWNED_BY_SERVER, "resourceVersion") if key in before}
    rest = {key: value for key, value in wanted.items() if key not in _SILENTLY_KEPT and value not in ({}, [])}
    return {**own, **rest}


def _grace(record: Record, wanted: int | None) -> int:
    """How long a deleted object may linger: only a pod that a kubelet runs does."""
    manifest = record.manifest
    if record.kind.name != "Pod" or not manifest["spec"].get("nodeName"):
        return 0
    if manifest["status"].get("phase") in ("Succeeded", "Failed"):
        return 0
    return int(manifest["spec"]["terminationGracePeriodSeconds"]) if wanted is None else wanted


def owners(record: Record) -> Iterable[str]:
    """UIDs of the objects that own this one."""
    return (owner["uid"] for owner in record.manifest["metadata"].get("ownerReferences") or () if "uid" in owner)
