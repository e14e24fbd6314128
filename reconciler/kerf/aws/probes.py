"""Whether AWS lets us call what we call, found out by calls that change nothing.

EC2 answers a dry run with `DryRunOperation` when it would have been done. Other services have no such thing: what is
read there is read, or something is asked for that cannot be there. Source: EC2 API reference, "Dry run".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from botocore import exceptions as boto
from botocore.parsers import ResponseParserError

from kerf.aws.observe.prices import price_list
from kerf.aws.requests.clients import Clients
from kerf.aws.requests.errors import translate, translated
from kerf.ports import PortError

DRY: Final = "DryRunOperation"
_NOBODY: Final = "kerf-preflight-of-a-name-that-nobody-has"
_SOME_PARAMETER: Final = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id"
Probe = Callable[[], Any]


def caller(clients: Clients) -> str:
    """The ARN of who we are. Raises PortError."""
    with translated("sts:GetCallerIdentity"):
        return str(clients.get("sts").get_caller_identity()["Arn"])


def reads(clients: Clients, cluster_name: str, *, isolated_vpc: bool) -> Mapping[str, Probe]:
    """By action, a call that says whether it may be done. Without endpoints for them IAM and prices are not asked."""
    ec2, eks, ssm = clients.get("ec2"), clients.get("eks"), clients.get("ssm")
    dry: Final = {"DryRun": True}
    found: dict[str, Probe] = {
        "ec2:DescribeCapacityReservations": lambda: ec2.describe_capacity_reservations(**dry),
        "ec2:DescribeImages": lambda: ec2.describe_images(Owners=["self"], **dry),
        "ec2:DescribeInstanceStatus": lambda: ec2.describe_instance_status(**dry),
        "ec2:DescribeInstances": lambda: ec2.describe_instances(**dry),
        "ec2:DescribeInstanceTypeOfferings": lambda: ec2.describe_instance_type_offerings(**dry),
        "ec2:DescribeInstanceTypes": lambda: ec2.describe_instance_types(**dry),
        "ec2:DescribeLaunchTemplates": lambda: ec2.describe_launch_templates(**dry),
        "ec2:DescribePlacementGroups": lambda: ec2.describe_placement_groups(**dry),
        "ec2:DescribeSecurityGroups": lambda: ec2.describe_security_groups(**dry),
        "ec2:DescribeSpotPriceHistory": lambda: ec2.describe_spot_price_history(**dry),
        "ec2:DescribeSubnets": lambda: ec2.describe_subnets(**dry),
        "eks:DescribeCluster": lambda: eks.describe_cluster(name=cluster_name),
        "ssm:GetParameter": lambda: ssm.get_parameter(Name=_SOME_PARAMETER),
    }
    if not isolated_vpc:
        prices = price_list(clients)
        if prices is not None:
            found["pricing:GetProducts"] = lambda: prices.get_products(ServiceCode="AmazonEC2", MaxResults=1)
        iam = clients.get("iam")
        found["iam:GetInstanceProfile"] = lambda: iam.get_instance_profile(InstanceProfileName=_NOBODY)
        found["iam:ListInstanceProfiles"] = lambda: iam.list_instance_profiles(PathPrefix=f"/{_NOBODY}/")
    return found


def queue_reads(clients: Clients, queue: str) -> Mapping[str, Probe]:
    """By action. A message that is seen stays in the queue, and is there for others at once."""
    sqs = clients.get("sqs")

    def receive() -> None:
        address = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
        sqs.receive_message(QueueUrl=address, MaxNumberOfMessages=1, VisibilityTimeout=0, WaitTimeSeconds=0)

    return {"sqs:GetQueueUrl": lambda: sqs.get_queue_url(QueueName=queue), "sqs:ReceiveMessage": receive}


def shift_reads(clients: Clients, cluster_name: str) -> Mapping[str, Probe]:
    """By action. AlreadyGone: the cluster takes no part in zonal shifts."""
    arc, eks = clients.get("arc-zonal-shift"), clients.get("eks")

    def read() -> None:
        arc.get_managed_resource(resourceIdentifier=eks.describe_cluster(name=cluster_name)["cluster"]["arn"])

    return {"arc-zonal-shift:GetManagedResource": read}


def outcome(action: str, probe: Probe) -> PortError | None:
    """What AWS has against it; None when nothing. AlreadyGone: we may ask, and there is no such thing."""
    try:
        probe()
    except boto.ClientError as error:
        if error.response.get("Error", {}).get("Code") == DRY:
            return None
        return translate(action, error)
    except (boto.BotoCoreError, ResponseParserError) as error:
        return translate(action, error)
    return None
