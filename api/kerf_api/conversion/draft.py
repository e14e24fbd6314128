"""A new object in the making, which remembers of each of its parts where it came from.

The writer of the object can so keep the source text: comments, quotes, the form of a list. A part
without an origin of its own has that of the part around it, one step further down. Values given to a draft are copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

from kerf_api.lint import Steps


class Origin(NamedTuple):
    """A place in one of the manifests that are converted together: the manifest's index, and keys and indexes."""

    manifest: int
    steps: Steps


Origins = tuple[Origin, ...]


class Draft:
    """An object that is built path by path; maps on the way to a path are made as they are needed, in that order.

    `values` is the object. Of several origins of a part the last is where its value stood, and the others are where
    else it was spoken of.
    """

    def __init__(self, values: Mapping[str, Any] | None = None, origin: Origin | None = None) -> None:
        self.values: dict[str, Any] = deepcopy(dict(values or {}))
        self._origins: dict[Steps, Origins] = {}
        #: For each path the paths within it that have origins, itself included.
        self._within: dict[Steps, dict[Steps, None]] = {}
        self._set((), (origin,) if origin else ())

    def _set(self, steps: Steps, origins: Origins) -> None:
        if steps not in self._origins:
            for depth in range(len(steps) + 1):
                self._within.setdefault(steps[:depth], {})[steps] = None
        self._origins[steps] = origins

    def _take(self, steps: Steps) -> dict[Steps, Origins]:
        """Remove the origins of a path and of all within it, and return them."""
        taken = {known: self._origins.pop(known) for known in [*self._within.get(steps, ())]}
        for known in taken:
            for depth in range(len(known) + 1):
                del self._within[known[:depth]][known]
        return taken

    def get(self, *steps: str | int) -> Any:
        """What lies at a path; None when something on the way is missing."""
        return at_path(self.values, steps)

    def put(self, steps: Steps, value: Any, *origins: Origin) -> None:
        """Set what lies at a path. Without origins it counts as new."""
        inside: Any = self.values
        for depth, step in enumerate(steps[:-1], 1):
            if isinstance(inside, dict) and not isinstance(inside.get(str(step)), dict | list):
                inside[str(step)] = {}
                if steps[:depth] not in self._origins:
                    self._set(steps[:depth], ())
            inside = inside[step]
        inside[steps[-1]] = deepcopy(value)
        self._take(steps)
        self._set(steps, origins)

    def append(self, steps: Steps, value: Any) -> None:
        """Add something new at the end of the list at a path."""
        found = self.get(*steps)
        found.append(deepcopy(value))
        self._set((*steps, len(found) - 1), ())

    def trace(self, steps: Steps, *origins: Origin) -> None:
        """Say where a part that is there came from."""
        self._set(steps, origins)

    def rename(self, steps: Steps, name: str) -> None:
        """Give the last key of a path another name, in the same place of its map."""
        self._rekey(steps, name)

    def remove(self, steps: Steps) -> None:
        """Leave out the last key of a path."""
        self._rekey(steps, None)

    def _rekey(self, steps: Steps, name: str | None) -> None:
        parent, old = self.get(*steps[:-1]), steps[-1]
        before, entries = self.origins(steps), list(parent.items())
        moved = self._take(steps)
        parent.clear()
        parent.update((name if key == old else key, entry) for key, entry in entries if key != old or name is not None)
        if name is not None:
            new = (*steps[:-1], name)
            for known, origins in moved.items():
                self._set((*new, *known[len(steps) :]), origins)
            self._set(new, before)

    def origins(self, steps: Steps) -> Origins:
        """Where a part came from; the place may not exist when the part around it was given something new."""
        if steps in self._origins:
            return self._origins[steps]
        for depth in range(len(steps) - 1, -1, -1):
            if above := self._origins.get(steps[:depth]):
                return (Origin(above[-1].manifest, (*above[-1].steps, *steps[depth:])),)
            if steps[:depth] in self._origins:
                break
        return ()

    def is_moved_whole(self, steps: Steps) -> bool:
        """Whether everything below a path came from the same place below its origin."""
        source = self.origins(steps)
        below = [known for known in self._within.get(steps, ()) if known != steps]
        return bool(source) and all(
            self._origins[known] == (Origin(source[-1].manifest, (*source[-1].steps, *known[len(steps) :])),)
            for known in below
        )

    def traced(self) -> Iterator[tuple[Steps, Origins]]:
        """Every path that has an origin of its own."""
        yield from self._origins.items()

    def copy(self) -> Draft:
        """An equal draft that can be changed by itself."""
        twin = Draft(self.values)
        for steps, origins in self._origins.items():
            twin._set(steps, origins)
        return twin


def at_path(value: Any, steps: Sequence[str | int]) -> Any:
    """What lies at a path of keys and indexes; None when something on the way is missing."""
    for step in steps:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, Mapping) else None
    return value
