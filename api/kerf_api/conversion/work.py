"""Reading an old object field by field: a table says of every field what becomes of it.

A field that no table has is reported and never dropped in silence. Fields keep the order of the manifest, so
that the new object has this order as far as it can.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kerf_api.lint import Problem, Severity, Steps, nearest
from kerf_api.lint.problem import at, shown

from .draft import Draft, Origin

#: The hundreds of a rule's number are its severity.
_SEVERITIES: Final[Mapping[str, Severity]] = {"1": "error", "2": "warning", "3": "info"}
NO_EQUIVALENT, UNKNOWN, MALFORMED = "KERF-CONV-101", "KERF-CONV-102", "KERF-CONV-103"
NO_IMAGE, NO_PROFILE, NO_CLASS, TIED = "KERF-CONV-104", "KERF-CONV-105", "KERF-CONV-106", "KERF-CONV-107"
DROPPED, DIFFERENT = "KERF-CONV-201", "KERF-CONV-202"
REFERS, SETTING = "KERF-CONV-203", "KERF-CONV-204"
SPELLED_OUT, WRITTEN_BY_OTHERS, MOVED, RENAMED = "KERF-CONV-301", "KERF-CONV-302", "KERF-CONV-303", "KERF-CONV-304"


@dataclass(frozen=True, slots=True)
class Wish:
    """What old manifests leave to settings that are no more: the role or the instance profile of nodes."""

    role: str = ""
    instance_profile: str = ""


@dataclass(slots=True)
class Work:
    """One old object on its way to a new one.

    `kubelet` is a pool's or claim's kubelet configuration, which has to move to its class, with the place where it
    stands; `extra` a class that was written inside a Provisioner.
    """

    index: int
    old: Mapping[str, Any]
    wish: Wish
    draft: Draft = field(default_factory=Draft)
    problems: list[Problem] = field(default_factory=list)
    kubelet: tuple[Steps, dict[str, Any]] | None = None
    extra: Draft | None = None

    def tell(self, rule: str, steps: Steps, message: str, hint: str = "", value: Any = None) -> None:
        """Note a problem at a place of the old object."""
        severity = _SEVERITIES[rule.rpartition("-")[2][0]]
        self.problems.append(at(steps, rule, severity, message, hint, value))

    def origin(self, steps: Steps) -> Origin:
        """A place of the old object, for a draft."""
        return Origin(self.index, steps)

    def keep(self, to: Steps, steps: Steps, value: Any) -> None:
        """Put what stands at a place of the old object into the new one."""
        self._roads(to)
        self.draft.put(to, value, self.origin(steps))

    def add(self, to: Steps, value: Any, *places: Steps) -> None:
        """Put something into the new object that follows from these places of the old one, or from none."""
        self._roads(to)
        self.draft.put(to, value, *map(self.origin, places))

    def _roads(self, to: Steps) -> None:
        """Make the maps on the way; where the old object has a map at the same path, that is where it came from."""
        for depth in range(1, len(to)):
            road = to[:depth]
            if self.draft.get(*road) is None:
                self.draft.put(road, {}, *([self.origin(road)] if self._has_map(road) else []))

    def _has_map(self, steps: Steps) -> bool:
        value: Any = self.old
        for step in steps:
            value = value.get(step) if isinstance(value, dict) else None
        return isinstance(value, dict)


#: What is done with a field: its place in the old object and its value, which is not null.
Handler = Callable[[Work, Steps, Any], None]
Table = Mapping[str, Handler]


def read(work: Work, table: Table, base: Steps = ()) -> None:
    """Do with each field below `base` what the table says; its keys are paths from there, such as `limits.resources`.

    A null is nothing, as for the API server. A field that the table does not know is an error.
    """
    value: Any = work.old
    for step in base:
        value = value.get(step) if isinstance(value, dict) else None
    if isinstance(value, dict):
        _read(work, table, base, "", value)
    elif value is not None:
        malformed(work, base, value, "a map")


def _read(work: Work, table: Table, steps: Steps, above: str, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        path, here = f"{above}{name}", (*steps, name)
        if value is None:
            continue
        if path in table:
            table[path](work, here, value)
        elif any(known.startswith(f"{path}.") for known in table):
            if isinstance(value, dict):
                _read(work, table, here, f"{path}.", value)
            else:
                malformed(work, here, value, "a map")
        else:
            _unknown(work, table, here, above, value)


def _unknown(work: Work, table: Table, here: Steps, above: str, value: Any) -> None:
    known = {path[len(above) :].partition(".")[0] for path in table if path.startswith(above)}
    close = nearest.name(str(here[-1]), known)
    kind, version = work.old.get("kind"), str(work.old.get("apiVersion")).rpartition("/")[2]
    message = f"{kind} {version} has no field {shown(here[-1])}, so there is nothing that it could become"
    work.tell(UNKNOWN, here, message, f"did you mean {close}?" if close else "remove it", value)


def malformed(work: Work, steps: Steps, value: Any, wanted: str) -> None:
    """Report that a value has no effect."""
    work.tell(MALFORMED, steps, f"{wanted} is needed here; found {shown(value)}", "", value)


def to(*path: str) -> Handler:
    """Keep the value, at this path of the new object."""

    def keep(work: Work, steps: Steps, value: Any) -> None:
        work.keep(path, steps, value)

    return keep


def written_by_others(what: str) -> Handler:
    """Leave out fields that only the API server writes."""

    def leave_out(work: Work, steps: Steps, value: Any) -> None:
        work.tell(WRITTEN_BY_OTHERS, steps, f"{what}; removed")

    return leave_out
