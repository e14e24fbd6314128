"""Where failures end: what a failed look at one object, NodePool or node class is called in a refusal."""

from __future__ import annotations

from reconciler.model.plan import Reason

#: The object is not as it should be; or it may be, and we failed at it.
MALFORMED, INTERNAL = "Malformed", "InternalError"


def broken(error: Exception) -> Reason:
    """A ValueError is about the object; anything else is a bug, or a nonsense that nobody thought of."""
    if isinstance(error, ValueError):
        return Reason(MALFORMED, str(error))
    return Reason(INTERNAL, f"{type(error).__name__}: {error}")
