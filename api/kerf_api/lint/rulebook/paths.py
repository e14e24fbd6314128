"""Paths as the rule book and tests write them: `B.nodes` is short for `spec.disruption.budgets[0].nodes`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

SHORT: Final[Mapping[str, str]] = {
    "T.": "spec.template.spec.",
    "L": "spec.template.metadata.labels",
    "R": "spec.template.spec.requirements[0]",
    "B": "spec.disruption.budgets[0]",
    "D.": "spec.disruption.",
    "E.": "spec.blockDeviceMappings[0].ebs.",
}


def long_path(path: str) -> str:
    """A path written out."""
    for short, long in SHORT.items():
        if path == short or (path.startswith(short) and (short.endswith(".") or path[len(short)] in ".[")):
            return long + path[len(short) :]
    return path


def steps(path: str) -> list[str | int]:
    """`a.b[2].c[d/e]`, short or long, as keys and indexes."""
    found = re.findall(r"\[([^\]]*)\]|([^.\[\]]+)", long_path(path))
    return [int(inside) if inside.isdigit() else inside or plain for inside, plain in found]
