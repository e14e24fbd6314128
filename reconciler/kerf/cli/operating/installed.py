"""Kerf's Deployment, pods and lease as the API server shows them: why no controller answers, and what to do.

Pure: `outside.py` reads the objects, which are plain JSON here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from kerf.judgement.troubles import Trouble
from kerf.model.instants import of_api, rfc3339
from kerf.ports import Lease
from kerf_api.texts import counted

NOT_INSTALLED: Final = "NotInstalled"
NOT_RUNNING: Final = "NotRunning"
NO_LEADER: Final = "NoLeader"
#: Longer than the duration of a lease, and than the usual difference between two clocks.
LEASE_OLD_AFTER: Final = timedelta(minutes=1)
#: A restart in this time is a trouble; an older one is history.
RESTARTED_WITHIN: Final = timedelta(minutes=10)
#: A pod may take so long to start.
_STARTS_WITHIN: Final = timedelta(minutes=2)
_STARTING: Final = frozenset({"ContainerCreating", "PodInitializing"})
Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Installed:
    """What the API server shows in `namespace`. None: it was not found out.

    `events` are the newest warnings about the pods and their owners, by the name of the object.
    """

    namespace: str
    deployments: Sequence[Manifest] | None
    pods: Sequence[Manifest] | None = None
    lease: Lease | None = None
    lease_name: str = ""
    events: Mapping[str, str] | None = None


def troubles(found: Installed, now: datetime) -> Iterator[Trouble]:
    """What keeps a controller from answering."""
    if found.deployments == []:
        where = f"deployment/{found.namespace or '*'}"
        fix = "helm install it, or name its namespace: kerf status -n NAMESPACE"
        yield Trouble(NOT_INSTALLED, where, "there is no Deployment of Kerf's controller", fix)
        return
    for deployment in found.deployments or ():
        yield from _of_deployment(deployment, found)
    for pod in found.pods or ():
        yield from _of_pod(pod, found, now)
    if found.lease_name:
        yield from _of_lease(found, now)


def _of_deployment(deployment: Manifest, found: Installed) -> Iterator[Trouble]:
    meta, status = deployment["metadata"], deployment.get("status", {})
    name = f"deployment/{meta['namespace']}/{meta['name']}"
    wanted, ready = deployment.get("spec", {}).get("replicas", 1), status.get("readyReplicas", 0)
    if not wanted:
        fix = f"kubectl scale -n {meta['namespace']} deployment/{meta['name']} --replicas=2"
        yield Trouble(NOT_RUNNING, name, "is scaled to 0 replicas", fix)
    elif not ready:
        broken = [c for c in status.get("conditions", ()) if _speaks(c)]
        cause = "".join(f": {c.get('reason', '')}: {c.get('message', '')}" for c in broken[:1])
        yield Trouble(
            NOT_RUNNING, name, f"0 of {wanted} replicas are ready{cause}", "its pods show the cause", _oldest(broken)
        )


def _speaks(condition: Manifest) -> bool:
    return bool(condition.get("status") == ("True" if condition.get("type") == "ReplicaFailure" else "False"))


def _oldest(conditions: Sequence[Manifest]) -> datetime | None:
    return min((at for c in conditions if (at := of_api(c.get("lastTransitionTime"))) is not None), default=None)


def _of_pod(pod: Manifest, found: Installed, now: datetime) -> Iterator[Trouble]:
    meta, status = pod["metadata"], pod.get("status", {})
    name, created = f"pod/{meta['namespace']}/{meta['name']}", of_api(meta.get("creationTimestamp"))
    if meta.get("deletionTimestamp"):
        return
    unbound = [
        c for c in status.get("conditions", ()) if c.get("type") == "PodScheduled" and c.get("status") == "False"
    ]
    for one in unbound[:1]:
        fix = "it needs a node that Kerf does not make: a managed node group or Fargate"
        text = f"has no node: {one.get('reason', '')}: {one.get('message', '')}"
        yield Trouble(NOT_RUNNING, name, text, fix, of_api(one.get("lastTransitionTime")) or created)
    rows = (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ()))
    said = [one for row in rows if (one := _container(row, meta, created, now)) is not None]
    yield from said
    event = (found.events or {}).get(meta["name"], "")
    silent = status.get("phase") != "Running" and not said and not unbound
    if silent and created is not None and now - created > _STARTS_WITHIN:
        text = f"is {status.get('phase', 'Pending')}" + (f": {event}" if event else "")
        yield Trouble(NOT_RUNNING, name, text, _DESCRIBE.format(**meta), created)


_DESCRIBE: Final = "kubectl describe -n {namespace} pod/{name}"


def _container(row: Manifest, meta: Manifest, created: datetime | None, now: datetime) -> Trouble | None:
    """A container that does not run, or has restarted lately."""
    name, state = f"pod/{meta['namespace']}/{meta['name']}", row.get("state", {})
    waiting, ended = state.get("waiting"), state.get("terminated") or row.get("lastState", {}).get("terminated")
    finished = of_api(ended.get("finishedAt")) if ended else None
    last = _ending(ended, finished) if ended else ""
    restarts = int(row.get("restartCount", 0))
    logs = f"kubectl logs -n {meta['namespace']} {meta['name']} -c {row.get('name', '')}"
    if waiting:
        reason = str(waiting.get("reason", ""))
        if reason in _STARTING and created is not None and now - created < _STARTS_WITHIN:
            return None
        words = ": ".join(text for text in (reason, waiting.get("message", "")) if text)
        text = f"container {row.get('name', '')} is waiting: {words}{last}; {_times(restarts)}"
        return Trouble(
            NOT_RUNNING, name, text, f"{logs} --previous" if restarts else _DESCRIBE.format(**meta), finished
        )
    if "terminated" in state or (restarts and finished is not None and now - finished < RESTARTED_WITHIN):
        text = f"container {row.get('name', '')} {'has terminated' if 'terminated' in state else 'has restarted'}{last}"
        return Trouble(NOT_RUNNING, name, f"{text}; {_times(restarts)}", f"{logs} --previous", finished)
    return None


def _ending(ended: Manifest, finished: datetime | None) -> str:
    reason = f" ({ended['reason']})" if ended.get("reason") else ""
    message = f": {str(ended['message']).strip()}" if ended.get("message") else ""
    at = f" at {rfc3339(finished)}" if finished is not None else ""
    return f"; last ended with exit code {ended.get('exitCode', '?')}{reason}{at}{message}"


def _times(restarts: int) -> str:
    return counted(restarts, "restart")


def _of_lease(found: Installed, now: datetime) -> Iterator[Trouble]:
    name, lease = f"lease/{found.lease_name}", found.lease
    if lease is None or not lease.holder:
        yield Trouble(
            NO_LEADER, name, "no replica has it: nothing is decided", "the pods and their logs show the cause"
        )
    elif lease.renewed is not None and now - lease.renewed > LEASE_OLD_AFTER:
        text = f"{lease.holder} has not renewed it since {rfc3339(lease.renewed)}: nothing is decided"
        yield Trouble(NO_LEADER, name, text, "the pods and their logs show the cause", lease.renewed)
