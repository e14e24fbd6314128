"""What each AMI family brings along: default volumes, the volume that holds pods' files, and how it counts pods.

Source: AWS provider reference §5.1.
"""

from __future__ import annotations

from dataclasses import dataclass

from kerf_api.kubelet.rules import WITHOUT_PODS_PER_CORE
from kerf_api.v1.ec2nodeclass import EPHEMERAL_DEVICES, BlockDevice, BlockDeviceMapping


@dataclass(frozen=True, slots=True)
class Family:
    """`eni_memory` says that kube-reserved memory follows the ENI pod count instead of the pods capacity;
    `eni_pods` that the pods capacity does. What of spec.kubelet it can carry is in `api/kerf_api/kubelet/rules.py`."""

    name: str
    volumes: tuple[BlockDeviceMapping, ...] = ()
    eni_memory: bool = True
    eni_pods: bool = True
    windows_build: str = ""

    @property
    def ephemeral_device(self) -> str:
        """The device that has the files of pods; empty where the class alone says which it is."""
        return EPHEMERAL_DEVICES.get(self.name, "")

    @property
    def pods_per_core(self) -> bool:
        return self.name not in WITHOUT_PODS_PER_CORE

    @property
    def windows(self) -> bool:
        return bool(self.windows_build)


def _volume(device: str, size: str) -> BlockDeviceMapping:
    ebs = BlockDevice(encrypted=True, volume_type="gp3", volume_size=size)
    return BlockDeviceMapping(device_name=device, ebs=ebs)


def _windows(year: str, build: str) -> Family:
    return Family(
        f"Windows{year}",
        (_volume("/dev/sda1", "50Gi"),),
        eni_memory=False,
        eni_pods=False,
        windows_build=build,
    )


_XVDA = (_volume("/dev/xvda", "20Gi"),)
AL2 = Family("AL2", _XVDA)
AL2023 = Family("AL2023", _XVDA)
BOTTLEROCKET = Family(
    "Bottlerocket",
    (_volume("/dev/xvda", "4Gi"), _volume("/dev/xvdb", "20Gi")),
    eni_memory=False,
)
CUSTOM = Family("Custom")
WINDOWS_BUILDS = {"2019": "10.0.17763", "2022": "10.0.20348", "2025": "10.0.26100"}
BY_NAME = {
    family.name: family
    for family in (
        AL2,
        AL2023,
        BOTTLEROCKET,
        CUSTOM,
        *(_windows(year, build) for year, build in WINDOWS_BUILDS.items()),
    )
}


def of(name: str) -> Family:
    """The family of a name; AL2 for an unknown one."""
    return BY_NAME.get(name, AL2)
