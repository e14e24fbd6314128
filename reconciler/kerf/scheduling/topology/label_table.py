"""Which of many sets of labels a selector matches, worked out for all sets at once.

A selector that requires no pair has to be compared with every set. For thousands of both that takes seconds one by one,
and milliseconds with an index of the values of each label.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from kerf.model.kubernetes.selectors import Selector
from kerf.scheduling.offerings.instance_types import Bools


class LabelTable:
    """Sets of labels with their namespaces, numbered from 0; the index has an entry for each label of each set."""

    def __init__(self, sets: Sequence[tuple[str, Mapping[str, str]]]) -> None:
        self._size = len(sets)
        self._namespaces: dict[str, list[int]] = {}
        self._keys: dict[str, list[int]] = {}
        self._values: dict[str, dict[str, list[int]]] = {}
        for number, (namespace, own) in enumerate(sets):
            self._namespaces.setdefault(namespace, []).append(number)
            for key, value in own.items():
                self._keys.setdefault(key, []).append(number)
                self._values.setdefault(key, {}).setdefault(value, []).append(number)

    def matching(self, namespaces: frozenset[str] | None, selector: Selector) -> Bools:
        """Which sets are in these namespaces (None: any) and match. Shape: `[sets]`."""
        if selector.nothing:
            return np.zeros(self._size, dtype=np.bool_)
        found = np.ones(self._size, dtype=np.bool_)
        if namespaces is not None:
            found &= self._at(self._namespaces.get(name, ()) for name in namespaces)
        for key, value in selector.pairs:
            found &= self._at((self._values.get(key, {}).get(value, ()),))
        for key, operator, values in selector.expressions:
            if operator in ("Exists", "DoesNotExist"):
                there = self._at((self._keys.get(key, ()),))
            else:
                rows = self._values.get(key, {})
                there = self._at(rows.get(value, ()) for value in values)
            found &= there if operator in ("Exists", "In") else ~there
        return found

    def _at(self, numbers: Iterable[Sequence[int]]) -> Bools:
        there = np.zeros(self._size, dtype=np.bool_)
        for some in numbers:
            there[np.asarray(some, dtype=np.intp)] = True
        return there
