"""The way to the cluster and to AWS, by the settings: of the controller, and of commands that look at the same."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import boto3
from botocore.utils import InstanceMetadataRegionFetcher

from kerf.aws.buckets import Bucket
from kerf.aws.cloud import AwsCloud, AwsOptions
from kerf.aws.observe.cluster_facts import ServerFacts
from kerf.aws.requests.clients import Clients
from kerf.aws.requests.pace import Pace
from kerf.kube.client import KubeClient
from kerf.kube.transport import Sending, Watched
from kerf.model.kinds import Kind
from kerf.ports import AlreadyGone, Clock, Forbidden, Unavailable
from kerf.runtime.process.starting import patiently
from kerf.runtime.settings.options import Options
from kerf.runtime.settings.settings import SettingsError
from kerf.telemetry.log.logs import Logger
from kerf.telemetry.precedence import GiveWay, at_once

#: How often what a person has asked for is asked again of an API server that is too busy.
PATIENCE = 5
NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(frozen=True, slots=True)
class Where:
    """Which cluster: a kubeconfig and context, or (both empty) the one this process runs in."""

    kubeconfig: str = ""
    context: str = ""


def client(
    options: Options,
    where: Where,
    on_poison: Callable[[Kind, str], None],
    on_warning: Callable[[str], None] = lambda text: None,
    watched: Watched | None = None,
    patience: int = 0,
) -> KubeClient:
    """`on_poison` gets objects that cannot be read, `on_warning` of what the API server warns, `watched` of each
    request; one that the server is too busy for is sent again, `patience` times at most. Raises PortError."""
    sending = Sending(qps=float(options.kube_client_qps), burst=options.kube_client_burst, patience=patience)
    told: dict[str, Any] = {"sending": sending, "on_poison": on_poison, "on_warning": on_warning, "watched": watched}
    if where.kubeconfig or where.context or not NAMESPACE_FILE.exists():
        path, context = where.kubeconfig or None, where.context or None
        return KubeClient.from_kubeconfig(path, context, **told)
    return KubeClient.in_cluster(**told)


def remedy(error: str, named: str = "the kubeconfig") -> str:
    """The fix for a request that the API server has not answered as the caller may expect; empty for other errors.

    Args:
        error: The text of a PortError of the client.
        named: The kubeconfig and the context, in words.
    """
    if re.match("(GET|POST) /[^:]*: 401", error) or "system:anonymous" in error:
        return f"give valid credentials: log in again, or correct the user of {named}; a token may have expired"
    if "CERTIFICATE_VERIFY_FAILED" in error:
        return f"correct certificate-authority-data in {named}: it has to be that of this API server"
    if error.startswith("kubeconfig"):
        return f"correct {named}, or name another one: --kubeconfig, --context"
    if re.match("(GET|POST) /[^:]*: (429|5..)", error):
        return "try again: the API server is overloaded, starts, or has lost etcd"
    if re.match("(GET|POST) /[^:]*: (?!4..)", error):
        return (
            f"see that the address in {named} is the cluster's, and that the network (VPN, allowed CIDRs) leads there"
        )
    if re.match("(GET|POST) /[^:]*: 400", error):
        return f"see that the address in {named} is the cluster's, and begins with https://"
    return ""


def own_namespace() -> str:
    """The namespace of the pod that this process runs in; empty outside of a cluster."""
    return NAMESPACE_FILE.read_text().strip() if NAMESPACE_FILE.exists() else ""


def clients(options: Options) -> Clients:
    """AWS by itself. Raises SettingsError."""
    return Clients(options.region or _region(), endpoint_url=options.aws_endpoint_url or None)


def bucket(options: Options) -> Bucket | None:
    """The place for copies of the record, if there is one. Raises SettingsError."""
    if not options.record_s3:
        return None
    url = options.aws_endpoint_url_s3 or options.aws_endpoint_url or None
    return Bucket(Clients(options.region or _region(), endpoint_url=url), options.record_s3, options.record_encryption)


def cloud(
    options: Options,
    kube: KubeClient,
    clock: Clock,
    give_way: GiveWay = at_once,
    pace: Pace | None = None,
    log: Logger | None = None,
    on_client: Callable[[Any], None] = lambda client: None,
) -> AwsCloud:
    """AWS, with what the API server knows about the cluster. Raises PortError, SettingsError."""
    return AwsCloud(
        AwsOptions(
            cluster_name=options.cluster_name,
            region=options.region or _region(),
            cluster_endpoint=options.cluster_endpoint,
            ca_bundle=options.cluster_ca_bundle,
            interruption_queue=options.interruption_queue,
            isolated_vpc=options.isolated_vpc,
            eks_control_plane=options.eks_control_plane,
            reserved_capacity=options.feature_gates.reserved_capacity,
            endpoint_url=options.aws_endpoint_url or None,
            image_refresh=options.ami_refresh_interval,
        ),
        server=_Server(kube, clock),
        give_way=give_way,
        pace=pace,
        on_client=on_client,
        logger=log,
    )


class _Server:
    """Facts that the API server shows, read at each call: they change while a controller lives. Raises PortError.

    They are read at the start, too, so that a server out of reach is an error there. The first call takes these.
    """

    def __init__(self, kube: KubeClient, clock: Clock) -> None:
        self._kube, self._asked = kube, partial(_asked, kube, clock)
        self._first: ServerFacts | None = self._read()

    def __call__(self) -> ServerFacts:
        found, self._first = self._first or self._read(), None
        return found

    def _read(self) -> ServerFacts:
        version = version_of(self._asked("/version"))
        return ServerFacts(self._kube.ca_bundle, _dns_ip(self._asked), version)


def version_of(answer: Any) -> str:
    """Such as 1.36, from the answer of the API server at /version. Raises Unavailable when it names no version."""
    parts = [answer.get(name) for name in ("major", "minor")] if isinstance(answer, Mapping) else []
    found = [re.match("[0-9]+", part) if isinstance(part, str) else None for part in parts]
    numbers = [one[0] for one in found if one is not None]
    if len(numbers) != 2:
        raise Unavailable("GET /version: the answer names no major and minor version; a proxy may have sent it")
    return ".".join(numbers)


def _dns_ip(asked: Callable[[str], Any]) -> str:
    """The address of the cluster's DNS, if it has the usual name and may be read."""
    path = "/api/v1/namespaces/kube-system/services/kube-dns"
    try:
        service = asked(path)
    except (AlreadyGone, Forbidden):
        return ""
    return str(service.get("spec", {}).get("clusterIP", ""))


def _asked(kube: KubeClient, clock: Clock, path: str) -> Any:
    """What the API server says there; it may be starting itself."""
    return patiently(lambda seconds: kube.request("GET", path, read_seconds=seconds), clock)


def _region() -> str:
    """The SDK's region, else the instance's. Raises SettingsError."""
    region = boto3.session.Session().region_name
    if not region and os.environ.get("AWS_EC2_METADATA_DISABLED") != "true":
        region = InstanceMetadataRegionFetcher(timeout=1, num_attempts=2).retrieve_region()
    if not region:
        raise SettingsError(["AWS_REGION (--aws-region): is required, because no other source gives the region"])
    return str(region)
