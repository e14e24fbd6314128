"""SCHEDULER_CONFIG: a YAML or JSON document with the default spread constraints, checked as a whole.

Every mistake is named with its place in the document. What the kube-scheduler's own configuration may hold beside
`podTopologySpread.defaultConstraints` is not mirrored, and therefore refused. Source: scheduling reference §5.9.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from kerf.model.kubernetes.objects import TopologySpreadConstraint
from kerf.runtime.settings.readers import SeveralProblems
from kerf_api.lint.reading.reading import qualified_name_fault
from kerf_api.v1.meta import decode

_ROOT, _SPREAD = "podTopologySpread", "podTopologySpread.defaultConstraints"
_MODES, _POLICIES = ("DoNotSchedule", "ScheduleAnyway"), ("Honor", "Ignore")
_FOUND = "leave it out, it follows from what a pod belongs to"
#: What a constraint must hold, and what it may.
_NEEDED = ("maxSkew", "topologyKey", "whenUnsatisfiable")
_KNOWN = (*_NEEDED, "minDomains", "nodeAffinityPolicy", "nodeTaintsPolicy")
_HIGHEST = 2**31 - 1


def read(text: str) -> tuple[TopologySpreadConstraint, ...]:
    """The default constraints of a document; an empty one has none. Raises SeveralProblems."""
    try:
        document = YAML(typ="safe", pure=True).load(text)
    except YAMLError as error:
        raise SeveralProblems([_unreadable(error)]) from error
    if document is None:
        return ()
    problems = list(_problems(document))
    if problems:
        raise SeveralProblems(problems)
    rows = (document.get(_ROOT) or {}).get("defaultConstraints") or ()
    return tuple(decode(TopologySpreadConstraint, {k: v for k, v in row.items() if v is not None}) for row in rows)


def _unreadable(error: YAMLError) -> str:
    mark = error.problem_mark if isinstance(error, MarkedYAMLError) else None
    place = f"line {mark.line + 1}, column {mark.column + 1}" if mark is not None else "the document"
    return f"{place}: cannot be read as YAML or JSON: {getattr(error, 'problem', None) or error}"


def _problems(document: Any) -> Iterator[str]:
    yield from _fields("the document", "", document, (_ROOT,))
    spread = document.get(_ROOT) if isinstance(document, Mapping) else None
    if spread is None:
        return
    yield from _fields(_ROOT, f"{_ROOT}.", spread, ("defaultConstraints",))
    rows = spread.get("defaultConstraints") if isinstance(spread, Mapping) else None
    if rows is None:
        return
    if not isinstance(rows, list):
        yield f"{_SPREAD}: must be a list of constraints"
        return
    seen: dict[tuple[str, str], int] = {}
    for number, row in enumerate(rows):
        place = f"{_SPREAD}[{number}]"
        found = list(_of_constraint(place, row))
        yield from found
        if not found:
            first = seen.setdefault((row["topologyKey"], row["whenUnsatisfiable"]), number)
            if first != number:
                yield f"{place}: has the topologyKey and whenUnsatisfiable of {_SPREAD}[{first}]; leave one out"


def _fields(name: str, prefix: str, value: Any, known: Sequence[str]) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{name}: must be a map with {', '.join(known)}"
        return
    for key in value:
        if key not in known:
            yield f"{prefix}{key}: no such field; known fields: {', '.join(known)}"


def _of_constraint(place: str, row: Any) -> Iterator[str]:
    if not isinstance(row, Mapping):
        yield f"{place}: must be a map with {', '.join(_NEEDED)}"
        return
    for key in row:
        if key in ("labelSelector", "matchLabelKeys"):
            yield f"{place}.{key}: {_FOUND}"
        elif key not in _KNOWN:
            yield f"{place}.{key}: no such field; known fields: {', '.join(_KNOWN)}"
    yield from _amount(f"{place}.maxSkew", row.get("maxSkew"))
    if row.get("minDomains") is not None:
        yield from _amount(f"{place}.minDomains", row["minDomains"])
    key = row.get("topologyKey")
    if not isinstance(key, str) or not key:
        yield f"{place}.topologyKey: must be the key of a node label, such as topology.kubernetes.io/zone"
    elif fault := qualified_name_fault(key):
        yield f"{place}.topologyKey: {key!r} is no label key: {fault}"
    for name, allowed in (("nodeAffinityPolicy", _POLICIES), ("nodeTaintsPolicy", _POLICIES)):
        if row.get(name) is not None:
            yield from _choice(f"{place}.{name}", row[name], allowed)
    yield from _choice(f"{place}.whenUnsatisfiable", row.get("whenUnsatisfiable"), _MODES)


def _amount(place: str, value: Any) -> Iterator[str]:
    if type(value) is not int or not 0 < value <= _HIGHEST:
        yield f"{place}: must be a whole number of at least 1, not {_said(value)}"


def _choice(place: str, value: Any, allowed: Sequence[str]) -> Iterator[str]:
    if value not in allowed:
        yield f"{place}: must be {' or '.join(allowed)}, not {_said(value)}"


def _said(value: Any) -> str:
    return "absent" if value is None else repr(value)
