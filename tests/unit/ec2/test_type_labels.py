"""The labels of real types, against the reference's own label sets and a recorded cluster's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kerf.ec2 import families
from kerf.ec2.instance_types import type_labels
from kerf.model.aws.cloud import Gpu
from kerf_api import labels
from kerf_api.requirements import DOES_NOT_EXIST, EXISTS, IN, requirement
from tests.unit.ec2.ec2_facts import info, node_class, one

PREFIX = "karpenter.k8s.aws/instance-"


def values(name: str) -> dict[str, str]:
    """Suffix and value of each AWS label with one value."""
    rows = one(name).requirements.values()
    return {r.key.removeprefix(PREFIX): min(r.values) for r in rows if r.key.startswith(PREFIX) and len(r.values) == 1}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "g4dn.8xlarge",
            {
                "category": "g",
                "generation": "4",
                "family": "g4dn",
                "size": "8xlarge",
                "cpu": "32",
                "cpu-manufacturer": "intel",
                "cpu-sustained-clock-speed-mhz": "2500",
                "memory": "131072",
                "ebs-bandwidth": "9500",
                "network-bandwidth": "50000",
                "gpu-name": "t4",
                "gpu-manufacturer": "nvidia",
                "gpu-count": "1",
                "gpu-memory": "16384",
                "local-nvme": "900",
                "hypervisor": "nitro",
                "encryption-in-transit-supported": "true",
                "capability-flex": "false",
            },
        ),
        (
            "inf2.xlarge",
            {
                "category": "inf",
                "generation": "2",
                "family": "inf2",
                "size": "xlarge",
                "cpu": "4",
                "cpu-manufacturer": "amd",
                "cpu-sustained-clock-speed-mhz": "3600",
                "memory": "16384",
                "ebs-bandwidth": "10000",
                "network-bandwidth": "2083",
                "accelerator-name": "inferentia2",
                "accelerator-manufacturer": "aws",
                "accelerator-count": "1",
                "hypervisor": "nitro",
                "encryption-in-transit-supported": "true",
                "capability-flex": "false",
            },
        ),
        (
            "m7a.medium",
            {
                "category": "m",
                "generation": "7",
                "family": "m7a",
                "size": "medium",
                "cpu": "1",
                "cpu-manufacturer": "amd",
                "cpu-sustained-clock-speed-mhz": "3700",
                "memory": "4096",
                "ebs-bandwidth": "10000",
                "network-bandwidth": "390",
                "hypervisor": "nitro",
                "encryption-in-transit-supported": "true",
                "capability-flex": "false",
            },
        ),
    ],
)
def test_reference_label_sets(name: str, expected: dict[str, str]) -> None:
    assert values(name) == expected


@pytest.mark.parametrize(
    ("name", "category", "generation", "flex"),
    [
        ("u-6tb1.56xlarge", "u", "1", "false"),
        ("m7i-flex.large", "m", "7", "true"),
        ("p6-b200.48xlarge", "p", "6", "false"),
        ("x2iedn.xlarge", "x", "2", "false"),
        ("hpc7g.4xlarge", "hpc", "7", "false"),
        ("trn1n.32xlarge", "trn", "1", "false"),
    ],
)
def test_category_generation_and_flex(name: str, category: str, generation: str, flex: str) -> None:
    found = type_labels.requirements(info(name), families.AL2023, "us-west-2", {})
    assert found[f"{PREFIX}category"].values == {category}
    assert found[f"{PREFIX}generation"].values == {generation}
    assert found[f"{PREFIX}capability-flex"].values == {flex}


def test_every_aws_label_has_a_verdict_and_absent_ones_do_not_exist() -> None:
    found = one("m5.large").requirements
    assert set(found) >= labels.WELL_KNOWN - {labels.NODEPOOL}
    absent = {key for key in found if found[key].operator == DOES_NOT_EXIST}
    assert absent == {
        labels.WINDOWS_BUILD,
        *(f"{PREFIX}{s}" for s in ("local-nvme", "gpu-name", "gpu-manufacturer", "gpu-count", "gpu-memory")),
        *(f"{PREFIX}accelerator-{s}" for s in ("name", "manufacturer", "count")),
        *(f"karpenter.k8s.aws/capacity-reservation-{s}" for s in ("id", "type", "interruptible")),
        *(f"karpenter.k8s.aws/placement-group-{s}" for s in ("id", "partition")),
    }
    wanted = requirement(f"{PREFIX}gpu-count", EXISTS)
    assert found.incompatible(type(found)((wanted,))) == f"{PREFIX}gpu-count"


def test_zones_are_those_with_a_subnet_and_a_stock() -> None:
    found = one("m5.large").requirements
    assert found[labels.ZONE].values == {"us-west-2a", "us-west-2b", "us-west-2c"}
    assert found[labels.ZONE_ID].values == {"usw2-az1", "usw2-az2", "usw2-az3"}
    assert found[labels.REGION].values == {"us-west-2"}
    assert found[labels.CAPACITY_TYPE].values == {"on-demand", "spot"}
    assert found[f"{PREFIX}tenancy"].values == {"default", "dedicated"}
    bare = type_labels.requirements(info("m5.large"), families.AL2023, "us-west-2", {"us-west-2a": ""})
    assert labels.ZONE_ID not in bare


def test_bare_metal_has_an_empty_hypervisor() -> None:
    assert values("m5.metal")["hypervisor"] == ""


def test_instance_storage_that_is_no_nvme_has_no_label() -> None:
    found = type_labels.requirements(info("d2.xlarge"), families.AL2023, "us-west-2", {})
    assert info("d2.xlarge").instance_storage_gb > 0
    assert found[f"{PREFIX}local-nvme"].operator == DOES_NOT_EXIST


@pytest.mark.parametrize("name", ["g6f.large", "gr6f.4xlarge"])
def test_a_fraction_of_a_gpu_is_one_gpu_to_pods(name: str) -> None:
    assert one(name).capacity["nvidia.com/gpu"] == 1
    assert (values(name)["gpu-count"], values(name)["gpu-name"]) == ("1", "l4")


def test_two_gpu_models_give_no_gpu_labels() -> None:
    two = replace(info("g5.xlarge"), gpus=(Gpu("A10G", "NVIDIA", 1, 1), Gpu("L4", "NVIDIA", 1, 1)))
    assert type_labels.requirements(two, families.AL2023, "r", {})[f"{PREFIX}gpu-name"].operator == DOES_NOT_EXIST


def test_device_names_are_kebab_case() -> None:
    odd = replace(info("g5.xlarge"), gpus=(Gpu("Radeon Pro V520", "AMD", 1, 8192),))
    found = type_labels.requirements(odd, families.AL2023, "r", {})
    assert found[f"{PREFIX}gpu-name"].values == {"radeon-pro-v520"}


def test_windows_types_say_so() -> None:
    found = one("m5.large", node_class("Windows2022")).requirements
    assert found[labels.OS] == requirement(labels.OS, IN, ["windows"])
    assert found[labels.WINDOWS_BUILD].values == {"10.0.20348"}
    arm = one("m7g.large", node_class("Windows2022")).requirements
    assert arm[labels.OS].operator == DOES_NOT_EXIST
