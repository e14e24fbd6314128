"""The label algebra: what a NodePool, a pod or an instance type demands of a label, and how demands combine.

A requirement is a set of label values: a finite set (In, DoesNotExist) or the complement of one (NotIn, Exists),
perhaps with inclusive integer bounds (Gt, Gte, Lt, Lte become bounds). Several requirements of one key are their
intersection. All values here are immutable. Source: API reference, "Requirement semantics".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import TypeVar, overload

from kerf_api import labels

IN, NOT_IN, EXISTS, DOES_NOT_EXIST = "In", "NotIn", "Exists", "DoesNotExist"
GT, GTE, LT, LTE = "Gt", "Gte", "Lt", "Lte"
OPERATORS = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST, GT, LT, GTE, LTE)
_D = TypeVar("_D")
_MAX_INT = 2**63 - 1
_ABSENCE = (NOT_IN, DOES_NOT_EXIST)


@dataclass(frozen=True, slots=True)
class Requirement:
    """One key's allowed values. Build it with `requirement(...)`, which normalises key and operator."""

    key: str
    complement: bool
    values: frozenset[str] = frozenset()
    gte: int | None = None
    lte: int | None = None
    min_values: int | None = None

    @property
    def operator(self) -> str:
        """The operator that describes the set; a bound reads as Exists."""
        if self.complement:
            return NOT_IN if self.values else EXISTS
        return IN if self.values else DOES_NOT_EXIST

    def has(self, value: str) -> bool:
        """Whether a label with this value satisfies the requirement."""
        return (value in self.values) != self.complement and self._within(value)

    def _within(self, value: str) -> bool:
        if self.gte is None and self.lte is None:
            return True
        number = _integer(value)
        return (
            number is not None and (self.gte is None or number >= self.gte) and (self.lte is None or number <= self.lte)
        )

    def intersection(self, other: Requirement) -> Requirement:
        """The requirement that both together make; an impossible one is DoesNotExist."""
        low, high = _tighter(self.gte, other.gte, max), _tighter(self.lte, other.lte, min)
        least = _tighter(self.min_values, other.min_values, max)
        if low is not None and high is not None and low > high:
            return Requirement(self.key, False, min_values=least)
        complement = self.complement and other.complement
        bounded = Requirement(self.key, True, gte=low, lte=high)
        kept = frozenset(v for v in _combine(self, other) if bounded.has(v))
        if not complement:
            low = high = None
        return Requirement(self.key, complement, kept, low, high, least)

    def intersects(self, other: Requirement) -> bool:
        """Whether some value satisfies both (without building the intersection of two complements)."""
        if self.complement and other.complement:
            low, high = _tighter(self.gte, other.gte, max), _tighter(self.lte, other.lte, min)
            return low is None or high is None or low <= high
        small, large = (self, other) if not self.complement else (other, self)
        return any(large.has(v) and small._within(v) for v in small.values)

    def meets(self, other: Requirement) -> bool:
        """Whether a node can satisfy both: by a value, or, where both accept that, without the label."""
        return self.intersects(other) or (self.accepts_absence and other.accepts_absence)

    @property
    def accepts_absence(self) -> bool:
        """Whether a node without the label satisfies the requirement: with a bound it never does."""
        return self.operator in _ABSENCE and self.gte is None and self.lte is None

    @property
    def labels_a_node(self) -> bool:
        """Whether Kerf can give a new node a label that satisfies the requirement."""
        return self.any_value() is not None if self.complement else any(map(labels.is_label_value, self.values))

    def any_value(self) -> str | None:
        """A value that satisfies the requirement: the least listed one, or the least integer not excluded.

        Label values are preferred among those listed. An integer is never negative: a label value has no sign.
        """
        if not self.complement:
            least = min(self.values, default=None)
            if least is None or labels.is_label_value(least):
                return least
            return min(filter(labels.is_label_value, self.values), default=least)
        number = max(self.gte or 0, 0)
        while str(number) in self.values:
            number += 1
        return None if self.lte is not None and number > self.lte else str(number)

    def entries(self) -> list[dict[str, object]]:
        """As manifest entries (two when both bounds are set), values sorted.

        Bounds are written as Gt and Lt, which every release of the API knows (Gte and Lte came with Karpenter 1.9). A
        bound that every integer of a label is within is left out: a label's value has no sign, and 64 bits.
        """
        rows: list[dict[str, object]] = []
        if self.gte is not None and self.gte > 0:
            rows.append({"key": self.key, "operator": GT, "values": [str(self.gte - 1)]})
        if self.lte is not None and self.lte < _MAX_INT:
            rows.append({"key": self.key, "operator": LT, "values": [str(self.lte + 1)]})
        if self.values and rows:
            rows.append({"key": self.key, "operator": NOT_IN, "values": sorted(self.values)})
        if not rows:
            rows.append({"key": self.key, "operator": self.operator})
            if self.values:
                rows[0]["values"] = sorted(self.values)
        if self.min_values is not None:
            for row in rows:
                row["minValues"] = self.min_values
        return rows

    def __str__(self) -> str:
        shown = sorted(self.values)[:5]
        more = f" and {len(self.values) - 5} others" if len(self.values) > 5 else ""
        text = f"{self.key} {self.operator}" + (f" [{' '.join(shown)}{more}]" if shown else "")
        text += f" >={self.gte}" if self.gte is not None else ""
        text += f" <={self.lte}" if self.lte is not None else ""
        return text + (f" minValues {self.min_values}" if self.min_values is not None else "")


def requirement(key: str, operator: str, values: Iterable[str] = (), min_values: int | None = None) -> Requirement:
    """A requirement from a manifest entry, its key in the current spelling.

    Raises ValueError for an unknown operator and for a bound that is not one integer.
    """
    key, listed = labels.normalise(key), tuple(values)
    if operator in (IN, DOES_NOT_EXIST):
        return Requirement(key, False, frozenset(listed) if operator == IN else frozenset(), min_values=min_values)
    if operator in (NOT_IN, EXISTS):
        return Requirement(key, True, frozenset(listed) if operator == NOT_IN else frozenset(), min_values=min_values)
    if operator not in (GT, GTE, LT, LTE):
        raise ValueError(f"{operator!r} is not an operator (one of {', '.join(OPERATORS)})")
    bound = _integer(listed[0]) if len(listed) == 1 else None
    if bound is None:
        raise ValueError(f"{key} {operator} needs exactly one integer, not {list(listed)}")
    if operator == GT and bound >= _MAX_INT:
        return Requirement(key, False)
    low = bound + 1 if operator == GT else bound if operator == GTE else None
    high = bound - 1 if operator == LT else bound if operator == LTE else None
    return Requirement(key, True, gte=low, lte=high, min_values=min_values)


class Requirements(Mapping[str, Requirement]):
    """One requirement per key; immutable. A key that is absent is unconstrained."""

    __slots__ = ("_by_key", "_hash")

    def __init__(self, rows: Iterable[Requirement] = ()) -> None:
        by_key: dict[str, Requirement] = {}
        for row in rows:
            known = by_key.get(row.key)
            by_key[row.key] = row if known is None else known.intersection(row)
        self._by_key = by_key
        self._hash: int | None = None

    @classmethod
    def of_labels(cls, pairs: Mapping[str, str]) -> Requirements:
        """Every pair as `key In [value]`."""
        return cls(requirement(key, IN, (value,)) for key, value in pairs.items())

    def __getitem__(self, key: str) -> Requirement:
        return self._by_key[key]

    @overload
    def get(self, key: str, /) -> Requirement | None: ...

    @overload
    def get(self, key: str, /, default: Requirement | _D) -> Requirement | _D: ...

    def get(self, key: str, /, default: Requirement | _D | None = None) -> Requirement | _D | None:
        return self._by_key.get(key, default)  # those of Mapping catch an exception for each key that is absent

    def __contains__(self, key: object) -> bool:
        return key in self._by_key

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self._by_key)

    @property
    def size(self) -> int:
        """The number of keys and of their values together."""
        return len(self._by_key) + sum(len(row.values) for row in self._by_key.values())

    def allowed(self, key: str) -> Requirement:
        """The requirement of a key; Exists when there is none."""
        return self._by_key.get(key) or Requirement(key, True)

    def __and__(self, other: Iterable[Requirement] | Requirements) -> Requirements:
        """Both together. Accepts Requirements or rows."""
        if isinstance(other, Requirements):
            if not other._by_key or not self._by_key:
                return self if not other._by_key else other
            return Requirements((*self._by_key.values(), *other._by_key.values()))
        rows = other.values() if isinstance(other, Mapping) else other
        return Requirements((*self._by_key.values(), *rows))

    def without(self, *keys: str) -> Requirements:
        """The same with these keys unconstrained."""
        if self._by_key.keys().isdisjoint(keys):
            return self
        return Requirements(row for key, row in self._by_key.items() if key not in keys)

    def within(self, keys: Set[str]) -> Requirements:
        """The same with all but these keys unconstrained."""
        if self._by_key.keys() <= keys:
            return self
        return Requirements(row for key, row in self._by_key.items() if key in keys)

    def conflict(self, other: Requirements) -> str | None:
        """The first shared key (by name) on which both cannot be met at once; None when all can.

        Two demands that a label be absent, or not have some values, never conflict.
        """
        small, large = (self, other) if len(self) <= len(other) else (other, self)
        clashes = [key for key in small if key in large and not self[key].meets(other[key])]
        return min(clashes, default=None)

    def joined(self, other: Requirements) -> Requirements | None:
        """Both together; None where no node that Kerf labels can meet both."""
        if self.conflict(other) is not None:
            return None
        both = self & other
        return both if both.without_value() is None else None

    def without_value(self) -> str | None:
        """The first custom label (by name) that a node must have and for which there is no valid value."""
        wanted = (row for row in self._by_key.values() if row.operator != DOES_NOT_EXIST)
        return min(
            (row.key for row in wanted if row.key not in labels.WELL_KNOWN and not row.labels_a_node), default=None
        )

    def incompatible(self, wanted: Requirements, undefined_ok: frozenset[str] = frozenset()) -> str | None:
        """The first key of `wanted` that these requirements cannot serve; None when they serve all.

        A wanted key must be defined here unless it is in `undefined_ok`, or `wanted` accepts the label's absence.
        """
        undefined = [
            key
            for key, row in wanted.items()
            if key not in self and key not in undefined_ok and not row.accepts_absence
        ]
        return min(undefined) if undefined else self.conflict(wanted)

    def compatible(self, wanted: Requirements, undefined_ok: frozenset[str] = frozenset()) -> bool:
        """Whether these requirements (of a pool, a type, a node) can serve what is wanted."""
        return self.incompatible(wanted, undefined_ok) is None

    def entries(self) -> list[dict[str, object]]:
        """As manifest entries, sorted by key."""
        return [entry for key in sorted(self._by_key) for entry in self._by_key[key].entries()]

    def with_min_values(self, key: str, count: int | None) -> Requirements:
        """The same with another minValues for one key."""
        return Requirements(replace(r, min_values=count) if r.key == key else r for r in self._by_key.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Requirements) and self._by_key == other._by_key

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._by_key.values()))
        return self._hash

    def __reduce__(self) -> tuple[type[Requirements], tuple[tuple[Requirement, ...]]]:
        return Requirements, (tuple(self._by_key.values()),)

    def __repr__(self) -> str:
        return "Requirements(" + ", ".join(str(self._by_key[key]) for key in sorted(self._by_key)) + ")"


EMPTY = Requirements()


def _combine(one: Requirement, two: Requirement) -> frozenset[str]:
    if one.complement and two.complement:
        return one.values | two.values
    if one.complement:
        return two.values - one.values
    return one.values - two.values if two.complement else one.values & two.values


def _tighter(one: int | None, two: int | None, pick: object) -> int | None:
    if one is None or two is None:
        return one if two is None else two
    return max(one, two) if pick is max else min(one, two)


def _integer(text: str) -> int | None:
    try:
        return int(text, 10) if text.lstrip("+-").isascii() and text.lstrip("+-").isdigit() else None
    except ValueError:
        return None
