"""Threads share the arenas of the C library's allocator."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: Eight threads hold memory at the same time; glibc then prints a line for each arena.
PROGRAM = """
import ctypes, threading
from kerf.runtime.process import allocating
assert not {limited} or allocating.limit_arenas()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
gate = threading.Barrier(9)
def hold():
    libc.malloc(ctypes.c_size_t(1000))
    gate.wait()
    gate.wait()
for _ in range(8):
    threading.Thread(target=hold).start()
gate.wait()
libc.malloc_stats()
gate.wait()
"""


def arenas(limited: bool) -> int:
    command = [sys.executable, "-c", PROGRAM.format(limited=limited)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stderr.count("Arena ")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs glibc")
def test_threads_share_few_arenas() -> None:
    assert arenas(limited=False) > 2
    assert arenas(limited=True) <= 2


#: Frees 50 MiB below a block that stays.
FREED = """
from pathlib import Path
from kerf.runtime.process import collecting
blocks = [bytes(2000) for _ in range(25_000)]
last = blocks.pop()
blocks.clear()
pages = lambda: int(Path("/proc/self/statm").read_text().split()[1])
before = pages()
collecting.put_aside()
print(before - pages())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs glibc")
def test_free_memory_is_given_back_when_the_rest_is_put_aside() -> None:
    done = subprocess.run([sys.executable, "-c", FREED], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 5_000, "pages of 4 KiB"
