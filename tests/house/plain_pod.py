"""Which files of the scheduling room a pod without wishes passes through on its way to a new node."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

from kerf import scheduling
from tests.unit.scheduling.worlds import pod, pool, solved


def files_entered() -> list[str]:
    """The files whose functions run, by their paths below the room, in the order in which they are first entered."""
    room, entered = Path(scheduling.__path__[0]), dict[str, None]()

    def note(frame: FrameType, event: str, argument: object) -> None:
        file = Path(frame.f_code.co_filename)
        if event == "call" and file.is_relative_to(room) and not frame.f_code.co_name.startswith("<"):
            entered[file.relative_to(room).as_posix()] = None

    sys.setprofile(note)
    try:
        answer = solved(pool("default"), pod("plain"))
    finally:
        sys.setprofile(None)
    if len(answer.new_nodes) != 1:
        raise AssertionError("a plain pod gets a new node")
    return list(entered)
