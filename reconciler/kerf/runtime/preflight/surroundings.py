"""What has to be there around Kerf and its nodes, and that Kerf does not make: found before the first launch fails.

What the caller may not ask is not called good: the finding says which right it needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from kerf.aws import surroundings
from kerf.aws.requests.clients import Clients
from kerf.model import kinds
from kerf.model.kinds import Kind
from kerf.ports import AlreadyGone, Forbidden, Listing, PortError
from kerf.runtime.preflight.findings import DOUBTFUL, GOOD, WRONG, Finding, asked, unchecked
from kerf.runtime.settings.options import Options
from kerf_api import labels
from kerf_api.texts import counted
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.nodepool import NodePool

AGENT: Final = "eks-pod-identity-agent"
#: What nodes and Kerf call in a VPC without a way out, by the names of VPC endpoints. AL2023 nodes call EKS, too.
SERVICES: Final = ("ec2", "ecr.api", "ecr.dkr", "eks", "s3", "ssm", "sts")
POD_IDENTITY: Final = "EKS Pod Identity"
SPOT_ROLE: Final = "service-linked role for spot"
ENDPOINTS: Final = "VPC endpoints"
_SPOT, _WINDOWS = "spot.amazonaws.com", "Windows"


class Lists(Protocol):
    """Of the Kubernetes client what is needed."""

    def list(self, kind: Kind) -> Listing: ...


def look(
    kube: Lists, clients: Clients, options: Options, pools: Sequence[NodePool], classes: Sequence[EC2NodeClass]
) -> Iterator[Finding]:
    """One finding for each thing that this cluster needs."""
    if any(_may_launch_spot(pool) for pool in pools):
        yield spot_role(clients, isolated=options.isolated_vpc)
    agent, unknown = _agent(kube)
    if options.isolated_vpc:
        yield _endpoints(clients, options, agent=agent)
    if unknown:
        yield unchecked(POD_IDENTITY, unknown)
    elif agent:
        yield Finding(POD_IDENTITY, GOOD, f"DaemonSet {AGENT} is installed")
    else:
        yield _pod_identity(clients, options.cluster_name)
    for node_class in classes:
        # In an isolated VPC IAM cannot be asked, and a class with a role launches nothing.
        if node_class.family.startswith(_WINDOWS) and node_class.spec.role and not options.isolated_vpc:
            yield _windows(clients, options.cluster_name, node_class.name, node_class.spec.role)


# --- spot ---------------------------------------------------------------------------------------------------------
def _may_launch_spot(pool: NodePool) -> bool:
    """Without a requirement the NodeClaims of a static NodePool are launched on demand, all others also on spot."""
    try:
        wanted = pool.requirements()
    except ValueError:  # the NodePool's own finding says so
        return False
    asked = wanted[labels.CAPACITY_TYPE].has(labels.SPOT) if labels.CAPACITY_TYPE in wanted else not pool.static
    return pool.managed and asked


def spot_role(clients: Clients, *, isolated: bool) -> Finding:
    """The role without which EC2 launches no spot instance for Kerf, whose policies do not allow to create it."""
    what = SPOT_ROLE
    if isolated:
        return unchecked(what, "needs an IAM endpoint, and ISOLATED_VPC is set")

    def ask() -> Finding:
        try:
            surroundings.find_spot_role(clients)
        except AlreadyGone:
            seen = f"there is no role {surroundings.SPOT_ROLE}: EC2 refuses the first spot instance"
            return Finding(what, WRONG, seen, f"aws iam create-service-linked-role --aws-service-name {_SPOT}")
        return Finding(what, GOOD)

    return asked(what, ask, "iam:GetRole")


# --- networks without a way out -----------------------------------------------------------------------------------
def _endpoints(clients: Clients, options: Options, *, agent: bool) -> Finding:
    """`agent`: whether the Pod Identity agent runs, which calls EKS Auth."""
    what = ENDPOINTS
    more = {"sqs": options.interruption_queue, "eks-auth": agent, "arc-zonal-shift": options.enable_zonal_shift}

    def ask() -> Finding:
        there = surroundings.endpoint_services(clients, options.cluster_name)
        wanted = (*SERVICES, *(name for name, needed in more.items() if needed))
        missing = [name for name in sorted(wanted) if name not in there]
        if not missing:
            return Finding(what, GOOD)
        seen = f"ISOLATED_VPC is set, and the VPC has no endpoint of {', '.join(missing)}"
        return Finding(what, DOUBTFUL, seen, "create them, unless nodes reach these services in another way")

    return asked(what, ask, "eks:DescribeCluster and ec2:DescribeVpcEndpoints")


# --- credentials of pods ------------------------------------------------------------------------------------------
def _agent(kube: Lists) -> tuple[bool, str]:
    """Return whether the Pod Identity agent is installed, and the reason if that is not known."""
    try:
        return any(one.metadata.name == AGENT for one in kube.list(kinds.DAEMON_SET).items), ""
    except Forbidden:
        return False, "needs list daemonsets.apps"
    except PortError as error:
        return False, str(error)


def _pod_identity(clients: Clients, cluster_name: str) -> Finding:
    """The finding of a cluster without the agent: whether ServiceAccounts need it."""
    what = POD_IDENTITY

    def ask() -> Finding:
        accounts = sorted(surroundings.pod_identity_accounts(clients, cluster_name))
        if not accounts:
            return Finding(what, GOOD, "not used")
        fix = f"add the EKS add-on {AGENT} to the cluster"
        if surroundings.auto_mode(clients, cluster_name):
            seen = f"there is no DaemonSet {AGENT}: nodes of EKS Auto Mode contain the agent, nodes of Kerf do not"
            return Finding(what, DOUBTFUL, seen, fix)
        have = f"{counted(len(accounts), 'ServiceAccount')} {'has' if len(accounts) == 1 else 'have'}"
        return Finding(what, WRONG, f"{have} a role ({accounts[0]}), and there is no DaemonSet {AGENT}", fix)

    return asked(what, ask, "eks:ListPodIdentityAssociations and eks:DescribeCluster")


# --- Windows ------------------------------------------------------------------------------------------------------
def _windows(clients: Clients, cluster_name: str, class_name: str, role: str) -> Finding:
    what = f"access entry of Windows nodes of EC2NodeClass {class_name}"
    fix = f"aws eks create-access-entry --cluster-name {cluster_name} --principal-arn ROLE --type EC2_WINDOWS"

    def ask() -> Finding:
        try:
            found = surroundings.access_entry(clients, cluster_name, role)
        except AlreadyGone as error:
            return Finding(what, DOUBTFUL, f"none for role {role}, unless aws-auth maps it: {error}", fix)
        if found != "EC2_WINDOWS":
            return Finding(what, WRONG, f"the entry of role {role} is of type {found}: Windows nodes do not join", fix)
        return Finding(what, GOOD)

    return asked(what, ask, "iam:GetRole and eks:DescribeAccessEntry")
