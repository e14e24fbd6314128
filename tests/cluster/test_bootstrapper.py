"""An instance becomes a node as its user data says, and falls silent when the instance ends."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .bootstrapper import Bootstrapper
from .control_plane import ControlPlane
from .moto_aws import MotoAws
from .stages import STOPPED_LABEL

pytestmark = pytest.mark.cluster

USER_DATA = """\
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: application/node.eks.aws

apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  kubelet:
    config:
      maxPods: 58
      registerWithTaints:
      - {effect: NoExecute, key: karpenter.sh/unregistered}
    flags:
    - --node-labels="karpenter.sh/nodepool=default,team=platform"

--//--
"""


@pytest.fixture(scope="module")
def aws() -> Iterator[MotoAws]:
    with MotoAws() as running:
        yield running


def launch(aws: MotoAws, token: str) -> str:
    ec2 = aws.client("ec2")
    subnet = ec2.describe_subnets(Filters=[{"Name": "availability-zone", "Values": ["us-west-2b"]}])["Subnets"][0]
    images = ec2.describe_images(Filters=[{"Name": "name", "Values": ["al2023-*-x86_64-standard-0"]}])["Images"]
    data = {"UserData": base64.b64encode(USER_DATA.encode()).decode(), "ImageId": images[0]["ImageId"]}
    ec2.create_launch_template(LaunchTemplateName=f"template-{token}", LaunchTemplateData=data)
    answer = ec2.create_fleet(
        Type="instant",
        ClientToken=token,
        TargetCapacitySpecification={"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"},
        LaunchTemplateConfigs=[
            {
                "LaunchTemplateSpecification": {"LaunchTemplateName": f"template-{token}", "Version": "$Latest"},
                "Overrides": [{"InstanceType": "m5.large", "SubnetId": subnet["SubnetId"]}],
            }
        ],
    )
    instance_id: str = answer["Instances"][0]["InstanceIds"][0]
    return instance_id


def nodes(cluster: ControlPlane) -> list[dict[str, Any]]:
    return cluster.objects.list("nodes")


def eventually(look: Callable[[], Any], seconds: float = 30.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, "did not come true in time"
        time.sleep(0.2)
    return found


def ready(node: dict[str, Any]) -> bool:
    conditions = node["status"].get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def test_an_instance_becomes_a_node_and_falls_silent(control_plane: ControlPlane, aws: MotoAws) -> None:
    with Bootstrapper(aws.endpoint_url, control_plane.kubeconfig, boot_seconds=0.2) as bootstrapper:
        instance_id = launch(aws, "one")

        def mine() -> dict[str, Any] | None:
            found = (one for one in nodes(control_plane) if one["spec"].get("providerID", "").endswith(instance_id))
            return next(found, None)

        node = eventually(lambda: (found := mine()) and ready(found) and found)
        assert node["metadata"]["name"] == aws.instances("running")[0]["private_dns_name"]
        assert bootstrapper.nodes == {node["metadata"]["name"]: instance_id}
        assert node["spec"]["providerID"] == f"aws:///us-west-2b/{instance_id}"
        labels = node["metadata"]["labels"]
        assert labels["team"] == "platform"
        assert labels["karpenter.sh/nodepool"] == "default"
        assert labels["topology.kubernetes.io/zone"] == "us-west-2b"
        assert labels["node.kubernetes.io/instance-type"] == "m5.large"
        assert {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}.items() <= node["spec"]["taints"][0].items()
        assert node["status"]["allocatable"]["pods"] == "58"
        assert node["status"]["allocatable"]["cpu"] == "1930m"

        _finalize(control_plane, node, ["karpenter.sh/termination"])
        aws.terminate(instance_id)
        eventually(lambda: (found := mine()) is not None and STOPPED_LABEL in found["metadata"]["labels"])
    _finalize(control_plane, node, [])
    control_plane.kubectl("delete", "node", node["metadata"]["name"])


def _finalize(control_plane: ControlPlane, node: dict[str, Any], finalizers: list[str]) -> None:
    patch = json.dumps({"metadata": {"finalizers": finalizers}})
    control_plane.kubectl("patch", "node", node["metadata"]["name"], "--type=merge", "-p", patch)


def test_a_node_that_nobody_looks_after_goes_with_its_machine(control_plane: ControlPlane, aws: MotoAws) -> None:
    with Bootstrapper(aws.endpoint_url, control_plane.kubeconfig, boot_seconds=0.0) as bootstrapper:
        instance_id = launch(aws, "four")
        eventually(lambda: instance_id in bootstrapper.nodes.values())
        aws.terminate(instance_id)
        eventually(
            lambda: not any(one["spec"].get("providerID", "").endswith(instance_id) for one in nodes(control_plane))
        )


def test_a_paused_bootstrapper_boots_nothing(control_plane: ControlPlane, aws: MotoAws) -> None:
    with Bootstrapper(aws.endpoint_url, control_plane.kubeconfig, boot_seconds=0.0) as bootstrapper:
        bootstrapper.paused = True
        instance_id = launch(aws, "two")
        eventually(lambda: [one for one in aws.instances("running") if one["id"] == instance_id])
        time.sleep(1.0)
        assert bootstrapper.nodes == {}
        bootstrapper.paused = False
        eventually(lambda: instance_id in bootstrapper.nodes.values())
    aws.terminate(instance_id)
    control_plane.kubectl("delete", "node", next(iter(bootstrapper.nodes)))


def test_a_restart_of_the_api_server_costs_no_node(control_plane: ControlPlane, aws: MotoAws) -> None:
    with Bootstrapper(aws.endpoint_url, control_plane.kubeconfig, boot_seconds=0.0) as bootstrapper:
        bootstrapper.paused = True
        instance_id = launch(aws, "three")
        eventually(lambda: [one for one in aws.instances("running") if one["id"] == instance_id])
        bootstrapper.paused = False
        control_plane.restart_apiserver()
        eventually(lambda: instance_id in bootstrapper.nodes.values())
    aws.terminate(instance_id)
    control_plane.kubectl("delete", "node", next(iter(bootstrapper.nodes)))
