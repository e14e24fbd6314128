"""docs/userdata.md: its examples and tables are what the code makes, and the users' parts in it can be merged."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.document import rewrite
from kerf.ec2 import families
from kerf_api.userdata import rules
from tests.unit.docs import userdata_examples as examples

TEXT = examples.PAGE.read_text(encoding="utf-8")


def test_its_examples_and_tables_are_what_the_code_makes(tmp_path: Path) -> None:
    page = tmp_path / "userdata.md"
    page.write_text(TEXT, encoding="utf-8")
    rewrite(page, examples.parts())
    assert page.read_text(encoding="utf-8") == TEXT, "python -m tests.unit.docs.userdata_examples"


@pytest.mark.parametrize("name", examples.EXAMPLES)
def test_a_users_part_can_be_merged_and_is_still_there(name: str) -> None:
    family, _, own = examples.EXAMPLES[name]
    assert rules.fault(family, own) is None
    lines = [line for line in own.splitlines() if line and "OWN" not in line and "max-pods" not in line]
    assert [line for line in lines if line not in examples.example(name).partition("User data of")[2]] == []


def test_every_family_has_its_rows_and_an_example() -> None:
    known = {*families.BY_NAME}
    for table in (examples.disks(), examples.kubelet()):
        assert {line.split(" | ")[0].strip("| ") for line in table.splitlines()[2:]} == known
    shown = {family for family, _, _ in examples.EXAMPLES.values()}
    assert {name for name in known if not name.startswith("Windows")} < shown
    assert shown - known == set()
    assert all(name in TEXT.partition("\n## AL2023\n")[0] for name in known)


def test_bottlerocket_keeps_the_users_label_and_not_its_number_of_pods() -> None:
    result = examples.example("bottlerocket").partition("User data of")[2]
    assert '"example.com/mine" = "1"' in result
    assert "max-pods = 5" not in result
