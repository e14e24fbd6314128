"""The API reference is what the definitions say, all of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kerf_api.crds import kinds, load, schema
from kerf_api.crds.reference import main, markdown

PAGE = Path(__file__).resolve().parents[3] / "docs/reference/api.md"
ROW = re.compile(r"^\| `(\S+)`(\*?) \| ([^|]+) \| ([^|]*) \|(.*)\|$", re.MULTILINE)

WEIGHT = "Pools with a higher weight are tried first. At least 1, at most 100."


def test_the_page_is_current(tmp_path: Path) -> None:
    assert PAGE.read_text(encoding="utf-8") == markdown(), "run make manifests"
    assert main([str(tmp_path / "api.md")]) == 0
    assert (tmp_path / "api.md").read_text(encoding="utf-8") == markdown()


def fields(
    path: str, field: Mapping[str, Any], *, needed: bool = False
) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    yield path, field, needed
    for name, inner in field.get("properties", {}).items():
        yield from fields(f"{path}.{name}", inner, needed=name in field.get("required", ()))


def rows(kind: str) -> dict[str, tuple[str, ...]]:
    """What the page has of a kind: required, type, default and words by path."""
    (own,) = re.findall(rf"^## {kind}\n(.*?)(?=^## |\Z)", markdown(), re.MULTILINE | re.DOTALL)
    return {path: tuple(cell.strip() for cell in rest) for path, *rest in ROW.findall(own)}


@pytest.mark.parametrize("kind", kinds())
def test_every_field_has_its_words_default_and_rules(kind: str) -> None:
    shown = rows(kind)
    for path, field, needed in fields("spec", schema(kind)["properties"]["spec"]):
        required, _, default, words = shown[path]
        told = words.replace("\\|", "|").replace("&lt;", "<")
        assert " ".join(field.get("description", "").split()) in told
        assert all(f"`{value}`" in told for value in field.get("enum", ()) if value)
        assert all(" ".join(rule["message"].split()) in told for rule in field.get("x-kubernetes-validations", ()))
        assert bool(default) == ("default" in field)
        assert (required == "*") == needed


@pytest.mark.parametrize(
    ("kind", "path", "row"),
    [
        ("NodePool", "spec.weight", ("", "integer", "", WEIGHT)),
        ("NodePool", "spec.limits", ("", "map to quantity", "", None)),
        ("NodePool", "spec.disruption.budgets", ("", "list of object", "`[{nodes: 10%}]`", None)),
        ("NodePool", "spec.disruption.budgets[].nodes", ("*", "string", "`10%`", None)),
        ("EC2NodeClass", "spec.tags", ("", "map to string", "", None)),
    ],
)
def test_rows_read_as_people_write(kind: str, path: str, row: tuple[str | None, ...]) -> None:
    found = rows(kind)[path]
    assert [a for a, b in zip(found, row, strict=True) if b is not None] == [b for b in row if b is not None]


@pytest.mark.parametrize("kind", kinds())
def test_short_names_and_scope_are_told(kind: str) -> None:
    (line,) = re.findall(r"^`\S+`, (?:namespaced|cluster-scoped).*$", _part(kind), re.MULTILINE)
    assert all(f"`{name}`" in line for name in load(kind)["spec"]["names"].get("shortNames", ()))


def _part(kind: str) -> str:
    found = re.search(rf"^## {kind}\n(.*?)^###", markdown(), re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]
