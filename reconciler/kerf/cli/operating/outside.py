"""`kerf status` without a controller that answers: what the API server shows, as far as the caller may read it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol
from urllib.parse import quote

from kerf.cli.operating import installed
from kerf.cli.operating.asking import Asking
from kerf.cli.operating.installed import Installed, Manifest
from kerf.judgement import troubles, unhealthy
from kerf.judgement.starts import Starting, starting
from kerf.judgement.troubles import Trouble, Unplaced
from kerf.model import kinds
from kerf.model.failures import Failure
from kerf.model.instants import of_api
from kerf.model.kinds import Kind, Ref
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.model.plan import Reason
from kerf.ports import AlreadyGone, Lease, Listing, PortError
from kerf.runtime.leadership.leases import KARPENTER
from kerf.runtime.observe import reported
from kerf.runtime.preflight.installed import container_of
from kerf.runtime.process.connecting import own_namespace
from kerf_api.v1.meta import decode

_CONTROLLER: Final = "app.kubernetes.io/component=controller"
_REVIEW: Final = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
#: So many pods of failing evictions are asked for.
_ASKED: Final = 20
#: Pods that wait are read in so many pages at most.
_PAGE, _MOST_PAGES = 500, 20
_WAITING: Final = "spec.nodeName=,status.phase=Pending"


class Reads(Protocol):
    """Of the Kubernetes client what this needs."""

    def request(self, method: str, path: str, body: Any = None) -> Any: ...

    def list(self, kind: Kind) -> Listing: ...

    def get_lease(self, namespace: str, name: str) -> Lease | None: ...


@dataclass(slots=True)
class Outside(Asking):
    """What was found: the problems, who leads by the lease, the nodes that start, and what could not be checked."""

    problems: list[Trouble] = field(default_factory=list)
    namespace: str = ""
    leader: str = ""
    starting: Starting | None = None


def time(kube: Reads, own: datetime) -> datetime:
    """Return the time of the API server, for the caller's clock may be wrong; `own` where the server reports none.

    Source: a SelfSubjectReview (Kubernetes 1.28), which needs no permission, is created at the time of the request.
    """
    try:
        answer = kube.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", _REVIEW)
    except PortError:
        return own
    meta = answer.get("metadata") if isinstance(answer, Mapping) else None
    return of_api((meta or {}).get("creationTimestamp")) or own


def look(kube: Reads, namespace: str, now: datetime) -> Outside:
    """Everything that the API server shows of Kerf. Raises PortError when it does not answer at all."""
    kube.request("GET", "/version")
    found = Outside(namespace=namespace or os.environ.get("SYSTEM_NAMESPACE") or own_namespace())
    seen = _installed(kube, found)
    found.problems += installed.troubles(seen, now)
    found.leader = seen.lease.holder if seen.lease is not None else ""
    found.problems += _of_cluster(kube, found, now)
    return found


# --- Kerf itself ------------------------------------------------------------------------------------------------
def _installed(kube: Reads, found: Outside) -> Installed:
    """The Deployments of the namespace, or of all if none is named; pods, events and the lease of the first one."""
    where = f"namespace {found.namespace}" if found.namespace else "all namespaces"
    listed = found.read(
        "Kerf's Deployment", lambda: _list(kube, _path(found.namespace), _CONTROLLER), f"list deployments in {where}"
    )
    if listed is None:
        return Installed(found.namespace, None)
    own = [one for one in listed if container_of(one) is not None]
    if not own:
        return Installed(found.namespace, [])
    first = own[0]
    space = found.namespace = first["metadata"]["namespace"]
    selector = ",".join(f"{k}={v}" for k, v in first["spec"]["selector"].get("matchLabels", {}).items())
    its_pods = found.read(
        "Kerf's pods",
        lambda: _list(kube, f"/api/v1/namespaces/{space}/pods", selector),
        f"list pods in namespace {space}",
    )
    events = found.read("events of Kerf's pods", lambda: _warnings(kube, space), f"list events in namespace {space}")
    lease_space, name = _lease_of(first, space)
    needed = f"get leases in namespace {lease_space}"
    lease = found.read("the lease", lambda: (kube.get_lease(lease_space, name),), needed)
    lease_name = f"{lease_space}/{name}" if lease is not None else ""
    return Installed(space, own, its_pods, lease[0] if lease is not None else None, lease_name, events)


def _path(namespace: str) -> str:
    return f"/apis/apps/v1/namespaces/{namespace}/deployments" if namespace else "/apis/apps/v1/deployments"


def _list(kube: Reads, path: str, selector: str) -> list[Manifest]:
    items = kube.request("GET", f"{path}?labelSelector={quote(selector)}").get("items")
    return sorted(items or [], key=lambda one: str(one["metadata"]["name"]))


def _warnings(kube: Reads, namespace: str) -> dict[str, str]:
    """The newest warning about each object."""
    path = f"/api/v1/namespaces/{namespace}/events?fieldSelector={quote('type=Warning')}&limit=500"
    items = kube.request("GET", path).get("items") or []
    items.sort(key=lambda one: str(one.get("lastTimestamp") or one.get("eventTime") or ""))
    return {str(e["involvedObject"].get("name", "")): f"{e.get('reason', '')}: {e.get('message', '')}" for e in items}


def _lease_of(deployment: Manifest, namespace: str) -> tuple[str, str]:
    """Namespace and name, by the settings of the container."""
    container = container_of(deployment) or {}
    rows = {row["name"]: row.get("value", "") for row in container.get("env", ())}
    return rows.get("LEADER_ELECTION_NAMESPACE") or namespace, rows.get("LEADER_ELECTION_NAME") or KARPENTER


# --- its work ---------------------------------------------------------------------------------------------------
def _of_cluster(kube: Reads, found: Outside, now: datetime) -> Iterator[Trouble]:
    events = found.read("actions that fail", lambda: reported.read(kube, now), "list events in all namespaces")
    events = events or reported.OfEvents()
    listed = {kind: _objects(kube, found, kind) for kind in (kinds.NODE_CLASS, kinds.NODE_POOL, kinds.NODE_CLAIM)}
    values = {kind: rows or () for kind, rows in listed.items()}
    known = _of_living(kube, events.failures, listed)
    yield from troubles.failing(known.values(), now, values[kinds.NODE_CLASS])
    yield from troubles.not_ready(values[kinds.NODE_POOL], values[kinds.NODE_CLASS], now)
    yield from troubles.stuck_claims(values[kinds.NODE_CLAIM], known, now)
    nodes = _objects(kube, found, kinds.NODE) or ()
    yield from unhealthy.unhealthy(values[kinds.NODE_CLAIM], nodes, now)
    found.starting = starting(values[kinds.NODE_CLAIM], now)
    unbound = found.read("pods without a node", lambda: _waiting(kube), "list pods in all namespaces") or ()
    waiting = sum(map(pods.provisionable, unbound))
    yield from troubles.refused(events.launches.values(), values[kinds.NODE_CLAIM], waiting, now)
    yield from troubles.unschedulable(_unplaced(unbound), now)
    yield from troubles.unscheduled(unbound, now)
    objects = ((kind, one) for kind, rows in values.items() for one in rows)
    yield from troubles.guarded((str(Ref.of(kind, one)), one.status.conditions) for kind, one in objects)
    yield from troubles.unapproved(values[kinds.NODE_POOL])


def _of_living(
    kube: Reads, known: Mapping[str, Failure], listed: Mapping[Kind, tuple[Any, ...] | None]
) -> dict[str, Failure]:
    """The failures whose object still exists: an event outlives its object by an hour."""
    kinds_listed = {kind.name.lower() for kind, rows in listed.items() if rows is not None}
    objects = ((kind, one) for kind, rows in listed.items() for one in rows or ())
    created = {str(Ref.of(kind, one)): one.metadata.creation_timestamp for kind, one in objects}
    asked = [one for one in known.values() if one.object.startswith("pod/") and one.object.count("/") == 2][:_ASKED]
    gone = {one.object for one in asked if _is_gone(kube, one)}
    for one in known.values():
        if one.object.partition("/")[0] in kinds_listed and _is_later(created.get(one.object), one):
            gone.add(one.object)
    return {key: one for key, one in known.items() if one.object not in gone}


def _is_gone(kube: Reads, failure: Failure) -> bool:
    _, space, name = failure.object.split("/")
    try:
        found = kube.request("GET", f"/api/v1/namespaces/{space}/pods/{name}")
    except AlreadyGone:
        return True
    except PortError:
        return False
    return _is_later(of_api(found.get("metadata", {}).get("creationTimestamp")) or failure.since, failure)


def _is_later(created: datetime | None, failure: Failure) -> bool:
    """Whether the object is not the one that the failure is about."""
    return created is None or created > failure.latest


def _objects(kube: Reads, found: Outside, kind: Kind) -> tuple[Any, ...] | None:
    listing = found.read(kind.names, lambda: kube.list(kind), f"list {kind.resource}")
    return None if listing is None else tuple(kinds.own(one) for one in listing.items if kinds.own(one) is not None)


def _waiting(kube: Reads) -> list[Pod]:
    """The pods without a node, with the messages of their conditions, which the client's own list leaves out."""
    found: list[Pod] = []
    token = ""
    for _ in range(_MOST_PAGES):
        path = f"/api/v1/pods?fieldSelector={quote(_WAITING)}&limit={_PAGE}"
        page = kube.request("GET", path + (f"&continue={quote(token)}" if token else ""))
        for row in page.get("items") or ():
            with suppress(ValueError):  # of a pod that cannot be read nothing is known
                found.append(decode(Pod, row))
        token = str(page.get("metadata", {}).get("continue") or "")
        if not token:
            break
    return found


def _unplaced(waiting: Any) -> Iterator[Unplaced]:
    """Pods that the kube-scheduler has found no node for, in its words."""
    for pod in waiting:
        since = pods.waiting_since(pod)
        said = [c.message for c in pod.status.conditions if c.type == "PodScheduled" and c.status == "False"]
        if since is not None and said and pods.provisionable(pod):
            yield Unplaced(pod.key, since, Reason("Unschedulable", f"the kube-scheduler reports: {said[0]}"))


def as_json(found: Outside, silent: str) -> Mapping[str, Any]:
    """For programs; `problems` are as those of a controller."""
    return {
        "answered": False,
        "silent": silent,
        "problems": [troubles.plain(one) for one in found.problems],
        "namespace": found.namespace,
        "leader": found.leader,
        "starting": None if found.starting is None else asdict(found.starting),
        "checked": found.checked,
        "not_checked": found.not_checked,
    }
