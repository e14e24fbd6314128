"""Where failures end: what a failed look at one object, NodePool or node class is called in a refusal."""

from __future__ import annotations

from reconciler.model.plan import INTERNAL_ERROR, Reason

MALFORMED = "Malformed"


def broken(error: Exception) -> Reason:
    """A ValueError is about the object; anything else is a bug, or a nonsense that nobody thought of."""
    if isinstance(error, ValueError):
        return Reason(MALFORMED, str(error))
    return Reason(INTERNAL_ERROR, f"{type(error).__name__}: {error}")
