"""What processes use, as Linux tells it in /proc: CPU time and memory of a process and of its children."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds and peak resident bytes of a process and of each of its children by name."""

    cpu_seconds: float
    peak_bytes: Mapping[str, int]


def usage(pid: int) -> Usage:
    """Of a process and its children since they began. What is no more counts nothing."""
    own = {"controller": pid, **{_role(child): child for child in _children(pid)}}
    return Usage(sum(map(_cpu, own.values())), {role: _peak(one) for role, one in own.items()})


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return sorted({int(child) for task in tasks for child in (task / "children").read_text().split()})
    return []


def _role(pid: int) -> str:
    """What a child of the controller is for: Python's own resource tracker, or the worker that proposes."""
    with contextlib.suppress(OSError):
        if b"resource_tracker" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return "resource tracker"
    return f"worker {pid}"


def _peak(pid: int) -> int:
    """The most memory that was ever resident, in bytes; 0 when there is no such process."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def _cpu(pid: int) -> float:
    """User and system time of a process in seconds."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND
    return 0.0


def proportional_bytes(pid: int) -> int:
    """The memory of a process and its children now, in bytes: of a page that processes share, each has its part (PSS).

    Source: proc(5), /proc/pid/smaps_rollup.
    """
    return sum(map(_proportional, (pid, *_children(pid))))


def _proportional(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
