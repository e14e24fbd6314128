"""docs/reference/events.md names every event that the code writes, and every one of Karpenter's."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

from kerf.disruption.forced.interruption import _KINDS
from kerf.telemetry.catalogue.listed_events import EVENTS, ListedEvent
from kerf.telemetry.catalogue.listing import OWN
from tests.sources import ROOT

ROWS = [row for rows in EVENTS.values() for row in rows]
#: Kind, reason and type of Karpenter's 1.14. Source: operations reference §3.
KARPENTERS = frozenset(
    (line.split(" ", 1)[0], line.split(" ", 1)[1].rpartition(" ")[0], line.rpartition(" ")[2])
    for line in (Path(__file__).parent / "karpenter_events.txt").read_text(encoding="utf-8").splitlines()
)
#: Which argument of a call is the reason.
REASON = {"Event": 3, "node_events": 1, "_stands": 1, "warning": 1, "normal": 1, "_event": 1}
#: In provisioning the type comes before it.
REASON_IN = {"provision.py": {"_event": 2}}
#: Functions that hand on what they are given; who calls them is looked at.
HANDS_ON = frozenset({"reason"})
#: Reasons that are worked out, by how the code spells them, and what may come of it.
WORKED_OUT = {
    "kind.event": {kind.event for kind in _KINDS.values()},
    "now.type": {"(the type of the condition)"},
    "f'Failed{verb}'": {"Failed<Action>"},
    "announcing.py why.code": {"InvalidAnnotation"},
    "provision.py why.code": {
        "NoCompatibleInstanceTypes",
        "InvalidNodePool",
        "Malformed",
        "InternalError",
        "BackOff",
    },
}


def reasons() -> Iterator[str]:
    """Of every event that is made anywhere; the rooms that are left out hand on what others have made."""
    for path in (ROOT / "reconciler").rglob("*.py"):
        if not {"cli", "kube", "sandbox"}.intersection(path.parts):
            yield from _reasons(path)
    for module, names in (("kerf.runtime.leadership.announcing", ("WAITS", "WAITS_FOR_OURS", "UNREAD")),):
        yield from (getattr(importlib.import_module(module), name) for name in names)


def _reasons(path: Path) -> Iterator[str]:
    places = REASON | REASON_IN.get(path.name, {})
    for node in ast.walk(ast.parse(path.read_text())):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in places):
            continue
        place = places[node.func.id]
        named = [keyword.value for keyword in node.keywords if keyword.arg == "reason"]
        if len(node.args) > place or named:
            yield from _values(path, named[0] if named else node.args[place])


def _values(path: Path, reason: ast.expr) -> Iterator[str]:
    text = ast.unparse(reason)
    if isinstance(reason, ast.Constant):
        yield str(reason.value)
    elif text in WORKED_OUT or f"{path.name} {text}" in WORKED_OUT:
        yield from WORKED_OUT.get(text) or WORKED_OUT[f"{path.name} {text}"]
    elif text not in HANDS_ON:
        module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        yield str(getattr(module, text))


def listed(row: ListedEvent) -> set[tuple[str, str, str]]:
    return {(kind, row.reason, row.type) for kind in row.objects.split(", ")}


def test_every_reason_in_the_code_is_listed_and_no_other() -> None:
    found = set(reasons())
    assert found == {row.reason for row in ROWS if row.here}
    assert len(found) > 40


def test_every_event_of_karpenters_is_listed_on_its_object_with_its_type() -> None:
    theirs = {key for row in ROWS if row.karpenter != OWN for key in listed(row)}
    assert theirs >= KARPENTERS
    repaired = {("NodeClaim", "NodeRepairBlocked", "Warning"), ("NodePool", "NodeRepairBlocked", "Warning")}
    assert theirs - KARPENTERS == repaired  # intended there, and attached to the Node


def test_every_event_is_compared_with_karpenters() -> None:
    for row in ROWS:
        verdict, _, why = row.karpenter.partition("; " if row.here else ": ")
        assert verdict in (("same", OWN) if row.here else ("missing", "renamed"))
        assert row.here or len(why) > 10
    assert len({(row.objects, row.reason) for row in ROWS}) == len(ROWS)
