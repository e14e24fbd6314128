"""What the first node needs and no object of the cluster names yet: a role, tags to be found by, and an image."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kerf.aws import facts_of_account as facts
from kerf.aws.requests.clients import Clients
from kerf.ports import AlreadyGone
from kerf.runtime.preflight.findings import GOOD, WRONG, Finding, asked, unchecked

#: The tag by which the examples select subnets and security groups.
DISCOVERY: Final = "karpenter.sh/discovery"
_NOBODYS: Final = ("kerf/controller",)
TEMPLATE: Final = "manifests/aws/cloudformation.yaml"


def node_role(clients: Clients, cluster_name: str, *, isolated: bool) -> Finding:
    """The role that the CloudFormation template makes for nodes, and that the examples name."""
    role = f"KarpenterNodeRole-{cluster_name}"
    what = "role of nodes"
    if isolated:
        return unchecked(what, "needs an IAM endpoint, and ISOLATED_VPC is set")

    def ask() -> Finding:
        try:
            facts.find_role(clients, role)
        except AlreadyGone:
            seen = f"IAM has no role {role} (assumed: no EC2NodeClass names another one)"
            return Finding(what, WRONG, seen, f"deploy {TEMPLATE}, or write an EC2NodeClass with your role")
        return Finding(what, GOOD, role)

    return asked(what, ask, "iam:GetRole")


def discovery(clients: Clients, cluster_name: str) -> Iterator[Finding]:
    """Subnets and security groups with the tag that the examples select by."""
    for noun, operation, key, right in (
        ("subnets", "describe_subnets", "Subnets", "ec2:DescribeSubnets"),
        ("security groups", "describe_security_groups", "SecurityGroups", "ec2:DescribeSecurityGroups"),
    ):
        yield asked(noun, lambda of=(noun, operation, key): _tagged(clients, cluster_name, *of), right)  # type: ignore[misc]


def _tagged(clients: Clients, cluster_name: str, noun: str, operation: str, key: str) -> Finding:
    count = facts.tagged(clients, operation, key, {DISCOVERY: cluster_name})
    if count:
        return Finding(noun, GOOD, f"{count} with the tag {DISCOVERY}={cluster_name}")
    seen = f"none has the tag {DISCOVERY}={cluster_name} (assumed: no EC2NodeClass selects by another one)"
    return Finding(noun, WRONG, seen, tag_command(cluster_name))


def tag_command(cluster_name: str) -> str:
    """The command that tags what nodes are to have."""
    return f"aws ec2 create-tags --tags Key={DISCOVERY},Value={cluster_name} --resources IDS"


def image_name(image: str) -> Finding:
    """The image that the values name."""
    what = "image of Kerf"
    if image in _NOBODYS:
        seen = f"no public registry has {image}, the default of the chart"
        return Finding(what, WRONG, seen, "build and push it (docs/images.md), and set controller.image.repository")
    return Finding(what, GOOD, image)
