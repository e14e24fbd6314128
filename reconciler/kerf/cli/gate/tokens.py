"""Reviewed tokens, kept for seconds. Only their hashes are kept.

Tokens of users who may look have tables of their own, so that no flood of other tokens pushes them out, valid or not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kerf.cli.gate.claims import Identity
from kerf.cli.gate.recent import Recent

#: Seconds since the user of a token was permitted to look in which its reviews are not limited.
TRUSTED_SECONDS: Final = 3600.0
#: Tokens of each table.
MOST_TOKENS: Final = 1024


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The user of a token, None for a wrong one, and the time of the review."""

    who: Identity | None
    asked: float


def digest(token: str) -> bytes:
    """The key of a token."""
    return hashlib.sha256(token.encode()).digest()


class Tokens:
    """Tokens by `digest`. Belongs to any thread."""

    def __init__(self, seconds: float, now: Callable[[], float]) -> None:
        self._trusted: Final = Recent[bytes, bool](TRUSTED_SECONDS, MOST_TOKENS, now)
        self._viewers: Final = Recent[bytes, Reviewed](seconds, MOST_TOKENS, now)
        self._others: Final = Recent[bytes, Reviewed](seconds, MOST_TOKENS, now)

    def __len__(self) -> int:
        return len(self._viewers) + len(self._others)

    def get(self, key: bytes) -> Reviewed | None:
        """The kept review; None without one."""
        return self._viewers.get(key) or self._others.get(key)

    def trusted(self, key: bytes) -> bool:
        """Whether reviews of this token are not limited."""
        return bool(self._trusted.get(key))

    def put(self, key: bytes, found: Reviewed) -> None:
        """Keep a review. A token that has become wrong is no longer trusted."""
        if found.who is not None and self.trusted(key):
            self._viewers.put(key, found, found.asked)
            return
        self._distrust(key)
        self._others.put(key, found, found.asked)

    def settle(self, key: bytes, may_look: bool) -> None:
        """Trust a token whose user may look, and no other one."""
        found = self.get(key)
        if may_look:
            self._trusted.put(key, True)
            self._others.drop(key)
        else:
            self._distrust(key)
        if found is not None:
            (self._viewers if may_look else self._others).put(key, found, found.asked)

    def _distrust(self, key: bytes) -> None:
        self._trusted.drop(key)
        self._viewers.drop(key)
