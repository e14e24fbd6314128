"""The slips of a first installation, each made for real: in the account, in the cluster, or in what is installed.

A maker is a context manager: within its block the slip is there, and after it everything is as it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from kerf.runtime.preflight.account_limits import EVENTS

from .control_plane import ControlPlane
from .installation import CLUSTER_NAME, LEASE, NAMESPACE, Installation
from .moto_aws.settings import ACCOUNT, DISCOVERY_TAG, ROLE, SPOT_ROLE

CONTROLLER_ROLE: Final = f"KerfController-{CLUSTER_NAME}"
NODE_ROLE: Final = f"KarpenterNodeRole-{CLUSTER_NAME}"
AGENT: Final = "eks-pod-identity-agent"
_TRUST: Final = '{"Version":"2012-10-17","Statement":[]}'
_STAGE: Final = """
apiVersion: v1
kind: Node
metadata:
  name: own
  labels: {topology.kubernetes.io/region: us-west-2, topology.kubernetes.io/zone: us-west-2a}
spec:
  providerID: aws:///us-west-2a/i-0123456789abcdef0
  taints: [{key: own, effect: NoSchedule}]
---
apiVersion: v1
kind: Pod
metadata: {name: coredns, namespace: kube-system, labels: {k8s-app: kube-dns}}
spec: {nodeName: own, containers: [{name: coredns, image: coredns}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: eks-pod-identity-agent, namespace: kube-system}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: agent}]}
"""
Maker = Callable[["Whole"], AbstractContextManager[None]]


class Whole(Installation):
    """An installation that lacks nothing: EKS knows this control plane, and every role, rule and pod is there."""

    def __init__(self, control_plane: ControlPlane, folder: Path) -> None:
        values = {"settings.clusterEndpoint": ""}
        super().__init__(control_plane, folder, values=values, families=("c6a", "m6a"))

    def furnish(self) -> None:
        """Make what a careful installer has made."""
        for role in (CONTROLLER_ROLE, NODE_ROLE):
            self.aws.client("iam").create_role(RoleName=role, AssumeRolePolicyDocument=_TRUST)
        surround(self)

    def pulled(self, state: dict[str, Any]) -> None:
        """The containers of the controller's pods are in this state."""
        for pod in self.get("pods", namespace=NAMESPACE, selector="app.kubernetes.io/component=controller"):
            row = {"name": "controller", "image": "kerf/controller:0", "imageID": "", "ready": False, "state": state}
            statuses = [{**row, "restartCount": 0}]
            _status(self, NAMESPACE, pod["metadata"]["name"], {"containerStatuses": statuses})

    def setting(self, name: str, text: str) -> None:
        """The controller's Deployment has this variable."""
        self.kubectl("set", "env", "deployment/kerf", "-n", NAMESPACE, f"{name}={text}")


# --- what others install ------------------------------------------------------------------------------------------
def surround(kerf: Installation) -> None:
    """Make what a cluster has without Kerf: a node, CoreDNS, the agent of Pod Identity; and Kerf's association."""
    kerf.kubectl("apply", "-f", "-", input_=_STAGE)
    coredns(kerf, "True")
    associate(kerf)


def associate(kerf: Installation) -> None:
    """EKS Pod Identity gives the controller its role."""
    kerf.aws.associate((NAMESPACE, "kerf", f"arn:aws:iam::{ACCOUNT}:role/{CONTROLLER_ROLE}"))


def coredns(kerf: Installation, ready: str) -> None:
    """Its pod is ready ("True") or not ("False")."""
    _status(kerf, "kube-system", "coredns", {"conditions": [{"type": "Ready", "status": ready}]})


def _status(kerf: Installation, namespace: str, pod: str, status: dict[str, Any]) -> None:
    patch = json.dumps({"status": status})
    how = ("--subresource=status", "--type=merge", "-p", patch)
    kerf.kubectl("patch", "pod", pod, "-n", namespace, *how, check=False)  # a roll-out may have deleted it


# --- in the account -----------------------------------------------------------------------------------------------
def _without_role(name: str) -> Maker:
    @contextmanager
    def made(kerf: Whole) -> Iterator[None]:
        iam = kerf.aws.client("iam")
        rows = iam.list_instance_profiles_for_role(RoleName=name)["InstanceProfiles"]
        profiles = [row["InstanceProfileName"] for row in rows]
        for profile in profiles:
            iam.remove_role_from_instance_profile(InstanceProfileName=profile, RoleName=name)
        iam.delete_role(RoleName=name)
        try:
            yield
        finally:
            iam.create_role(RoleName=name, AssumeRolePolicyDocument=_TRUST)
            for profile in profiles:
                iam.add_role_to_instance_profile(InstanceProfileName=profile, RoleName=name)

    return made


def _untagged(operation: str, key: str, id_: str) -> Maker:
    @contextmanager
    def made(kerf: Whole) -> Iterator[None]:
        ec2 = kerf.aws.client("ec2")
        wanted = [{"Name": f"tag:{DISCOVERY_TAG}", "Values": [CLUSTER_NAME]}]
        ids = [row[id_] for row in getattr(ec2, operation)(Filters=wanted)[key]]
        tags = [{"Key": DISCOVERY_TAG, "Value": CLUSTER_NAME}]
        ec2.delete_tags(Resources=ids, Tags=tags)
        try:
            yield
        finally:
            ec2.create_tags(Resources=ids, Tags=tags)

    return made


@contextmanager
def _no_association(kerf: Whole) -> Iterator[None]:
    kerf.aws.associate()
    try:
        yield
    finally:
        associate(kerf)


@contextmanager
def quota_reached(kerf: Installation) -> Iterator[None]:
    kerf.aws.quota("L-1216C47A", 0)
    try:
        yield
    finally:
        kerf.aws.quota("L-1216C47A", 640)


@contextmanager
def _no_rules(kerf: Whole) -> Iterator[None]:
    events = kerf.aws.client("events")
    name = EVENTS[-1].replace(" ", "")
    events.disable_rule(Name=name)
    try:
        yield
    finally:
        events.enable_rule(Name=name)


# --- in what is installed -----------------------------------------------------------------------------------------
def _set(name: str, text: str, before: str) -> Maker:
    @contextmanager
    def made(kerf: Whole) -> Iterator[None]:
        kerf.setting(name, text)
        try:
            yield
        finally:
            kerf.setting(name, before)

    return made


@contextmanager
def _another_cluster(kerf: Whole) -> Iterator[None]:
    eks = kerf.aws.client("eks")
    arn = f"arn:aws:iam::{ACCOUNT}:role/{ROLE}"
    eks.create_cluster(name="other", roleArn=arn, resourcesVpcConfig={"subnetIds": ["subnet-1"]})
    kerf.setting("CLUSTER_NAME", "other")
    try:
        yield
    finally:
        kerf.setting("CLUSTER_NAME", CLUSTER_NAME)
        eks.delete_cluster(name="other")


@contextmanager
def _no_agent(kerf: Whole) -> Iterator[None]:
    kerf.kubectl("delete", "daemonset", AGENT, "-n", "kube-system")
    try:
        yield
    finally:
        kerf.kubectl("apply", "-f", "-", input_=_STAGE.rpartition("---\n")[2])


@contextmanager
def _old_definitions(kerf: Whole) -> Iterator[None]:
    crd = "ec2nodeclasses.karpenter.k8s.aws"
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/networkInterfaces"
    schema = kerf.one("crd", crd)["spec"]["versions"][0]["schema"]
    field = schema["openAPIV3Schema"]["properties"]["spec"]["properties"]["networkInterfaces"]
    rules = schema["openAPIV3Schema"]["properties"]["spec"].get("x-kubernetes-validations")
    assert "networkInterfaces" not in json.dumps(rules)
    _patch_definition(kerf, crd, [{"op": "remove", "path": path}])
    try:
        yield
    finally:
        _patch_definition(kerf, crd, [{"op": "add", "path": path, "value": field}])


def _patch_definition(kerf: Whole, crd: str, patch: list[dict[str, Any]]) -> None:
    """And wait until the API server's document has it, which takes a second or two."""
    there = patch[0]["op"] == "add"
    kerf.kubectl("patch", "crd", crd, "--type=json", "-p", json.dumps(patch))
    document = "/openapi/v3/apis/karpenter.k8s.aws/v1"
    kerf.wait(lambda: ("networkInterfaces:" in _fields(kerf, document)) == there, 30, "the document follows")


def _fields(kerf: Whole, document: str) -> str:
    schemas = json.loads(kerf.kubectl("get", "--raw", document))["components"]["schemas"]
    spec = schemas["aws.k8s.karpenter.v1.EC2NodeClass"]["properties"]["spec"]["properties"]
    return "".join(f"{name}:" for name in spec)


@contextmanager
def _no_webhook(kerf: Whole) -> Iterator[None]:
    kerf.kill_webhook()
    kerf.wait(lambda: not kerf.webhook_answers(), 60, "its worker has ended, too")
    try:
        yield
    finally:
        kerf.start_webhook()


@contextmanager
def _no_eviction(kerf: Whole) -> Iterator[None]:
    with kerf.allowed_only([rule for rule in kerf.rules() if "pods/eviction" not in rule["resources"]]):
        yield


@contextmanager
def _no_coredns(kerf: Whole) -> Iterator[None]:
    coredns(kerf, "False")
    try:
        yield
    finally:
        coredns(kerf, "True")


@contextmanager
def _clock_ahead(kerf: Whole) -> Iterator[None]:
    """The lease is renewed as by a holder whose clock is ten minutes ahead."""
    kerf.stop_controller()
    try:
        ahead = (datetime.now(UTC) + timedelta(minutes=10)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        patch = json.dumps({"spec": {"renewTime": ahead, "holderIdentity": "kerf"}})
        kerf.kubectl("patch", "lease", LEASE, "-n", NAMESPACE, "--type=merge", "-p", patch)
        yield
    finally:
        kerf.kubectl("delete", "lease", LEASE, "-n", NAMESPACE)
        kerf.start_controller()
        kerf.wait(lambda: kerf.holder() != "", 30, "a replica leads")


@contextmanager
def _not_pulled(kerf: Whole) -> Iterator[None]:
    kerf.pulled({"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}})
    try:
        yield
    finally:
        kerf.pulled({"running": {}})


@contextmanager
def _nothing(kerf: Whole) -> Iterator[None]:
    """The default of the chart is the slip."""
    yield


_SUBNETS: Final = _untagged("describe_subnets", "Subnets", "SubnetId")
_GROUPS: Final = _untagged("describe_security_groups", "SecurityGroups", "GroupId")
#: Before Kerf is installed, and before there is an EC2NodeClass.
BEFORE: Final[dict[str, Maker]] = {
    "the IAM role of nodes is missing, before there is an EC2NodeClass": _without_role(NODE_ROLE),
    "subnets have no discovery tag, before there is an EC2NodeClass": _SUBNETS,
    "security groups have no discovery tag, before there is an EC2NodeClass": _GROUPS,
    "Kerf's image has not been built": _nothing,
}
#: With an installed Kerf, a NodePool and an EC2NodeClass.
AFTER: Final[dict[str, Maker]] = {
    "the IAM role of the controller is missing": _without_role(CONTROLLER_ROLE),
    "the IAM role that an EC2NodeClass names is missing": _without_role(ROLE),
    "subnets do not have the tag that the EC2NodeClass selects": _SUBNETS,
    "security groups do not have the tag that the EC2NodeClass selects": _GROUPS,
    "the interruption queue is missing, or has another name": _set("INTERRUPTION_QUEUE", "misspelt", CLUSTER_NAME),
    "the ServiceAccount has neither an annotation (IRSA) nor a Pod Identity association": _no_association,
    "the agent of EKS Pod Identity is missing": _no_agent,
    "the name of the cluster is wrong": _set("CLUSTER_NAME", "kerf-e2f", CLUSTER_NAME),
    "the name is that of another cluster": _another_cluster,
    "the region is wrong": _set("AWS_REGION", "eu-west-1", "us-west-2"),
    "the CRDs are those of an older release": _old_definitions,
    "the API server does not reach the webhook": _no_webhook,
    "the controller may not evict pods": _no_eviction,
    "CoreDNS does not run, and Kerf uses the cluster's DNS": _no_coredns,
    "the service-linked role for spot is missing": _without_role(SPOT_ROLE),
    "the quota of vCPUs is reached": quota_reached,
    "the clock of the controller's node is wrong": _clock_ahead,
    "nodes cannot pull Kerf's image": _not_pulled,
    "EventBridge rules are missing": _no_rules,
}
