"""The versions on which a decision may depend, for the header of a record."""

from __future__ import annotations

import platform
from contextlib import suppress
from pathlib import Path
from typing import Final

from kerf.runtime.observe import looking

_CPU_INFO: Final = Path("/proc/cpuinfo")


def software() -> dict[str, str]:
    """The versions of `looking.software`, and the model of the CPU as far as it is known, by name."""
    return {**looking.software(), "cpu": _cpu()}


def _cpu() -> str:
    with suppress(OSError):
        rows = (line.partition(":") for line in _CPU_INFO.read_text(errors="replace").splitlines())
        found = {name.strip(): value.strip() for name, _, value in rows}
        parts = [found.get(name, "") for name in ("CPU implementer", "CPU part")]
        return found.get("model name") or " ".join(filter(None, parts))
    return platform.processor()
