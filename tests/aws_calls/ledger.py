"""Counts the calls that were judged, by their origin, and keeps those that were refused until a test takes them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from tests.aws_rules import check, rules_for

CLIENTS, EMULATION, SANDBOX = "clients", "emulated AWS", "sandbox"


class Refusal(msgspec.Struct, frozen=True):
    """A call that broke a rule."""

    origin: str
    call: str
    rule: str
    code: str
    text: str

    def __str__(self) -> str:
        return f"{self.call} ({self.origin}): {self.code}: {self.text} (rule {self.rule})"


class Account(msgspec.Struct):
    """What was judged: calls by origin, calls by rule, refusals."""

    calls: dict[str, int] = {}
    rules: dict[str, int] = {}
    refusals: list[Refusal] = []
    #: Refusals that tests expected.
    expected: int = 0


class Ledger:
    """Safe for many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: Counter[str] = Counter()
        self._rules: Counter[str] = Counter()
        self._refusals: list[Refusal] = []
        self._expected = 0

    def judge(self, origin: str, service: str, operation: str, parameters: Mapping[str, Any]) -> Refusal | None:
        """Count a call; return its first problem as a refusal, None when it breaks no rule."""
        problems = check(service, operation, parameters)
        with self._lock:
            self._calls[origin] += 1
            self._rules.update(one.name for one in rules_for(service, operation))
            refusals = [Refusal(origin, one.call, one.rule, one.code, one.text) for one in problems]
            self._refusals += refusals
        return refusals[0] if refusals else None

    def repeat(self, origin: str, calls: int) -> None:
        """Count calls that equal others which were judged and accepted."""
        with self._lock:
            self._calls[origin] += calls

    def take_refusals(self) -> list[Refusal]:
        """Those since the last time."""
        with self._lock:
            taken, self._refusals = self._refusals, []
            return taken

    def expect(self, number: int) -> None:
        """Count refusals that a test expected."""
        with self._lock:
            self._expected += number

    def take(self) -> Account:
        """Everything, once."""
        with self._lock:
            taken = Account(dict(self._calls), dict(self._rules), self._refusals, self._expected)
            self._calls, self._rules, self._refusals, self._expected = Counter(), Counter(), [], 0
            return taken

    def add(self, account: Account) -> None:
        """What another process has judged."""
        with self._lock:
            self._calls.update(account.calls)
            self._rules.update(account.rules)
            self._refusals += account.refusals
            self._expected += account.expected


#: That of this process.
LEDGER: Final = Ledger()
