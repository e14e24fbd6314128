"""The blocks of YAML and of commands in README.md and docs/, and their kinds."""

from __future__ import annotations

import re
import textwrap
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from tests.sources import ROOT
from tests.unit.charts.test_values import problems as problems_of_values
from tests.unit.docs import field_pages

#: The rule book has a test of its own for its examples.
PAGES: Final = [
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name != "rules.md"),
]
OWN_GROUPS: Final = ("karpenter.sh/", "karpenter.k8s.aws/", "autoscaling.x-k8s.io/")
OLD_VERSIONS: Final = ("v1alpha5", "v1beta1", "karpenter.k8s.aws/v1alpha1")
_BLOCK: Final = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A block of a page: the line on which it begins, its language, and its text."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def name_of(page: Path) -> str:
    """`tasks/spot.md`, or `README.md`."""
    return page.name if page.parent == ROOT else str(page.relative_to(ROOT / "docs"))


def blocks(page: str, text: str) -> list[Block]:
    """The blocks of a page in their order."""
    return [
        Block(page, text.count("\n", 0, found.start()) + 1, found[2], textwrap.dedent(found[3]))
        for found in _BLOCK.finditer(text)
    ]


BLOCKS: Final = [block for page in PAGES for block in blocks(name_of(page), page.read_text(encoding="utf-8"))]
YAML: Final = [block for block in BLOCKS if block.language == "yaml"]


@cache
def kind_of(block: Block) -> str:
    """`objects` of Kerf's kinds, `values` of the chart, `fields` of a page on a kind, or `others`."""
    documents = [one for one in yaml.safe_load_all(block.text) if one is not None]
    if all(_is_current(one) for one in documents):
        return "objects"
    if block.page in field_pages.PAGES.values() and all(isinstance(one, dict) and "spec" in one for one in documents):
        return "fields"
    if all(isinstance(one, dict) and not list(problems_of_values(one)) for one in documents):
        return "values"
    return "others"


def _is_current(one: Any) -> bool:
    version = str(one.get("apiVersion", "")) if isinstance(one, dict) else ""
    return version.startswith(OWN_GROUPS) and not version.endswith(OLD_VERSIONS)


def commands(program: str) -> list[tuple[str, str]]:
    """The commands of a program in blocks and in inline code, each with its page."""
    found: list[tuple[str, str]] = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        uses = re.findall(rf"(?:^\$ |-- |`){program} ([a-z][^`\n|]*)", text, re.MULTILINE)
        found.extend((name_of(page), words) for words in uses)
    return found
