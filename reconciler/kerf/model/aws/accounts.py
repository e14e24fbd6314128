"""What consolidation has promised and what came of it: an account for each command, until it has been measured.

Only memory holds them; a new leader begins with none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Gone:
    """A node that a command has ended: its NodePool, and its price in millionths of a dollar per hour."""

    pool: str
    price: int


@dataclass(frozen=True, slots=True)
class Account:
    """One command, by its id, from the first deletion on (`began`); `ended` is when all its nodes had gone.

    `promised` is in millionths of a dollar per hour, `gone` by claim; `replacements` are claims. `moved` counts the
    pods that had to leave, by the UID of their controller. A `measured` one is kept while others may share its pods.
    """

    id: str
    began: datetime
    promised: int
    gone: Mapping[str, Gone]
    replacements: tuple[str, ...]
    moved: Mapping[str, int]
    ended: datetime | None = None
    measured: bool = False

    @property
    def price(self) -> int:
        return sum(one.price for one in self.gone.values())


@dataclass(frozen=True, slots=True)
class Accounts:
    """`open` by id; `losses` are what NodePools have lost, in millionths of a dollar per hour, and since when, until
    that stands in their annotations."""

    open: Mapping[str, Account] = field(default_factory=dict)
    losses: Mapping[str, tuple[datetime, int]] = field(default_factory=dict)


NO_ACCOUNTS = Accounts()


@dataclass(frozen=True, slots=True)
class Measured:
    """What commands brought a NodePool that were measured together, in millionths of a dollar per hour; `realised` is
    negative when they cost more than they saved."""

    pool: str
    nodes: int
    promised: int
    realised: int
