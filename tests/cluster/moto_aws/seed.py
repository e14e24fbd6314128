"""A cluster in its surroundings: a VPC with a subnet in each of three zones, a security group, EKS, queue, images."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
from moto.ec2.models.amis import Ami
from moto.ssm.models import Parameter

from kerf.aws.observe.images import UnsupportedAlias, alias_sources

from .settings import ACCOUNT, AL2_VERSION, DISCOVERY_TAG, PINNED, ROLE, SPOT_ROLE, ZONES, MotoSettings
from .world import backend

AMAZON = "602401143452"
RULES = (
    ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    ("aws.ec2", "EC2 Instance State-change Notification"),
    ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
    ("aws.health", "AWS Health Event"),
)
FIRST_RELEASE = datetime(2026, 1, 5, 12, 0, 0, tzinfo=UTC)
VPC_CIDR = "10.0.0.0/16"


def seed(settings: MotoSettings, endpoint_url: str) -> None:
    """Put everything in place, through the API where it has a way."""
    session = boto3.session.Session(aws_access_key_id="kerf", aws_secret_access_key="kerf", region_name=settings.region)

    def client(service: str) -> Any:
        return session.client(service, endpoint_url=endpoint_url)

    subnets, group = _network(client("ec2"), settings)
    client("sqs").create_queue(QueueName=settings.cluster_name, Attributes={"MessageRetentionPeriod": "300"})
    _rules(client("events"), settings)
    trust = '{"Version":"2012-10-17","Statement":[]}'
    client("iam").create_role(RoleName=ROLE, AssumeRolePolicyDocument=trust)
    # by its own name: moto derives another one from the name of the service
    client("iam").create_role(RoleName=SPOT_ROLE, AssumeRolePolicyDocument=trust)
    backend("eks", settings.region).create_cluster(
        name=settings.cluster_name,
        role_arn=f"arn:aws:iam::{ACCOUNT}:role/{ROLE}",
        resources_vpc_config={"subnetIds": subnets, "securityGroupIds": [group]},
        version=settings.kubernetes_version,
        kubernetes_network_config={"serviceIpv4Cidr": settings.service_cidr},
    )
    cluster = backend("eks", settings.region).clusters[settings.cluster_name]
    cluster.endpoint, cluster.certificate_authority = settings.endpoint, {"data": settings.ca_bundle}
    release_images(settings, 0)


def _rules(events: Any, settings: MotoSettings) -> None:
    """Those of manifests/aws, whose target is the queue."""
    arn = f"arn:aws:sqs:{settings.region}:{ACCOUNT}:{settings.cluster_name}"
    for source, event in RULES:
        name = event.replace(" ", "")
        events.put_rule(Name=name, EventPattern=json.dumps({"source": [source], "detail-type": [event]}))
        events.put_targets(Rule=name, Targets=[{"Id": "Queue", "Arn": arn}])


def _network(ec2: Any, settings: MotoSettings) -> tuple[list[str], str]:
    tags = [{"Key": DISCOVERY_TAG, "Value": settings.cluster_name}]
    vpc = ec2.create_vpc(CidrBlock=VPC_CIDR)["Vpc"]["VpcId"]
    subnets = []
    for index, letter in enumerate(ZONES):
        answer = ec2.create_subnet(
            VpcId=vpc,
            CidrBlock=f"10.0.{64 * index}.0/18",
            AvailabilityZone=f"{settings.region}{letter}",
            TagSpecifications=[{"ResourceType": "subnet", "Tags": tags}],
        )
        subnets.append(answer["Subnet"]["SubnetId"])
    group = ec2.create_security_group(
        GroupName=f"{settings.cluster_name}-node",
        Description="nodes",
        VpcId=vpc,
        TagSpecifications=[{"ResourceType": "security-group", "Tags": tags}],
    )
    return subnets, group["GroupId"]


def release_images(settings: MotoSettings, number: int) -> list[str]:
    """Publish release `number` of every family: new images behind the `latest` parameters, one month after the last.

    Returns the IDs. Release 0 also publishes the pinned version of each family.
    """
    ids = []
    for family in ("al2023", "bottlerocket", "al2", "windows2022"):
        version = AL2_VERSION if family == "al2" else settings.kubernetes_version
        ids += _publish(settings, f"{family}@latest", version, number)
        if number == 0 and family in PINNED:
            ids += _publish(settings, f"{family}@{PINNED[family]}", version, -1)
    return ids


def _publish(settings: MotoSettings, alias: str, version: str, number: int) -> list[str]:
    try:
        sources = alias_sources(alias, version)
    except UnsupportedAlias:
        return []
    ids = []
    for source in sources:
        arm = "arm64" in source.path
        image_id = "ami-" + hashlib.sha256(f"{source.path} {number}".encode()).hexdigest()[:17]
        name = (
            f"{alias.partition('@')[0]}-{version}-{'arm64' if arm else 'x86_64'}-{'-'.join(source.variants)}-{number}"
        )
        _image(settings, image_id, name, "arm64" if arm else "x86_64", FIRST_RELEASE + timedelta(days=30 * number))
        _parameter(settings, source.path, image_id)
        ids.append(image_id)
    return ids


def _image(settings: MotoSettings, image_id: str, name: str, architecture: str, created: datetime) -> None:
    """Source of the owner: Amazon EKS user guide, "Amazon container image registries"."""
    ec2 = backend("ec2", settings.region)
    ec2.amis[image_id] = Ami(
        ec2,
        image_id,
        name=name,
        owner_id=AMAZON,
        owner_alias="amazon",
        public=True,
        architecture=architecture,
        virtualization_type="hvm",
        hypervisor="xen",
        creation_date=created,
        root_device_type="ebs",
        root_device_name="/dev/xvda",
        region_name=f"{settings.region}a",
    )


def _parameter(settings: MotoSettings, name: str, value: str) -> None:
    """PutParameter refuses names under /aws: these are AWS's own."""
    make: Any = Parameter
    versions = backend("ssm", settings.region)._parameters[name]
    versions.append(
        make(
            account_id=ACCOUNT,
            name=name,
            value=value,
            parameter_type="String",
            description=None,
            allowed_pattern=None,
            keyid=None,
            last_modified_date=datetime.now(UTC),
            version=len(versions) + 1,
            data_type="aws:ec2:image",
        )
    )
