"""How long processes of this machine had to wait for a processor."""

import re
from pathlib import Path


def processor_waits() -> float:
    """Seconds since the start of the machine in which a process waited for a processor; 0 where that is not counted.

    Source: the kernel's documentation, "PSI - Pressure Stall Information".
    """
    file = Path("/proc/pressure/cpu")
    found = re.search(r"^some .*total=(\d+)$", file.read_text() if file.exists() else "", re.MULTILINE)
    return int(found[1]) / 1e6 if found is not None else 0.0
