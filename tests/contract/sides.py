"""Which side of a port a contract case tries: the sandbox, the real thing, or both; and what only the real one covers.

Every case either asks for a fixture that is parametrised over both sides, or carries `only_real("why")`. The run ends
with the list of the latter, so that nobody takes the sandbox's word for something it does not know.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

#: Fixtures that give a case to both sides in turn.
BOTH_SIDES = frozenset({"cluster", "account", "clock"})
MARKER = "only_real"


def reasons(items: Iterable[pytest.Item]) -> dict[str, str]:
    """Why each case that only the real side gets has no twin, by file and name. Raises UsageError without a reason."""
    found: dict[str, str] = {}
    for item in items:
        mark = item.get_closest_marker(MARKER)
        if mark is not None:
            found[_name(item)] = str(mark.args[0])
        elif not BOTH_SIDES & set(getattr(item, "fixturenames", ())):
            raise pytest.UsageError(f"{item.nodeid} is tried on one side only: say why with pytest.mark.{MARKER}")
    return found


def on_both(items: Iterable[pytest.Item]) -> int:
    """How many different cases both sides get."""
    return len({_name(item) for item in items if item.get_closest_marker(MARKER) is None})


def report(without_twin: dict[str, str], both: int) -> list[str]:
    """The list, by reason."""
    lines = [f"{both} cases on both sides; {len(without_twin)} that only the real side covers:"]
    for reason in sorted(set(without_twin.values())):
        names = sorted(name for name, why in without_twin.items() if why == reason)
        lines += [f"  {reason}:", *(f"    {name}" for name in names)]
    return lines


def _name(item: pytest.Item) -> str:
    return f"{item.path.name}::{getattr(item, 'originalname', item.name)}"
