"""The numbers of calls that were judged: of one run of pytest, and of all runs of `make test`.

Where KERF_AWS_CALLS names a folder, each run writes its numbers there.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from .ledger import Account

VARIABLE: Final = "KERF_AWS_CALLS"


def begin(folder: Path, *, anew: bool = True) -> None:
    """This process and its children write their numbers to this folder, which is emptied if `anew`."""
    if anew:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    os.environ[VARIABLE] = str(folder.resolve())


def write(folder: Path, account: Account) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{os.getpid()}.json").write_bytes(msgspec.json.encode(account))


def read(folder: Path) -> list[Account]:
    return [msgspec.json.decode(path.read_bytes(), type=Account) for path in sorted(folder.glob("*.json"))]


def total(accounts: Iterable[Account]) -> Account:
    """The sum of several accounts."""
    calls, rules, found = Counter[str](), Counter[str](), Account()
    for one in accounts:
        calls.update(one.calls)
        rules.update(one.rules)
        found.refusals = [*found.refusals, *one.refusals]
        found.expected += one.expected
    found.calls, found.rules = dict(calls), dict(rules)
    return found


def line(account: Account, known: int) -> str:
    """One line: how many calls were judged, by how many of the `known` rules, and how many were refused."""
    parts = ", ".join(f"{name} {number:,}" for name, number in sorted(account.calls.items()))
    return (
        f"{sum(account.calls.values()):,} calls of AWS judged ({parts}) by the service models and by "
        f"{len(account.rules)} of {known} rules; refused: {len(account.refusals)}, "
        f"{account.expected} more as tests expect"
    )
