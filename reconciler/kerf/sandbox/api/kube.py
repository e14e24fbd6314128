"""The Kube port over the API server in memory: typed values out, fresh each time; faults where a test wants them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from kerf.model.kinds import Kind, Ref
from kerf.ports import AlreadyExists, AlreadyGone, Change, Conflict, Disconnected, Expired, Lease, Listing
from kerf.sandbox.api import kinds
from kerf.sandbox.api.api_server import ApiServer, Record
from kerf.sandbox.api.eviction import evict
from kerf.sandbox.api.history import Entry
from kerf.sandbox.api.manifests import instant, micro_timestamp, timestamp
from kerf.sandbox.faults import Call, Faults
from kerf_api.v1.meta import decode

T = TypeVar("T")

#: A watch of a quiet kind learns the current version this often.
BOOKMARK_EVERY = timedelta(minutes=1)


class SandboxKube:
    """What the controller sees of the cluster."""

    def __init__(self, server: ApiServer, now: Callable[[], datetime], faults: Faults) -> None:
        self._server, self._now, self._faults = server, now, faults
        self._emitted = 0

    def list(self, kind: Kind, *, namespace: str = "", field_selector: str = "", label_selector: str = "") -> Listing:
        def read() -> Listing:
            found = self._server.select(kind, namespace, field_selector, label_selector)
            return Listing(tuple(_fresh(record, kind) for record in found), str(self._server.version))

        return self._request("list", kind.plural, read)

    def watch(self, kind: Kind, resource_version: str) -> SandboxWatch:
        return self._request(
            "watch", kind.plural, lambda: SandboxWatch(self._server, kind, resource_version, self._now, self._faults)
        )

    def get(self, ref: Ref) -> Any:
        return self._request("get", ref, lambda: _fresh(self._server.get(self._kind(ref), ref.namespace, ref.name)))

    def create(self, kind: Kind, manifest: Mapping[str, Any]) -> Any:
        subject = f"{kind.name.lower()}/{(manifest.get('metadata') or {}).get('name', '')}"
        return self._request("create", subject, lambda: _fresh(self._server.create(kind, manifest), kind))

    def patch(self, ref: Ref, patch: Mapping[str, Any], *, subresource: str = "", resource_version: str = "") -> Any:
        def write() -> Any:
            return _fresh(
                self._server.patch(
                    self._kind(ref),
                    ref.namespace,
                    ref.name,
                    patch,
                    subresource=subresource,
                    resource_version=resource_version,
                )
            )

        return self._request("patch", ref, write)

    def delete(self, ref: Ref, *, uid: str = "", grace_seconds: int | None = None) -> None:
        self._request(
            "delete",
            ref,
            lambda: self._server.delete(self._kind(ref), ref.namespace, ref.name, uid=uid, grace_seconds=grace_seconds),
        )

    def evict(self, ref: Ref, *, uid: str = "") -> None:
        self._request("evict", ref, lambda: evict(self._server, ref.namespace, ref.name, uid))

    def emit(
        self, ref: Ref, uid: str, type_: str, reason: str, message: str, *, annotations: Mapping[str, str] | None = None
    ) -> None:
        self._emitted += 1
        name, namespace = f"{ref.name}.{self._emitted:016x}", ref.namespace or "default"
        moment = timestamp(self._now())
        event = {
            "metadata": {"name": name, "namespace": namespace, "annotations": dict(annotations or {})},
            "involvedObject": {"kind": ref.kind, "namespace": ref.namespace, "name": ref.name, "uid": uid},
            "type": type_,
            "reason": reason,
            "message": message,
            "source": {"component": "karpenter"},
            "reportingComponent": "karpenter",
            "count": 1,
            "firstTimestamp": moment,
            "lastTimestamp": moment,
        }
        self._request("emit", ref, lambda: self._server.create(kinds.EVENT, event))

    def get_lease(self, namespace: str, name: str) -> Lease | None:
        def read() -> Lease | None:
            record = self._server.find(kinds.LEASE, namespace, name)
            return None if record is None else _lease(record)

        return self._request("get_lease", f"lease/{namespace}/{name}", read)

    def put_lease(self, namespace: str, name: str, lease: Lease) -> Lease:
        meta = {"namespace": namespace, "name": name, "annotations": dict(lease.annotations)}
        manifest = {"metadata": meta, "spec": _lease_spec(lease)}

        def write() -> Lease:
            """A lease that is not there is made again, also by a replica that thinks that he replaces it."""
            known = self._server.find(kinds.LEASE, namespace, name)
            if known is not None and lease.resource_version:
                return _lease(
                    self._server.patch(kinds.LEASE, namespace, name, manifest, resource_version=lease.resource_version)
                )
            try:
                return _lease(self._server.create(kinds.LEASE, manifest))
            except (AlreadyExists, AlreadyGone) as error:
                raise Conflict(str(error)) from error

        return self._request("put_lease", f"lease/{namespace}/{name}", write)

    def _kind(self, ref: Ref) -> Kind:
        found = self._server.kinds.get(ref.kind)
        if found is None:
            raise AlreadyGone(f"no kind {ref.kind} is served")
        return found

    def _request(self, verb: str, subject: object, effect: Callable[[], T]) -> T:
        call = Call("kube", verb, str(subject))
        self._faults.before(call)
        answer = effect()
        self._faults.after(call)
        return answer


class SandboxWatch:
    """A watch that remembers how far it has read. An empty version starts with everything that is there."""

    def __init__(
        self, server: ApiServer, kind: Kind, version: str, now: Callable[[], datetime], faults: Faults
    ) -> None:
        self._server, self._kind, self._now, self._faults = server, kind, now, faults
        self._first = [] if version not in ("", "0") else list(server.select(kind, "", "", ""))
        self._seen = int(version) if version not in ("", "0") else server.version
        self._marked = now()
        self._call = Call("kube", "read", kind.plural)
        self._history = server.history(kind)
        self._closed = False

    def read(self, timeout_seconds: float) -> Sequence[Change]:
        """What has changed since the last read. Never waits: time does not pass during a read."""
        if self._closed:
            raise Disconnected(f"{self._kind.plural}: closed")
        call = self._call
        self._faults.before(call)
        if self._faults.silent(call):
            return ()
        history = self._history
        if not self._first and history.latest <= self._seen:
            return self._nothing_new()
        entries = history.since(self._seen)
        if entries is None:
            raise Expired(f"{self._kind.plural}: version {self._seen} is too old")
        if self._faults.reordered(call):
            entries = _by_object(entries)
        changes = [_change("ADDED", record.manifest, self._kind) for record in self._first]
        changes += [_change(entry.type, entry.manifest, self._kind) for entry in entries]
        self._first = []
        self._seen = max(self._seen, self._server.version)
        return tuple(changes)

    def _nothing_new(self) -> Sequence[Change]:
        self._seen = max(self._seen, self._server.version)
        if self._now() - self._marked < BOOKMARK_EVERY:
            return ()
        self._marked = self._now()
        return (Change("BOOKMARK", None, str(self._seen)),)

    def close(self) -> None:
        self._closed = True


def _by_object(entries: Sequence[Entry]) -> list[Entry]:
    """The object that changed last first; the changes of each in their order."""
    last = {_place(entry): entry.version for entry in entries}
    return sorted(entries, key=lambda entry: (-last[_place(entry)], entry.version))


def _place(entry: Entry) -> tuple[str, str]:
    meta = entry.manifest["metadata"]
    return meta.get("namespace", ""), meta["name"]


def _change(type_: str, manifest: Mapping[str, Any], kind: Kind) -> Change:
    return Change(type_, decode(kind.type, manifest), manifest["metadata"]["resourceVersion"])


def _fresh(record: Record, kind: Kind | None = None) -> Any:
    """A value of its own for the caller; what is stored is never handed out."""
    return decode((kind or record.kind).type, record.manifest)


def _lease(record: Record) -> Lease:
    spec = record.value.spec
    return Lease(
        holder=spec.holder_identity,
        acquired=instant(spec.acquire_time) if spec.acquire_time else None,
        renewed=instant(spec.renew_time) if spec.renew_time else None,
        duration_seconds=spec.lease_duration_seconds,
        transitions=spec.lease_transitions,
        resource_version=str(record.version),
        uid=record.value.metadata.uid,
        annotations=dict(record.value.metadata.annotations),
    )


def _lease_spec(lease: Lease) -> dict[str, Any]:
    return {
        "holderIdentity": lease.holder,
        "leaseDurationSeconds": lease.duration_seconds,
        "acquireTime": micro_timestamp(lease.acquired) if lease.acquired else None,
        "renewTime": micro_timestamp(lease.renewed) if lease.renewed else None,
        "leaseTransitions": lease.transitions,
    }
