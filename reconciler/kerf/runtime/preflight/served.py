"""Whether the definitions that the API server serves have the fields that Kerf reads and writes.

Definitions of an older release drop newer fields without an error. Kerf's own definitions (`kerf_api.crds`) are
compared with the API server's OpenAPI document, which everyone who is authenticated may read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, Final, Protocol

from kerf.model import kinds
from kerf.model.kinds import Kind
from kerf.ports import PortError
from kerf.runtime.preflight.findings import DOUBTFUL, GOOD, WRONG, Finding, unchecked
from kerf.telemetry.log.logs import Logger
from kerf_api import crds
from kerf_api.texts import shortened

CHECKED: Final = (kinds.NODE_POOL, kinds.NODE_CLAIM, kinds.NODE_CLASS)
_FIX: Final = "helm upgrade kerf-crd charts/kerf-crd: CRDs of an older release drop newer fields without an error"
#: Fields of a list, or of a map with any key.
_LIST, _MAP = "[]", ".*"
#: So many fields are named.
_NAMED: Final = 6


class Asks(Protocol):
    """Of the Kubernetes client what is needed."""

    def request(self, method: str, path: str, body: Any = None) -> Any: ...


def look(kube: Asks) -> Iterator[Finding]:
    """One finding for each kind; none for a kind that is not served."""
    for version, checked in groupby(CHECKED, key=lambda kind: kind.api_version):
        try:
            document, problem = kube.request("GET", f"/openapi/v3/apis/{version}"), ""
        except PortError as error:
            document, problem = {}, str(error)
        for kind in checked:
            yield from _kind(kind, document, problem)


def _kind(kind: Kind, document: Any, problem: str) -> Iterator[Finding]:
    what = f"definition of {kind.name}"
    if problem:
        yield unchecked(what, f"/openapi/v3 cannot be read: {problem}")
        return
    try:
        schema = _schema(document, kind)
        found = None if schema is None else _compared(what, kind, schema)
    except (AttributeError, TypeError) as error:  # a document of another shape: no reason to stop a controller
        found = unchecked(what, f"/openapi/v3 is not understood: {error}")
    if found is not None:
        yield found


def report(kube: Asks, log: Logger) -> None:
    """The same at the start of the controller: a line for each definition that lacks something."""
    for finding in look(kube):
        if finding.how != GOOD:
            log.info("a definition is older than Kerf", definition=finding.what, seen=finding.seen, fix=finding.fix)


def _compared(what: str, kind: Kind, schema: Mapping[str, Any]) -> Finding:
    served, own = dict(_fields(schema)), dict(_fields(crds.schema(kind.name)))
    lacking = [path for path in own if path not in served]
    status = [path for path in lacking if path.startswith("status.")]
    spec = [path for path in lacking if path.startswith("spec.")]
    said = []
    if status:
        said.append(f"no {_some(status)}: Kerf does without")
    if spec:
        said.append(f"no {_some(spec)}: the API server drops them from what is applied")
    for path, row in own.items():
        if path in served and (missing := _values(row) - _values(served[path])) and _values(served[path]):
            said.append(f"{path} cannot be {' or '.join(sorted(missing))}")
    if not said:
        return Finding(what, GOOD)
    return Finding(what, WRONG if spec else DOUBTFUL, "; ".join(said), _FIX)


def _values(row: Mapping[str, Any]) -> set[str]:
    """Of an enumeration."""
    return {str(value) for value in row.get("enum") or ()}


def _some(paths: list[str]) -> str:
    """The outermost fields: those below one that is missing go without saying."""
    outer = [path for path in paths if not any(path.startswith((f"{one}.", f"{one}{_LIST}")) for one in paths)]
    return shortened(outer, _NAMED)


# --- schemas ------------------------------------------------------------------------------------------------------
def _schema(document: Mapping[str, Any], kind: Kind) -> Mapping[str, Any] | None:
    """The schema of a kind in an OpenAPI document of its group and version."""
    group, _, version = kind.api_version.partition("/")
    wanted = {"group": group, "version": version, "kind": kind.name}
    rows: Mapping[str, Mapping[str, Any]] = document.get("components", {}).get("schemas", {})
    for row in rows.values():
        if row.get("x-kubernetes-group-version-kind") == [wanted]:
            return row
    return None


def _fields(schema: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every field by its path."""
    for name, row in (schema.get("properties") or {}).items():
        path = f"{above}.{name}" if above else name
        yield path, row
        yield from _fields(row, path)
    if isinstance(schema.get("items"), Mapping):
        yield from _fields(schema["items"], f"{above}{_LIST}")
    if isinstance(schema.get("additionalProperties"), Mapping):
        yield from _fields(schema["additionalProperties"], f"{above}{_MAP}")
