"""What the bootstrapper reads in user data is what the controller wrote there, for every family of Linux."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.ec2.userdata import userdata
from kerf.ec2.userdata.bootstrap import Bootstrap
from kerf.model.aws.cloud import ClusterFacts
from kerf_api.v1.meta import Taint

from .node_object import node, reserved_cpu_milli
from .node_user_data import KubeletSettings, read_user_data

CLUSTER = ClusterFacts("demo", "https://demo.example.internal", "Y2E=", "10.100.0.10", "10.100.0.0/16", "1.32")
LABELS = {"karpenter.sh/nodepool": "default", "team": "platform"}
TAINTS = (Taint(key="dedicated", value="db", effect="NoSchedule"), userdata.UNREGISTERED)
M5_LARGE = {
    "VCpuInfo": {"DefaultVCpus": 2},
    "MemoryInfo": {"SizeInMiB": 8192},
    "NetworkInfo": {"MaximumNetworkInterfaces": 3, "Ipv4AddressesPerInterface": 10},
}
INSTANCE = {
    "id": "i-1",
    "instance_type": "m5.large",
    "zone": "us-west-2a",
    "region": "us-west-2",
    "architecture": "x86_64",
    "private_ip": "10.0.1.23",
    "private_dns_name": "ip-10-0-1-23.us-west-2.compute.internal",
}


def written(family: str, custom: str | None = None, **kubelet: Any) -> KubeletSettings:
    inputs = Bootstrap(
        cluster=CLUSTER,
        custom=custom,
        labels=LABELS,
        taints=TAINTS,
        kubelet=kubelet,
        max_pods=29,
        raid0=False,
    )
    text = userdata.render(family, inputs)
    return read_user_data(text)


@pytest.mark.parametrize("family", ["AL2", "AL2023", "Bottlerocket"])
def test_labels_taints_and_pods(family: str) -> None:
    settings = written(family)
    assert settings.labels == LABELS
    assert settings.max_pods == 29
    found = {(taint["key"], taint.get("value", ""), taint["effect"]) for taint in settings.taints}
    assert found == {("dedicated", "db", "NoSchedule"), ("karpenter.sh/unregistered", "", "NoExecute")}


@pytest.mark.parametrize("family", ["AL2", "AL2023", "Bottlerocket"])
def test_reservations(family: str) -> None:
    settings = written(family, kubeReserved={"cpu": "200m"}, systemReserved={"memory": "100Mi"})
    assert settings.kube_reserved == {"cpu": "200m"}
    assert settings.system_reserved == {"memory": "100Mi"}


def test_a_script_before_the_node_config_is_passed_over() -> None:
    assert written("AL2023", "#!/bin/bash\necho hello\n").labels == LABELS


def test_user_data_that_says_nothing() -> None:
    assert read_user_data("") == KubeletSettings()
    assert read_user_data("#!/bin/bash\ntrue\n") == KubeletSettings()


def test_a_node_with_defaults() -> None:
    made = node(INSTANCE, M5_LARGE, KubeletSettings(), {})
    assert made["metadata"]["name"] == INSTANCE["private_dns_name"]
    assert made["spec"]["providerID"] == "aws:///us-west-2a/i-1"
    assert made["status"]["capacity"] == {
        "cpu": "2",
        "memory": "8011120Ki",
        "ephemeral-storage": "20Gi",
        "pods": "29",
    }
    assert made["status"]["allocatable"] == {
        "cpu": "1930m",
        "memory": f"{8011120 - (11 * 29 + 255 + 100) * 1024}Ki",
        "ephemeral-storage": "18253611008",
        "pods": "29",
    }


def test_a_node_keeps_what_the_user_reserves() -> None:
    settings = KubeletSettings(kube_reserved={"cpu": "500m"}, system_reserved={"cpu": "250m", "memory": "1Gi"})
    allocatable = node(INSTANCE, M5_LARGE, settings, {})["status"]["allocatable"]
    assert allocatable["cpu"] == "1250m"
    assert allocatable["memory"] == f"{8011120 - (11 * 29 + 255 + 100 + 1024) * 1024}Ki"


def test_reservations_add_up_exactly() -> None:
    settings = KubeletSettings(kube_reserved={"cpu": "0.2"}, system_reserved={"cpu": "0.1"})
    assert node(INSTANCE, M5_LARGE, settings, {})["status"]["allocatable"]["cpu"] == "1700m"


def test_a_fraction_of_a_gpu_is_a_device() -> None:
    kind = {**M5_LARGE, "GpuInfo": {"Gpus": [{"Manufacturer": "NVIDIA", "Count": 0, "LogicalGpuCount": 1}]}}
    assert node(INSTANCE, kind, KubeletSettings(), {})["status"]["allocatable"]["nvidia.com/gpu"] == "1"


def test_a_gpu_is_capacity() -> None:
    kind = {**M5_LARGE, "GpuInfo": {"Gpus": [{"Manufacturer": "NVIDIA", "Count": 4}]}}
    assert node(INSTANCE, kind, KubeletSettings(), {})["status"]["allocatable"]["nvidia.com/gpu"] == "4"


@pytest.mark.parametrize(("vcpus", "milli"), [(1, 60), (2, 70), (4, 80), (8, 90), (96, 310)])
def test_reserved_processors(vcpus: int, milli: int) -> None:
    assert reserved_cpu_milli(vcpus) == milli
