"""`python -m tests.unit.behaviours` writes docs/behaviours.md: what each number says, and which test bears it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final

from tests.sources import ROOT
from tests.unit.catalogues import CATALOGUES, Catalogue

PAGE: Final = ROOT / "docs/behaviours.md"
_HEAD: Final = """\
# Numbered behaviours

Kerf behaves as Karpenter does in each numbered row. A test has the number in its name
(`test_211_an_impairment_is_counted_once_until_the_instance_recovers`), and its name describes the behaviour. Where Kerf
differs on purpose, the page of the catalogue gives the reason. `python -m tests.unit.behaviours` writes this page from
the tests.
"""


def page() -> str:
    return "\n".join([_HEAD, *(part for each in CATALOGUES.values() for part in _part(each))])


def _part(catalogue: Catalogue) -> Iterator[str]:
    document = catalogue.document.removeprefix("docs/")
    yield f"## {catalogue.name.upper() if len(catalogue.name) < 4 else catalogue.name.capitalize()}\n"
    yield f"Where Kerf differs: [{catalogue.name}]({document}#where-kerf-differs).\n"
    yield "| number | behaviour | test file |\n|---|---|---|"
    tests, rows = catalogue.tests(), catalogue.rows()
    for number in catalogue.numbers:
        for node in tests.get(number, ()):
            file, _, name = node.partition("::")
            yield f"| {number} | {_words(name)} | `{file}` |"
        if number in rows and number not in tests:
            yield f"| {number} | Kerf differs | [{catalogue.name}]({document}#where-kerf-differs) |"
    yield ""


def _words(name: str) -> str:
    return name[9:].replace("_", " ")


def main() -> int:
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
