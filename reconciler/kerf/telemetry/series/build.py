"""Which commit runs: what the image says of itself, else what pip noted when it installed from Git."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import metadata
from typing import Final

#: Set by the image's build; `-dirty` at its end marks a modified tree.
VARIABLE: Final = "KERF_COMMIT"
_LENGTH: Final = 7


def commit(environment: Mapping[str, str]) -> str:
    """Its first seven characters, with `-dirty` where that applies; empty when unknown."""
    said = environment.get(VARIABLE, "") or _installed_from()
    base, dash, dirty = said.partition("-")
    return base[:_LENGTH] + dash + dirty


def _installed_from() -> str:
    """What PEP 610 has of an installation by `pip install git+…`."""
    try:
        noted = metadata.distribution("kerf").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return ""
    found = json.loads(noted) if noted else {}
    return str(found.get("vcs_info", {}).get("commit_id", ""))
