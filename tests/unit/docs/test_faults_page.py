"""docs/reference/faults.md has every fault. `kerf status`, another tool and an alert name each that was measured."""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.cluster.fault_records import PAGE, TOOLS, page, records, waits
from tests.cluster.faults import FAULTS
from tests.sources import ROOT
from tests.unit.charts.monitoring import alerts

NAMES: Final = [fault.name for fault in FAULTS]


def rows() -> list[list[str]]:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_page_is_what_the_records_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(records(), NAMES, waits())


def test_it_has_every_fault_and_every_tool() -> None:
    head, *faults = rows()
    assert [re.sub("`(kerf )?", "", cell).strip("`") for cell in head] == ["fault", *TOOLS, "alert"]
    measured = [re.sub(r"^\[(.*)\]\(#.*\)$", r"\1", row[0]) for row in faults]
    left = re.findall(r"^- (.*)$", PAGE.read_text(encoding="utf-8").partition("## Not measured yet")[2], re.M)
    assert [name for name in NAMES if name in measured] == measured
    assert sorted(measured + left) == sorted(NAMES)


@pytest.mark.parametrize("row", rows()[1:], ids=lambda row: str(row[0]))
def test_enough_tools_name_each_fault(row: list[str]) -> None:
    cells = dict(zip(("fault", *TOOLS, "alert"), row, strict=True))
    assert cells["status"]
    assert cells["alert"]
    assert sum(bool(cell) for cell in row[1:]) >= 3
    named = {tool: int(cells[tool].removesuffix(" s")) for tool in TOOLS if cells[tool]}
    limits = {fault.name: fault.seconds for fault in FAULTS}
    assert max(named.values()) <= limits[re.sub(r"^\[(.*)\]\(#.*\)$", r"\1", row[0])] + 60


def test_the_alerts_of_faults_exist_and_records_have_them() -> None:
    known = {one.name for one in alerts()}
    assert all(set(fault.alerts) <= known for fault in FAULTS)
    wanted = {fault.name: fault.alerts for fault in FAULTS}
    assert all(tuple(one.alerts) == wanted[one.fault] for one in records())


def test_troubleshooting_leads_to_the_page() -> None:
    assert "(reference/faults.md)" in (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
