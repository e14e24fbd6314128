"""The Kube port over HTTP."""

from __future__ import annotations

import base64
import itertools
import os
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from kubernetes import config
from kubernetes.client import Configuration

from kerf.kube.decoding import KindDecoder, OnPoison
from kerf.kube.kubeconfig import configured
from kerf.kube.transport import READ_SECONDS, Sending, Transport, Watched, readable
from kerf.kube.watching import HttpWatch
from kerf.model import kinds
from kerf.model.kinds import Kind, Ref
from kerf.ports import AlreadyExists, AlreadyGone, Conflict, Expired, Lease, Listing, Unavailable, Watch
from kerf_api.decoders import decoder_of

PAGE = 500
LIST_SECONDS = 60.0
#: The server ends a watch after this long (spread, so that not all end together); bookmarks come every minute.
WATCH_SECONDS = (300, 600)
SILENCE_SECONDS = 75.0
_MERGE = "application/merge-patch+json"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
#: Of everything that an event may be about.
_API_VERSIONS = {"Lease": "coordination.k8s.io/v1", **{kind.name: kind.api_version for kind in kinds.KNOWN}}


@contextmanager
def _understood(what: str) -> Iterator[None]:
    """Raises Unavailable for an answer that is no JSON, or of an unforeseen shape (a proxy's, perhaps)."""
    try:
        yield
    except ValueError as error:  # msgspec's own, and bytes that are no text
        raise Unavailable(f"{what}: an answer that makes no sense: {error}") from error


def _ignore(kind: Kind, problem: str) -> None:
    """Discard it."""


class KubeClient:
    """See `kerf.ports.Kube`. `on_poison` receives the objects that cannot be read."""

    def __init__(
        self,
        load: Callable[[], Configuration],
        sending: Sending = Sending(),  # noqa: B008 - it cannot be changed
        *,
        on_poison: OnPoison = _ignore,
        on_warning: Callable[[str], None] = lambda text: None,
        watched: Watched | None = None,
    ) -> None:
        self._transport = Transport(load, sending, on_warning=on_warning, watched=watched)
        self._decoders = {kind.name: KindDecoder(kind, on_poison) for kind in kinds.KNOWN}
        self._count = itertools.count()

    @classmethod
    def in_cluster(cls, **options: Any) -> KubeClient:
        """With the pod's service account; its token file is read again as it rotates."""

        def load() -> Configuration:
            configuration = Configuration()
            with readable("the pod's service account"):
                config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
            return configuration

        return cls(load, **options)

    @classmethod
    def from_kubeconfig(cls, path: str | Path | None = None, context: str | None = None, **options: Any) -> KubeClient:
        """As kubectl would: `path` or KUBECONFIG or ~/.kube/config."""

        def load() -> Configuration:
            return configured(str(path) if path else None, context)

        return cls(load, **options)

    @property
    def server(self) -> str:
        """The API server's URL."""
        return str(self._transport.configuration.host)

    @property
    def ca_bundle(self) -> str:
        """The certificate authority we trust the API server by, base64 of PEM; empty when it is the system's."""
        file = self._transport.configuration.ssl_ca_cert
        return base64.b64encode(Path(file).read_bytes()).decode() if file else ""

    # --- reading ------------------------------------------------------------------------------------------------
    def list(self, kind: Kind, *, namespace: str = "", field_selector: str = "", label_selector: str = "") -> Listing:
        query = {"limit": str(PAGE)}
        if field_selector:
            query["fieldSelector"] = field_selector
        if label_selector:
            query["labelSelector"] = label_selector
        items: list[Any] = []
        while True:
            found, meta = self._page(kind, namespace, query)
            items.extend(found)
            if not meta.continue_:
                return Listing(tuple(items), meta.resource_version)
            query["continue"] = meta.continue_

    def _page(self, kind: Kind, namespace: str, query: Mapping[str, str]) -> Any:
        path = kind.path(namespace)
        try:
            raw = self._transport.request("GET", path, query, read_seconds=LIST_SECONDS)
        except AlreadyGone as error:  # the kind itself is not served: no list is not an empty list
            raise Unavailable(str(error)) from error
        except Expired as error:
            raise Unavailable(f"{error} (the list took too long)") from error
        with _understood(kind.name):
            return self._decoders[kind.name].page(raw)

    def watch(self, kind: Kind, resource_version: str) -> Watch:
        query = {
            "watch": "true",
            "resourceVersion": resource_version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(random.randint(*WATCH_SECONDS)),
        }
        try:
            answer = self._transport.open("GET", kind.path(), query, read_seconds=SILENCE_SECONDS)
        except AlreadyGone as error:
            raise Unavailable(str(error)) from error
        return HttpWatch(answer, self._decoders[kind.name], kind.plural)

    def get(self, ref: Ref) -> Any:
        return self._one(ref, self._transport.request("GET", _path(ref)))

    # --- writing ------------------------------------------------------------------------------------------------
    def create(self, kind: Kind, manifest: Mapping[str, Any]) -> Any:
        namespace = manifest.get("metadata", {}).get("namespace", "")
        body = {"apiVersion": kind.api_version, "kind": kind.name, **manifest}
        return self._decode(kind, self._transport.request("POST", kind.path(namespace), body=body))

    def patch(self, ref: Ref, patch: Mapping[str, Any], *, subresource: str = "", resource_version: str = "") -> Any:
        body = dict(patch)
        if resource_version:
            body["metadata"] = {**body.get("metadata", {}), "resourceVersion": resource_version}
        path = _path(ref, subresource)
        return self._one(ref, self._transport.request("PATCH", path, body=body, content_type=_MERGE))

    def delete(self, ref: Ref, *, uid: str = "", grace_seconds: int | None = None) -> None:
        body: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            body["preconditions"] = {"uid": uid}
        if grace_seconds is not None:
            body["gracePeriodSeconds"] = grace_seconds
        self._transport.request("DELETE", _path(ref), body=body)

    def evict(self, ref: Ref, *, uid: str = "") -> None:
        body: dict[str, Any] = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": ref.name, "namespace": ref.namespace},
        }
        if uid:
            body["deleteOptions"] = {"preconditions": {"uid": uid}}
        self._transport.request("POST", _path(ref, "eviction"), body=body)

    def emit(
        self, ref: Ref, uid: str, type_: str, reason: str, message: str, *, annotations: Mapping[str, str] | None = None
    ) -> None:
        namespace = ref.namespace or "default"
        path = f"/api/v1/namespaces/{namespace}/events"
        now = datetime.now(UTC)
        name = f"{ref.name}.{int(now.timestamp() * 1e6):x}{os.getpid() & 0xFFFF:04x}{next(self._count) & 0xFFFF:04x}"
        body = _event(ref, uid, type_, reason, message, now)
        body["metadata"] = {"name": name, "namespace": namespace, "annotations": dict(annotations or {})}
        self._transport.request("POST", path, body=body)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        read_seconds: float = READ_SECONDS,
    ) -> Any:
        """Anything else the API serves, as plain JSON. Raises PortError."""
        raw = self._transport.request(method, path, body=body, content_type=content_type, read_seconds=read_seconds)
        with _understood(f"{method} {path}"):
            return msgspec.json.decode(raw)

    def _one(self, ref: Ref, raw: bytes) -> Any:
        return self._decode(kinds.BY_NAME[ref.kind], raw)

    def _decode(self, kind: Kind, raw: bytes) -> Any:
        with _understood(kind.name):
            return self._decoders[kind.name].one(raw)

    # --- leases -------------------------------------------------------------------------------------------------
    def get_lease(self, namespace: str, name: str) -> Lease | None:
        try:
            raw = self._transport.request("GET", f"{_LEASES.format(namespace)}/{name}", read_seconds=5.0)
        except AlreadyGone:
            return None
        return _lease(raw)

    def put_lease(self, namespace: str, name: str, lease: Lease) -> Lease:
        body = _lease_manifest(namespace, name, lease)
        collection = _LEASES.format(namespace)
        try:
            if lease.resource_version:
                raw = self._transport.request("PUT", f"{collection}/{name}", body=body, read_seconds=5.0)
            else:
                raw = self._transport.request("POST", collection, body=body, read_seconds=5.0)
        except (AlreadyExists, AlreadyGone) as error:
            raise Conflict(str(error)) from error
        return _lease(raw)


def _path(ref: Ref, subresource: str = "") -> str:
    return kinds.BY_NAME[ref.kind].path(ref.namespace, ref.name, subresource)


# --- shapes -----------------------------------------------------------------------------------------------------
class _LeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None


class _LeaseMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    uid: str = ""
    annotations: dict[str, str] | None = None


class _Lease(msgspec.Struct, frozen=True):
    metadata: _LeaseMeta
    spec: _LeaseSpec = _LeaseSpec()


def _lease(raw: bytes) -> Lease:
    with _understood("Lease"):
        found: _Lease = decoder_of(_Lease).decode(raw)
    spec = found.spec
    return Lease(
        holder=spec.holder_identity or "",
        acquired=spec.acquire_time,
        renewed=spec.renew_time,
        duration_seconds=spec.lease_duration_seconds or 0,
        transitions=spec.lease_transitions or 0,
        resource_version=found.metadata.resource_version,
        uid=found.metadata.uid,
        annotations=found.metadata.annotations or {},
    )


def _lease_manifest(namespace: str, name: str, lease: Lease) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name, "namespace": namespace, "annotations": dict(lease.annotations)}
    if lease.resource_version:
        meta["resourceVersion"] = lease.resource_version
    spec = {
        "holderIdentity": lease.holder,
        "leaseDurationSeconds": lease.duration_seconds,
        "acquireTime": _micro_time(lease.acquired),
        "renewTime": _micro_time(lease.renewed),
        "leaseTransitions": lease.transitions,
    }
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}


def _micro_time(value: datetime | None) -> str | None:
    """A metav1.MicroTime: always six digits, which the API server insists on."""
    return None if value is None else value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _event(ref: Ref, uid: str, type_: str, reason: str, message: str, now: datetime) -> dict[str, Any]:
    moment = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    about = {
        "apiVersion": _API_VERSIONS[ref.kind],
        "kind": ref.kind,
        "namespace": ref.namespace,
        "name": ref.name,
        "uid": uid,
    }
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "involvedObject": about,
        "reason": reason,
        "message": message[:1024],
        "type": type_,
        "source": {"component": "karpenter"},
        "reportingComponent": "karpenter",
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }
