"""One thing that was checked, and the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kerf.ports import Forbidden, PortError

GOOD: Final = "ok"
WRONG: Final = "wrong"
#: It does not prevent Kerf from working.
DOUBTFUL: Final = "doubtful"
#: It is not known: a permission is missing, or there was no answer.
UNCHECKED: Final = "not checked"


@dataclass(frozen=True, slots=True)
class Finding:
    """`what` was checked, `how` it is (GOOD, WRONG, DOUBTFUL or UNCHECKED), `seen` in words, and the `fix`."""

    what: str
    how: str
    seen: str = ""
    fix: str = ""


class NotAllowed(Exception):
    """The caller lacks this permission, and nothing was requested without it."""


def unchecked(what: str, reason: str) -> Finding:
    """The finding of a check that has no result."""
    return Finding(what, UNCHECKED, f"not checked: {reason}")


def asked(what: str, ask: Callable[[], Finding], right: str) -> Finding:
    """The finding of a question that needs a permission: without that `right` it is not checked."""
    try:
        return ask()
    except NotAllowed as error:
        return unchecked(what, f"needs {error}")
    except Forbidden:
        return unchecked(what, f"needs {right}")
    except PortError as error:
        return unchecked(what, str(error))
