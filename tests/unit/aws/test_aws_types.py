"""DescribeInstanceTypes' answers, as facts. The raw elements are the emulator's copies of real ones."""

from __future__ import annotations

import copy
import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import moto
import pytest

from kerf.aws.observe.types import type_info


@cache
def catalogue() -> dict[str, dict[str, Any]]:
    file = Path(moto.__file__).parent / "ec2" / "resources" / "instance_types.json.gz"
    found: dict[str, dict[str, Any]] = json.loads(gzip.decompress(file.read_bytes()))
    return found


def raw(name: str) -> dict[str, Any]:
    return copy.deepcopy(catalogue()[name])


def test_a_plain_type() -> None:
    info = type_info(raw("m5.large"))
    assert (info.name, info.architectures, info.vcpus, info.memory_mib) == ("m5.large", ("x86_64",), 2, 8192)
    assert (info.max_interfaces, info.ipv4_per_interface) == (3, 10)
    assert info.usage_classes == ("on-demand", "spot")
    assert (info.hypervisor, info.bare_metal, info.trunking) == ("nitro", False, True)
    assert (info.manufacturer, info.clock_speed_ghz) == ("Intel", 3.1)
    assert (info.instance_storage_gb, info.nvme) == (0, False)
    assert (info.ebs_bandwidth_mbps, info.network_bandwidth_mbps) == (4750, 750)
    assert (info.gpus, info.accelerators, info.neuron_cores) == ((), (), 0)


def test_gpus() -> None:
    (gpu,) = type_info(raw("g4dn.12xlarge")).gpus
    assert (gpu.name, gpu.manufacturer, gpu.count, gpu.memory_mib) == ("T4", "NVIDIA", 4, 16384)


@pytest.mark.parametrize("name", ["g6f.large", "g6f.xlarge", "g6f.2xlarge", "g6f.4xlarge", "gr6f.4xlarge"])
def test_a_fraction_of_a_gpu_is_one_device(name: str) -> None:
    (gpu,) = type_info(raw(name)).gpus
    assert (gpu.name, gpu.manufacturer, gpu.count) == ("L4", "NVIDIA", 1)


def test_a_device_without_any_count_is_none() -> None:
    element = raw("p5.4xlarge")
    (device,) = element["GpuInfo"]["Gpus"]
    for counts, expected in (({"Count": 0, "LogicalGpuCount": 1}, 1), ({"Count": 2}, 2), ({"Count": 0}, 0), ({}, 0)):
        bare = {key: value for key, value in device.items() if key not in ("Count", "LogicalGpuCount")}
        element["GpuInfo"] = {"Gpus": [bare | counts]}
        assert [gpu.count for gpu in type_info(element).gpus] == [expected]


def test_neuron_devices_and_their_cores() -> None:
    info = type_info(raw("inf2.24xlarge"))
    (device,) = info.accelerators
    assert (device.name, device.manufacturer, device.count) == ("Inferentia2", "AWS", 6)
    assert info.neuron_cores == 12


def test_an_older_accelerator_without_neuron_info() -> None:
    element = raw("inf1.xlarge")
    element.pop("NeuronInfo", None)
    element["InferenceAcceleratorInfo"] = {"Accelerators": [{"Count": 1, "Name": "Inferentia", "Manufacturer": "AWS"}]}
    info = type_info(element)
    assert [(one.name, one.manufacturer, one.count) for one in info.accelerators] == [("Inferentia", "AWS", 1)]
    assert info.neuron_cores == 0


def test_local_disks() -> None:
    info = type_info(raw("m5d.large"))
    assert (info.instance_storage_gb, info.nvme) == (75, True)


def test_only_the_default_network_card_counts_for_pods() -> None:
    info = type_info(raw("m6idn.32xlarge"))
    assert info.max_interfaces == 8
    assert info.all_interfaces > info.max_interfaces


@pytest.mark.parametrize(("name", "cards"), [("m5.large", (3,)), ("p4d.24xlarge", (15, 15, 15, 15))])
def test_how_many_interfaces_each_network_card_can_have(name: str, cards: tuple[int, ...]) -> None:
    info = type_info(raw(name))
    assert (info.cards, info.ena) == (cards, True)
    assert not type_info(raw("t2.small")).ena


def test_a_fixed_bandwidth_is_what_the_words_say() -> None:
    assert type_info(raw("m5.24xlarge")).network_bandwidth_mbps == 25_000
    assert type_info(raw("p4d.24xlarge")).network_bandwidth_mbps == 400_000


def test_an_old_type_has_no_bandwidth_in_numbers() -> None:
    element = raw("m5.large")
    element["NetworkInfo"] |= {"NetworkPerformance": "Moderate", "NetworkCards": []}
    assert type_info(element).network_bandwidth_mbps is None


def test_efa_enclaves_placement() -> None:
    info = type_info(raw("c5n.18xlarge"))
    assert info.efa_interfaces == 1
    assert info.nitro_enclaves
    assert "cluster" in info.placement_strategies
    assert info.encryption_in_transit


@pytest.mark.parametrize(("name", "trunked"), [("t3.large", False), ("c4.large", False), ("m5.metal", True)])
def test_which_interfaces_can_be_trunked(name: str, trunked: bool) -> None:
    assert type_info(raw(name)).trunking is trunked


def test_other_architectures_are_left_out() -> None:
    element = raw("m5.large")
    element["ProcessorInfo"]["SupportedArchitectures"] = ["i386", "x86_64"]
    assert type_info(element).architectures == ("x86_64",)
    element["ProcessorInfo"]["SupportedArchitectures"] = ["x86_64_mac"]
    assert type_info(element).architectures == ()


def test_only_the_usage_classes_we_buy() -> None:
    element = raw("m5.large")
    element["SupportedUsageClasses"] = ["capacity-block", "on-demand"]
    assert type_info(element).usage_classes == ("on-demand",)


def test_every_type_can_be_read() -> None:
    infos = [type_info(element) for element in catalogue().values()]
    assert all(info.vcpus > 0 and info.memory_mib > 0 and info.ipv4_per_interface > 0 for info in infos)
