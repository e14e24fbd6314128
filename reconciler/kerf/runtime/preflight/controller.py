"""The controller that runs: its image, DNS, role in AWS, and clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from kerf.aws import facts_of_account as facts
from kerf.aws.requests.clients import Clients
from kerf.model.instants import of_api
from kerf.ports import AlreadyGone, PortError
from kerf.runtime.preflight import identity
from kerf.runtime.preflight.asking import Account, Asker, Right
from kerf.runtime.preflight.findings import DOUBTFUL, GOOD, WRONG, Finding, NotAllowed, asked, unchecked
from kerf.runtime.preflight.installed import Installed
from kerf.runtime.preflight.to_come import TEMPLATE
from kerf.runtime.preflight.values import ROLE
from kerf.runtime.settings.options import Options
from kerf_api.texts import counted

IMAGE: Final = "image of the controller"
DNS: Final = "cluster DNS"
CLOCK: Final = "clock of the controller"
ROLE_OF_CONTROLLER: Final = "role of the controller"
#: Reasons of a container that waits for its image. Source: Kubernetes, kubelet, images.
_NO_IMAGE: Final = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable"}
)
_DNS_PODS: Final = Right("list", "pods", namespace="kube-system")
_DNS_PATH: Final = "/api/v1/namespaces/kube-system/pods?labelSelector=k8s-app%3Dkube-dns"
#: The policies by which a pod asks the cluster's DNS.
_CLUSTER_DNS: Final = ("ClusterFirst", "ClusterFirstWithHostNet")


# --- image --------------------------------------------------------------------------------------------------------
def image(asker: Asker, installed: Installed) -> Finding:
    """Whether a pod of the Deployment waits for its image."""
    what = IMAGE

    def ask() -> Finding:
        pods = installed.pods(asker)
        for pod in pods:
            for name, reason, message in _waiting(pod):
                if reason in _NO_IMAGE:
                    seen = f"{name} is not pulled: {reason}: {message or 'no message'}"
                    fix = "set controller.image.repository (and tag, imagePullSecrets) to an image that nodes can pull"
                    return Finding(what, WRONG, seen, fix)
        if not any((pod.get("status") or {}).get("containerStatuses") for pod in pods):
            return unchecked(what, f"no pod of {installed} has been started on a node")
        return Finding(what, GOOD, installed.image)

    return asked(what, ask, "list pods")


def _waiting(pod: Any) -> Iterator[tuple[str, str, str]]:
    """Image, reason and message of each container that waits."""
    for row in (pod.get("status") or {}).get("containerStatuses") or ():
        waiting = (row.get("state") or {}).get("waiting") or {}
        if waiting:
            yield str(row.get("image", "")), str(waiting.get("reason", "")), str(waiting.get("message", ""))


# --- DNS ----------------------------------------------------------------------------------------------------------
def dns(asker: Asker, dns_policy: str) -> Finding:
    """Whether CoreDNS runs for pods that ask the cluster's DNS."""
    what = DNS
    if dns_policy not in _CLUSTER_DNS:
        return Finding(what, GOOD, f"not used: dnsPolicy is {dns_policy}")

    def ask() -> Finding:
        pods = asker.rows(_DNS_PATH, _DNS_PODS)
        ready = sum(map(_is_ready, pods))
        if ready:
            return Finding(what, GOOD, f"{ready} of {counted(len(pods), 'pod')} ready")
        seen = f"dnsPolicy is {dns_policy}, and no pod of CoreDNS is ready (of {len(pods)}): AWS is not reached"
        fix = "run CoreDNS on nodes that Kerf does not make, or set dnsPolicy=Default in Kerf's chart"
        return Finding(what, WRONG, seen, fix)

    return asked(what, ask, str(_DNS_PODS))


def _is_ready(pod: Any) -> bool:
    rows = (pod.get("status") or {}).get("conditions") or ()
    return any(row.get("type") == "Ready" and row.get("status") == "True" for row in rows)


# --- role ---------------------------------------------------------------------------------------------------------
def role(asker: Asker, clients: Clients, options: Options, account: Account) -> Finding:
    """The role of the controller's ServiceAccount: by annotation (IRSA), or by EKS Pod Identity."""
    what = ROLE_OF_CONTROLLER
    try:
        arn = _annotated(asker, account)
    except NotAllowed as error:
        return unchecked(what, f"needs {error}")
    except AlreadyGone:
        return Finding(what, WRONG, f"there is no {account}", "install the chart: it makes the ServiceAccount")
    except PortError as error:
        return unchecked(what, str(error))
    return role_finding(clients, options, account, arn)


def role_finding(clients: Clients, options: Options, account: Account, annotated: str) -> Finding:
    """The finding about a role that is `annotated`, or else associated by EKS Pod Identity."""
    what = ROLE_OF_CONTROLLER

    def ask() -> Finding:
        space, name = account.namespace, account.name
        arn = annotated or facts.associated_role(clients, options.cluster_name, space, name)
        if not arn:
            seen = f"{account} has no annotation {ROLE}, and EKS Pod Identity gives it no role"
            fix = (
                f"deploy {TEMPLATE} with Namespace={space} ServiceAccount={name}, or set serviceAccount.annotations "
                "(docs/clusters.md, Pod Identity and IRSA)"
            )
            return Finding(what, WRONG, seen, fix)
        if options.isolated_vpc:
            return unchecked(what, f"{arn}: needs an IAM endpoint, and ISOLATED_VPC is set")
        return _exists(what, clients, arn)

    right = "eks:ListPodIdentityAssociations, eks:DescribePodIdentityAssociation and iam:GetRole"
    return asked(what, ask, right)


def _exists(what: str, clients: Clients, arn: str) -> Finding:
    try:
        facts.find_role(clients, arn)
    except AlreadyGone:
        fix = f"deploy {TEMPLATE}, or name an existing role"
        return Finding(what, WRONG, f"IAM has no role {arn}", fix)
    return Finding(what, GOOD, arn)


def _annotated(asker: Asker, account: Account) -> str:
    right = Right("get", "serviceaccounts", namespace=account.namespace)
    found = asker.get(f"/api/v1/namespaces/{account.namespace}/serviceaccounts/{account.name}", right)
    return str((found["metadata"].get("annotations") or {}).get(ROLE) or "")


# --- clock --------------------------------------------------------------------------------------------------------
def clock(asker: Asker, options: Options, account: Account) -> Finding:
    """The controller's time, which it writes into its lease, against when the API server took that."""
    what = CLOCK
    namespace, lease = options.leader_election_namespace or account.namespace, options.leader_election_name
    right = Right("get", "leases", "coordination.k8s.io", namespace)
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{lease}"

    def ask() -> Finding:
        try:
            found = asker.get(path, right)
        except AlreadyGone:
            return unchecked(what, f"there is no Lease {namespace}/{lease}: no controller has led yet")
        written, taken = _times(found)
        if written is None or taken is None:
            return unchecked(what, f"the Lease {namespace}/{lease} does not show when it was renewed")
        return identity.skew(what, written - taken, "the API server")

    return asked(what, ask, str(right))


def _times(lease: Mapping[str, Any]) -> tuple[datetime | None, datetime | None]:
    """When it was renewed by its holder's clock, and by the API server's."""
    rows = [row for row in lease["metadata"].get("managedFields") or () if "f:renewTime" in str(row.get("fieldsV1"))]
    taken = max((str(row.get("time") or "") for row in rows), default="")
    return of_api((lease.get("spec") or {}).get("renewTime")), of_api(taken)


def elsewhere(installed: Installed) -> Iterator[Finding]:
    """The finding about settings that the Deployment takes from other objects."""
    if installed.elsewhere:
        names = ", ".join(installed.elsewhere)
        yield Finding(
            "settings",
            DOUBTFUL,
            f"{names} of {installed}: from objects that the check does not read",
            "use flags",
        )


def others(installed: Installed) -> Iterator[Finding]:
    """The finding about a second Kerf: each namespace has a lease of its own, so both would act."""
    if installed.others:
        seen = f"the cluster has {', '.join(installed.others)} too, and this is about {installed}"
        yield Finding("installations", DOUBTFUL, seen, "uninstall one of them, or name its namespace with -n")
