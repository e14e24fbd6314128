"""The selectors of v1alpha1, one map each, as the terms of v1.

A map named tags, or IDs in `aws-ids`, and a value could be a list with commas. All keys of a map had to fit at once;
so do the fields of one term, while of several terms one is enough. A list with commas is therefore one term for each
of its entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any, Final

from kerf_api.lint import Steps
from kerf_api.lint.problem import some

from .work import DIFFERENT, Work, malformed

_IDS: Final = ("aws-ids", "aws::ids")
_NAMES, _OWNERS = "aws::name", "aws::owners"
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {"id": _IDS, "name": (_NAMES,), "owner": (_OWNERS,)}


def terms(work: Work, steps: Steps, selector: Any, path: Steps) -> None:
    """Put the terms of a selector at a path of the new object; tags keep what was written beside them."""
    if not isinstance(selector, dict) or not all(isinstance(value, str) for value in selector.values()):
        malformed(work, steps, selector, "a map of texts")
        return
    ids = [found for key in _IDS for found in _listed(selector.get(key))]
    names, owners = _listed(selector.get(_NAMES)), _listed(selector.get(_OWNERS))
    tags = {key: value for key, value in selector.items() if key not in (*_IDS, _NAMES, _OWNERS)}
    if ids and len(selector) > 1:
        rest = [key for key in selector if key not in _IDS]
        if rest:
            message = f"a term with an ID has nothing else; {some(rest)} left out, which had to fit as well"
            work.tell(DIFFERENT, steps, message, "check whether these are all intended IDs")
    found = [{"id": name} for name in ids] if ids else [*_product(names, owners, tags)]
    work.add(path, found, steps)
    for index, term in enumerate(found):
        work.draft.trace((*path, index))
        for field, keys in _KEYS.items():
            sources = [key for key in keys if key in selector]
            if field in term and sources:
                work.draft.trace((*path, index, field), *(work.origin((*steps, key)) for key in sources))
        if "tags" in term:
            work.draft.trace((*path, index, "tags"), work.origin(steps))


def _product(names: list[str], owners: list[str], tags: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for name, owner, combined in product(names or [""], owners or [""], _combined(tags)):
        term: dict[str, Any] = {"name": name} if name else {}
        term |= {"owner": owner} if owner else {}
        yield term | ({"tags": combined} if combined else {})


def _combined(tags: Mapping[str, str]) -> Iterable[dict[str, str]]:
    for values in product(*(_listed(value) or [value] for value in tags.values())):
        yield dict(zip(tags, values, strict=True))


def _listed(value: Any) -> list[str]:
    return [entry.strip() for entry in str(value or "").split(",") if entry.strip()]
