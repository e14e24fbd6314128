"""What Amazon publishes of instance types, against what nodes of them are said to have: families and generations of all
sorts, with GPUs, bare metal, Arm, old ones.

vCPUs, memory, accelerators, local storage: the tables of aws.amazon.com/ec2/instance-types and, for those that are no
longer on them, "Previous generation instances". Pods and branch interfaces: Amazon VPC CNI, `misc/eni-max-pods.txt`,
first and third column; where a type is too new for that list no branch interfaces are compared. The reserved CPU and
memory follow from vCPUs and pods (EKS, "Reserved resources").
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from kerf_api import labels
from tests.unit.ec2.ec2_facts import one

MIB = 2**20
NVIDIA, AMD, NEURON = "nvidia.com/gpu", "amd.com/gpu", "aws.amazon.com/neuron"
ARM = "arm64"


class Published(NamedTuple):
    """Memory in GiB, `nvme` in GB (base 10); `devices` by extended resource."""

    name: str
    vcpus: int
    gib: float
    pods: int
    branches: int | None
    devices: dict[str, int] = {}
    nvme: int = 0
    arch: str = "amd64"


PUBLISHED = [
    # Previous generations, before Nitro.
    Published("t1.micro", 1, 0.612, 4, None),
    Published("m1.small", 1, 1.7, 8, 0),
    Published("m1.xlarge", 4, 15, 58, 0),
    Published("m2.4xlarge", 8, 68.4, 234, 0),
    Published("m3.medium", 1, 3.75, 12, 0),
    Published("m3.2xlarge", 8, 30, 118, 0),
    Published("m4.large", 2, 8, 20, 0),
    Published("m4.10xlarge", 40, 160, 234, 0),
    Published("m4.16xlarge", 64, 256, 234, 0),
    Published("c1.medium", 2, 1.7, 12, 0),
    Published("c3.8xlarge", 32, 60, 234, 0),
    Published("c4.large", 2, 3.75, 29, 0),
    Published("c4.8xlarge", 36, 60, 234, 0),
    Published("r3.large", 2, 15, 29, 0),
    Published("r4.16xlarge", 64, 488, 737, 0),
    Published("t2.nano", 1, 0.5, 4, 0),
    Published("t2.medium", 2, 4, 17, 0),
    Published("t2.2xlarge", 8, 32, 44, 0),
    Published("i2.8xlarge", 32, 244, 234, 0),
    Published("i3.16xlarge", 64, 488, 737, 0, nvme=15200),
    Published("d2.8xlarge", 36, 244, 234, 0),
    Published("x1.32xlarge", 128, 1952, 234, 0),
    # Nitro, x86.
    Published("t3.2xlarge", 8, 32, 58, 0),
    Published("t3a.small", 2, 2, 8, 0),
    Published("m5.12xlarge", 48, 192, 234, 54),
    Published("m5ad.4xlarge", 16, 64, 234, 54, nvme=600),
    Published("m5dn.24xlarge", 96, 384, 737, 107, nvme=3600),
    Published("m5zn.3xlarge", 12, 48, 234, 92),
    Published("m6a.48xlarge", 192, 768, 737, 107),
    Published("m6i.32xlarge", 128, 512, 737, 107),
    Published("m7i.48xlarge", 192, 768, 737, 107),
    Published("c5.9xlarge", 36, 72, 234, 54),
    Published("c5n.18xlarge", 72, 192, 737, 107),
    Published("c6in.32xlarge", 128, 256, 394, 106),
    Published("c7a.medium", 1, 2, 8, 4),
    Published("r5.24xlarge", 96, 768, 737, 107),
    Published("r6id.16xlarge", 64, 512, 737, 107, nvme=3800),
    Published("r7iz.large", 2, 16, 29, None),
    Published("z1d.6xlarge", 24, 192, 234, None, nvme=900),
    Published("x2idn.16xlarge", 64, 1024, 737, None, nvme=1900),
    Published("i3en.24xlarge", 96, 768, 737, 107, nvme=60000),
    Published("i4i.24xlarge", 96, 768, 437, 105, nvme=22500),
    Published("d3.2xlarge", 8, 64, 18, 92, nvme=11880),
    Published("d3en.12xlarge", 48, 192, 89, 119, nvme=335520),
    # Arm.
    Published("a1.4xlarge", 16, 32, 234, 54, arch=ARM),
    Published("t4g.nano", 2, 0.5, 4, 0, arch=ARM),
    Published("t4g.2xlarge", 8, 32, 58, 0, arch=ARM),
    Published("m6g.16xlarge", 64, 256, 737, 107, arch=ARM),
    Published("c7gn.large", 2, 4, 29, 9, arch=ARM),
    Published("r8g.48xlarge", 192, 1536, 737, None, arch=ARM),
    Published("im4gn.4xlarge", 16, 64, 234, 54, nvme=7500, arch=ARM),
    Published("is4gen.8xlarge", 32, 192, 234, 54, nvme=30000, arch=ARM),
    Published("hpc7g.4xlarge", 16, 128, 198, None, arch=ARM),
    # Bare metal.
    Published("c5.metal", 96, 192, 737, 107),
    Published("m6g.metal", 64, 256, 737, 107, arch=ARM),
    Published("i3en.metal", 96, 768, 737, 107, nvme=60000),
    Published("m7i.metal-48xl", 192, 768, 737, 107),
    # Accelerators.
    Published("g4dn.12xlarge", 48, 192, 234, 54, {NVIDIA: 4}, 900),
    Published("g4dn.metal", 96, 384, 737, 107, {NVIDIA: 8}, 1800),
    Published("g5.48xlarge", 192, 768, 345, 115, {NVIDIA: 8}, 7600),
    Published("g5g.xlarge", 4, 8, 58, 18, {NVIDIA: 1}, arch=ARM),
    Published("g6.12xlarge", 48, 192, 234, 114, {NVIDIA: 4}, 3760),
    Published("p4d.24xlarge", 96, 1152, 737, 62, {NVIDIA: 8}, 8000),
    Published("p5.48xlarge", 192, 2048, 100, 120, {NVIDIA: 8}, 30400),
    Published("inf1.24xlarge", 96, 192, 321, 111, {NEURON: 16}),
    Published("inf2.48xlarge", 192, 768, 737, 107, {NEURON: 12}),
    Published("trn1.2xlarge", 8, 32, 58, 17, {NEURON: 1}, 474),
    Published("p3dn.24xlarge", 96, 768, 737, 107, {NVIDIA: 8}, 1800),
    Published("p5en.48xlarge", 192, 2048, 198, None, {NVIDIA: 8}, 30400),
    Published("g6e.48xlarge", 192, 1536, 492, None, {NVIDIA: 8}, 7600),
    Published("vt1.24xlarge", 96, 192, 737, 107),
    # A lot of memory.
    Published("u-6tb1.112xlarge", 448, 6144, 737, 0),
    Published("x2iedn.32xlarge", 128, 4096, 737, 107, nvme=3800),
]


def test_there_are_enough_of_all_sorts() -> None:
    assert len({row.name for row in PUBLISHED}) == len(PUBLISHED) >= 60


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: row.name)
def test_a_node_has_what_amazon_publishes(row: Published) -> None:
    found = one(row.name)
    nothing = dict.fromkeys((NVIDIA, AMD, NEURON), 0)
    assert found.capacity["cpu"] == row.vcpus * 1000
    assert found.capacity["pods"] == row.pods
    assert {key: found.capacity.get(key, 0) for key in nothing} == nothing | row.devices
    if row.branches is not None:
        assert found.capacity.get("vpc.amazonaws.com/pod-eni", 0) == row.branches
    requirements = found.requirements
    assert requirements[labels.ARCH].values == frozenset({row.arch})
    assert requirements[f"{labels.AWS_GROUP}/instance-local-nvme"].values == frozenset(
        {str(row.nvme)} if row.nvme else ()
    )


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: row.name)
def test_its_memory_is_what_amazon_publishes_less_the_hypervisor_s_share(row: Published) -> None:
    """Amazon rounds the GiB of small ones to one or two digits."""
    published = row.gib * 1024 - (64 if row.arch == ARM else 0)
    assert one(row.name).capacity["memory"] / MIB == pytest.approx(published * (1 - 0.075), abs=1, rel=0.003)


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: row.name)
def test_the_kubelet_keeps_what_eks_reserves_for_it(row: Published) -> None:
    """6 % of the first core, 1 % of the second, 0.5 % of two more and 0.25 % of the rest, in whole milli-cores; 255 MiB
    and 11 MiB for each pod, and 100 MiB before it evicts."""
    found = one(row.name)
    cores = row.vcpus
    cpu = 60 + 10 * (cores > 1) + 5 * min(max(cores - 2, 0), 2) + int(2.5 * max(cores - 4, 0))
    assert found.capacity["cpu"] - found.allocatable["cpu"] == cpu
    assert found.capacity["memory"] - found.allocatable["memory"] == (255 + 11 * row.pods + 100) * MIB
