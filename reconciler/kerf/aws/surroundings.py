"""What nodes and controllers need of an account that Kerf neither makes nor calls while it runs; a preflight asks.

Each question raises PortError: Forbidden where the caller has no right to ask it.
Source: EC2 user guide, "Service-linked role for EC2 Spot"; EKS user guide, "EKS Pod Identities", "Deploy private
clusters with limited internet access", "Create access entries".
"""

from __future__ import annotations

from typing import Final

from kerf.aws.profiles import role_name
from kerf.aws.requests.clients import Clients, pages
from kerf.aws.requests.errors import translated

SPOT_ROLE: Final = "AWSServiceRoleForEC2Spot"


def find_spot_role(clients: Clients) -> None:
    """Raises AlreadyGone when the account has no service-linked role for spot instances."""
    with translated("iam:GetRole"):
        clients.get("iam").get_role(RoleName=SPOT_ROLE)


def endpoint_services(clients: Clients, cluster_name: str) -> frozenset[str]:
    """The services (`ec2`, `ecr.api`) that the VPC of the cluster has an available endpoint of."""
    with translated("eks:DescribeCluster"):
        cluster = clients.get("eks").describe_cluster(name=cluster_name)["cluster"]
    vpc = cluster.get("resourcesVpcConfig", {}).get("vpcId", "")
    with translated("ec2:DescribeVpcEndpoints"):
        wanted = [{"Name": "vpc-id", "Values": [vpc]}]
        rows = pages(clients.get("ec2"), "describe_vpc_endpoints", "VpcEndpoints", Filters=wanted)
    names = (row["ServiceName"] for row in rows if row.get("State", "available").lower() == "available")
    return frozenset(name.partition(f".{clients.region}.")[2] or name for name in names)


def pod_identity_accounts(clients: Clients, cluster_name: str) -> frozenset[str]:
    """The ServiceAccounts (`namespace/name`) that EKS Pod Identity gives a role."""
    with translated("eks:ListPodIdentityAssociations"):
        eks = clients.get("eks")
        rows = pages(eks, "list_pod_identity_associations", "associations", clusterName=cluster_name)
    return frozenset(f"{row.get('namespace', '')}/{row.get('serviceAccount', '')}" for row in rows)


def auto_mode(clients: Clients, cluster_name: str) -> bool:
    """Whether EKS Auto Mode is on, whose nodes contain the Pod Identity agent."""
    with translated("eks:DescribeCluster"):
        cluster = clients.get("eks").describe_cluster(name=cluster_name)["cluster"]
    return bool((cluster.get("computeConfig") or {}).get("enabled"))


def access_entry(clients: Clients, cluster_name: str, role: str) -> str:
    """The type of the role's access entry (`EC2_LINUX`, `EC2_WINDOWS`). Raises AlreadyGone when it has none."""
    with translated("iam:GetRole"):
        arn = clients.get("iam").get_role(RoleName=role_name(role))["Role"]["Arn"]
    with translated("eks:DescribeAccessEntry"):
        entry = clients.get("eks").describe_access_entry(clusterName=cluster_name, principalArn=arn)["accessEntry"]
    return str(entry.get("type", ""))
