"""Where failures end: the refusal that stands for work about one object that has failed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from kerf.model.plan import INTERNAL_ERROR, NOTHING, Plan, Reason, Refusal

T = TypeVar("T")

MALFORMED = "Malformed"


def broken(error: Exception) -> Reason:
    """A ValueError is about the object; anything else is a bug, or an invalid value that no check knows."""
    if isinstance(error, ValueError):
        return Reason(MALFORMED, str(error))
    return Reason(INTERNAL_ERROR, f"{type(error).__name__}: {error}")


def guarded(subject: str, step: Callable[[], Plan], otherwise: Plan = NOTHING, due: datetime | None = None) -> Plan:
    """The plan of a step. A step that fails becomes a refusal about its subject beside the plan `otherwise`, and the
    next reconcile is `due` then."""
    try:
        return step()
    except Exception as error:
        return otherwise + Plan(refusals=(Refusal(subject, broken(error)),), next_due=due)


class Boundary:
    """Runs work about one object at a time. A failure becomes a refusal about this object; the others are served."""

    def __init__(self) -> None:
        self._failed: dict[str, Reason] = {}

    def run(self, subject: str, work: Callable[[], T], default: T) -> T:
        """The outcome of the work, or the default if it fails. Only the first failure of a subject is kept."""
        try:
            return work()
        except Exception as error:
            self._failed.setdefault(subject, broken(error))
            return default

    @property
    def failed(self) -> frozenset[str]:
        return frozenset(self._failed)

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        return tuple(Refusal(subject, reason) for subject, reason in sorted(self._failed.items()))
