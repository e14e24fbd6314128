"""Instance types that were computed, by EC2NodeClass, with the inputs that they were computed from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kerf.model.aws.cloud import ClassFacts, Region
from kerf.model.aws.instance_type import Catalogue


@dataclass(frozen=True, slots=True)
class Inputs:
    """Region and facts are compared by identity: they are large, and replaced as a whole."""

    region: Region
    facts: ClassFacts
    uid: str
    generation: int

    def same_as(self, other: Inputs) -> bool:
        return (
            self.region is other.region
            and self.facts is other.facts
            and (self.uid, self.generation) == (other.uid, other.generation)
        )


class Built:
    """A catalogue is computed again when one of its inputs has changed. One thread uses it."""

    def __init__(self) -> None:
        self._rows: dict[str, tuple[Inputs, Catalogue | None]] = {}

    def get(self, name: str, inputs: Inputs, build: Callable[[], Catalogue | None]) -> Catalogue | None:
        """The catalogue of the class of this name; None where `build` has none."""
        row = self._rows.get(name)
        if row is not None and row[0].same_as(inputs):
            return row[1]
        found = build()
        self._rows[name] = inputs, found
        return found

    def forget(self, name: str) -> None:
        self._rows.pop(name, None)
