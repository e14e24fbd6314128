"""The drift hashes against the published vectors and against a recorded cluster."""

from __future__ import annotations

from typing import Any

import pytest

from kerf_api.v1 import meta
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.hashes import NODECLASS_HASH_VERSION, NODEPOOL_HASH_VERSION, nodeclass_hash, nodepool_hash
from kerf_api.v1.nodepool import NodePool

EBS = {
    "deleteOnTermination": False,
    "encrypted": False,
    "iops": 0,
    "kmsKeyID": "fakeKMSKeyID",
    "snapshotID": "fakeSnapshot",
    "throughput": 0,
    "volumeSize": "2G",
    "volumeType": "standard",
}
BASE: dict[str, Any] = {
    "role": "role-1",
    "tags": {"keyTag-1": "valueTag-1", "keyTag-2": "valueTag-2"},
    "context": "fake-context",
    "detailedMonitoring": False,
    "associatePublicIPAddress": False,
    "metadataOptions": {
        "httpEndpoint": "disabled",
        "httpProtocolIPv6": "disabled",
        "httpPutResponseHopLimit": 1,
        "httpTokens": "optional",
    },
    "userData": "userdata-test-1",
    "blockDeviceMappings": [{"deviceName": "map-device-1", "ebs": EBS}, {"deviceName": "map-device-2"}],
}


def node_class(**changes: Any) -> EC2NodeClass:
    spec = {key: value for key, value in {**BASE, **changes}.items() if value is not None}
    return meta.decode(EC2NodeClass, {"metadata": {"name": "default"}, "spec": spec})


def options(**changes: Any) -> dict[str, Any]:
    return {**BASE["metadataOptions"], **changes}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 11148166120438674859),
        ({"blockDeviceMappings": BASE["blockDeviceMappings"][::-1]}, 11148166120438674859),
        ({"userData": "userdata-test-2"}, 11774429238106843388),
        ({"tags": {**BASE["tags"], "keyTag-test-3": "valueTag-test-3"}}, 9327338697296909506),
        ({"context": "context-2"}, 2279761750428738028),
        ({"detailedMonitoring": True}, 1936848126751988570),
        ({"instanceStorePolicy": "RAID0"}, 16697988646989909967),
        ({"associatePublicIPAddress": True}, 16141801171825097963),
        (
            {
                "blockDeviceMappings": [
                    {"deviceName": "map-device-1", "ebs": {**EBS, "volumeSize": "10G"}},
                    {"deviceName": "map-device-2"},
                ]
            },
            10372902467896351912,
        ),
        ({"metadataOptions": options(httpTokens="required")}, 1346719102507290084),
        ({"metadataOptions": options(httpPutResponseHopLimit=10)}, 14046948658064232764),
        ({"role": None, "instanceProfile": "test-instance-profile"}, 10323991363677716244),
        ({"connectionTracking": {"tcpEstablishedTimeout": 300}}, 1619669030802245540),
        ({"connectionTracking": {"udpTimeout": 45}}, 17941926745862994490),
        ({"cpuOptions": {"nestedVirtualization": "enabled"}}, 6157846767212910604),
    ],
)
def test_the_node_class_hash_is_karpenters(changes: dict[str, Any], expected: int) -> None:
    assert nodeclass_hash(node_class(**changes), "test-ca-bundle") == str(expected)


@pytest.mark.parametrize(
    "changes",
    [
        {"subnetSelectorTerms": [{"id": "subnet-1"}]},
        {"securityGroupSelectorTerms": [{"id": "sg-1"}]},
        {"amiSelectorTerms": [{"id": "ami-1"}]},
        {"capacityReservationSelectorTerms": [{"id": "cr-1"}]},
        {"ipPrefixCount": 3},
        {"kubelet": {}},
    ],
)
def test_what_is_checked_against_the_world_is_not_hashed(changes: dict[str, Any]) -> None:
    assert nodeclass_hash(node_class(**changes), "test-ca-bundle") == "11148166120438674859"


def test_family_ca_bundle_kubelet_and_order_of_kubelet_keys() -> None:
    base = nodeclass_hash(node_class(), "test-ca-bundle")
    assert nodeclass_hash(node_class(), "another") != base
    assert nodeclass_hash(node_class(amiFamily="AL2023"), "test-ca-bundle") != base
    alias = node_class(amiSelectorTerms=[{"alias": "al2023@latest"}])
    assert nodeclass_hash(alias, "x") == nodeclass_hash(node_class(amiFamily="AL2023"), "x")
    one = nodeclass_hash(node_class(kubelet={"maxPods": 10, "podsPerCore": 2}), "test-ca-bundle")
    two = nodeclass_hash(node_class(kubelet={"podsPerCore": 2, "maxPods": 10}), "test-ca-bundle")
    assert one == two != base


@pytest.mark.parametrize(("one", "two"), [("1024Gi", "1Ti"), ("2000G", "2T")])
def test_equal_volume_sizes_hash_alike(one: str, two: str) -> None:
    texts = {
        nodeclass_hash(node_class(blockDeviceMappings=[{"deviceName": "a", "ebs": {"volumeSize": size}}]), "")
        for size in (one, two)
    }
    assert len(texts) == 1


def test_the_recorded_class_has_its_v6_hash() -> None:
    recorded = meta.decode(
        EC2NodeClass,
        {
            "metadata": {"name": "default"},
            "spec": {
                "amiSelectorTerms": [{"alias": "al2023@latest"}],
                "role": "KarpenterNodeRole-adoption",
                "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "adoption"}}],
                "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "adoption"}}],
                "tags": {"team": "platform"},
            },
        },
    )
    assert NODECLASS_HASH_VERSION == "v6"
    assert nodeclass_hash(recorded, "YWRvcHRpb24gdGVzdCBjYSBidW5kbGU=") == "15398843644261431408"


def pool(*, metadata: dict[str, Any] | None = None, **spec: Any) -> NodePool:
    ref = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    template: dict[str, Any] = {"spec": {"nodeClassRef": ref, **spec}}
    if metadata is not None:
        template["metadata"] = metadata
    return meta.decode(NodePool, {"metadata": {"name": "default"}, "spec": {"template": template}})


TAINT = {"key": "key", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (pool(expireAfter="720h"), 6821555240594823858),
        (pool(expireAfter="Never"), 17369979337536258260),
        (
            pool(
                metadata={
                    "labels": {"keyLabel": "valueLabel"},
                    "annotations": {"keyAnnotation": "valueAnnotation", "keyAnnotation2": "valueAnnotation2"},
                },
                taints=[TAINT],
                startupTaints=[TAINT],
                expireAfter="5m",
                terminationGracePeriod="5m",
            ),
            7280272686889155491,
        ),
        (
            pool(
                metadata={"labels": {"team": "platform"}, "annotations": {"example.com/owner": "platform"}},
                expireAfter="720h",
            ),
            17889065497843718383,
        ),
    ],
)
def test_the_node_pool_hash_is_karpenters(value: NodePool, expected: int) -> None:
    assert NODEPOOL_HASH_VERSION == "v3"
    assert nodepool_hash(value) == str(expected)
