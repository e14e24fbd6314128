"""The admission webhook for `kerf status`. Requests of the controller itself do not pass it, so it sees no failure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from kerf.judgement.troubles import Trouble
from kerf.ports import Lease
from kerf.runtime.preflight import admission
from kerf.runtime.preflight.asking import Asker, Kube
from kerf.runtime.preflight.findings import WRONG

_CODE: Final = "WebhookFails"


class Leases(Kube, Protocol):
    """Of the Kubernetes client what this needs."""

    def get_lease(self, namespace: str, name: str) -> Lease | None: ...


def trouble(kube: Kube) -> Trouble | None:
    """What keeps the API server from an answer of the webhook; None where the caller may not find out, too."""
    found = admission.look(Asker(kube))
    return Trouble(_CODE, "webhook", found.seen, found.fix) if found.how == WRONG else None


def trouble_beside(kube: Leases, replica: Mapping[str, Any]) -> Trouble | None:
    """The same for the cluster of a replica that answered; None if the caller's kubeconfig names another cluster.

    `replica` is as the debug port has it. Raises PortError.
    """
    namespace, _, name = str(replica.get("lease") or "").partition("/")
    lease = kube.get_lease(namespace, name) if name else None
    if lease is None or not lease.holder or lease.holder != replica.get("leader"):
        return None
    return trouble(kube)
