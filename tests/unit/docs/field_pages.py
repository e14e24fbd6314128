"""The pages on the fields of a kind: their tables of fields, their examples, and what the CRDs say of both."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import yaml

from tests.sources import ROOT

#: Pages by the kind whose fields they explain.
PAGES: Final = {"NodePool": "nodepools.md", "EC2NodeClass": "nodeclasses.md", "NodeClaim": "nodeclaims.md"}
#: By kind, the least object that examples are merged into.
BASES: Final[Mapping[str, Mapping[str, Any]]] = {
    "NodePool": {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "example"},
        "spec": {
            "template": {
                "spec": {
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "example"},
                    "requirements": [],
                    "terminationGracePeriod": "24h",
                }
            },
            "limits": {"nodes": "100"},
        },
    },
    "EC2NodeClass": {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "example"},
        "spec": {
            "role": "KarpenterNodeRole-my-cluster",
            "amiSelectorTerms": [{"alias": "al2023@v20250505"}],
            "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "my-cluster"}}],
            "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "my-cluster"}}],
        },
    },
}
_YAML = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ROW = re.compile(r"^\| (`(?:spec|status)[^|]*) \| ([^|]*) \| ([^|]*) ?\| [^|]*\|$", re.MULTILINE)
_FIELD = re.compile(r"`((?:spec|status)[\w.\[\]<>]*)`(\*?)")


def text(kind: str) -> str:
    return (ROOT / "docs" / PAGES[kind]).read_text(encoding="utf-8")


@cache
def fields(kind: str) -> dict[str, tuple[str, str, str]]:
    """By path, the mark of a required field, type and default of what a page must have, as the API reference has them.

    Left out are objects that only hold other fields, entries of lists and maps, and the inside of conditions.
    """
    whole = (ROOT / "docs/reference/api.md").read_text(encoding="utf-8")
    section = re.split(r"^## ", whole.partition(f"\n## {kind}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    found = {
        path: (star, type_.strip(), default.strip())
        for path, star, type_, default in re.findall(
            r"^\| `(\S+)`(\*?) \| ([^|]*) \| ((?:[^|\\]|\\.)*) ?\|", section, re.MULTILINE
        )
    }
    return {path: row for path, row in found.items() if _is_told(path, row, found)}


def _is_told(path: str, row: tuple[str, str, str], every: Mapping[str, Any]) -> bool:
    holds_others = row[1] == "object" and any(other.startswith(f"{path}.") for other in every)
    return not (holds_others or path.endswith(("[]", "<key>")) or "conditions[]" in path)


def rows(kind: str) -> dict[str, tuple[str, str, str]]:
    """The same from the tables of the page, where fields of one type and default may share a row."""
    return {
        path: (star, type_.strip(), default.strip())
        for cell, type_, default in _ROW.findall(text(kind))
        for path, star in _FIELD.findall(cell)
    }


def examples(kind: str) -> list[dict[str, Any]]:
    """Every example of the page as a whole object: a part that begins with `spec` is merged into the base."""
    found = (document for block in _YAML.findall(text(kind)) for document in yaml.safe_load_all(block))
    return [one if "kind" in one else merged(BASES[kind], one) for one in found]


def merged(base: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest with a part of another in it: maps are merged, all else is replaced."""
    both = {
        key: merged(base[key], value) if isinstance(value, Mapping) and isinstance(base.get(key), Mapping) else value
        for key, value in part.items()
    }
    return {**base, **both}


def paths(value: Any, path: str = "") -> Iterator[str]:
    """Every field of a manifest, as the API reference writes it."""
    if path:
        yield path
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from paths(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for inner in value:
            yield from paths(inner, f"{path}[]")
