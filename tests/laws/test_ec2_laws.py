"""Laws of what EC2's facts mean: what is written reads back, order never matters, no message can hurt."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from kerf.ec2 import images, interruptions
from kerf.ec2.instance_types import capacity
from kerf.ec2.userdata import bottlerocket, nodeadm
from kerf.model.aws.cloud import Image, InstanceTypeInfo
from kerf.model.aws.interruptions import Message
from kerf.model.settings import Settings
from kerf_api.userdata import mime
from kerf_api.v1.ec2nodeclass import EC2NodeClass, EC2NodeClassSpec
from kerf_api.v1.meta import ObjectMeta

TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
SCALARS = st.one_of(TEXTS, st.integers(-(2**53), 2**53), st.booleans())
SMALL = st.recursive(
    SCALARS, lambda s: st.one_of(st.lists(s, max_size=3), st.dictionaries(TEXTS, s, max_size=3)), max_leaves=8
)
TREES = st.dictionaries(TEXTS, SMALL, max_size=4)


@given(TREES)
def test_toml_reads_back(tree: dict[str, Any]) -> None:
    assert tomllib.loads(bottlerocket.to_toml(tree)) == tree


@settings(max_examples=60)
@given(TREES)
@pytest.mark.parametrize("version", [(1, 1), (1, 2)])
def test_yaml_reads_back(version: tuple[int, int], tree: dict[str, Any]) -> None:
    yaml = YAML(typ="safe", pure=True)
    yaml.version = version
    assert yaml.load(nodeadm.to_yaml(tree)) == tree or not tree


LINES = st.lists(st.text(st.characters(min_codepoint=32, max_codepoint=126)).filter(lambda t: not t.startswith("--")))
PARTS = st.lists(st.builds(mime.Part.of, st.just(mime.SHELL), LINES.map("\n".join)), min_size=1)


@given(PARTS)
def test_mime_parts_read_back(parts: list[mime.Part]) -> None:
    assert mime.split(mime.join(parts)) == parts


JSON = st.recursive(st.one_of(st.none(), SCALARS), lambda s: st.one_of(st.lists(s), st.dictionaries(st.text(), s)))
EVENTS = st.fixed_dictionaries(
    {
        "version": st.just("0"),
        "source": st.sampled_from(["aws.ec2", "aws.health"]),
        "detail-type": st.sampled_from(
            [
                "EC2 Spot Instance Interruption Warning",
                "AWS Health Event",
                "EC2 Instance State-change Notification",
            ]
        ),
        "time": JSON,
        "detail": st.one_of(
            JSON,
            st.dictionaries(st.sampled_from(["instance-id", "state", "service", "affectedEntities"]), JSON),
            st.fixed_dictionaries(
                {"service": st.just("EC2"), "eventTypeCategory": st.just("scheduledChange"), "affectedEntities": JSON}
            ),
        ),
    }
)


@given(st.one_of(st.text(), JSON.map(json.dumps), EVENTS.map(json.dumps)))
def test_no_message_can_hurt(body: str) -> None:
    found = interruptions.parse(Message("1", "r", body))
    assert found is None or (found.instance_ids and all(isinstance(id_, str) for id_ in found.instance_ids))


IMAGES = st.lists(
    st.builds(
        Image,
        st.sampled_from(["ami-1", "ami-2", "ami-3"]),
        name=st.sampled_from(["a", "b"]),
        architecture=st.sampled_from(["amd64", "arm64", "i386"]),
        created=st.sampled_from(["2026-01-01", "2026-02-01"]),
        deprecated=st.booleans(),
        variant=st.sampled_from(["standard", "nvidia", "neuron", ""]),
    ),
    unique_by=lambda image: (image.id, image.name, image.architecture, image.created, image.variant),
)


@given(IMAGES, st.randoms(use_true_random=False))
def test_the_order_of_images_never_matters(found: list[Image], random: Any) -> None:
    shuffled = random.sample(found, len(found))
    listed = images.listed(found)
    assert images.listed(shuffled) == listed
    assert len({image.requirements for image in listed}) == len(listed)


def test_images_that_differ_only_in_architecture_have_an_order_too() -> None:
    twins = [Image("ami-2", "b", architecture, "2026-01-01", variant="standard") for architecture in ("amd64", "arm64")]
    assert images.listed(twins) == images.listed(twins[::-1])


INFOS = st.builds(
    InstanceTypeInfo,
    name=st.sampled_from(["m5.large", "c6g.metal", "t3.nano", "g5.48xlarge", "odd"]),
    architectures=st.sampled_from([("amd64",), ("arm64",), ("x86_64",)]),
    vcpus=st.integers(1, 896),
    memory_mib=st.integers(512, 2**25),
    max_interfaces=st.integers(0, 30),
    ipv4_per_interface=st.integers(1, 100),
    instance_storage_gb=st.integers(0, 100_000),
)
FAMILIES = st.sampled_from(["AL2", "AL2023", "Bottlerocket", "Custom", "Windows2022"])


@given(INFOS, FAMILIES, st.integers(0, 40), st.booleans())
def test_nothing_is_allocatable_beyond_the_capacity(
    info: InstanceTypeInfo, family: str, reserved_enis: int, raid0: bool
) -> None:
    spec = EC2NodeClassSpec(ami_family=family, instance_store_policy="RAID0" if raid0 else None)
    of = EC2NodeClass(metadata=ObjectMeta(name="x"), spec=spec)
    sizing = capacity.Sizing.of(of, Settings(cluster_name="x", reserved_enis=reserved_enis))
    full = capacity.capacity(info, sizing)
    left = capacity.allocatable(full, capacity.overhead(info, sizing, full))
    assert set(left) == set(full)
    assert all(left[name] <= full[name] for name in full)
    assert full["memory"] < info.memory_mib * 2**20
    fewer = capacity.Sizing.of(of, Settings(cluster_name="x", reserved_enis=reserved_enis + 1))
    assert capacity.pods(info, fewer) <= capacity.pods(info, sizing)
