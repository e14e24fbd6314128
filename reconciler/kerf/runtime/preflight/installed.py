"""The Kerf that runs in the cluster: its settings, ServiceAccount and pods, as its Deployment has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import quote

from kerf.runtime.preflight.asking import Account, Asker, Right

#: A variable that only the Deployment of Kerf's controller has.
_OWN: Final = "LAUNCH_KEY_SECRET"
_DEPLOYMENTS: Final = Right("list", "deployments", "apps")
#: Where a variable may come from that only the cluster knows.
_OBJECTS: Final = frozenset({"configMapKeyRef", "secretKeyRef"})


@dataclass(frozen=True, slots=True)
class Installed:
    """The controller's Deployment. `elsewhere` are variables, or sources of them, that it takes from other objects.

    `arguments` follow `run`. `selector` are the labels of its pods. `others` are further controllers, in words.
    """

    namespace: str
    name: str
    account: Account
    environment: Mapping[str, str]
    elsewhere: Sequence[str]
    arguments: Sequence[str]
    dns_policy: str
    image: str
    selector: Mapping[str, str]
    others: Sequence[str] = ()

    def __str__(self) -> str:
        return f"Deployment {self.namespace}/{self.name}"

    def pods(self, asker: Asker) -> list[Any]:
        """Its pods, as JSON. Raises NotAllowed, PortError."""
        labels = quote(",".join(f"{key}={value}" for key, value in sorted(self.selector.items())), safe="")
        path = f"/api/v1/namespaces/{self.namespace}/pods?labelSelector={labels}"
        return asker.rows(path, Right("list", "pods", namespace=self.namespace))


def runs_here(environment: Mapping[str, str]) -> bool:
    """Whether this process runs in the controller's container, by the variables of the process."""
    return _OWN in environment


def find(asker: Asker, namespace: str = "") -> Installed | None:
    """The first controller by namespace and name; None when there is none. Raises NotAllowed, PortError."""
    where = f"/namespaces/{namespace}" if namespace else ""
    right = Right(_DEPLOYMENTS.verb, _DEPLOYMENTS.resource, _DEPLOYMENTS.group, namespace)
    rows = asker.rows(f"/apis/apps/v1{where}/deployments", right)
    found = [one for one in map(_installed, rows) if one is not None]
    found.sort(key=lambda one: (one.namespace, one.name))
    return replace(found[0], others=[str(one) for one in found[1:]]) if found else None


def container_of(deployment: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The container of a Deployment that runs Kerf's controller, whatever the Deployment is called; as JSON.

    A container with the environment variable of the controller's Secret whose first argument is `run`.
    """
    for container in deployment["spec"]["template"]["spec"].get("containers") or ():
        rows = container.get("env") or ()
        if (container.get("args") or ("",))[0] == "run" and any(row["name"] == _OWN for row in rows):
            found: Mapping[str, Any] = container
            return found
    return None


def _installed(deployment: Mapping[str, Any]) -> Installed | None:
    container = container_of(deployment)
    if container is None:
        return None
    spec, space = deployment["spec"], deployment["metadata"]["namespace"]
    pod = spec["template"]["spec"]
    rows = container["env"]
    references = [row["name"] for row in rows if _OBJECTS & (row.get("valueFrom") or {}).keys()]
    sources = [str(one.get("prefix") or next(iter(one))) for one in container.get("envFrom") or ()]
    return Installed(
        namespace=space,
        name=deployment["metadata"]["name"],
        account=Account(space, pod.get("serviceAccountName") or "default"),
        environment={row["name"]: str(row.get("value") or "") for row in rows if "valueFrom" not in row},
        elsewhere=references + sources,
        arguments=[str(word) for word in container["args"][1:]],
        dns_policy=pod.get("dnsPolicy") or "ClusterFirst",
        image=container["image"],
        selector=spec["selector"].get("matchLabels") or {},
    )
