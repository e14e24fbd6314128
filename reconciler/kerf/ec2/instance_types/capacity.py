"""What a node of an instance type will offer: capacity, and what the system keeps of it.

Estimates made before the node exists, so they must never promise more than the real node has. Where nodes of the type
have shown how much memory they have, that takes the place of the estimate. Source: AWS provider
reference §4.2, §4.4, §4.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from kerf.ec2 import families
from kerf.ec2.families import Family
from kerf.ec2.instance_types import branch_interfaces
from kerf.model.aws.cloud import EFA_ONLY, InstanceTypeInfo
from kerf.model.settings import Settings
from kerf_api import quantity
from kerf_api.kubelet import reading as kubelet
from kerf_api.kubelet.rules import formulas
from kerf_api.resources import Resources, total
from kerf_api.v1.ec2nodeclass import BlockDeviceMapping, EC2NodeClass, NetworkInterface

MIB, GIB, GB = 2**20, 2**30, 10**9
_DEFAULT_VOLUME = 20 * GIB
_BASE_PODS_MIB, _POD_MIB = 255, 11
_EVICTION_MEMORY = 100 * MIB
#: EC2 keeps this much of an arm64 machine's memory to itself.
_ARM_MIB = 64
#: Hundredths of a milli-core kept of each core in a band, and how many cores the band has; the last one is open.
_CPU_BANDS = ((6000, 1), (1000, 1), (500, 2), (250, None))


@dataclass(frozen=True, slots=True)
class Sizing:
    """What of a node class and the settings decides about capacity, read once for all types."""

    family: Family
    kubelet: kubelet.Kubelet
    mappings: tuple[BlockDeviceMapping, ...]
    raid0: bool
    reserved_enis: int
    memory_overhead: Fraction
    interfaces: tuple[NetworkInterface, ...] = ()
    #: Where the kubelet's map has expressions, and their texts; none while the gate is closed.
    formulas: tuple[tuple[tuple[str, ...], str], ...] = ()

    @classmethod
    def of(cls, node_class: EC2NodeClass, settings: Settings) -> Sizing:
        spec = node_class.spec
        return cls(
            families.of(node_class.family),
            spec.kubelet,
            spec.block_device_mappings,
            spec.instance_store_policy == "RAID0",
            settings.reserved_enis,
            Fraction(str(settings.vm_memory_overhead_percent)),
            spec.network_interfaces or (),
            tuple(formulas(spec.kubelet)) if settings.gates.node_class_cel else (),
        )


def capacity(info: InstanceTypeInfo, sizing: Sizing, memory_bytes: int | None = None) -> Resources:
    """The node's capacity; what the type has none of is absent. `memory_bytes` is known of nodes like this one."""
    amounts = {
        "cpu": info.vcpus * 1000,
        "memory": _memory_mib(info, sizing) * MIB if memory_bytes is None else memory_bytes,
        "ephemeral-storage": _ephemeral_storage(info, sizing),
        "pods": pods(info, sizing),
    }
    extended = {
        "vpc.amazonaws.com/pod-eni": branch_interfaces.capacity(info),
        "aws.amazon.com/neuron": sum(device.count for device in info.accelerators) if info.neuron_cores else 0,
        "aws.amazon.com/neuroncore": info.neuron_cores,
        **{resource: _gpus(info, maker) for maker, resource in _GPU_RESOURCES.items()},
        EFA_RESOURCE: _efa(info, sizing),
    }
    if sizing.family.windows:
        extended["vpc.amazonaws.com/PrivateIPv4Address"] = info.ipv4_per_interface - 1
    return Resources(amounts | {name: value for name, value in extended.items() if value > 0})


def overhead(info: InstanceTypeInfo, sizing: Sizing, full: Resources) -> Resources:
    """What kubelet, system and the eviction threshold keep of a capacity."""
    kube = {
        "cpu": _reserved_cpu(info.vcpus),
        "memory": (_BASE_PODS_MIB + _POD_MIB * _memory_pods(info, sizing)) * MIB,
        "ephemeral-storage": GIB,
        **kubelet.reserved(sizing.kubelet, "kubeReserved"),
    }
    disk = full["ephemeral-storage"]
    memory = kubelet.threshold(sizing.kubelet, "memory.available", full["memory"])
    files = kubelet.threshold(sizing.kubelet, "nodefs.available", disk)
    eviction = {
        "memory": _EVICTION_MEMORY if memory is None else memory,
        "ephemeral-storage": ceil(Fraction(disk, 10)) if files is None else files,
    }
    return total((kube, kubelet.reserved(sizing.kubelet, "systemReserved"), eviction))


def allocatable(full: Resources, kept: Resources) -> Resources:
    """What is left for pods, for the resources that the node has."""
    return Resources({name: value - kept[name] for name, value in full.items()})


def pods(info: InstanceTypeInfo, sizing: Sizing) -> int:
    """How many pods kubelet will take."""
    limit = kubelet.count(sizing.kubelet, "maxPods")
    if limit is None:
        limit = _eni_pods(info, sizing, sizing.reserved_enis) if sizing.family.eni_pods else 110
    per_core = kubelet.count(sizing.kubelet, "podsPerCore") if sizing.family.pods_per_core else None
    return min(per_core * info.vcpus, limit) if per_core else limit


def _eni_pods(info: InstanceTypeInfo, sizing: Sizing, reserved: int) -> int:
    """Pods by addresses: one of each interface is the interface's own; two pods use the host's network.

    An interface for high-performance computing alone takes the place of one, and has no addresses.
    """
    taken = sum(one.interface_type == EFA_ONLY and not one.network_card_index for one in sizing.interfaces)
    usable = max(info.max_interfaces - reserved - taken, 0)
    return usable * (info.ipv4_per_interface - 1) + 2 if usable else 0


def _memory_pods(info: InstanceTypeInfo, sizing: Sizing) -> int:
    return _eni_pods(info, sizing, 0) if sizing.family.eni_memory else pods(info, sizing)


def _memory_mib(info: InstanceTypeInfo, sizing: Sizing) -> int:
    raw = info.memory_mib - (_ARM_MIB if info.architectures[:1] == ("arm64",) else 0)
    return raw - ceil(raw * sizing.memory_overhead)


def _reserved_cpu(vcpus: int) -> int:
    """Milli-cores: 6 % of the first core, 1 % of the second, 0.5 % of two more, 0.25 % of the rest."""
    reserved, left = 0, vcpus
    for hundredths, width in _CPU_BANDS:
        cores = left if width is None else min(left, width)
        reserved += cores * hundredths // 100
        left -= cores
    return reserved


def _ephemeral_storage(info: InstanceTypeInfo, sizing: Sizing) -> int:
    """Bytes of the volume that holds pods' files; the first rule that says something counts."""
    if sizing.raid0 and info.instance_storage_gb:
        return info.instance_storage_gb * GB
    root = next((_size(m) for m in sizing.mappings if m.root_volume and _size(m)), 0)
    if root:
        return root
    if sizing.family is families.CUSTOM:
        return (_size(sizing.mappings[-1]) if sizing.mappings else 0) or _DEFAULT_VOLUME
    device = sizing.family.ephemeral_device
    named = (_size(m) for m in (*sizing.mappings, *sizing.family.volumes) if m.device_name == device)
    return next((size for size in named if size), _DEFAULT_VOLUME)


def _size(mapping: BlockDeviceMapping) -> int:
    text = mapping.ebs.volume_size if mapping.ebs is not None else None
    return ceil(quantity.parse(text)) if text and kubelet.is_quantity(text) else 0


EFA_RESOURCE = "vpc.amazonaws.com/efa"
_GPU_RESOURCES = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu", "habana": "habana.ai/gaudi"}


def _efa(info: InstanceTypeInfo, sizing: Sizing) -> int:
    """What the class lists, if it lists interfaces; else as many as the type can have."""
    if sizing.interfaces:
        return sum(one.interface_type == EFA_ONLY for one in sizing.interfaces)
    return info.efa_interfaces


def _gpus(info: InstanceTypeInfo, maker: str) -> int:
    return sum(gpu.count for gpu in info.gpus if gpu.manufacturer.lower() == maker)
