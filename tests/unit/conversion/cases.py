"""The cases of the conversion as files: what went in, what came out to the letter, what was told.

`python -m tests.unit.conversion.cases` writes anew what came out and what was told, to be reviewed as a change; a file
that has only its first line and `=== before` becomes a case so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from kerf.cli.reports import formats
from kerf.cli.rewriting.converting import Converted, convert_files
from kerf.manifests.checking import Content
from kerf_api.conversion import Wish

FOLDER: Final = Path(__file__).parent / "cases"
AS_IT_IS: Final = "(as it is)\n"
_SECTION = re.compile(r"^=== (before|role|after|problems)\n", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """One file: `about` says what it shows, `role` is that of the command line."""

    name: str
    about: str
    before: str
    after: str
    problems: str
    role: str = ""

    @property
    def result(self) -> str:
        """The text that has to come out."""
        return self.before if self.after == AS_IT_IS else self.after

    def converted(self, text: str = "") -> Converted:
        """What comes of the text before, or of another."""
        (file,) = convert_files([Content("f", (text or self.before).encode())], Wish(self.role.strip()))
        return file

    def current(self) -> Case:
        """The case as it would be now."""
        file = self.converted()
        told = "".join(formats.line(finding, False)[2:] + "\n" for finding in file.findings)
        return replace(self, after=file.after if file.changed else AS_IT_IS, problems=told)

    def text(self) -> str:
        """The file's text."""
        role = f"=== role\n{self.role}" if self.role else ""
        return f"{self.about}=== before\n{self.before}{role}=== after\n{self.after}=== problems\n{self.problems}"


def read(path: Path) -> Case:
    about, *parts = _SECTION.split(path.read_text(encoding="utf-8"))
    found = dict(zip(parts[::2], parts[1::2], strict=True))
    return Case(
        path.stem, about, found["before"], found.get("after", ""), found.get("problems", ""), found.get("role", "")
    )


CASES: Final = [read(path) for path in sorted(FOLDER.glob("*.txt"))]


def main() -> None:
    for case in CASES:
        (FOLDER / f"{case.name}.txt").write_text(case.current().text(), encoding="utf-8")


if __name__ == "__main__":
    main()
