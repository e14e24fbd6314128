"""Approval and canary of a change before nodes are replaced: annotations of users, and settings for all NodePools.

`kerf.sh/plan-first` on a NodePool, else on its EC2NodeClass, else the setting says whether changes wait for approval,
and for how long at most. `kerf.sh/approved-plan` on the NodePool names the digest of the approved plan. An
invalid value approves nothing: changes wait, without a limit of time.

`kerf.sh/canary-soak` on a NodePool, else on its EC2NodeClass, else the setting is the time for which the first replaced
node is observed. `kerf.sh/continued-plan` on the NodePool names the digest of the plan that continues without that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final

from kerf_api import durations, labels
from kerf_api.annotations import unreadable
from kerf_api.thresholds import span

#: The number of hexadecimal digits of a digest.
DIGITS: Final = 20
_DIGEST: Final = re.compile(rf"[0-9a-f]{{{DIGITS}}}", re.ASCII)


@dataclass(frozen=True, slots=True)
class PlanFirst:
    """Whether changes wait for approval, and after how long they continue without one (None: never)."""

    on: bool = False
    after: timedelta | None = None

    def __str__(self) -> str:
        """As users write it: `false`, `true`, `24h0m0s`."""
        return durations.go_text(self.after) if self.after is not None else str(self.on).lower()


#: The soak time in place of an invalid one.
DEFAULT_SOAK: Final = timedelta(minutes=10)
#: Changes need no approval.
OFF: Final = PlanFirst()
#: Changes wait until they are approved.
ON: Final = PlanFirst(on=True)


def plan_first(text: str) -> PlanFirst:
    """Read `true`, `false` or a duration. Raises ValueError with the valid forms."""
    if text in ("true", "false"):
        return ON if text == "true" else OFF
    try:
        after = durations.parse(text)
    except ValueError:
        after = timedelta(0)
    if after <= timedelta(0):
        raise ValueError("must be true, false, or the longest time that a change waits for approval, such as 24h")
    return PlanFirst(True, after)


def digest(text: str) -> str:
    """Read the digest of a plan. Raises ValueError with the valid form."""
    if not _DIGEST.fullmatch(text):
        raise ValueError(f"must be the digest of a plan as kerf plan prints it: {DIGITS} digits of 0-9 and a-f")
    return text


_READERS: Final[Mapping[str, Mapping[str, Callable[[str], Any]]]] = MappingProxyType(
    {
        "NodePool": {
            labels.PLAN_FIRST: plan_first,
            labels.APPROVED_PLAN: digest,
            labels.CANARY_SOAK: span,
            labels.CONTINUED_PLAN: digest,
        },
        "EC2NodeClass": {labels.PLAN_FIRST: plan_first, labels.CANARY_SOAK: span},
    }
)
#: The annotations that are read here, of all kinds.
ANNOTATIONS: Final = frozenset().union(*_READERS.values())


def faults(kind: str, annotations: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The annotations of an object that are invalid, with the valid forms. Values that are no text are left out."""
    return unreadable(_READERS.get(kind, {}), annotations)


def of(pool: Mapping[str, str], node_class: Mapping[str, str], default: PlanFirst) -> PlanFirst:
    """The rule for a NodePool, by its annotations and those of its EC2NodeClass; an invalid value counts as `true`."""
    text = pool.get(labels.PLAN_FIRST, node_class.get(labels.PLAN_FIRST))
    try:
        return default if text is None else plan_first(text)
    except ValueError:
        return ON


def soak_of(pool: Mapping[str, str], node_class: Mapping[str, str], default: timedelta) -> timedelta:
    """The soak time of a NodePool's canary, zero without a canary; an invalid value counts as ten minutes."""
    text = pool.get(labels.CANARY_SOAK, node_class.get(labels.CANARY_SOAK))
    try:
        return default if text is None else span(text)
    except ValueError:
        return DEFAULT_SOAK
