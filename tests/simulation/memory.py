"""How much a controller remembers: the entries of its own containers, found by walking from attribute to attribute.

What AWS and the API server hold is not its memory, and a value counts once, where a table holds it. A long life must
not show: where nothing is on its way, a controller that has just been started holds about as much.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

_OURS = ("kerf.", "prometheus_client.")
_NOT_OURS = ("kerf.sandbox.",)
_SEVERAL = (list, tuple, set, frozenset, deque)
#: Rings of a fixed length, texts of which so many are kept, queues that are swept when they have so many more rows than
#: there are entries, and series whose labels have few values: they fill up, and no more. What one answer of a step
#: consists of is a value.
_BOUNDED = (
    "._memory.outcomes[].entries[].outcome",
    "._memory.outcomes[].dues",
    "._memory._journal._rows",
    ".state.cluster._journal._rows",
    ".state.cluster._gone",
    ".telemetry.events._until",
    ".telemetry._repeats._told",
    ".telemetry.metrics.",
)
#: What a table may have more than it would have after a restart: a row for each object that there is.
_TIMES, _MORE, _OBJECTS = 2, 16, ".state.cluster._objects[]"


def grown(old: object, new: object) -> list[str]:
    """The tables in which one controller remembers much more than another one of the same world."""
    before, after = entries(new), entries(old)
    more = max(_MORE, before[_OBJECTS])
    paths = (path for path in sorted(after) if not path.startswith(_BOUNDED))
    return [
        f"memory: {path} has {after[path]} entries, {before[path]} after a restart"
        for path in paths
        if after[path] > _TIMES * before[path] + more
    ]


def entries(root: object) -> Counter[str]:
    """Entries by the path of attributes under which a container is found first. `[]` stands for any item of one."""
    counts: Counter[str] = Counter()
    waiting, seen = deque([("", root)]), {id(root)}
    while waiting:
        path, value = waiting.popleft()
        if isinstance(value, (Mapping, *_SEVERAL)):
            counts[path] += len(value)
        for step, child in _children(value):
            if id(child) not in seen and _holds_something(child):
                seen.add(id(child))
                waiting.append((path + step, child))
    return counts


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from (("[]", child) for child in value.values())
    elif isinstance(value, _SEVERAL):
        yield from (("[]", child) for child in value)
    else:
        slots = [name for type_ in type(value).__mro__ for name in getattr(type_, "__slots__", ())]
        for name in (*getattr(value, "__dict__", ()), *slots):
            yield f".{name}", getattr(value, name, None)


def _holds_something(value: object) -> bool:
    parameters = getattr(type(value), "__dataclass_params__", None)
    if isinstance(value, (type, msgspec.Struct)) or (parameters is not None and parameters.frozen):
        return False
    module = type(value).__module__
    plain = isinstance(value, (Mapping, *_SEVERAL)) and not module.startswith("kerf_api.")
    return plain or (module.startswith(_OURS) and not module.startswith(_NOT_OURS))
