"""Facts for the tests of this room: real instance types (from the test emulator's data), a class, a region."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import moto
from msgspec.structs import replace

from kerf.ec2.instance_types.catalogue import build
from kerf.ec2.nodeclass import nodeclass
from kerf.ec2.pricing import prices
from kerf.model.aws.cloud import ClassFacts, ClusterFacts, Gpu, Image, InstanceTypeInfo, Region, SecurityGroup, Subnet
from kerf.model.aws.instance_type import Catalogue, InstanceType
from kerf.model.settings import Settings
from kerf_api.v1 import meta
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.nodeclaim import NodeClaim

ZONES = ("us-west-2a", "us-west-2b", "us-west-2c")
SETTINGS = Settings(cluster_name="demo")
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
CLUSTER = ClusterFacts(
    name="demo",
    endpoint="https://demo.example.internal",
    ca_bundle="Y2EtYnVuZGxl",
    dns_ip="10.0.100.10",
    service_cidr="10.0.0.0/16",
    kubernetes_version="1.36",
    region="us-west-2",
)


@cache
def _raw() -> dict[str, dict[str, Any]]:
    file = Path(moto.__file__).parent / "ec2" / "resources" / "instance_types.json.gz"
    raw: dict[str, dict[str, Any]] = json.loads(gzip.decompress(file.read_bytes()))
    return raw


@cache
def info(name: str) -> InstanceTypeInfo:
    """A real type's facts."""
    raw = _raw()[name]
    network, processor = raw["NetworkInfo"], raw["ProcessorInfo"]
    cards = network["NetworkCards"]
    ebs = raw.get("EbsInfo", {})
    bandwidth = ebs.get("EbsOptimizedInfo", {}).get("MaximumBandwidthInMbps")
    neuron = raw.get("NeuronInfo", {}).get("NeuronDevices", [])
    inference = raw.get("InferenceAcceleratorInfo", {}).get("Accelerators", [])
    storage = raw.get("InstanceStorageInfo", {})
    return InstanceTypeInfo(
        name=name,
        architectures=tuple(processor["SupportedArchitectures"]),
        vcpus=raw["VCpuInfo"]["DefaultVCpus"],
        memory_mib=raw["MemoryInfo"]["SizeInMiB"],
        usage_classes=tuple(raw["SupportedUsageClasses"]),
        max_interfaces=cards[network.get("DefaultNetworkCardIndex", 0)]["MaximumNetworkInterfaces"],
        all_interfaces=network["MaximumNetworkInterfaces"],
        ipv4_per_interface=network["Ipv4AddressesPerInterface"],
        hypervisor=raw.get("Hypervisor", ""),
        bare_metal=raw["BareMetal"],
        manufacturer=processor.get("Manufacturer", ""),
        clock_speed_ghz=processor.get("SustainedClockSpeedInGhz", 0.0),
        instance_storage_gb=storage.get("TotalSizeInGB", 0),
        nvme=storage.get("NvmeSupport", "unsupported") != "unsupported",
        ebs_bandwidth_mbps=bandwidth if ebs.get("EbsOptimizedSupport") == "default" else None,
        network_bandwidth_mbps=int(sum(card.get("BaselineBandwidthInGbps", 0) for card in cards) * 1000) or None,
        encryption_in_transit=network["EncryptionInTransitSupported"],
        nitro_enclaves=raw.get("NitroEnclavesSupport") == "supported",
        gpus=tuple(_device(gpu) for gpu in raw.get("GpuInfo", {}).get("Gpus", [])),
        accelerators=tuple(_device({"Manufacturer": "AWS", **device}) for device in neuron or inference),
        neuron_cores=sum(device["Count"] * device["CoreInfo"]["Count"] for device in neuron),
        efa_interfaces=network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
        placement_strategies=tuple(raw["PlacementGroupInfo"]["SupportedStrategies"]),
        processor_features=tuple(processor.get("SupportedFeatures", ())),
        cards=tuple(card["MaximumNetworkInterfaces"] for card in cards),
        ena=network.get("EnaSupport") in ("supported", "required"),
    )


def _device(raw: Mapping[str, Any]) -> Gpu:
    count = raw["Count"] or raw.get("LogicalGpuCount", 0)
    return Gpu(raw["Name"], raw["Manufacturer"], count, raw["MemoryInfo"]["SizeInMiB"])


def all_names() -> list[str]:
    """Every type that a Linux node can have."""
    return sorted(
        name
        for name, raw in _raw().items()
        if {"x86_64", "arm64"} & set(raw["ProcessorInfo"]["SupportedArchitectures"])
        and "hvm" in raw["SupportedVirtualizationTypes"]
    )


def region(*names: str, zones: tuple[str, ...] = ZONES) -> Region:
    """A region that offers these types in every zone; spot costs 38, 39, 40 … % of on-demand by zone."""
    infos = {name: info(name) for name in names}
    known = {name: prices.on_demand_estimate(name, i.vcpus, i.memory_mib) for name, i in infos.items()}
    priced = {name: price for name, price in known.items() if price is not None}
    spot = {(n, z): p * (38 + k) // 100 for n, p in priced.items() for k, z in enumerate(zones)}
    return Region("us-west-2", infos, {name: frozenset(zones) for name in names}, priced, spot, zones)


def images(version: str = "20261101") -> tuple[Image, ...]:
    """What `al2023@latest` resolves to."""
    rows = [("x86_64", v) for v in ("standard", "nvidia", "neuron")] + [("arm64", v) for v in ("standard", "nvidia")]
    return tuple(
        Image(
            f"ami-{number}",
            f"amazon-eks-node-al2023-{arch}-{variant}-1.36-v{version}",
            "amd64" if arch == "x86_64" else arch,
            "2026-11-01T00:00:00.000Z",
            variant=variant,
        )
        for number, (arch, variant) in enumerate(rows, start=1)
    )


def facts(**changes: Any) -> ClassFacts:
    subnets = tuple(Subnet(f"subnet-{z[-1]}", z, f"usw2-az{n}", 1000) for n, z in enumerate(ZONES, start=1))
    given: dict[str, Any] = {
        "generation": 1,
        "subnets": subnets,
        "security_groups": (SecurityGroup("sg-1", "cluster"), SecurityGroup("sg-2", "node")),
        "images": images(),
        "instance_profile": "demo_1",
        **changes,
    }
    return ClassFacts(**given)


def node_class(family: str = "AL2023", *, status: dict[str, Any] | None = None, **spec: Any) -> EC2NodeClass:
    manifest: dict[str, Any] = {
        "metadata": {"name": "default", "uid": "class-uid", "generation": 1},
        "spec": {"amiFamily": family, "role": "NodeRole", **spec},
        "status": status or {},
    }
    return meta.decode(EC2NodeClass, manifest)


def ready(node_class: EC2NodeClass, found: ClassFacts | None = None) -> EC2NodeClass:
    """The class with the status that these facts give it."""
    return replace(
        node_class, status=nodeclass.status(node_class, found or facts(), cluster=CLUSTER, settings=SETTINGS, now=NOW)
    )


def catalogue(*names: str, of: EC2NodeClass | None = None, settings: Settings = SETTINGS, **changes: Any) -> Catalogue:
    return build(of or node_class(), facts(**changes), region(*names), settings)


def one(name: str, of: EC2NodeClass | None = None, settings: Settings = SETTINGS) -> InstanceType:
    """One type of the catalogue."""
    return catalogue(name, of=of, settings=settings)[0]


def claim(name: str = "default-a", *requirements: tuple[str, str, list[str]], **changes: Any) -> NodeClaim:
    """A claim of NodePool `default`; `changes` are spec fields, or `labels`, `annotations`, `uid`, `min_values`."""
    least = changes.pop("min_values", {})
    rows = [{"key": k, "operator": o, "values": v} for k, o, v in requirements]
    rows = [row | ({"minValues": least[row["key"]]} if row["key"] in least else {}) for row in rows]
    metadata = {
        "name": name,
        "uid": changes.pop("uid", f"uid-{name}"),
        "labels": {"karpenter.sh/nodepool": "default", "karpenter.k8s.aws/ec2nodeclass": "default"}
        | changes.pop("labels", {}),
        "annotations": changes.pop("annotations", {}),
    }
    spec = {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        "requirements": rows,
        "resources": {"requests": changes.pop("requests", {"cpu": "100m", "pods": "2"})},
        **changes,
    }
    return meta.decode(NodeClaim, {"metadata": metadata, "spec": spec})
