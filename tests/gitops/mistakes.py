"""Twelve mistakes for the sample repository: what somebody writes, and where it has to be told, by which rule."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

SAMPLE: Final = Path(__file__).parent / "sample"


@dataclass(frozen=True, slots=True)
class Mistake:
    """In `file`, `new` takes the place of `old`; told is it by `rule` at the first line that holds `shown`, in the same
    file or in another."""

    file: str
    old: str
    new: str
    rule: str
    shown: str
    elsewhere: str = ""

    def make(self, repo: Path) -> None:
        """Change the file. Raises AssertionError when the old text is not there exactly once."""
        text = (repo / self.file).read_text()
        assert text.count(self.old) == 1, (self.file, self.old)
        (repo / self.file).write_text(text.replace(self.old, self.new))

    def place(self, repo: Path) -> tuple[str, int, str]:
        """File, line and rule, once all mistakes are made."""
        name = self.elsewhere or self.file
        lines = (repo / name).read_text().splitlines()
        return name, next(number for number, line in enumerate(lines, 1) if self.shown in line), self.rule


MISTAKES: Final = (
    # A value in the base, one in a patch, one in a patch within the kustomization.
    Mistake("payments/base/pool.yaml", "expireAfter: 720h", "expireAfter: 30d", "KERF-SCHEMA-PATTERN", "30d"),
    Mistake("payments/overlays/prod/size.yaml", "nodes: 5%", "nodes: 5 %", "KERF-SCHEMA-PATTERN", "nodes: 5 %"),
    Mistake(
        "payments/overlays/staging/kustomization.yaml", "value: 10", "value: 1000", "KERF-SCHEMA-BOUND", "value: 1000"
    ),
    Mistake("payments/base/class.yaml", "al2023@v20251001", "al2032@v20251001", "KERF-EC2-008", "al2032"),
    # Values of a chart, a template, and two templates that no longer agree.
    Mistake("search/values.yaml", "consolidateAfter: 5m", "consolidateAfter: 5min", "KERF-SCHEMA-PATTERN", "5min"),
    Mistake("search/values.yaml", "[r7g, r8g]", "[r7g, r8x]", "KERF-NP-301", "r8x"),
    Mistake(
        "search/templates/pool.yaml",
        "terminationGracePeriod:",
        "terminationGraceTime:",
        "KERF-SCHEMA-UNKNOWN",
        "terminationGraceTime",
    ),
    Mistake(
        "search/templates/class.yaml",
        "name: {{ .Values.name }}",
        "name: {{ .Values.name }}-nodes",
        "KERF-SET-301",
        "name: search",
        "search/values.yaml",
    ),
    # Sound manifests, and what the change means: another name, a taint, another role, less to choose from.
    Mistake("data/pools.yaml", "name: notebooks", "name: jupyter", "KERF-DIFF-301", "name: jupyter"),
    Mistake("data/pools.yaml", "key: example.com/batch", "key: example.com/spark", "KERF-SET-306", "example.com/spark"),
    Mistake("data/classes.yaml", "KarpenterNodeRole", "KarpenterNodeRole-data", "KERF-DIFF-323", "Role-data"),
    Mistake("data/pools.yaml", "[spot, on-demand]", "[spot]", "KERF-DIFF-304", "[spot]"),
)
