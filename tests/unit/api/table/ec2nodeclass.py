"""The rows of EC2NodeClass."""

from __future__ import annotations

from typing import Any, Final

from ..manifests import ABSENT
from .rows import BOUND, ENUM, PATTERN, REQUIRED, SIZE, TYPE, Row, interface

EC: Final = "EC2NodeClass"
_TERM_ID: Final = {"id": "subnet-1", "tags": {"a": "b"}}
_GROUP_ID: Final = {"id": "sg-1", "tags": {"a": "b"}}
_GROUP_NAME: Final = {"name": "x", "tags": {"a": "b"}}
_MIME: Final = "MIME-Version: 1.0\nContent-Type: multipart/mixed"
_PART: Final = "--B\nContent-Type: text/x-shellscript\n\n#!/bin/bash\n"
_NODE_CONFIG: Final = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n"


def _class(alias: str, user_data: str, **more: Any) -> dict[str, Any]:
    """The spec of a class for an alias's family, with user data."""
    terms = [{"tags": {"discovery": "example"}}]
    spec = {"role": "example", "subnetSelectorTerms": terms, "securityGroupSelectorTerms": terms}
    return {**spec, "amiSelectorTerms": [{"alias": alias}], "userData": user_data, **more}


ACCEPTED: Final = (
    Row(EC, "spec.amiSelectorTerms", ([{"alias": "al2@v20240703"}], [{"alias": "windows2022@latest"}])),
    Row(EC, "spec.amiSelectorTerms", ([{"alias": "bottlerocket@1.20.4", "ssmParameter": "/x"}],)),
    Row(EC, "spec.amiFamily", ("AL2023", "Custom")),
    Row(EC, "spec.subnetSelectorTerms", ([{"id": "subnet-1"}], [_TERM_ID, {"id": "subnet-2"}], [{"id": "xsubnet-1 "}])),
    Row(EC, "spec.subnetSelectorTerms", ([{"tags": {"a": "*"}}] * 30, [{"tags": {}}])),
    Row(EC, "spec.securityGroupSelectorTerms", ([{"name": "x*"}], [_GROUP_ID, {"name": "y"}], [{"id": "sg-0"}])),
    Row(EC, "spec.capacityReservationSelectorTerms", ([{"id": "cr-1"}], [{"instanceMatchCriteria": "open"}])),
    Row(EC, "spec.capacityReservationSelectorTerms", ([{"tags": {"a": "b"}, "ownerID": "123456789012"}],)),
    Row(EC, "spec.placementGroupSelector", ({"name": "x"}, {"id": "pg-0a"})),
    Row(EC, "spec.tags", ({"a": ""}, {}, {"kubernetes.io/other": "x"}, {"karpenter.sh/discovery": "x"})),
    Row(EC, "spec.kubelet", ({}, {"maxPods": 110}, {"kubeReserved": {"cpu": "100m"}}, {"cpuManagerPolicy": "static"})),
    Row(EC, "spec.kubelet", ({"maxPods": "min(vcpus * 8, 110)"}, {"systemReserved": {"memory": "max_pods * 11"}})),
    Row(EC, "E.volumeSize", ("1Gi", "59000Gi", "64000G", "64T", "17Ti", "50Ti", "58Ti")),
    Row(EC, "E.volumeType", ("gp3", "gp2", "standard")),
    Row(
        EC,
        "spec.blockDeviceMappings",
        ([], [{"deviceName": "x"}], [{"deviceName": "x", "ebs": {"snapshotID": "snap-1"}}]),
    ),
    Row(EC, "spec.metadataOptions", ({}, {"httpPutResponseHopLimit": 64}, {"httpTokens": "optional"})),
    Row(EC, "spec.networkInterfaces", ([], [interface(0, 0)], [interface(0, 0), interface(1, 0, "efa-only")])),
    Row(EC, "spec.connectionTracking", ({"udpTimeout": 30}, {"tcpEstablishedTimeout": 432000})),
    Row(EC, "spec.cpuOptions", ({}, {"nestedVirtualization": "enabled"})),
    Row(EC, "spec.ipPrefixCount", (0, 2**31 - 1)),
    Row(EC, "spec", (ABSENT,)),
    Row(EC, "spec.userData", ("", "#!/bin/bash\n", "echo hi", _NODE_CONFIG, '{"kind": "NodeConfig"}', "a: 2024-13-45")),
    Row(EC, "spec.userData", (f'{_MIME}; boundary="B"\n\n{_PART}--B--\n', "Content-Type: text/plain\n\nx")),
    Row(EC, "spec.userData", ("[" * 16384, "{a: " * 4096, "- " * 8192, "x" * 16384)),
    Row(EC, "spec", (_class("al2@latest", "echo hi"), _class("al2@latest", f'{_MIME}; boundary="B"\n\n{_PART}--B--'))),
    Row(EC, "spec", (_class("bottlerocket@latest", "[settings.a]\nb = 1\n"), _class("bottlerocket@latest", "# none"))),
    Row(EC, "spec", (_class("bottlerocket@latest", "[kernel]\na = 1979-05-27"),)),
    Row(EC, "spec", (_class("windows2022@latest", "Write-Host hi"), _class("windows2022@latest", _MIME))),
    Row(EC, "spec", (_class("al2023@latest", _MIME, amiFamily="Custom"),)),
)

REFUSED: Final = (
    Row(EC, "metadata.annotations[kerf.sh/plan-first]", ("yes", "0s"), "KERF-META-108"),
    Row(EC, "spec.role", (ABSENT,), "KERF-EC2-001", "spec"),
    Row(EC, "spec.instanceProfile", ("x",), "KERF-EC2-001", "spec"),
    Row(EC, "spec.role", ("",), "KERF-EC2-028"),
    Row(EC, "spec.amiSelectorTerms", ([{"id": "ami-1"}], [{"ssmParameter": "x"}]), "KERF-EC2-002", "spec.amiFamily"),
    Row(EC, "spec.amiSelectorTerms", ([],), SIZE),
    Row(EC, "spec.amiSelectorTerms", (ABSENT,), REQUIRED),
    Row(EC, "spec.amiSelectorTerms", ([{"owner": "self"}], [{}]), "KERF-EC2-003", "spec.amiSelectorTerms[0]"),
    Row(EC, "spec.amiSelectorTerms[0].owner", ("self",), "KERF-EC2-005", "spec.amiSelectorTerms[0]"),
    Row(EC, "spec.amiSelectorTerms", ([{"id": "ami-1", "name": "x"}],), "KERF-EC2-004", "spec.amiSelectorTerms[0]"),
    Row(EC, "spec.amiSelectorTerms", ([{"alias": "al2@latest"}, {"id": "ami-1"}],), "KERF-EC2-006"),
    Row(EC, "spec.amiSelectorTerms[0].alias", ("al2023", "@latest", "al2023@"), "KERF-EC2-007"),
    Row(EC, "spec.amiSelectorTerms[0].alias", ("AL2023@latest", "ubuntu@latest"), "KERF-EC2-008"),
    Row(EC, "spec.amiSelectorTerms[0].alias", ("windows2022@v1",), "KERF-EC2-009"),
    Row(EC, "spec.amiSelectorTerms[0].alias", ("al2023@" + "v" * 30,), SIZE),
    Row(EC, "spec.amiSelectorTerms[0].alias", ("al2023@a@b",), "KERF-EC2-101"),
    Row(EC, "spec.amiFamily", ("Ubuntu", "al2023"), ENUM),
    Row(EC, "spec.amiFamily", ("AL2", "Bottlerocket"), "KERF-EC2-041"),
    Row(EC, "spec.subnetSelectorTerms", ([],), "KERF-EC2-033"),
    Row(EC, "spec.subnetSelectorTerms", ([{}],), "KERF-EC2-034", "spec.subnetSelectorTerms[0]"),
    Row(EC, "spec.subnetSelectorTerms", ([_TERM_ID], [_TERM_ID, _TERM_ID]), "KERF-EC2-035"),
    Row(EC, "spec.subnetSelectorTerms", ([{"id": "net-1"}],), PATTERN, "spec.subnetSelectorTerms[0].id"),
    Row(EC, "spec.subnetSelectorTerms", ([{"id": "subnet-1"}] * 31,), SIZE),
    Row(EC, "spec.subnetSelectorTerms[0].tags", ({"": "x"},), "KERF-EC2-039", "spec.subnetSelectorTerms[0].tags[]"),
    Row(EC, "spec.subnetSelectorTerms[0].tags", ({"a": ""},), "KERF-EC2-039", "spec.subnetSelectorTerms[0].tags.a"),
    Row(EC, "spec.subnetSelectorTerms[0].tags", ({f"k{n}": "v" for n in range(21)},), SIZE),
    Row(EC, "spec.securityGroupSelectorTerms", ([],), "KERF-EC2-029"),
    Row(EC, "spec.securityGroupSelectorTerms", ([{}],), "KERF-EC2-030", "spec.securityGroupSelectorTerms[0]"),
    Row(EC, "spec.securityGroupSelectorTerms", ([_GROUP_ID],), "KERF-EC2-031"),
    Row(EC, "spec.securityGroupSelectorTerms", ([_GROUP_NAME],), "KERF-EC2-032"),
    Row(EC, "spec.capacityReservationSelectorTerms", ([],), "KERF-EC2-014"),
    Row(EC, "spec.capacityReservationSelectorTerms", ([{"id": "cr-1", "ownerID": "123456789012"}],), "KERF-EC2-014"),
    Row(
        EC,
        "spec.capacityReservationSelectorTerms",
        ([{"ownerID": "123456789012"}],),
        "KERF-EC2-013",
        "spec.capacityReservationSelectorTerms[0]",
    ),
    Row(EC, "spec.placementGroupSelector", ({},), "KERF-EC2-026"),
    Row(EC, "spec.placementGroupSelector", ({"id": "pg-1", "name": "x"},), "KERF-EC2-027"),
    Row(EC, "spec.placementGroupSelector.id", ("xpg-1",), PATTERN),
    Row(EC, "spec.placementGroupSelector.name", ("",), SIZE),
    Row(EC, "spec.tags[]", ("x",), "KERF-EC2-020"),
    Row(EC, "spec.tags[eks:eks-cluster-name]", ("x",), "KERF-EC2-021"),
    Row(EC, "spec.tags[kubernetes.io/cluster/x]", ("owned",), "KERF-EC2-022"),
    Row(EC, "spec.tags[karpenter.sh/nodepool]", ("x",), "KERF-EC2-023"),
    Row(EC, "spec.tags[karpenter.sh/nodeclaim]", ("x",), "KERF-EC2-024"),
    Row(EC, "spec.tags[karpenter.k8s.aws/ec2nodeclass]", ("x",), "KERF-EC2-025"),
    Row(EC, "E.volumeSize", ("0Gi", "59001Gi", "18Ti", "65T", "100Mi", "100", "1.5Gi", "64001G"), PATTERN),
    Row(EC, "E.volumeSize", ("Ti", "T"), "KERF-EC2-102"),
    Row(EC, "E.volumeSize", (ABSENT,), "KERF-EC2-011", "spec.blockDeviceMappings[0].ebs"),
    Row(EC, "E.volumeInitializationRate", (150,), "KERF-EC2-012", "spec.blockDeviceMappings[0].ebs"),
    Row(EC, "E.volumeInitializationRate", (99, 301), BOUND),
    Row(EC, "E.volumeType", ("gp4", "GP3"), ENUM),
    Row(EC, "E.volumeType", ("io1", "io2"), "KERF-EC2-113", "spec.blockDeviceMappings[0].ebs"),
    Row(EC, "spec.blockDeviceMappings", ([{}],), "KERF-EC2-114", "spec.blockDeviceMappings[0].deviceName"),
    Row(EC, "spec.blockDeviceMappings", ([{"rootVolume": True}, {"rootVolume": True}],), "KERF-EC2-010"),
    Row(EC, "spec.blockDeviceMappings", ([{}] * 51,), SIZE),
    Row(EC, "spec.metadataOptions.httpPutResponseHopLimit", (0, 65), BOUND),
    Row(EC, "spec.metadataOptions.httpTokens", ("require",), ENUM),
    Row(EC, "spec.networkInterfaces", ([interface(0, 1)], [interface(0, 0, "efa-only")]), "KERF-EC2-017"),
    Row(EC, "spec.networkInterfaces", ([interface(0, 0), interface(0, 0)],), "KERF-EC2-018"),
    Row(
        EC,
        "spec.networkInterfaces",
        ([interface(0, 0), interface(0, 1, "efa-only"), interface(0, 2, "efa-only")],),
        "KERF-EC2-019",
    ),
    Row(EC, "spec.connectionTracking", ({},), "KERF-EC2-015"),
    Row(EC, "spec.connectionTracking.udpTimeout", (29, 61), BOUND),
    Row(EC, "spec.ipPrefixCount", (-1, 2**31), BOUND),
    Row(EC, "spec.instanceStorePolicy", ("RAID1",), ENUM),
    Row(EC, "spec.kubelet", ({"anything": {"goes": [1]}},), "KERF-EC2-104", "spec.kubelet.anything"),
    Row(
        EC,
        "spec.kubelet",
        ({"evictionHard": {"memory.available": "1e9999999999%"}},),
        "KERF-EC2-104",
        "spec.kubelet.evictionHard[memory.available]",
    ),
    Row(EC, "spec.kubelet", ({"maxPods": -1}, {"maxPods": 1.5}), "KERF-EC2-104", "spec.kubelet.maxPods"),
    Row(EC, "spec.kubelet", ({"maxPods": "vcpus *"}, {"maxPods": "cores"}), "KERF-EC2-105", "spec.kubelet.maxPods"),
    Row(EC, "spec.kubelet", ({"kubeReserved": {"cpu": "1 cpu"}},), "KERF-EC2-105", "spec.kubelet.kubeReserved.cpu"),
    Row(EC, "spec.kubelet", ({"podsPerCore": "vcpus"},), "KERF-EC2-104", "spec.kubelet.podsPerCore"),
    Row(EC, "spec.userData", ("x" * 16385,), "KERF-EC2-103"),
    Row(
        EC,
        "spec.userData",
        (f"{_MIME}\n\n--B\n", f'{_MIME}; boundary="B"\n\n{_PART}', "MIME-Version:\nx"),
        "KERF-EC2-107",
    ),
    Row(EC, "spec", (_class("al2@latest", f'{_MIME}; boundary="B"\n\nx'),), "KERF-EC2-107", "spec.userData"),
    Row(
        EC,
        "spec",
        tuple(
            _class("bottlerocket@latest", text)
            for text in ("#!/bin/bash\necho", "a: b", _MIME, "settings = 1", "[a]\n[a]", "a = " + "[" * 9000)
        ),
        "KERF-EC2-108",
        "spec.userData",
    ),
    Row(
        EC,
        "spec",
        (_class("bottlerocket@latest", "settings.bootstrap-commands = 1", instanceStorePolicy="RAID0"),),
        "KERF-EC2-108",
        "spec.userData",
    ),
    Row(EC, "spec.detailedMonitoring", ("true",), TYPE),
)
