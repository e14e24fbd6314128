"""The corpus: what is put to everything that judges manifests, so that all of it must judge alike.

`creations` are the rows of the table, one case per value; `changes` are objects that are written in place of another:
some by hand, with what the table says of them, and one made of every row. Manifests are as JSON can hold them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from kerf_api.lint import Problem, validate
from kerf_api.lint.rulebook.paths import long_path

from .manifests import BASES, changed, placed
from .table import ACCEPTED, REFUSED
from .table.explained import EXPLAINED
from .table.rows import Row


@dataclass(frozen=True, slots=True)
class Case:
    """A manifest, how a report calls it, and `old`, the object that it is to replace (None for a creation).

    `rule` is the one that refuses it and `blamed` the place in full; an empty rule: it is accepted; None: the table
    says nothing of it, and it is only to be judged alike by all.
    """

    kind: str
    label: str
    manifest: dict[str, Any]
    old: dict[str, Any] | None = None
    rule: str | None = None
    blamed: str = ""

    def errors(self) -> tuple[Problem, ...]:
        """Why `validate` refuses it; empty when it accepts it."""
        return tuple(problem for problem in validate(self.manifest, self.old) if problem.severity == "error")


_LONGEST_VALUE: Final = 70
#: Kind, field, what stands there before and after, and for refusals the rule and the place that is blamed.
_CHANGES: Final[tuple[tuple[str, str, Any, Any, str, str], ...]] = (
    ("NodePool", "spec.weight", 1, 2, "", ""),
    ("NodePool", "T.nodeClassRef.name", "default", "other", "", ""),
    ("NodePool", "T.nodeClassRef.group", "karpenter.k8s.aws", "example.com", "KERF-NP-012", "T.nodeClassRef.group"),
    ("NodePool", "T.nodeClassRef.kind", "EC2NodeClass", "OtherClass", "KERF-NP-013", "T.nodeClassRef.kind"),
    ("NodePool", "spec.replicas", None, 3, "KERF-NP-001", "spec.replicas"),
    ("NodePool", "spec.replicas", 3, None, "KERF-NP-001", "spec.replicas"),
    ("NodePool", "spec.replicas", 3, 4, "", ""),
    ("NodeClaim", "spec.terminationGracePeriod", "1h", "2h", "KERF-NC-001", "spec"),
    ("NodeClaim", "spec.expireAfter", "720h", "720h", "", ""),
    ("NodeClaim", "spec.expireAfter", None, "720h", "", ""),
    ("NodeClaim", "metadata.labels", {"a": "b"}, {"a": "c"}, "", ""),
    ("EC2NodeClass", "spec.role", "one", "two", "", ""),
    ("EC2NodeClass", "spec.tags", {"a": "b"}, {"a": "c"}, "", ""),
    ("NodeOverlay", "spec.priceAdjustment", "-10%", "+0.5", "", ""),
    ("NodeOverlay", "spec.capacity", {"x": 1}, {"y": 1}, "", ""),
    ("CapacityBuffer", "spec.scalableRef.name", "web", "shop", "", ""),
    ("CapacityBuffer", "spec.percentage", 10, None, "", ""),
)


def creations() -> list[Case]:
    """The base manifests themselves, and every value of every row."""
    bases = [Case(kind, f"{kind} as it is", manifest, rule="") for kind, manifest in BASES.items()]
    return [*bases, *(_created(row, value) for row in (*ACCEPTED, *REFUSED) for value in row.values)]


def changes() -> list[Case]:
    """Changes by hand; of every row the base manifest changed to its first value; and faults that were there before."""
    by_hand = [_changed(*change) for change in _CHANGES]
    rows = [row for row in (*ACCEPTED, *REFUSED) if long_path(row.path).startswith("spec")]
    return [*by_hand, *(_from_base(row) for row in rows), *_kept()]


def _created(row: Row, value: Any) -> Case:
    manifest = _as_json(changed(row.kind, row.path, value))
    blamed = long_path(row.blamed or row.path) if row.rule else ""
    return Case(row.kind, f"{row.kind} {row.path}={_shown(value)}", manifest, rule=row.rule, blamed=blamed)


def _changed(kind: str, path: str, before: Any, after: Any, rule: str, blamed: str) -> Case:
    old, new = _as_json(changed(kind, path, before)), _as_json(changed(kind, path, after))
    return Case(kind, f"{kind} {path}: {before!r} to {after!r}", new, old, rule, long_path(blamed))


def _from_base(row: Row) -> Case:
    """Of it the table says nothing: what a row accepts may still be a change that is not allowed."""
    manifest = _as_json(changed(row.kind, row.path, row.values[0]))
    return Case(row.kind, f"{row.kind}, changed: {row.path}={_shown(row.values[0])}", manifest, BASES[row.kind])


def _kept() -> Iterator[Case]:
    """Objects with a fault that the bare API server accepts, and a change elsewhere: nobody may stand in its way."""
    for row in REFUSED:
        if row.rule in EXPLAINED:
            old = _as_json(changed(row.kind, row.path, row.values[0]))
            new = placed(old, "metadata.annotations", {"example.com/touched": "yes"})
            yield Case(row.kind, f"{row.kind}, as before: {row.path}={_shown(row.values[0])}", new, old, rule="")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}… ({len(text)} characters)"


def _as_json(manifest: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(manifest))
    return found
