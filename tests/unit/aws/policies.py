"""The IAM policies as the documents have them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from tests.sources import ROOT

AWS: Final = ROOT / "manifests" / "aws"
POLICIES: Final = sorted((AWS / "policies").glob("*.json"))


def statements(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["Statement"]
    return found


def allowed() -> set[str]:
    return {action for path in POLICIES for one in statements(path) for action in one["Action"]}


def statement(sid: str) -> dict[str, Any]:
    [found] = [one for path in POLICIES for one in statements(path) if one["Sid"] == sid]
    return found
