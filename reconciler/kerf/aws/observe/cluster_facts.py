"""What user data must know of the cluster: from the settings where they say it, else from EKS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kerf.aws.requests.clients import Clients
from kerf.aws.requests.errors import translated
from kerf.model.aws.cloud import ClusterFacts
from kerf.ports import AlreadyGone, Forbidden, Invalid, PortError, Unavailable
from kerf.telemetry.log.logs import Logger

#: Major and minor version of the oldest and newest Kubernetes that is known to work.
OLDEST: Final = (1, 26)
NEWEST: Final = (1, 36)


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What the API server shows of the cluster; an empty text is unknown."""

    ca_bundle: str = ""
    dns_ip: str = ""
    kubernetes_version: str = ""


@dataclass(frozen=True, slots=True)
class KnownFacts:
    """What the settings and the API server say; an empty text is unknown."""

    name: str
    endpoint: str = ""
    ca_bundle: str = ""
    dns_ip: str = ""
    kubernetes_version: str = ""
    eks_control_plane: bool = False
    isolated_vpc: bool = False


def read_cluster(clients: Clients, known: KnownFacts) -> ClusterFacts:
    """The cluster's facts. The settings win; without an endpoint in them EKS must answer.

    With an endpoint the cluster need not be one of EKS: then the service CIDR stays empty.
    """
    try:
        with translated("eks:DescribeCluster"):
            answer = clients.get("eks").describe_cluster(name=known.name)
        described: Mapping[str, Any] = answer["cluster"]
    except PortError as error:
        if not known.endpoint or not _may_miss(error, known.isolated_vpc):
            raise
        described = {}
    return merge(known, described, clients.region)


def _may_miss(error: PortError, isolated_vpc: bool) -> bool:
    return isinstance(error, AlreadyGone | Forbidden) or (isolated_vpc and isinstance(error, Unavailable))


def check_version(version: str, log: Logger) -> None:
    """Raises Invalid for a Kubernetes that is too old. One that is newer than those known is only logged."""
    major, _, minor = version.partition(".")
    if not (major.isdigit() and minor.isdigit()):
        return
    known = f"{version}; known are {_text(OLDEST)} to {_text(NEWEST)}"
    if (int(major), int(minor)) < OLDEST:
        raise Invalid(f"this Kubernetes is too old: {known}")
    if (int(major), int(minor)) > NEWEST:
        log.error("this Kubernetes is newer than those that this version was made for", version=known)


def _text(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def merge(known: KnownFacts, described: Mapping[str, Any], region: str) -> ClusterFacts:
    """The settings' facts, filled up with `described`, EKS's Cluster (empty when there is none)."""
    network = described.get("kubernetesNetworkConfig", {})
    version = described.get("version", "")
    arn = described.get("arn", "")
    parts = arn.split(":")
    return ClusterFacts(
        name=known.name,
        endpoint=known.endpoint or described.get("endpoint", ""),
        ca_bundle=known.ca_bundle or described.get("certificateAuthority", {}).get("data", ""),
        dns_ip=known.dns_ip,
        service_cidr=network.get("serviceIpv4Cidr") or network.get("serviceIpv6Cidr") or "",
        kubernetes_version=(known.eks_control_plane and version) or known.kubernetes_version or version,
        region=region,
        account=parts[4] if len(parts) > 4 else "",
        arn=arn,
    )
