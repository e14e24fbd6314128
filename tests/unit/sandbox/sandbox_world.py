"""Manifests and launches for the sandbox's tests."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from kerf.model import kinds
from kerf.model.aws.cloud import FleetRequest, LaunchTemplate, Override
from kerf.model.kubernetes.objects import Node, Pod
from kerf.sandbox.world import World
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import MetadataOptions

USER_DATA = """MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: application/node.eks.aws

apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
metadata: {}
spec:
  kubelet:
    config:
      maxPods: 29
      registerWithTaints:
        - {key: team, value: red, effect: NoSchedule}
    flags:
      - '--node-labels="karpenter.sh/capacity-type=on-demand,pool=one"'
--//--
"""


def launch(
    world: World,
    *members: str,
    group: str = "g1",
    zones: tuple[str, ...] = ("us-west-2a",),
    types: tuple[str, ...] = ("m6i.large",),
    capacity_type: str = labels.ON_DEMAND,
    user_data: str = "",
) -> FleetRequest:
    """A request for one instance per member; overrides cost 1, 2, 3 … in the order given."""
    subnets = {subnet.zone: subnet.id for subnet in world.ec2.subnets.values()}
    template = LaunchTemplate(
        name="template",
        image_id="ami-00000001",
        user_data=user_data,
        instance_profile="profile",
        security_group_ids=("sg-00000001",),
        metadata_options=MetadataOptions(),
    )
    pairs = [(kind, zone) for kind in types for zone in zones]
    overrides = tuple(
        Override(
            instance_type=kind,
            zone=zone,
            subnet_id=subnets[zone],
            image_id="ami-00000001",
            template="template",
            price=price,
        )
        for price, (kind, zone) in enumerate(pairs, 1)
    )
    return FleetRequest(
        group=group,
        capacity_type=capacity_type,
        members=members,
        templates=(template,),
        overrides=overrides,
        tags={labels.TAG_EKS_CLUSTER: "sandbox", labels.TAG_NODEPOOL: "default", labels.TAG_NODECLASS: "default"},
    )


def deployment(name: str, replicas: int, cpu: str = "500m", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": "256Mi"}}}]
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers, **spec}}
    body = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": body}


def pod(name: str, cpu: str = "500m", own: Mapping[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    meta = {"name": name, "labels": {"app": name, **(own or {})}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": containers, **spec}}


def node(name: str, zone: str = "a", cpu: str = "4", **spec: Any) -> dict[str, Any]:
    room = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    own = {labels.ZONE: zone, labels.HOSTNAME: name}
    status = {"capacity": room, "allocatable": room}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": own},
        "spec": spec,
        "status": status,
    }


def pods(world: World) -> list[Pod]:
    return list(world.kube.list(kinds.POD).items)


def places(world: World) -> dict[str, str]:
    """Pod name to node name."""
    return {one.metadata.name: one.spec.node_name for one in pods(world)}


def nodes(world: World) -> list[Node]:
    return list(world.kube.list(kinds.NODE).items)


def wait(world: World, seconds: float) -> None:
    world.run(None, timedelta(seconds=seconds))
