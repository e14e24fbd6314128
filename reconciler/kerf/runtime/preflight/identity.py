"""Whether the settings are about this cluster: its region, its name in EKS, and the time of day."""

from __future__ import annotations

import base64
import binascii
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from kerf.aws import facts_of_account as facts
from kerf.aws.requests.clients import Clients
from kerf.ports import AlreadyGone, PortError
from kerf.runtime.preflight.asking import Asker, Right
from kerf.runtime.preflight.findings import DOUBTFUL, GOOD, WRONG, Finding, NotAllowed, asked, unchecked
from kerf.runtime.preflight.situation import Situation
from kerf_api import labels
from kerf_api.lint import nearest

NODES: Final = Right("list", "nodes")
_ROOT: Final = Right("get", "configmaps", namespace="kube-system")
_ROOT_PATH: Final = "/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt"
#: AWS refuses a request that was signed longer ago, or so much in the future. Source: IAM user guide, "Elements of an
#: AWS API request signature".
REFUSED: Final = timedelta(minutes=5)
#: Answers take time, and times are in whole seconds.
TOLERATED: Final = timedelta(seconds=30)
#: So many nodes are looked at.
_SOME: Final = 50


def clock(clients: Clients, now: Callable[[], datetime]) -> Finding:
    """The time of this machine against the time of AWS."""
    what = "clock of this machine"
    there = facts.time_of_aws(clients)
    if there is None:
        return unchecked(what, "the clock cannot be compared: no response of AWS had a Date header")
    return skew(what, now() - there, "AWS")


def skew(what: str, ahead: timedelta, whose: str) -> Finding:
    """The finding about a clock that is so far ahead of another one."""
    if abs(ahead) <= TOLERATED:
        return Finding(what, GOOD)
    seconds = round(abs(ahead).total_seconds())
    seen = f"it is {seconds} s {'ahead of' if ahead > timedelta(0) else 'behind'} {whose}"
    fix = "synchronize the machine's clock (chrony with 169.254.169.123, the Amazon Time Sync Service)"
    if abs(ahead) < REFUSED:
        return Finding(what, DOUBTFUL, seen, fix)
    return Finding(what, WRONG, f"{seen}: AWS refuses requests that are signed so", fix)


# --- region -------------------------------------------------------------------------------------------------------
def region(asker: Asker, clients: Clients) -> Finding:
    """The region that AWS is called in against that of the nodes."""
    what = "region"

    def ask() -> Finding:
        rows = asker.rows(f"/api/v1/nodes?limit={_SOME}", NODES)
        found = Counter(name for name in map(_region_of, rows) if name)
        if not found or clients.region in found:
            return Finding(what, GOOD, clients.region)
        there = min(found, key=lambda name: (-found[name], name))
        fix = f"set AWS_REGION={there} (--aws-region; in the chart controller.env)"
        return Finding(what, WRONG, f"AWS is called in {clients.region}, and the nodes are in {there}", fix)

    return asked(what, ask, str(NODES))


def _region_of(node: Any) -> str:
    """Empty for a node of another provider."""
    provider = str((node.get("spec") or {}).get("providerID") or "")
    if not provider.startswith("aws:"):
        return ""
    return str((node["metadata"].get("labels") or {}).get(labels.REGION, ""))


# --- cluster ------------------------------------------------------------------------------------------------------
def cluster_name(asker: Asker, clients: Clients, situation: Situation) -> Iterator[Finding]:
    """Whether EKS has a cluster of this name, and whether it is the one that the API server is of."""
    what, name = "cluster name", situation.options.cluster_name
    if situation.options.isolated_vpc and situation.options.cluster_endpoint:
        yield unchecked(what, "ISOLATED_VPC and CLUSTER_ENDPOINT are set: EKS is not called")
        return

    def ask() -> Finding:
        try:
            found = facts.eks_cluster(clients, name)
        except AlreadyGone:
            return _no_cluster(what, clients, situation)
        return _compared(what, asker, name, found)

    yield asked(what, ask, "eks:DescribeCluster")


def _no_cluster(what: str, clients: Clients, situation: Situation) -> Finding:
    name = situation.options.cluster_name
    try:
        known = sorted(facts.cluster_names(clients))
    except PortError:
        meant, fix = "", "aws eks list-clusters"
    else:
        meant, fix = nearest.meant(name, known), f"clusters there: {', '.join(known) or 'none'}"
    seen = f"EKS has no cluster {name} in {clients.region}{meant}"
    if situation.options.cluster_endpoint:
        return Finding(what, DOUBTFUL, f"{seen}: right only for a cluster that is not of EKS", _to_set(fix))
    return Finding(what, WRONG, seen, _to_set(fix))


def _to_set(fix: str) -> str:
    return f"set settings.clusterName (CLUSTER_NAME, --cluster-name), or the region ({fix})"


def _compared(what: str, asker: Asker, name: str, found: facts.EksCluster) -> Finding:
    try:
        trusted = str(asker.get(_ROOT_PATH, _ROOT)["data"]["ca.crt"])
    except (AlreadyGone, KeyError):
        return unchecked(what, f"EKS has a cluster {name}, and {_ROOT_PATH} shows no CA to compare with")
    except NotAllowed as error:
        return unchecked(what, f"EKS has a cluster {name}; a check that it is this cluster needs {error}")
    if not _same(trusted, found.ca_bundle):
        seen = f"the cluster {name} of EKS is another one than the API server's: their certificate authorities differ"
        return Finding(what, WRONG, seen, "name the cluster that the kubeconfig leads to, or another kubeconfig")
    return Finding(what, GOOD, name)


def _same(pem: str, ca_bundle: str) -> bool:
    try:
        return "".join(base64.b64decode(ca_bundle).decode().split()) == "".join(pem.split())
    except (binascii.Error, UnicodeDecodeError):
        return False
