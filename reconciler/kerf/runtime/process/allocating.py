"""The arenas of the C library's allocator: one for each thread that asks, by default up to eight a core.

Each keeps what its thread has freed. The controller has 45 threads, few of which allocate at the same time: Python has
an allocator of its own for small objects, and one lock for all.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import Final

#: Source: mallopt(3), glibc's malloc.h. Other C libraries have no such function.
M_ARENA_MAX: Final = -8
ARENAS: Final = 2


def limit_arenas(most: int = ARENAS) -> bool:
    """Let all threads of this process share so many arenas; whether the C library does. Call it before any starts."""
    with suppress(AttributeError, OSError):
        return bool(ctypes.CDLL(None).mallopt(M_ARENA_MAX, most))
    return False


def give_back() -> None:
    """Return free pages of all arenas to the system, where the C library can (malloc_trim(3)); other threads run on."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
