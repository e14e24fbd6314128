"""Images: what an alias stands for, which of several is taken, and what is asked for by terms (159 to 167)."""

from __future__ import annotations

from dataclasses import replace as changed

import pytest

from kerf.aws.observe.images import UnsupportedAlias, alias_sources, image
from kerf.ec2 import images
from kerf.model.aws.cloud import Image
from kerf_api.v1 import conditions
from tests.unit.ec2.ec2_facts import NOW, facts, node_class
from tests.unit.ec2.test_nodeclass import status, verdict

STANDARD = Image("ami-old", "a", "amd64", "2026-01-01", variant="standard")


# --- aliases ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("alias", "version", "fine"),
    [
        ("al2@latest", "1.32", True),
        ("al2@latest", "1.33", False),
        ("al2@latest", "1.34", False),
        ("al2023@latest", "1.33", True),
        ("windows2025@latest", "1.34", False),
        ("windows2025@latest", "1.35", True),
        ("windows2022@latest", "1.30", True),
    ],
)
def test_159_some_families_exist_for_some_versions_only(alias: str, version: str, fine: bool) -> None:
    if fine:
        assert alias_sources(alias, version)
        return
    with pytest.raises(UnsupportedAlias, match=version):
        alias_sources(alias, version)
    told = facts(images=(), problems={"AMIsReady": ("UnsupportedAlias", "words")})
    assert verdict(status(node_class(), told), "AMIsReady") == ("False", "UnsupportedAlias")


def variants(alias: str, version: str = "1.32") -> list[tuple[str, str]]:
    """Architecture and variant of each image that an alias stands for, sorted."""
    return sorted(
        ("arm64" if "arm64" in source.path else "amd64", variant)
        for source in alias_sources(alias, version)
        for variant in source.variants
    )


@pytest.mark.parametrize(
    ("alias", "expected"),
    [
        ("al2@latest", ["amd64 neuron", "amd64 nvidia", "amd64 standard", "arm64 standard"]),
        (
            "al2023@latest",
            ["amd64 neuron", "amd64 nvidia", "amd64 standard", "arm64 nvidia", "arm64 standard"],
        ),
        (
            "bottlerocket@latest",
            ["amd64 neuron", "amd64 nvidia", "amd64 standard", "arm64 nvidia", "arm64 standard"],
        ),
        ("windows2022@latest", ["amd64 standard"]),
    ],
)
def test_161_the_parameters_of_each_alias(alias: str, expected: list[str]) -> None:
    assert [" ".join(row) for row in variants(alias)] == expected


@pytest.mark.parametrize(
    ("alias", "variant", "path"),
    [
        ("al2@v1", "arm64", "amazon-linux-2-arm64/amazon-eks-arm64-node-1.32-v1/image_id"),
        ("al2@latest", "gpu", "amazon-linux-2-gpu/recommended/image_id"),
        ("al2023@v1", "nvidia", "x86_64/nvidia/amazon-eks-node-al2023-x86_64-nvidia-1.32-v1/image_id"),
        ("al2023@latest", "arm64/standard", "amazon-linux-2023/arm64/standard/recommended/image_id"),
        ("bottlerocket@v1.2.3", "nvidia/arm64", "bottlerocket/aws-k8s-1.32-nvidia/arm64/1.2.3/image_id"),
        ("windows2019@latest", "2019", "Windows_Server-2019-English-Core-EKS_Optimized-1.32/image_id"),
    ],
)
def test_161_where_aws_publishes_it(alias: str, variant: str, path: str) -> None:
    found = [source.path for source in alias_sources(alias, "1.32") if variant in source.path]
    assert found[0].endswith(path)


# --- one of several ---------------------------------------------------------------------------------------------
def listed(*rows: Image) -> list[str]:
    return [one.id for one in images.listed(rows)]


def test_162_a_living_image_comes_before_a_newer_one_that_is_deprecated() -> None:
    newer = changed(STANDARD, id="ami-new", created="2026-02-01")
    assert listed(STANDARD, newer) == ["ami-new"]
    assert listed(STANDARD, changed(newer, deprecated=True)) == ["ami-old"]
    assert listed(changed(STANDARD, deprecated=True), changed(newer, deprecated=True)) == ["ami-new"]


def test_162_of_equal_age_the_greater_name_whatever_the_order() -> None:
    rows = [changed(STANDARD, id=f"ami-{name}", name=name) for name in ("b", "c", "a")]
    assert listed(*rows) == listed(*reversed(rows)) == ["ami-c"]


def test_163_a_deprecated_image_is_reported_and_used_for_now() -> None:
    gone = status(node_class(), facts(images=(changed(STANDARD, deprecated=True),)))
    assert [(one.id, one.deprecated) for one in gone.amis] == [("ami-old", True)]
    assert verdict(gone, "AMIsReady") == ("True", "AMIsReady")
    fresh = status(node_class(), facts(images=(changed(STANDARD, deprecated=True), changed(STANDARD, id="ami-new"))))
    assert [(one.id, one.deprecated) for one in fresh.amis] == [("ami-new", False)]
    assert conditions.get(fresh.conditions, "AMIsReady") is not None


@pytest.mark.parametrize(
    ("until", "deprecated"), [("2026-11-20T12:00:00.000Z", True), ("2026-11-20T12:00:01.000Z", False)]
)
def test_163_an_image_is_deprecated_from_its_hour_on(until: str, deprecated: bool) -> None:
    found = image({"ImageId": "ami-1", "Architecture": "x86_64", "DeprecationTime": until}, NOW)
    assert found.deprecated is deprecated


# --- terms ------------------------------------------------------------------------------------------------------
def test_166_tags_of_an_image_ask_nothing_of_types() -> None:
    row = {"ImageId": "ami-1", "Architecture": "arm64", "Tags": [{"Key": "karpenter.sh/x", "Value": "y"}]}
    (found,) = images.listed([image(row, NOW)])
    assert [(entry.key, entry.values) for entry in found.requirements] == [("kubernetes.io/arch", ("arm64",))]
