"""The sandbox has rules of its own: it imports none that the engine states."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import kerf.sandbox

FORBIDDEN = (
    "kerf.scheduling",
    "kerf.provisioning",
    "kerf.disruption",
    "kerf.lifecycle",
    "kerf.model.kubernetes.pods",
    "kerf.model.changes.pdbs",
    "kerf.model.kubernetes.selectors",
    "kerf.model.kubernetes.workloads",
)
FILES = sorted(Path(kerf.sandbox.__path__[0]).rglob("*.py"))


def imported(source: str) -> Iterator[str]:
    """The full names of all that a module imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{one.name}" for one in node.names)


def test_the_sandbox_imports_no_rule_of_the_engine() -> None:
    found = [(file.name, name) for file in FILES for name in imported(file.read_text(encoding="utf-8"))]
    assert ("scheduler.py", "kerf.sandbox.scheduling.node_rules") in found
    assert [row for row in found if row[1].startswith(FORBIDDEN)] == []
