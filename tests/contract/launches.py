"""Fleet requests and node classes for the tests of the Cloud port, as the planner would write them; who is listed."""

from __future__ import annotations

from collections.abc import Sequence

from kerf.model.aws.cloud import ClassFacts, FleetRequest, Instance, LaunchTemplate, Override
from kerf.ports import Cloud
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import (
    BlockDevice,
    BlockDeviceMapping,
    EC2NodeClass,
    EC2NodeClassSpec,
    MetadataOptions,
    SelectorTerm,
)
from kerf_api.v1.meta import ObjectMeta

from .cloud_accounts import Account

PROFILE = "kerf-contract"
ZONES = ("us-west-2a", "us-west-2b", "us-west-2c")
PRICES = {"m5.large": 96_000, "c5.large": 85_000}


def node_class(account: Account, *, uid: str = "class-uid", alias: str = "al2023@latest") -> EC2NodeClass:
    """A class that selects the account's subnets, security group and images."""
    term = SelectorTerm(tags=dict(account.discovery))
    return EC2NodeClass(
        metadata=ObjectMeta(name="default", uid=uid, generation=3),
        spec=EC2NodeClassSpec(
            subnet_selector_terms=(term,),
            security_group_selector_terms=(term,),
            ami_selector_terms=(SelectorTerm(alias=alias),),
            role=account.role,
        ),
    )


def resolved(account: Account) -> ClassFacts:
    return account.cloud.resolve(node_class(account), account.cloud.cluster())


def request(
    account: Account,
    group: str,
    *,
    members: Sequence[str] = ("claim-a",),
    capacity_type: str = labels.ON_DEMAND,
    types: Sequence[str] = ("m5.large", "c5.large"),
    cluster_name: str = "",
) -> FleetRequest:
    """A request for one instance per member, of any of the types in any of the subnets."""
    facts = resolved(account)
    tags = launch_tags(cluster_name or account.cluster_name, group)
    ensure_profile(account.cloud, account.role)
    image = next(one.id for one in facts.images if (one.architecture, one.variant) == ("amd64", "standard"))
    template = LaunchTemplate(
        name=f"karpenter.k8s.aws/contract-{capacity_type}",
        image_id=image,
        user_data="#!/bin/bash\n",
        instance_profile=PROFILE,
        security_group_ids=tuple(one.id for one in facts.security_groups),
        metadata_options=MetadataOptions(),
        block_device_mappings=(BlockDeviceMapping(device_name="/dev/xvda", ebs=BlockDevice(volume_size="20Gi")),),
        tags={key: value for key, value in tags.items() if key != labels.LAUNCH_GROUP},
        capacity_type=capacity_type,
    )
    overrides = tuple(
        Override(
            instance_type=name,
            zone=subnet.zone,
            subnet_id=subnet.id,
            image_id=image,
            template=template.name,
            price=PRICES[name],
        )
        for name in types
        for subnet in sorted(facts.subnets, key=lambda one: one.zone)
    )
    return FleetRequest(
        group=group,
        capacity_type=capacity_type,
        members=tuple(members),
        templates=(template,),
        overrides=overrides,
        tags=tags,
    )


def launch_tags(cluster_name: str, group: str) -> dict[str, str]:
    return {
        labels.cluster_tag(cluster_name): "owned",
        labels.TAG_EKS_CLUSTER: cluster_name,
        labels.TAG_NODEPOOL: "default",
        labels.TAG_NODECLASS: "default",
        labels.LAUNCH_GROUP: group,
    }


def ensure_profile(cloud: Cloud, role: str) -> None:
    cloud.ensure_instance_profile(PROFILE, role, "/karpenter/contract/", {labels.TAG_NODECLASS: "contract"})


def listed(account: Account, instance_id: str) -> Instance | None:
    return next((one for one in account.cloud.instances() if one.id == instance_id), None)
