"""What the API server lets through in a NodePool and a controller then trips over.

Karpenter checks labels, taints and requirements only when it reconciles: the write succeeds, the pool turns not Ready,
and the user notices only when nodes are missing. Those are errors here. Where it silently does something else than the
words say (a budget that applies to nothing, a number that wraps), there is a warning. A schedule that cannot be read is
an error too: it stops every voluntary disruption of the pool, which no user can intend.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import islice
from typing import Any, Final

from kerf_api import cron, durations, foreign, labels, thresholds
from kerf_api.lint import nearest
from kerf_api.lint.problem import Problem, Steps, at, shown
from kerf_api.lint.reading.reading import (
    entries,
    mapping,
    part,
    qualified_name_fault,
    texts,
    unreadable_durations,
    unreadable_quantities,
)
from kerf_api.lint.rules import requirement_rules
from kerf_api.lint.rules.requirement_rules import KindRules

_TEMPLATE: Final = ("spec", "template", "spec")
_REQUIREMENTS: Final = KindRules(
    usable=nearest.USABLE_LABELS,
    bad_key="KERF-NP-106",
    reserved_key="KERF-NP-107",
    bad_value="KERF-NP-108",
    none_known="KERF-NP-109",
    few_known="KERF-NP-110",
    some_unknown="KERF-NP-203",
    ignored_values="KERF-NP-201",
)
_THRESHOLD: Final = f"{labels.KERF}/consolidation-"
#: Schedules are tried from a fixed instant, so that the answer never depends on the day.
_SOME_DAY: Final = datetime(2024, 1, 1, tzinfo=UTC)
#: More are refused for their number, and each schedule costs a look at the calendar.
_MOST_BUDGETS: Final = 100
#: A DNS name is no longer.
_LONGEST_GROUP: Final = 253
_EMPTY_WINDOW: Final = re.compile(r"(?:0+[hms])+", re.ASCII)
#: How other schedulers name the time zone of a schedule.
_TIME_ZONES: Final = ("TZ=", "CRON_TZ=")
_LARGEST_COUNT: Final = 2**31 - 1
_LARGEST_NUMBER: Final = 2**63 - 1


def check(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """Every run-time fault of a NodePool whose defaults are filled in."""
    yield from _labels(manifest)
    yield from _thresholds(manifest)
    yield from _annotations(manifest)
    yield from _taints(manifest)
    for steps, entry in entries(manifest, *_TEMPLATE, "requirements"):
        yield from _requirement(steps, entry)
    for steps, entry in islice(entries(manifest, "spec", "disruption", "budgets"), _MOST_BUDGETS):
        yield from _budget(steps, entry)
    yield from node_class(manifest)
    yield from _replicas(part(manifest, "spec", "replicas"))
    yield from unreadable_durations(
        manifest,
        "KERF-NP-121",
        (*_TEMPLATE, "expireAfter"),
        (*_TEMPLATE, "terminationGracePeriod"),
        ("spec", "disruption", "consolidateAfter"),
    )
    yield from unreadable_quantities(manifest, "KERF-NP-122", ("spec", "limits"))


def _labels(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    place = ("spec", "template", "metadata", "labels")
    for key in mapping(manifest, *place):
        yield from requirement_rules.label_key((*place, key), key, "KERF-NP-101", "KERF-NP-102", nearest.USABLE_LABELS)


def _thresholds(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """What consolidation has to bring; it rests while that cannot be read."""
    place = ("metadata", "annotations")
    own = mapping(manifest, *place)
    for key, right in thresholds.faults(own):
        close = nearest.duration(own[key])
        hint = f"did you mean {close}?" if "duration" in right and close and close != durations.NEVER else ""
        message = (
            f"{shown(own[key])} cannot be read, so no node of the NodePool is consolidated while it is in use: {right}"
        )
        yield at(
            (*place, key), "KERF-NP-125", "error", message, hint or 'write "0s" or "0" to ask for nothing', own[key]
        )
    for key in own:
        if key.startswith(_THRESHOLD) and key not in (*thresholds.ANNOTATIONS, labels.CONSOLIDATION_PAUSE):
            close = nearest.label(key, thresholds.ANNOTATIONS)
            hint = f"did you mean {close}?" if close else f"there are {', '.join(thresholds.ANNOTATIONS)}"
            yield at(
                (*place, key), "KERF-NP-210", "warning", f"{shown(key)} has no effect: nothing reads it", hint, key
            )
    template = ("spec", "template", "metadata", "annotations")
    for key in mapping(manifest, *template):
        if key in thresholds.ANNOTATIONS:
            message = f"{key} has no effect here: Kerf reads it of the NodePool, not of its nodes"
            yield at((*template, key), "KERF-NP-210", "warning", message, "move it to metadata.annotations", key)


def _annotations(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """Annotations go to NodeClaims and Nodes as they are; no definition looks at them."""
    place = ("spec", "template", "metadata", "annotations")
    for key, value in mapping(manifest, *place).items():
        if fault := qualified_name_fault(key.lower()):
            message = f"{shown(key)} is no annotation name, so no NodeClaim can be made: {fault}"
            yield at((*place, key), "KERF-NP-208", "warning", message, value=key)
        elif key == labels.DO_NOT_DISRUPT and isinstance(value, str) and value not in ("true", "false"):
            message = f"{shown(value)} has no effect: on nodes only true protects, and there is no time for it"
            yield at((*place, key), "KERF-NP-209", "warning", message, 'write "true", or remove it', value)


def _taints(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    seen: set[tuple[str, str]] = set()
    for field in ("taints", "startupTaints"):
        for steps, taint in entries(manifest, *_TEMPLATE, field):
            key, effect, value = (taint.get(name) for name in ("key", "effect", "value"))
            if isinstance(key, str) and (fault := qualified_name_fault(key)):
                yield at((*steps, "key"), "KERF-NP-103", "error", f"{shown(key)} is no taint name: {fault}", value=key)
            if isinstance(value, str) and value and (fault := qualified_name_fault(value)):
                message = f"{shown(value)} is no taint value: {fault}"
                yield at((*steps, "value"), "KERF-NP-104", "error", message, value=value)
            if isinstance(key, str) and isinstance(effect, str):
                if (key, effect) in seen:
                    message = f"{key} with effect {effect} is there twice; taints and startupTaints count together"
                    yield at(steps, "KERF-NP-105", "error", message, "remove one of the two", taint)
                seen.add((key, effect))


def _requirement(steps: Steps, entry: Mapping[str, Any]) -> Iterator[Problem]:
    yield from requirement_rules.check(steps, entry, _REQUIREMENTS)
    if entry.get("operator") == "NotIn" and not texts(entry.get("values")):
        message, hint = (
            "NotIn without values means the same as Exists",
            "list the values that are not wanted, or write Exists",
        )
        yield at((*steps, "values"), "KERF-NP-202", "warning", message, hint)


def _budget(steps: Steps, entry: Mapping[str, Any]) -> Iterator[Problem]:
    schedule = entry.get("schedule")
    if isinstance(schedule, str):
        yield from _schedule((*steps, "schedule"), schedule)
    yield from _window(steps, entry)
    yield from _count((*steps, "nodes"), entry.get("nodes"))
    if entry.get("reasons") == []:
        message = "an empty list of reasons makes the budget apply to nothing"
        yield at((*steps, "reasons"), "KERF-NP-206", "warning", message, "remove reasons to let it apply to all")


def _window(steps: Steps, entry: Mapping[str, Any]) -> Iterator[Problem]:
    for found in unreadable_durations(entry, "KERF-NP-121", ("duration",)):
        yield at((*steps, "duration"), found.rule, "error", found.message, found.hint, found.value)
    length = entry.get("duration")
    if isinstance(length, str) and _EMPTY_WINDOW.fullmatch(length):
        message = f"{shown(length)} is a window without length: the budget never applies"
        yield at((*steps, "duration"), "KERF-NP-211", "warning", message, "write a duration such as 8h", length)


def _schedule(steps: Steps, schedule: str) -> Iterator[Problem]:
    try:
        parsed = cron.parse(schedule)
    except ValueError as problem:
        message = f"{shown(schedule)} cannot be read: {problem}"
        consequence = "with such a schedule no node of the NodePool is ever disrupted"
        close = nearest.name(schedule, cron.DESCRIPTORS) if schedule.startswith("@") else None
        hint = f"did you mean {close}? {consequence}" if close else consequence
        if schedule.startswith(_TIME_ZONES):
            message = f"{shown(schedule)} cannot be read: schedules have no time zones"
            hint = f"write the five fields alone, with the hour in UTC; {consequence}"
        yield at(steps, "KERF-NP-120", "error", message, hint, schedule)
        return
    if parsed.next_after(_SOME_DAY) is None:
        message = f"{shown(schedule)} never occurs"
        yield at(steps, "KERF-NP-204", "warning", message, "the budget will never apply", schedule)


def _count(steps: Steps, nodes: Any) -> Iterator[Problem]:
    if not isinstance(nodes, str) or not nodes.isascii() or not nodes.isdigit():
        return
    if len(nodes.lstrip("0")) > len(str(_LARGEST_NUMBER)) or int(nodes) > _LARGEST_NUMBER:
        message = f"{shown(nodes)} is too large to be read"
        yield at(steps, "KERF-NP-123", "error", message, "use 100% for no limit", nodes)
    elif int(nodes) > _LARGEST_COUNT:
        message = f"{nodes} is more than {_LARGEST_COUNT}; Karpenter keeps only 32 bits of it, which may mean 0"
        yield at(steps, "KERF-NP-205", "warning", message, "use 100% for no limit", nodes)


#: Group and kind of the node class of EKS Auto Mode, each as a set.
_AUTO_MODE: Final = ({"eks.amazonaws.com"}, {"NodeClass"})


def node_class(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """A nodeClassRef that may be misspelt: half of it is EC2NodeClass, or almost. Others are other controllers'."""
    place = (*_TEMPLATE, "nodeClassRef")
    wanted = (("group", labels.AWS_GROUP), ("kind", foreign.KIND))
    found = [(field, part(manifest, *place, field), own) for field, own in wanted]
    if all(value == own for _, value, own in found) or not any(_almost(value, own) for _, value, own in found):
        return
    wrong = [row for row in found if isinstance(row[1], str) and row[1] and row[1] != row[2]]
    for field, value, _ in wrong[:1]:  # both halves of a reference are one mistake
        given, own = (" ".join(str(row[column]) for row in wrong) for column in (1, 2))
        message = f"{shown(given)} is not served here; Kerf ignores a NodePool with another node class"
        hint = f"did you mean {own}?"
        if any(row[1] in names for row, names in zip(found, _AUTO_MODE, strict=True)):
            hint = f"write {own} for Kerf; for EKS Auto Mode group eks.amazonaws.com and kind NodeClass"
        yield at((*place, field), "KERF-NP-207", "warning", message, hint, value)


def _almost(value: Any, own: str) -> bool:
    return isinstance(value, str) and bool(get_close_matches(value[:_LONGEST_GROUP].lower(), [own.lower()], cutoff=0.9))


def _replicas(count: Any) -> Iterator[Problem]:
    # The schema has 64 bits; the scale subresource, through which the API server reads the field, has 32.
    if isinstance(count, int) and _LARGEST_COUNT < count <= _LARGEST_NUMBER:
        message = f"{count} is more than {_LARGEST_COUNT}, the most allowed"
        yield at(("spec", "replicas"), "KERF-NP-124", "error", message, value=count)
