"""The ID of the look at everything that a line, an event or a failure belongs to: Karpenter's `reconcileID`.

What was decided in one look bears its ID wherever it shows: in the lines about the decision, in those about what came
of its actions, though that is later and in other threads, in the annotation of events, and in the metric of the latest
failures.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from uuid import NAMESPACE_OID, uuid5

_NOW: ContextVar[str] = ContextVar("reconcile_id", default="")


def reconcile_id() -> str:
    """Of the look that this thread is about; empty outside of any."""
    return _NOW.get()


@contextmanager
def reconciling(id_: str) -> Iterator[None]:
    """Within this block lines and events belong to that reconcile; to the same as before when there is none."""
    if not id_:
        yield
        return
    token = _NOW.set(id_)
    try:
        yield
    finally:
        _NOW.reset(token)


def identities(process: str) -> Iterator[str]:
    """One ID after the other, other ones for each process; the same again for the same, as the sandbox wants it."""
    return (str(uuid5(NAMESPACE_OID, f"{process}/{number}")) for number in count())
