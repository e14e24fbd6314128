"""NodePools beside the EC2NodeClasses that they name: a pair may leave no instance type though each is valid.

Only that is reported which holds for every instance type: operating system, the architecture of Windows, capacity
reservations. A pair whose EC2NodeClass is in other files cannot be judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, Final

from kerf_api import labels
from kerf_api.defaulting import default
from kerf_api.lint.advice.requirement_advice import Row, rows_of
from kerf_api.lint.problem import Found, Problem, at
from kerf_api.lint.reading.reading import entries, is_kind, part
from kerf_api.requirements import Requirement, Requirements
from kerf_api.v1.ec2nodeclass import ALIAS_FAMILIES

_REF: Final = ("spec", "template", "spec", "nodeClassRef")
_RESERVATIONS: Final = "capacityReservationSelectorTerms"
_FAMILIES: Final = frozenset(("Custom", *ALIAS_FAMILIES.values()))


def check(manifests: Sequence[Mapping[str, Any]]) -> Found:
    """The problems of NodePools with their EC2NodeClasses, and the reverse."""
    classes = _classes(manifests)
    users: dict[str, list[tuple[str, Requirement]]] = {}
    for index, pool in enumerate(manifests):
        if not is_kind(pool, "NodePool") or part(pool, *_REF, "kind") != "EC2NodeClass":
            continue
        name, rows = str(part(pool, *_REF, "name")), rows_of("NodePool", default(dict(pool)))
        kinds = Requirements(row.wanted for row in rows).allowed(labels.CAPACITY_TYPE)
        users.setdefault(name, []).append((str(part(pool, "metadata", "name")), kinds))
        if name in classes:
            yield from ((index, problem) for problem in _of_pair(rows, name, classes[name][1]))
    for name, (index, node_class) in classes.items():
        yield from ((index, problem) for problem in _unused(node_class, users.get(name, ())))


def _classes(manifests: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, Mapping[str, Any]]]:
    """The EC2NodeClasses by name, with their indexes; of two with one name it is not known which one applies."""
    found: dict[str, list[tuple[int, Mapping[str, Any]]]] = {}
    for index, manifest in enumerate(manifests):
        if is_kind(manifest, "EC2NodeClass"):
            found.setdefault(str(part(manifest, "metadata", "name")), []).append((index, manifest))
    return {name: same[0] for name, same in found.items() if len(same) == 1}


def _family(node_class: Mapping[str, Any]) -> str:
    """The AMI family; empty where it cannot be read, such as in a template."""
    own = part(node_class, "spec", "amiFamily")
    if own is not None:
        return own if isinstance(own, str) and own in _FAMILIES else ""
    given = [term["alias"] for _, term in entries(node_class, "spec", "amiSelectorTerms") if term.get("alias")]
    if not given:
        return "Custom"
    return ALIAS_FAMILIES.get(given[0].split("@", 1)[0], "") if isinstance(given[0], str) else ""


def _of_pair(rows: Sequence[Row], name: str, node_class: Mapping[str, Any]) -> Iterator[Problem]:
    family, wanted = _family(node_class), Requirements(row.wanted for row in rows)
    windows = family.startswith("Windows")
    if family:
        own, other = ("windows", "linux") if windows else ("linux", "windows")
        if _only(wanted, labels.OS, {own}, {other}):
            hint = f"name an EC2NodeClass with images for {other}, or allow {own}"
            yield _nothing(rows, labels.OS, f"EC2NodeClass {name} ({family}) has images for {own} only", hint)
    if windows and _only(wanted, labels.ARCH, {"amd64"}, {"arm64"}):
        hint = "allow amd64, or name an EC2NodeClass with images for Linux"
        yield _nothing(rows, labels.ARCH, f"EC2NodeClass {name} ({family}) has images for amd64 only", hint)
    terms = part(node_class, "spec", _RESERVATIONS)
    bought = {labels.ON_DEMAND, labels.SPOT}
    if (terms is None or terms == []) and _only(wanted, labels.CAPACITY_TYPE, bought, {labels.RESERVED}):
        hint = f"add spec.{_RESERVATIONS} to the EC2NodeClass, or allow on-demand"
        yield _nothing(rows, labels.CAPACITY_TYPE, f"EC2NodeClass {name} selects no capacity reservation", hint)


def _only(wanted: Requirements, key: str, there: Set[str], absent: Set[str]) -> bool:
    """Whether the requirements allow a value that the EC2NodeClass excludes, and none that it has."""
    row = wanted.allowed(key)
    return any(map(row.has, absent)) and not any(map(row.has, there))


def _nothing(rows: Sequence[Row], key: str, cause: str, hint: str) -> Problem:
    row = next(row for row in rows if row.wanted.key == key)
    message = f"the NodePool launches no node: {cause}"
    return at(row.steps, "KERF-SET-317", "warning", message, hint)


def _unused(node_class: Mapping[str, Any], users: Sequence[tuple[str, Requirement]]) -> Iterator[Problem]:
    """Capacity reservations that no NodePool of the EC2NodeClass may use."""
    if not part(node_class, "spec", _RESERVATIONS) or not users:
        return
    if not any(kinds.has(labels.RESERVED) for _, kinds in users):
        pools = f"NodePool {users[0][0]} excludes" if len(users) == 1 else f"{len(users)} NodePools exclude"
        message = f"no instance is launched into these capacity reservations: {pools} the capacity type reserved"
        hint = f"add reserved to the values of {labels.CAPACITY_TYPE} in a NodePool"
        yield at(("spec", _RESERVATIONS), "KERF-SET-318", "warning", message, hint)
