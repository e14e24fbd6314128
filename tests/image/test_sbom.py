"""The bill of materials says what the image holds, in CycloneDX's own schema, and the same each time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.utils import canonicalize_name

from image.__main__ import write_bills, write_list
from image.player import PLATFORMS, Image
from image.recipe import ROOT, Recipe

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def bills(images: Mapping[str, Image], tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    folder = tmp_path_factory.mktemp("bills")
    assert write_bills(dict(images), folder) == 0
    return {each: (folder / f"sbom-{each.replace('/', '-')}.cdx.json").read_text() for each in PLATFORMS}


def versions(bill: str) -> dict[str, str]:
    """The Python distributions of a bill."""
    components: list[dict[str, Any]] = json.loads(bill)["components"]
    return {each["name"]: each["version"] for each in components if each["purl"].startswith("pkg:pypi/")}


@pytest.mark.parametrize("platform", PLATFORMS)
def test_it_is_what_the_schema_wants(bills: Mapping[str, str], platform: str) -> None:
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    assert validator.validate_str(bills[platform]) is None
    assert validator.validate_str(bills[platform].replace('"type": "library"', '"type": "book"')) is not None


@pytest.mark.parametrize("platform", PLATFORMS)
def test_its_versions_are_those_of_the_constraints(bills: Mapping[str, str], platform: str) -> None:
    found = versions(bills[platform])
    assert found.pop("kerf")
    lines = (line.split("==") for line in (ROOT / "constraints.txt").read_text().split())
    pinned = {canonicalize_name(name): version for name, version in lines}
    assert len(found) > 18
    assert found.items() <= pinned.items()


def test_it_names_the_base_image_the_python_and_the_platform(bills: Mapping[str, str], recipe: Recipe) -> None:
    for platform, text in bills.items():
        bill = json.loads(text)
        purls = {each["purl"] for each in bill["components"]}
        assert {f"pkg:docker/{recipe.base_image.replace(':', '@')}", f"pkg:generic/python@{recipe.python}"} <= purls
        said = {each["name"]: each["value"] for each in bill["metadata"]["component"]["properties"]}
        assert said["kerf:platform"] == platform
        assert said["kerf:commit"].endswith("-dirty")


def test_everything_in_it_is_needed_by_something(bills: Mapping[str, str]) -> None:
    bill = json.loads(bills["linux/amd64"])
    edges = {each["ref"]: set(each.get("dependsOn", ())) for each in bill["dependencies"]}
    reached, waiting = set[str](), ["kerf-image"]
    while waiting:
        if (ref := waiting.pop()) not in reached:
            reached.add(ref)
            waiting += edges.get(ref, ())
    assert {each["bom-ref"] for each in bill["components"]} == reached - {"kerf-image"}


def test_libraries_that_wheels_carry_along_are_in_it(bills: Mapping[str, str]) -> None:
    [numpy] = [each for each in json.loads(bills["linux/amd64"])["components"] if each["name"] == "numpy"]
    assert {each["name"] for each in numpy["components"]} >= {"libgfortran", "libscipy_openblas64"}


def test_the_same_image_has_the_same_bill(
    images: Mapping[str, Image], bills: Mapping[str, str], tmp_path: Path
) -> None:
    write_bills(dict(images), tmp_path)
    assert (tmp_path / "sbom-linux-arm64.cdx.json").read_text() == bills["linux/arm64"]
    serials = {json.loads(bill)["serialNumber"] for bill in bills.values()}
    assert len(serials) == len(PLATFORMS)


def test_all_licences_are_known_and_may_be_handed_on(
    images: Mapping[str, Image], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = write_list(dict(images), tmp_path)
    assert (code, capsys.readouterr().err) == (0, "")
    lines = (tmp_path / "licences.md").read_text().splitlines()
    assert any(line.startswith("| kerf | ") and line.endswith(" | linux/amd64, linux/arm64 |") for line in lines)
    assert any(line.startswith("| libquadmath |  | LGPL-2.1-or-later | numpy ") for line in lines)
