"""Which public parameters stand behind an alias, and what an image's facts are."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kerf.aws.observe.images import Source, UnsupportedAlias, alias_sources, image

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
EKS = "/aws/service/eks/optimized-ami"


def paths(alias: str, version: str) -> list[str]:
    return [source.path for source in alias_sources(alias, version)]


def test_al2023_has_five_images() -> None:
    root = f"{EKS}/1.34/amazon-linux-2023"
    assert paths("al2023@latest", "1.34") == [
        f"{root}/x86_64/standard/recommended/image_id",
        f"{root}/x86_64/nvidia/recommended/image_id",
        f"{root}/x86_64/neuron/recommended/image_id",
        f"{root}/arm64/standard/recommended/image_id",
        f"{root}/arm64/nvidia/recommended/image_id",
    ]
    pinned = f"{root}/x86_64/standard/amazon-eks-node-al2023-x86_64-standard-1.34-v20251001/image_id"
    assert paths("al2023@v20251001", "1.34")[0] == pinned


def test_al2s_gpu_image_serves_two_variants() -> None:
    assert alias_sources("al2@latest", "1.32") == (
        Source(f"{EKS}/1.32/amazon-linux-2/recommended/image_id"),
        Source(f"{EKS}/1.32/amazon-linux-2-arm64/recommended/image_id"),
        Source(f"{EKS}/1.32/amazon-linux-2-gpu/recommended/image_id", ("neuron", "nvidia")),
    )
    pinned = f"{EKS}/1.32/amazon-linux-2-arm64/amazon-eks-arm64-node-1.32-v20250101/image_id"
    assert paths("al2@v20250101", "1.32")[1] == pinned


def test_bottlerocket_drops_the_v_of_a_version() -> None:
    root = "/aws/service/bottlerocket/aws-k8s-1.34"
    assert paths("bottlerocket@v1.48.0", "1.34") == [
        f"{root}/x86_64/1.48.0/image_id",
        f"{root}/arm64/1.48.0/image_id",
        f"{root}-nvidia/x86_64/1.48.0/image_id",
        f"{root}-nvidia/arm64/1.48.0/image_id",
    ]
    assert alias_sources("bottlerocket@latest", "1.34")[0].variants == ("standard", "neuron")


def test_windows_has_one_image_and_a_build() -> None:
    (source,) = alias_sources("windows2022@latest", "1.34")
    expected = "/aws/service/ami-windows-latest/Windows_Server-2022-English-Core-EKS_Optimized-1.34/image_id"
    assert (source.path, source.windows_build) == (expected, "10.0.20348")


@pytest.mark.parametrize(
    ("alias", "version"),
    [
        ("al2@latest", "1.33"),
        ("windows2025@latest", "1.34"),
        ("windows1999@latest", "1.36"),
        ("gentoo@latest", "1.34"),
        ("al2023@latest", ""),
    ],
)
def test_an_alias_that_names_no_image(alias: str, version: str) -> None:
    with pytest.raises(UnsupportedAlias):
        alias_sources(alias, version)


@pytest.mark.parametrize(
    ("until", "deprecated"),
    [
        ("", False),
        ("2026-11-20T11:59:59.000Z", True),
        ("2026-11-20T12:00:00.000Z", True),
        ("2027-01-01T00:00:00.000Z", False),
    ],
)
def test_when_an_image_is_deprecated(until: str, deprecated: bool) -> None:
    row = {"ImageId": "ami-1", "Name": "n", "Architecture": "x86_64", "CreationDate": "2026-01-01T00:00:00.000Z"}
    found = image({**row, "DeprecationTime": until} if until else row, NOW)
    assert found.deprecated is deprecated
    assert (found.id, found.name, found.architecture, found.created) == (
        "ami-1",
        "n",
        "amd64",
        "2026-01-01T00:00:00.000Z",
    )


def test_an_image_for_other_machines_has_no_architecture() -> None:
    assert image({"ImageId": "ami-1", "Architecture": "i386"}, NOW).architecture == ""
