"""The feed's API server without its HTTP: objects as JSON bytes with versions, history for watches, and a write log.

Objects are kept encoded, since nearly all of them are only ever sent. Writes obey what the controller relies on:
resource versions, UID preconditions, merge patches, the status subresource, finalizers.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from benchmarks.feed.services import uid
from kerf.model.kinds import SERVICE, WATCHED, Kind
from kerf.sandbox.api import kinds
from kerf.sandbox.api.manifests import merged, timestamp

Json = dict[str, Any]

#: Changes of a kind that a watch may lag behind before it is told to list again.
HISTORY: Final = 50_000
_SERVED: Final = (*WATCHED, kinds.LEASE, kinds.EVENT, SERVICE)
_STATUS_ONLY_BY_SUBRESOURCE: Final = frozenset({"NodeClaim", "NodePool", "EC2NodeClass", "Node", "Pod"})
encode: Final = msgspec.json.Encoder().encode


class Refusal(Exception):
    """An answer that is a metav1.Status: HTTP code, reason and message."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code, self.reason = code, reason


@dataclass(frozen=True, slots=True)
class Stored:
    """An object as it is sent, and the little that the server itself asks about."""

    raw: bytes
    version: int
    uid: str
    node: str = ""


@dataclass(frozen=True, slots=True)
class Write:
    """One accepted request that changed something. `at` is the time of day in seconds, `by` the client's own name."""

    at: float
    verb: str
    kind: str
    name: str
    subresource: str
    by: str
    body: bytes


@dataclass(slots=True)
class Table:
    """A kind's objects by key, and its latest changes as watch lines with their versions."""

    objects: dict[str, Stored] = field(default_factory=dict)
    history: deque[tuple[int, bytes]] = field(default_factory=lambda: deque(maxlen=HISTORY))
    #: Set whenever a line is added: each open watch has one.
    listeners: set[Callable[[], None]] = field(default_factory=set)


class Store:
    """See the module. One thread uses it."""

    def __init__(self) -> None:
        self.version = 1
        self.tables: dict[str, Table] = {kind.name: Table() for kind in _SERVED}
        self.kinds: dict[str, Kind] = {kind.path(): kind for kind in _SERVED}
        self.writes: list[Write] = []
        self.requests: Counter[str] = Counter()
        #: When the change of each version was made, by kind: (version, time of day).
        self.emitted: dict[str, list[tuple[int, float]]] = {"Pod": [], "Node": []}

    # --- reading ------------------------------------------------------------------------------------------------------
    def get(self, kind: Kind, key: str) -> Stored:
        found = self.tables[kind.name].objects.get(key)
        if found is None:
            raise Refusal(404, "NotFound", f'{kind.plural} "{key}" not found')
        return found

    def value(self, kind: Kind, key: str) -> Json:
        """An object, decoded."""
        found: Json = msgspec.json.decode(self.get(kind, key).raw)
        return found

    def since(self, kind: Kind, version: int) -> Iterable[tuple[int, bytes]]:
        """Changes after a version. Raises Refusal (410) when they are forgotten."""
        history = self.tables[kind.name].history
        if len(history) == HISTORY and history[0][0] > version + 1:
            raise Refusal(410, "Expired", f"too old resource version: {version}")
        newest: list[tuple[int, bytes]] = []
        for entry in reversed(history):
            if entry[0] <= version:
                break
            newest.append(entry)
        return reversed(newest)

    # --- the world's own changes --------------------------------------------------------------------------------------
    def put(self, kind: Kind, value: Json, *, quiet: bool = False) -> Stored:
        """Store an object under a new version; `quiet`: before anybody watches."""
        table, key = self.tables[kind.name], key_of(kind, value)
        self.version += 1
        meta = value["metadata"]
        meta["resourceVersion"] = str(self.version)
        raw = encode(value)
        known = key in table.objects
        node = value["spec"].get("nodeName", "") if kind.name == "Pod" else ""
        stored = table.objects[key] = Stored(raw, self.version, meta["uid"], node)
        if not quiet:
            self._tell(kind, b"MODIFIED" if known else b"ADDED", raw)
        return stored

    def remove(self, kind: Kind, key: str) -> Json:
        """Take an object away; as it was, under its last version."""
        value = self.value(kind, key)
        del self.tables[kind.name].objects[key]
        self.version += 1
        value["metadata"]["resourceVersion"] = str(self.version)
        self._tell(kind, b"DELETED", encode(value))
        return value

    def _tell(self, kind: Kind, type_: bytes, raw: bytes) -> None:
        table = self.tables[kind.name]
        table.history.append((self.version, b'{"type":"' + type_ + b'","object":' + raw + b"}\n"))
        if kind.name in self.emitted:
            self.emitted[kind.name].append((self.version, time.time()))
        for wake in table.listeners:
            wake()

    # --- a client's writes --------------------------------------------------------------------------------------------
    def create(self, kind: Kind, namespace: str, body: Json, by: str) -> Stored:
        meta = body.setdefault("metadata", {})
        if namespace:
            meta["namespace"] = namespace
        key = key_of(kind, body)
        if key in self.tables[kind.name].objects:
            raise Refusal(409, "AlreadyExists", f'{kind.plural} "{key}" already exists')
        self._log("create", kind, key, "", by, body)
        meta.update(uid=uid(kind.name, key, self.version), creationTimestamp=timestamp(datetime.now(UTC)), generation=1)
        if kind.name in _STATUS_ONLY_BY_SUBRESOURCE:
            body["status"] = {}
        return self.put(kind, body)

    def patch(self, kind: Kind, key: str, subresource: str, body: Json, by: str) -> Stored:
        """A JSON merge patch (RFC 7386)."""
        old = self.value(kind, key)
        self._precondition(kind, key, old, body.get("metadata") or {})
        after: Json = merged(old, body)
        if subresource == "status":
            after = {**old, "status": after.get("status", {})}
        elif kind.name in _STATUS_ONLY_BY_SUBRESOURCE:
            after["status"] = old.get("status", {})
        if subresource != "status" and after.get("spec") != old.get("spec"):
            after["metadata"]["generation"] = old["metadata"].get("generation", 1) + 1
        if after == old:
            return self.get(kind, key)
        self._log("patch", kind, key, subresource, by, body)
        if "deletionTimestamp" in after["metadata"] and not after["metadata"].get("finalizers"):
            last = self.put(kind, after)
            self.remove(kind, key)
            return last
        return self.put(kind, after)

    def replace(self, kind: Kind, key: str, body: Json, by: str) -> Stored:
        old = self.value(kind, key)
        self._precondition(kind, key, old, body["metadata"])
        self._log("update", kind, key, "", by, body)
        kept = {name: old["metadata"][name] for name in ("uid", "creationTimestamp") if name in old["metadata"]}
        body["metadata"] = {**body["metadata"], **kept}
        return self.put(kind, body)

    def delete(self, kind: Kind, key: str, options: Mapping[str, Any], by: str) -> None:
        old = self.value(kind, key)
        wanted = (options.get("preconditions") or {}).get("uid", "")
        if wanted and wanted != old["metadata"]["uid"]:
            raise Refusal(409, "Conflict", f"the UID in the precondition is not {old['metadata']['uid']}")
        self._log("delete", kind, key, "", by, dict(options))
        if old["metadata"].get("finalizers"):
            if "deletionTimestamp" not in old["metadata"]:
                old["metadata"]["deletionTimestamp"] = timestamp(datetime.now(UTC))
                self.put(kind, old)
            return
        self.remove(kind, key)

    def _precondition(self, kind: Kind, key: str, old: Json, meta: Mapping[str, Any]) -> None:
        wanted = meta.get("resourceVersion")
        if wanted and wanted != old["metadata"]["resourceVersion"]:
            raise Refusal(409, "Conflict", f'{kind.plural} "{key}" has been modified; {wanted} is not its version')

    def _log(self, verb: str, kind: Kind, key: str, subresource: str, by: str, body: Json) -> None:
        self.writes.append(Write(time.time(), verb, kind.name, key, subresource, by, encode(body)))


def key_of(kind: Kind, value: Mapping[str, Any]) -> str:
    meta = value["metadata"]
    return meta["name"] if kind.cluster_scoped else f"{meta['namespace']}/{meta['name']}"


def now_text() -> str:
    return timestamp(datetime.now(UTC))
