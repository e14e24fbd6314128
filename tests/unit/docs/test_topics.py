"""Each topic that users look for has a page with its heading, and an example that a test judges."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.sources import ROOT
from tests.unit.docs.example_blocks import BLOCKS

TOPICS = yaml.safe_load(Path(__file__).with_name("topics.yaml").read_text(encoding="utf-8"))
#: YAML is judged by test_examples.py; commands and merged user data by that file, the guides and test_userdata_page.py.
JUDGED = ("yaml", "console", "toml", "powershell", "bash", "sh")


def headings(text: str) -> list[str]:
    return re.findall(r"^#+ (.*)$", re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)


def missing(row: dict[str, str]) -> str:
    """What a topic lacks; empty when it is complete."""
    name, _, heading = row["at"].partition("#")
    page = ROOT / "docs" / name
    if not page.exists():
        return f"no page {name}"
    if heading not in headings(page.read_text(encoding="utf-8")):
        return f"no heading {heading} in {name}"
    if name not in (ROOT / "mkdocs.yml").read_text(encoding="utf-8"):
        return f"{name} is not in the navigation"
    example = row.get("example", name)
    if "none" not in row and not any(block.page == example and block.language in JUDGED for block in BLOCKS):
        return f"no example in {example}"
    return ""


@pytest.mark.parametrize("row", TOPICS, ids=lambda row: str(row["topic"]))
def test_a_topic_has_a_page_a_heading_and_an_example(row: dict[str, str]) -> None:
    assert missing(row) == ""


def test_every_topic_is_listed_once() -> None:
    names = [row["topic"] for row in TOPICS]
    assert len({*names}) == len(names)


@pytest.mark.parametrize(
    ("row", "lack"),
    [
        ({"at": "nowhere.md#X"}, "no page nowhere.md"),
        ({"at": "concepts.md#Nowhere"}, "no heading Nowhere in concepts.md"),
        ({"at": "glossary.md#Glossary"}, "no example in glossary.md"),
    ],
)
def test_a_missing_page_heading_or_example_is_found(row: dict[str, str], lack: str) -> None:
    assert missing(row) == lack
