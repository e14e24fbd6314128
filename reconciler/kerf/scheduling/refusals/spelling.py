"""Labels that a pod selects in another spelling than the one that nodes have: of the key, or of a value.

Two names of which each is right look alike too (zones, sizes, generations), so that only letters may differ, and no
digit. Zones differ in their last letter: there only small and capital letters and punctuation may.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Final

from kerf.scheduling.answers.edits import Respell
from kerf.scheduling.refusals.filters import Filters
from kerf_api import labels

#: Two names of which one is a misspelled other are as alike as this.
_LIKENESS: Final = 0.85
#: Other names of the values that Kubernetes' labels have, without punctuation.
_ALIASES: Final = {
    labels.ARCH: {"x8664": "amd64", "x64": "amd64", "intel64": "amd64", "aarch64": "arm64"},
    labels.CAPACITY_TYPE: {"od": "on-demand", "normal": "on-demand"},
}
_PLACES: Final = (labels.ZONE, labels.ZONE_ID, labels.REGION)


def near(word: str, known: Iterable[str], *, letters: bool = True) -> str | None:
    """The known name that `word` is a misspelling of; None when there is none. Without `letters` only case and
    punctuation may differ."""
    names = sorted(known)
    same = next((name for name in names if _bare(name) == _bare(word)), None)
    if same is not None or not letters:
        return same
    digits = _digits(word)
    lower = {name.lower(): name for name in names if _digits(name) == digits}
    close = get_close_matches(word.lower(), sorted(lower), 1, _LIKENESS)
    return lower[close[0]] if close else None


def respelled(filters: Filters, keys: Iterable[str]) -> Iterator[Respell]:
    """The edits of a pod that write one of these labels as the nodes of the NodePool have it."""
    for key in keys:
        row = filters.wanted.get(key)
        if row is None:
            continue
        if not _known(filters, key):
            found = near(key, (labels.WELL_KNOWN - {labels.NODEPOOL}) | set(filters.template.requirements))
            if found is not None:
                yield Respell(key, found)
        elif not row.complement:
            values = {filters.template.name} if key == labels.NODEPOOL else filters.template.domains(key)
            for value in sorted(row.values - values):
                found = value_near(key, value, values)
                if found is not None:
                    yield Respell(key, key, value, found)


def value_near(key: str, value: str, known: Iterable[str]) -> str | None:
    """The known value of a label that `value` is another spelling of."""
    names = frozenset(known)
    alias = _ALIASES.get(key, {}).get(_bare(value))
    return alias if alias in names else near(value, names, letters=key not in _PLACES)


def _known(filters: Filters, key: str) -> bool:
    return key in labels.WELL_KNOWN or key in filters.template.requirements or key in filters.template.table.keys


def _bare(word: str) -> str:
    return re.sub(r"[^a-z0-9]", "", word.lower())


def _digits(word: str) -> str:
    return re.sub(r"[^0-9]", "", word)
