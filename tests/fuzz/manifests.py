"""Manifests that are nearly right: sound ones of every kind with a few things changed. Each has a number and a seed."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any, Final

import yaml

from tests.unit.api.manifests import BASES, changed
from tests.unit.api.table import ACCEPTED

from . import wild

EXAMPLES: Final = Path(__file__).resolve().parents[2] / "manifests/examples"
Place = tuple[Any, Any]


def sound() -> list[dict[str, Any]]:
    """Manifests without an error, of all kinds and fields."""
    rows = [changed(row.kind, row.path, value) for row in ACCEPTED for value in row.values]
    examples = [m for file in sorted(EXAMPLES.glob("*.yaml")) for m in yaml.safe_load_all(file.read_text()) if m]
    return [*BASES.values(), *rows, *examples]


class Maker:
    """Makes the manifest of a number: the same for the same seed, whatever was made before."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._sound = sound()

    def random(self, number: int) -> Random:
        """The luck of one number."""
        return Random(f"{self.seed}/{number}")

    def manifest(self, number: int) -> dict[str, Any]:
        """The manifest of a number."""
        random = self.random(number)
        return self.mutated(random, random.choice(self._sound))

    def before(self, number: int) -> dict[str, Any]:
        """An object that the manifest of the number might replace: what it was made from, or a brother of it."""
        random = self.random(number)
        origin = random.choice(self._sound)
        other = Random(f"{self.seed}/{number}/old")
        return self.mutated(other, origin) if other.random() < 0.7 else origin

    def mutated(self, random: Random, origin: Mapping[str, Any]) -> dict[str, Any]:
        """A copy with one to five changes."""
        manifest = copy.deepcopy(dict(origin))
        for _ in range(random.choice((1, 1, 2, 3, 5))):
            self._change(random, manifest)
        return manifest

    def _change(self, random: Random, manifest: dict[str, Any]) -> None:
        places = [*_places(manifest, 5)]
        if not places:
            return
        holder, step = random.choice(places)
        kind = random.random()
        aims = [(h, s) for h, s in places if isinstance(s, str) and s in wild.AIMED]
        if aims and random.random() < 0.4:
            holder, step = random.choice(aims)
            holder[step] = wild.AIMED[step](random)
        elif kind < 0.62:
            holder[step] = wild.anything(random)
        elif kind < 0.72:
            del holder[step]
        elif kind < 0.82 and isinstance(holder, dict):
            holder[_key(random, step)] = holder.pop(step)
        elif kind < 0.88 and isinstance(holder, list):
            holder.extend([holder[step]] * random.choice((1, 3, 60, 160)))
        elif kind < 0.94 and isinstance(holder, dict):
            holder[_key(random, step)] = wild.anything(random)
        else:
            other = random.choice(self._sound)
            from_holder, from_step = random.choice([*_places(other, 5)])
            holder[step] = copy.deepcopy(from_holder[from_step])


def _key(random: Random, step: Any) -> Any:
    """A key instead of another one: misspelt, or nothing like a key."""
    if random.random() < 0.5 or not isinstance(step, str):
        return random.choice(wild.KEYS)
    return random.choice((step.upper(), step + "s", step[1:], step[::-1], f" {step}", step[:1] + step[2:]))


def _places(value: Any, deepest: int) -> Iterator[Place]:
    """Every place of a manifest, as what holds it and the step in that; deep boxes are left closed."""
    steps = value if isinstance(value, dict) else range(min(len(value), 20)) if isinstance(value, list) else ()
    for step in [*steps]:
        yield value, step
        if deepest:
            yield from _places(value[step], deepest - 1)
