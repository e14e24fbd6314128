"""Wheel, editable install, type checker, layers, formatter and tests agree on where the packages are."""

from __future__ import annotations

import tomllib
from importlib.metadata import distributions

from packaging.specifiers import SpecifierSet

from tests.sources import FOLDERS, ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TOOLS = PROJECT["tool"]


def test_a_folder_holds_its_package_and_nothing_else() -> None:
    for package, folder in FOLDERS.items():
        assert {path.relative_to(ROOT / folder).parts[0] for path in (ROOT / folder).rglob("*.py")} == {package}


def test_every_folder_of_modules_is_a_package() -> None:
    modules = [path for folder in FOLDERS.values() for path in (ROOT / folder).rglob("*.py")]
    assert modules
    assert [path for path in modules if not (path.parent / "__init__.py").is_file()] == []


def test_a_wheel_has_all_packages() -> None:
    wanted = {f"{folder}/{package}" for package, folder in FOLDERS.items()}
    assert set(TOOLS["hatch"]["build"]["targets"]["wheel"]["packages"]) == wanted


def test_every_tool_looks_for_packages_where_they_are() -> None:
    folders = list(FOLDERS.values())
    assert TOOLS["hatch"]["build"]["dev-mode-dirs"] == folders
    assert TOOLS["mypy"]["mypy_path"].split(":") == folders
    assert TOOLS["pytest"]["ini_options"]["pythonpath"] == folders
    assert TOOLS["ruff"]["src"] == [".", *folders]


def test_types_and_layers_are_checked_in_all_packages() -> None:
    """Types those of tests, benchmarks and the image too."""
    beside = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert beside >= {"benchmarks", "tests"}
    assert set(TOOLS["mypy"]["packages"]) == {*FOLDERS, *beside}
    assert set(TOOLS["importlinter"]["root_packages"]) == FOLDERS.keys()


def test_no_name_is_one_that_another_distribution_may_have() -> None:
    name = PROJECT["project"]["name"]
    assert all(package == name or package.startswith(f"{name}_") for package in FOLDERS)
    assert not (ROOT / name).exists()


def test_every_pinned_package_installs_on_the_oldest_python() -> None:
    """Where a release has dropped it, pip finds no set of versions, and neither `make test` nor `make demo` begins."""
    oldest = str(PROJECT["project"]["requires-python"]).removeprefix(">=") + ".0"
    pinned = {line.partition("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines()}
    known = [one.metadata for one in distributions()]
    wanted = {one["Name"].lower(): one["Requires-Python"] for one in known if "Requires-Python" in one}
    assert len(wanted.keys() & pinned) > 50
    assert [name for name in sorted(wanted.keys() & pinned) if not SpecifierSet(wanted[name]).contains(oldest)] == []
