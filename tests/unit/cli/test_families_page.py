"""docs/reference/instance-types.md: no family and no type is missing, and the figures are those of the catalogue."""

from __future__ import annotations

from kerf.cli.pages.families import families_page
from kerf_api.lint import catalogue

ROWS = {
    cells[0].strip("` "): [cell.strip() for cell in cells[1:]]
    for line in families_page().splitlines()
    if line.startswith("| `")
    for cells in [line[1:-1].split("|")]
}


def test_every_family_has_a_row_and_every_type_is_counted() -> None:
    known = catalogue.shipped()
    assert ROWS.keys() == {name.partition(".")[0] for name in known.names}
    assert sum(int(row[1]) for row in ROWS.values()) == len(known.names)


def test_a_row_has_the_spans_and_the_devices_of_its_types() -> None:
    assert ROWS["m7i"] == ["amd64", "11", "2 to 192", "8 to 768", "", ""]
    assert ROWS["g5"][4:] == ["a10g", "yes"]
    assert ROWS["c8g"][0] == "arm64"
