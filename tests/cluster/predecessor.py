"""A predecessor's cluster, made on the real control plane and in moto: what Karpenter 1.14.1 would have left there.

Its lease is held and renewed until it ends. Instances come from fleets of launch templates with its tags; their Nodes
join by themselves, and are then as that controller leaves them, like NodeClaims, NodePools and EC2NodeClasses
(`tests/adoption`).
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from kerf.aws.observe.images import alias_sources
from kerf.kube.client import KubeClient
from kerf.model import kinds
from kerf.model.kinds import Kind, Ref
from kerf.ports import Lease
from kerf.runtime.leadership.leases import KARPENTER
from tests.adoption import predecessor, sample
from tests.adoption.predecessor import Launched, Manifest, Surroundings

from .installation import CLUSTER_NAME, NAMESPACE, Installation

SPACE: Final = "kube-system"
HOLDER: Final = "karpenter-7c9d5b_0f6ee1"
TEMPLATE: Final = "karpenter.k8s.aws/89457008657119899{number:02}"
_USER_DATA: Final = """\
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
      - {{effect: NoExecute, key: karpenter.sh/unregistered}}
    flags:
    - --node-labels="karpenter.k8s.aws/ec2nodeclass={name},karpenter.sh/nodepool={name},\
karpenter.sh/capacity-type={bought},karpenter.sh/do-not-sync-taints=true,team=platform"

--//--
"""


#: Of the chart's Deployment as much as anybody looks at. No scheduler takes its pods: here is no image to run.
_CHART: Final = """
apiVersion: apps/v1
kind: Deployment
metadata: {{name: karpenter, labels: {{app.kubernetes.io/name: karpenter}}}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app.kubernetes.io/name: karpenter}}}}
  template:
    metadata: {{labels: {{app.kubernetes.io/name: karpenter}}}}
    spec:
      schedulerName: nobody
      containers:
      - name: controller
        image: public.ecr.aws/karpenter/controller:1.14.1
        env:
        - {{name: CLUSTER_NAME, value: {cluster}}}
        - {{name: INTERRUPTION_QUEUE, value: {cluster}}}
        - {{name: FEATURE_GATES, value: "ReservedCapacity=true,NodeRepair=false"}}
        - {{name: MEMORY_LIMIT, value: "1073741824"}}
"""


def release(kerf: Installation, folder: Path) -> None:
    """A release of Karpenter's chart, as far as Helm and its Deployment go. Its values will do for Kerf here, too."""
    chart = folder / "karpenter"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("{apiVersion: v2, name: karpenter, version: 1.14.1}")
    (chart / "templates" / "deployment.yaml").write_text(_CHART.format(cluster=CLUSTER_NAME))
    values = folder / "values.yaml"
    values.write_text(kerf.helm("get", "values", "kerf", "--namespace", NAMESPACE, "--output", "yaml"))
    kerf.helm("install", "karpenter", str(chart), "--namespace", SPACE, "--values", str(values))


class HeldLease:
    """A Karpenter controller, as far as others see it: it holds and renews its lease."""

    def __init__(self, kube: KubeClient) -> None:
        self._kube = kube
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._stop = threading.Event()
        self._renew(HOLDER)
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def die(self) -> None:
        """It ends without a word, as it does on SIGTERM too."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def give_up(self) -> None:
        """It ends and releases the lease."""
        self.die()
        self._renew("")

    def _work(self) -> None:
        while not self._stop.wait(2.0):
            self._renew(HOLDER)

    def _renew(self, holder: str) -> None:
        known, now = self._kube.get_lease(SPACE, KARPENTER), datetime.now(UTC)
        lease = Lease(holder, now, now) if known is None else replace(known, holder=holder, renewed=now)
        self._kube.put_lease(SPACE, KARPENTER, lease)


class Legacy:
    """Makes what was left, step by step, while no Kerf looks."""

    def __init__(self, kerf: Installation, kube: KubeClient) -> None:
        self._kerf, self._kube = kerf, kube
        self._ec2: Any = kerf.aws.client("ec2")
        self._iam: Any = kerf.aws.client("iam")

    def make(self) -> None:
        """All of `sample`, and its pods run."""
        around = self._surroundings()
        classes, pools = sample.parents(around)
        classes = {name: self._stored(kinds.NODE_CLASS, one) for name, one in classes.items()}
        pools = {name: self._stored(kinds.NODE_POOL, one) for name, one in pools.items()}
        for number, (name, one) in enumerate(classes.items()):
            self._profile(name, one["metadata"]["uid"])
            self._template(number, name, around)
        launched = {name: self._launched(number, name, around) for number, name in enumerate(classes)}
        for name, ids in launched.items():
            self._join(pools[name], classes[name], ids)
        for name in sample.CLASSES:
            self._kube.request("POST", kinds.REPLICA_SET.path("default"), sample.replica_set(name))
        self._kerf.wait(self._all_run, 120, "thirty pods run, each on a node of its own")

    def _all_run(self) -> bool:
        return all(len(self._kerf.running(name)) == sample.EACH for name in sample.CLASSES)

    # --- what is around ---------------------------------------------------------------------------------------------
    def _surroundings(self) -> Surroundings:
        discovery = [{"Name": "tag:karpenter.sh/discovery", "Values": [CLUSTER_NAME]}]
        subnets = self._ec2.describe_subnets(Filters=discovery)["Subnets"]
        groups = self._ec2.describe_security_groups(Filters=discovery)["SecurityGroups"]
        return Surroundings(
            cluster=CLUSTER_NAME,
            role=self._kerf.aws.role,
            ca_bundle=predecessor.RECORDED_CA,
            amis=sorted(self._amis(), key=lambda row: str(row["id"])),
            subnets=[
                {"id": s["SubnetId"], "zone": s["AvailabilityZone"], "zoneID": s["AvailabilityZoneId"]} for s in subnets
            ],
            security_groups=[{"id": g["GroupId"], "name": g["GroupName"]} for g in groups],
        )

    def _amis(self) -> Iterator[Manifest]:
        ssm: Any = self._kerf.aws.client("ssm")
        for source in alias_sources("al2023@latest", self._kerf.aws.settings.kubernetes_version):
            id_ = ssm.get_parameter(Name=source.path)["Parameter"]["Value"]
            name = self._ec2.describe_images(ImageIds=[id_])["Images"][0]["Name"]
            for variant in source.variants:
                yield predecessor.ami(id_, name, "arm64" if "arm64" in source.path else "amd64", variant)

    def _profile(self, name: str, uid: str) -> None:
        profile = predecessor.profile(CLUSTER_NAME, name)
        path = predecessor.profile_path(self._kerf.aws.region, CLUSTER_NAME, uid)
        tags = [{"Key": "karpenter.k8s.aws/ec2nodeclass", "Value": name}]
        self._iam.create_instance_profile(InstanceProfileName=profile, Path=path, Tags=tags)
        self._iam.add_role_to_instance_profile(InstanceProfileName=profile, RoleName=self._kerf.aws.role)

    def _template(self, number: int, name: str, around: Surroundings) -> None:
        user_data = _USER_DATA.format(name=name, bought=sample.CAPACITY_TYPES[name])
        groups = [group["id"] for group in around.security_groups]
        image = next(row["id"] for row in around.amis if row["requirements"] == predecessor.STANDARD_AMD64)
        self._ec2.create_launch_template(
            LaunchTemplateName=TEMPLATE.format(number=number),
            LaunchTemplateData={
                "ImageId": image,
                "UserData": base64.b64encode(user_data.encode()).decode(),
                "IamInstanceProfile": {"Name": predecessor.profile(CLUSTER_NAME, name)},
                "NetworkInterfaces": [{"DeviceIndex": 0, "Groups": groups}],
            },
            TagSpecifications=[_tagged("launch-template", predecessor.resource_tags(name, name, CLUSTER_NAME))],
        )

    # --- nodes ------------------------------------------------------------------------------------------------------
    def _launched(self, number: int, name: str, around: Surroundings) -> list[str]:
        """Ten instances in three zones; their IDs."""
        ids: list[str] = []
        for place, subnet in enumerate(around.subnets):
            count = sample.EACH // 3 + (place < sample.EACH % 3)
            answer = self._ec2.create_fleet(
                Type="instant",
                LaunchTemplateConfigs=[
                    {
                        "LaunchTemplateSpecification": {
                            "LaunchTemplateName": TEMPLATE.format(number=number),
                            "Version": "$Latest",
                        },
                        "Overrides": [{"InstanceType": sample.INSTANCE_TYPE, "SubnetId": subnet["id"]}],
                    }
                ],
                TargetCapacitySpecification={
                    "TotalTargetCapacity": count,
                    "DefaultTargetCapacityType": sample.CAPACITY_TYPES[name],
                },
                TagSpecifications=[_tagged("instance", predecessor.resource_tags(name, name, CLUSTER_NAME))],
            )
            ids += [id_ for row in answer["Instances"] for id_ in row["InstanceIds"]]
        assert len(ids) == sample.EACH
        return ids

    def _join(self, pool: Manifest, of_class: Manifest, ids: list[str]) -> None:
        """Their Nodes come, and get their claims."""
        self._kerf.wait(lambda: len(self._nodes(ids)) == len(ids), 60, "the nodes have joined")
        rows = {row["id"]: row for row in self._kerf.aws.instances() if row["id"] in ids}
        zones = {subnet["zone"]: subnet["zoneID"] for subnet in of_class["status"]["subnets"]}
        for number, (id_, node) in enumerate(sorted(self._nodes(ids).items())):
            row = rows[id_]
            one = Launched(
                claim=f"{pool['metadata']['name']}-{number:05d}",
                node=node["metadata"]["name"],
                instance_id=id_,
                instance_type=row["instance_type"],
                zone=row["zone"],
                zone_id=zones[row["zone"]],
                capacity_type=row["capacity_type"],
                image_id=row["image_id"],
                labels=sample.TYPE_LABELS,
                capacity=node["status"]["capacity"],
                allocatable=node["status"]["allocatable"],
            )
            self._register(one, pool, of_class)

    def _nodes(self, ids: list[str]) -> dict[str, Manifest]:
        """By instance."""
        found = {node["spec"]["providerID"].rpartition("/")[2]: node for node in self._kerf.get("nodes")}
        return {id_: node for id_, node in found.items() if id_ in ids}

    def _register(self, one: Launched, pool: Manifest, of_class: Manifest) -> None:
        claim = predecessor.node_claim(one, pool, of_class, CLUSTER_NAME)
        claim = self._stored(kinds.NODE_CLAIM, _owned(claim, pool))
        wanted = _owned(predecessor.node(one, claim), claim)
        self._kube.patch(Ref("Node", "", one.node), {"metadata": wanted["metadata"], "spec": {"taints": None}})
        tags = {"karpenter.sh/nodeclaim": one.claim, "Name": one.node}
        self._ec2.create_tags(Resources=[one.instance_id], Tags=_rows(tags))

    def _stored(self, kind: Kind, manifest: Manifest) -> Manifest:
        """The object with its status, as the API server has it."""
        self._kube.request("POST", kind.path(), {key: part for key, part in manifest.items() if key != "status"})
        name = manifest["metadata"]["name"]
        self._kube.patch(Ref(kind.name, "", name), {"status": manifest["status"]}, subresource="status")
        found: Manifest = self._kerf.one(kind.plural, name)
        return found


def _owned(manifest: Manifest, owner: Manifest) -> Manifest:
    """With the UID of its owner."""
    (row,) = manifest["metadata"]["ownerReferences"]
    owners = [{**row, "uid": owner["metadata"]["uid"]}]
    return {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": owners}}


def _tagged(what: str, tags: dict[str, str]) -> dict[str, Any]:
    return {"ResourceType": what, "Tags": _rows(tags)}


def _rows(tags: dict[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]
