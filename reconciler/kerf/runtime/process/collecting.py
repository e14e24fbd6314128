"""The garbage collector of a process with millions of lasting objects: a full collection stops all threads for 0.3 s.

So none comes by itself. What is new is looked at now and then, and put aside: most of it stays.
"""

from __future__ import annotations

import gc
import threading
from typing import Final

from kerf.runtime.process import allocating

#: New objects before the collector looks at the young; how often it then looks at older ones, and (never) at all.
THRESHOLDS: Final = (100_000, 5, 1_000_000)
EVERY_SECONDS: Final = 300.0


def keep_quiet(stop: threading.Event) -> None:
    """Look at what is new every five minutes until the process stops."""
    gc.set_threshold(*THRESHOLDS)
    while not stop.wait(EVERY_SECONDS):
        put_aside()


def put_aside() -> None:
    """Collect what is new; what is left is not walked again, and free memory is the system's."""
    gc.collect()
    gc.freeze()
    allocating.give_back()
