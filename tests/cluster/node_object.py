"""The Node that a kubelet would register for an EC2 instance: name, labels, taints, capacity and allocatable.

Source: kubelet, "Reserve Compute Resources for System Daemons"; amazon-eks-ami's defaults for reservations; the
recorded share of a type's memory that its operating system sees (95.5 %).
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from typing import Any, Final

from kerf_api import quantity

from .node_user_data import KubeletSettings

MEMORY_SHARE: Final = 0.955
EVICTION_MIB: Final = 100
DEFAULT_DISK_GIB: Final = 20
ARCHITECTURES: Final = {"x86_64": "amd64", "arm64": "arm64"}
KUBELET_VERSION: Final = "v1.36.0-eks-test"
#: Of the first core, the second, the third and fourth, and all others: the share reserved, in hundredths of a per cent.
CPU_BANDS: Final = ((1, 600), (1, 100), (2, 50), (10_000, 25))
DEVICES: Final = {"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu", "Habana": "habana.ai/gaudi"}


def node(
    instance: Mapping[str, Any], kind: Mapping[str, Any], kubelet: KubeletSettings, annotations: Mapping[str, str]
) -> dict[str, Any]:
    """The manifest. `instance` is a row of MotoAws.instances, `kind` an element of DescribeInstanceTypes."""
    name, address = instance["private_dns_name"], instance["private_ip"]
    architecture = ARCHITECTURES[instance["architecture"]]
    capacity, allocatable = _resources(kind, kubelet, instance.get("volume_gib") or DEFAULT_DISK_GIB)
    labels = {
        **kubelet.labels,
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": architecture,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": instance["instance_type"],
        "topology.kubernetes.io/zone": instance["zone"],
        "topology.kubernetes.io/region": instance["region"],
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": dict(annotations)},
        "spec": {"providerID": f"aws:///{instance['zone']}/{instance['id']}", "taints": kubelet.taints},
        "status": {
            "capacity": capacity,
            "allocatable": allocatable,
            "addresses": [
                {"type": "InternalIP", "address": address},
                {"type": "InternalDNS", "address": name},
                {"type": "Hostname", "address": name},
            ],
            "nodeInfo": _node_info(instance["id"], architecture),
        },
    }


def eni_pods(kind: Mapping[str, Any]) -> int:
    """Pods that the VPC CNI can give addresses to, when nothing else is said."""
    network = kind["NetworkInfo"]
    return int(network["MaximumNetworkInterfaces"] * (network["Ipv4AddressesPerInterface"] - 1) + 2)


def reserved_cpu_milli(vcpus: int) -> int:
    """What the AMI's bootstrap keeps of the processors."""
    total, left = 0, vcpus
    for cores, share in CPU_BANDS:
        total += min(left, cores) * 1000 * share // 10_000
        left -= min(left, cores)
    return total


def _resources(kind: Mapping[str, Any], kubelet: KubeletSettings, disk: int) -> tuple[dict[str, str], dict[str, str]]:
    vcpus = kind["VCpuInfo"]["DefaultVCpus"]
    memory_kib = int(kind["MemoryInfo"]["SizeInMiB"] * 1024 * MEMORY_SHARE)
    pods = kubelet.max_pods if kubelet.max_pods is not None else eni_pods(kind)
    reserved = {"cpu": f"{reserved_cpu_milli(vcpus)}m", "memory": f"{11 * pods + 255}Mi", "ephemeral-storage": "1Gi"}
    reserved |= kubelet.kube_reserved
    held = {name: _amount(reserved, name) + _amount(kubelet.system_reserved, name) for name in reserved}
    devices = _devices(kind)
    capacity = {
        "cpu": str(vcpus),
        "memory": f"{memory_kib}Ki",
        "ephemeral-storage": f"{disk}Gi",
        "pods": str(pods),
    }
    allocatable = {
        "cpu": f"{vcpus * 1000 - ceil(held['cpu'] * 1000)}m",
        "memory": f"{memory_kib - EVICTION_MIB * 1024 - ceil(held['memory'] / 1024)}Ki",
        "ephemeral-storage": str(int(disk * 2**30 * Fraction(9, 10) - held["ephemeral-storage"])),
        "pods": str(pods),
    }
    return capacity | devices, allocatable | devices


def _amount(resources: Mapping[str, str], name: str) -> Fraction:
    """Exact, as the kubelet adds: 0.2 and 0.1 CPU are 300 milli-cores."""
    return Fraction(quantity.parse(resources.get(name, "0")))


def _devices(kind: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, int] = {}
    for gpu in kind.get("GpuInfo", {}).get("Gpus", ()):
        resource = DEVICES.get(gpu.get("Manufacturer", ""))
        count = gpu.get("Count") or gpu.get("LogicalGpuCount") or 0
        if resource and count:
            found[resource] = found.get(resource, 0) + count
    for device in kind.get("NeuronInfo", {}).get("NeuronDevices", ()):
        found["aws.amazon.com/neuron"] = found.get("aws.amazon.com/neuron", 0) + device["Count"]
        cores = device["Count"] * device["CoreInfo"]["Count"]
        found["aws.amazon.com/neuroncore"] = found.get("aws.amazon.com/neuroncore", 0) + cores
    return {name: str(count) for name, count in found.items()}


def _node_info(instance_id: str, architecture: str) -> dict[str, str]:
    return {
        "machineID": instance_id,
        "systemUUID": instance_id,
        "bootID": instance_id,
        "kernelVersion": "6.12.0",
        "osImage": "Test Linux",
        "containerRuntimeVersion": "containerd://2.1.0",
        "kubeletVersion": KUBELET_VERSION,
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": architecture,
    }
