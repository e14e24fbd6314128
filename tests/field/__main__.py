"""`python -m tests.field`: write the findings of all cases as they are now."""

from __future__ import annotations

from tests.field import FOLDER, cases

for path in FOLDER.glob("*.yaml"):
    parts = (f"# case: {c.name}\n# finds: {c.found()}\n{c.text}" for c in cases() if c.file == path)
    path.write_text("".join(parts), encoding="utf-8")
