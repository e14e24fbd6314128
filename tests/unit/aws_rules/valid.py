"""Calls that AWS accepts, one or more for each operation; the wrong ones are made from them."""

from __future__ import annotations

import base64
from copy import deepcopy
from typing import Any, Final

IMAGE: Final = "ami-0123456789abcdef0"
SUBNET: Final = "subnet-0123456789abcdef0"
GROUP: Final = "sg-0123456789abcdef0"
INSTANCE: Final = "i-0123456789abcdef0"
TAGS: Final = [{"Key": "karpenter.sh/nodepool", "Value": "default"}]
VOLUME: Final = {"VolumeSize": 20, "VolumeType": "gp3", "Encrypted": True, "DeleteOnTermination": True}
INTERFACE: Final = {"DeviceIndex": 0, "Groups": [GROUP], "AssociatePublicIpAddress": True, "Ipv4PrefixCount": 2}
LAUNCH: Final = {
    "ImageId": IMAGE,
    "UserData": base64.b64encode(b"x" * 16384).decode(),
    "Monitoring": {"Enabled": True},
    "MetadataOptions": {"HttpPutResponseHopLimit": 64, "HttpTokens": "required"},
    "NetworkInterfaces": [INTERFACE],
    "Placement": {"GroupId": "pg-0123456789abcdef0", "PartitionNumber": 7, "Tenancy": "default"},
    "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": VOLUME}],
    "TagSpecifications": [{"ResourceType": "network-interface", "Tags": TAGS}],
}
FLEET: Final = {
    "Type": "instant",
    "ClientToken": "t" * 64,
    "LaunchTemplateConfigs": [
        {
            "LaunchTemplateSpecification": {"LaunchTemplateName": "karpenter.k8s.aws/1", "Version": "$Latest"},
            "Overrides": [{"InstanceType": "m99.large", "SubnetId": SUBNET, "ImageId": IMAGE, "Priority": 0.096}],
        }
    ],
    "TargetCapacitySpecification": {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"},
    "TagSpecifications": [{"ResourceType": "instance", "Tags": TAGS}],
}
RUN: Final = {
    **{key: value for key, value in LAUNCH.items() if key != "TagSpecifications"},
    "LaunchTemplate": {"LaunchTemplateName": "karpenter.k8s.aws/1", "Version": "$Latest"},
    "MinCount": 1,
    "MaxCount": 1,
    "NetworkInterfaces": [{**INTERFACE, "SubnetId": SUBNET}],
    "TagSpecifications": [{"ResourceType": "instance", "Tags": TAGS}],
}
#: (service, operation, parameters) by a name; the operation's own is that of `wrong.py`.
CALLS: Final[dict[str, tuple[str, str, dict[str, Any]]]] = {
    "CreateFleet": ("ec2", "CreateFleet", FLEET),
    "CreateLaunchTemplate": (
        "ec2",
        "CreateLaunchTemplate",
        {
            "LaunchTemplateName": "n" * 128,
            "LaunchTemplateData": LAUNCH,
            "TagSpecifications": [{"ResourceType": "launch-template", "Tags": TAGS}],
        },
    ),
    "RunInstances": ("ec2", "RunInstances", RUN),
    "TerminateInstances": ("ec2", "TerminateInstances", {"InstanceIds": [INSTANCE] * 1000}),
    "CreateTags": ("ec2", "CreateTags", {"Resources": [INSTANCE], "Tags": TAGS}),
    "DeleteLaunchTemplate": ("ec2", "DeleteLaunchTemplate", {"LaunchTemplateId": "lt-0123456789abcdef0"}),
    "DescribeInstances": (
        "ec2",
        "DescribeInstances",
        {"Filters": [{"Name": "tag:a", "Values": ["b"]}, {"Name": "tag-key", "Values": ["c"]}], "MaxResults": 1000},
    ),
    "DescribeInstanceStatus": ("ec2", "DescribeInstanceStatus", {"InstanceIds": [INSTANCE] * 100}),
    "DescribeImages": ("ec2", "DescribeImages", {"Owners": ["self", "amazon", "123456789012"], "MaxResults": 1000}),
    "DescribePlacementGroups": ("ec2", "DescribePlacementGroups", {"GroupIds": ["pg-0123456789abcdef0"]}),
    "ReceiveMessage": (
        "sqs",
        "ReceiveMessage",
        {
            "QueueUrl": "https://q",
            "MaxNumberOfMessages": 10,
            "WaitTimeSeconds": 20,
            "VisibilityTimeout": 43200,
            "AttributeNames": ["All", "SentTimestamp"],
        },
    ),
    "DeleteMessageBatch": (
        "sqs",
        "DeleteMessageBatch",
        {"QueueUrl": "https://q", "Entries": [{"Id": str(n), "ReceiptHandle": "r"} for n in range(10)]},
    ),
    "GetQueueUrl": ("sqs", "GetQueueUrl", {"QueueName": "q" * 75 + ".fifo"}),
    "CreateInstanceProfile": (
        "iam",
        "CreateInstanceProfile",
        {"InstanceProfileName": "p" * 128, "Path": "/karpenter/eu-west-1/u/", "Tags": TAGS},
    ),
    "ListInstanceProfiles": ("iam", "ListInstanceProfiles", {"PathPrefix": "/karpenter/"}),
    "GetParameter": ("ssm", "GetParameter", {"Name": "/aws/service/eks/1.34/image_id:3"}),
    "DescribeCluster": ("eks", "DescribeCluster", {"name": "c" * 100}),
    "GetProducts": ("pricing", "GetProducts", {"ServiceCode": "AmazonEC2", "MaxResults": 100}),
    "GetManagedResource": (
        "arc-zonal-shift",
        "GetManagedResource",
        {"resourceIdentifier": "arn:aws-cn:eks:cn-north-1:123456789012:cluster/c"},
    ),
}


def with_value(name: str, path: str, value: Any) -> tuple[str, str, dict[str, Any]]:
    """A valid call with another value at a path such as `LaunchTemplateData.NetworkInterfaces.0.InterfaceType`."""
    service, operation, parameters = CALLS[name]
    changed = deepcopy(parameters)
    *above, last = path.split(".")
    inner: Any = changed
    for part in above:
        inner = inner[int(part)] if part.isdigit() else inner.setdefault(part, {})
    inner[int(last) if last.isdigit() else last] = value
    return service, operation, changed
