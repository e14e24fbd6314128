"""The changelog has the headings and the lines that readers and release tools expect."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from tests.sources import ROOT

GROUPS = ["Added", "Changed", "Deprecated", "Fixed", "Removed", "Security"]
VERSION = re.compile(r"Unreleased|\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d")


def faults(text: str) -> list[str]:
    """What is wrong with the form of a changelog."""
    found, groups = [], list[str]()
    versions = re.findall(r"^## (.*)$", text, re.MULTILINE)
    found += [f"no version: {version}" for version in versions if not VERSION.fullmatch(version)]
    if versions[:1] != ["Unreleased"]:
        found.append("the first version is not Unreleased")
    for line, after in pairwise([*text.splitlines(), ""]):
        if line.startswith("## "):
            groups = []
        elif line.startswith("### "):
            groups.append(line.removeprefix("### "))
            if groups != [group for group in GROUPS if group in groups]:
                found.append(f"no group, twice, or not in order: {groups[-1]}")
        elif line.startswith("- "):
            if not groups:
                found.append(f"in no group: {line}")
            if not re.match(r"- \*\*[A-Z][\w ]*\*\*: \S", line):
                found.append(f"no area: {line}")
        elif line and groups and not line.startswith("  "):
            found.append(f"no line of a list: {line}")
        if line.startswith("- ") and after.startswith("- ") and line.partition(":")[2] == after.partition(":")[2]:
            found.append(f"twice: {line}")
    return found


def test_the_changelog_groups_lines_by_kind_of_change_with_their_area() -> None:
    assert faults((ROOT / "CHANGELOG.md").read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        ("## Unreleased\n\n- **Chart**: x\n", "in no group: - **Chart**: x"),
        ("## Unreleased\n\n### New\n", "no group, twice, or not in order: New"),
        ("## Unreleased\n\n### Fixed\n\n### Added\n", "no group, twice, or not in order: Added"),
        ("## Unreleased\n\n### Fixed\n\n- x\n", "no area: - x"),
        ("## Unreleased\n\n### Fixed\n\nx\n", "no line of a list: x"),
        ("## Unreleased\n\n### Fixed\n\n- **Chart**: x\n- **Log**: x\n", "twice: - **Chart**: x"),
        ("## 1.0\n", "no version: 1.0"),
    ],
)
def test_wrong_forms_are_found(wrong: str, fault: str) -> None:
    assert fault in faults(wrong)
