"""What the image holds: all that Kerf needs, for the right machine, in pinned versions, and nothing else."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from image.holdings import Distribution, environment, needs
from image.player import PLATFORMS, Image
from image.recipe import ROOT, Recipe
from tests.sources import FOLDERS

pytestmark = pytest.mark.timeout(1200)

Holdings = Mapping[str, tuple[Distribution, ...]]
#: How an ELF file names the machine that it is for.
MACHINES = {"linux/amd64": 62, "linux/arm64": 183}
SITE = "usr/local/lib/python3*/site-packages"


def pins() -> dict[str, Requirement]:
    lines = (ROOT / "constraints.txt").read_text().split()
    return {canonicalize_name(each.name): each for each in map(Requirement, lines)}


@pytest.mark.parametrize("platform", PLATFORMS)
def test_it_holds_what_kerf_requires_there_and_nothing_else(holdings: Holdings, recipe: Recipe, platform: str) -> None:
    """By the distributions' own requirements, worked out here for the target; pip works them out where it runs."""
    found = needs(holdings[platform], "kerf", environment(platform, recipe))
    assert set(found) == {each.name for each in holdings[platform]}
    versions = {each.name: each.version for each in holdings[platform]}
    for requirements in found.values():
        for requirement in requirements:
            assert requirement.specifier.contains(versions[canonicalize_name(requirement.name)], prereleases=True)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_version_is_pinned(holdings: Holdings, platform: str) -> None:
    others = {each.name: each.version for each in holdings[platform] if each.name != "kerf"}
    known = pins()
    assert others == {name: str(known[name].specifier).removeprefix("==") for name in others if name in known}


@pytest.mark.parametrize("platform", PLATFORMS)
def test_compiled_parts_are_for_its_machine(images: Mapping[str, Image], platform: str) -> None:
    compiled = [path for layer in images[platform].layers[1:] for path in layer.rglob("*.so*")]
    assert {"numpy", "highspy", "msgspec"} <= {path.parts[-2] for path in compiled} | {
        path.parts[-3] for path in compiled
    }
    for path in compiled:
        head = path.read_bytes()[:20]
        assert head[:4] == b"\x7fELF"
        assert struct.unpack_from("<H", head, 18)[0] == MACHINES[platform], path


def test_every_file_of_the_packages_is_installed(images: Mapping[str, Image]) -> None:
    """What a wheel leaves out (definitions, rules, the demo's world) is missed only by who installed it."""
    site = next(images["linux/amd64"].layers[2].glob(SITE))
    for package, folder in FOLDERS.items():
        wanted = {path.relative_to(ROOT / folder) for path in (ROOT / folder / package).rglob("*") if path.is_file()}
        wanted = {
            path
            for path in wanted
            if path.suffix in {".py", ".yaml", ".json", ".txt", ".typed", ".html", ".css", ".js"}
        }
        there = {path.relative_to(site) for path in (site / package).rglob("*") if path.is_file()}
        assert {path for path in there if path.suffix != ".pyc"} == wanted


def test_nothing_installs_packages_or_gives_rights(images: Mapping[str, Image]) -> None:
    there = [path for layer in images["linux/amd64"].layers for path in layer.rglob("*")]
    names = {path.name for path in there}
    assert "kerf" in names
    assert not {"pip", "pip3", "ensurepip", "setuptools", "wheel", "tests", "hadolint"} & {
        path.name for path in there if path.parent.name in {"site-packages", "bin", "python3.11"}
    }
    assert [path for path in there if path.is_file() and not path.is_symlink() and path.stat().st_mode & 0o6000] == []


def test_every_module_has_bytecode_that_nobody_has_to_check(images: Mapping[str, Image]) -> None:
    for layer in images["linux/amd64"].layers:
        modules = [path for path in layer.rglob("*.py") if path.parts[-2] != "bin"]
        assert modules
        for path in modules:
            [compiled] = path.parent.glob(f"__pycache__/{path.stem}.cpython-*.pyc")
            # By PEP 552: made from a hash of the source, not to be checked.
            assert struct.unpack_from("<I", compiled.read_bytes(), 4)[0] == 0b01, compiled


def test_no_address_of_where_packages_came_from_is_left(images: Mapping[str, Image]) -> None:
    for layer in images["linux/amd64"].layers[1:]:
        for path in layer.glob(f"{SITE}/*.dist-info/direct_url.json"):
            assert '"url": "file://' in path.read_text()


def test_its_user_has_a_name(images: Mapping[str, Image]) -> None:
    system = images["linux/amd64"].layers[0]
    lines = (system / "etc" / "passwd").read_text().splitlines()
    assert [Path(line.split(":")[5]).as_posix() for line in lines if line.split(":")[2] == "65532"] == ["/nonexistent"]
