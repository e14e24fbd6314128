"""After the end of Kerf: its finalizers are taken off, so that nothing that is deleted waits for a controller for ever.

Nodes, and the instances behind them, stay as they are. While a controller holds its lease nothing is taken off: it
would put the finalizers back, or ends what is deleted itself, as it should.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

from kerf.model import kinds
from kerf.model.kinds import Kind, Ref
from kerf.ports import AlreadyGone, Clock, Conflict, Listing
from kerf.runtime.leadership.leases import KARPENTER, RETRY
from kerf_api import labels
from kerf_api.foreign import own_pool

#: What of ours holds whose deletion up.
FINALIZERS: Final = (
    (kinds.NODE_CLAIM, labels.TERMINATION_FINALIZER),
    (kinds.NODE, labels.TERMINATION_FINALIZER),
    (kinds.NODE_CLASS, labels.NODECLASS_FINALIZER),
)
#: A lease that is alive has been renewed by then.
WATCHED: Final = 3 * RETRY
_TRIES: Final = 5


class Api(Protocol):
    """Of the Kubernetes client what is needed here."""

    def request(self, method: str, path: str) -> Any: ...

    def list(self, kind: Kind) -> Listing: ...

    def get(self, ref: Ref) -> Any: ...

    def patch(self, ref: Ref, patch: Any, *, subresource: str = "", resource_version: str = "") -> Any: ...


@dataclass(frozen=True, slots=True)
class Held:
    """An object with a finalizer of ours; `deleting`: it waits for that already."""

    ref: Ref
    finalizer: str
    deleting: bool


def holders(kube: Api, clock: Clock) -> list[str]:
    """Who leads now, as `holder in namespace`: leases of our name, or Karpenter's, that are renewed while we watch."""
    before = _leases(kube)
    clock.sleep(WATCHED.total_seconds())
    after = _leases(kube)
    return sorted(f"{found[0]} in {where}" for where, found in after.items() if before.get(where) != found)


def _leases(kube: Api) -> dict[str, tuple[str, str]]:
    """(holder, time of renewal) by namespace, of leases that are held."""
    listed = kube.request("GET", f"/apis/coordination.k8s.io/v1/leases?fieldSelector=metadata.name%3D{KARPENTER}")
    rows = {row["metadata"]["namespace"]: row.get("spec", {}) for row in listed["items"]}
    return {
        where: (spec["holderIdentity"], str(spec.get("renewTime")))
        for where, spec in rows.items()
        if spec.get("holderIdentity")
    }


def held(kube: Api) -> Iterator[Held]:
    """Everything that has a finalizer of ours.

    NodeClaims of other controllers, such as EKS Auto Mode, and their Nodes have the same finalizer, and keep it.
    """
    foreign: set[str] = set()
    for kind, finalizer in FINALIZERS:
        try:
            found = kube.list(kind).items
        except AlreadyGone:  # no such kind any more
            continue
        if kind is kinds.NODE_CLAIM:
            foreign = {one.status.provider_id for one in found if kinds.own(one) is None}
        for one in found:
            if finalizer in one.metadata.finalizers and not _of_another(kind, one, foreign):
                yield Held(Ref.of(kind, one), finalizer, one.metadata.deleting)


def _of_another(kind: Kind, value: Any, foreign: Collection[str]) -> bool:
    """Whether it is a NodeClaim of another controller, or a Node; `foreign` are the provider IDs of such NodeClaims."""
    if kind is not kinds.NODE:
        return kinds.own(value) is None
    own = value.metadata.labels
    return value.spec.provider_id in foreign or (labels.NODEPOOL in own and not own_pool(own))


def release(kube: Api, one: Held) -> bool:
    """Take the finalizer off; whether it was there to be taken. Raises PortError."""
    for _ in range(_TRIES):
        try:
            found = kube.get(one.ref)
            if one.finalizer not in found.metadata.finalizers:
                return False
            rest = [text for text in found.metadata.finalizers if text != one.finalizer]
            patch = {"metadata": {"finalizers": rest or None}}
            kube.patch(one.ref, patch, resource_version=found.metadata.resource_version)
        except AlreadyGone:
            return False
        except Conflict:
            continue
        return True
    raise Conflict(f"{one.ref} is changed by others all the time")
