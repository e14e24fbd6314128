"""Instance types that were computed, by EC2NodeClass, with the inputs that they were computed from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from kerf.model.aws.cloud import ClassFacts, Region
from kerf.model.aws.instance_type import Catalogue


@dataclass(frozen=True, slots=True)
class Inputs:
    """The region is compared by identity: it is large, and replaced as a whole. Facts may be other ones that differ in
    nothing that types depend on."""

    region: Region
    facts: ClassFacts
    uid: str
    generation: int

    def same_as(self, other: Inputs) -> bool:
        return (
            self.region is other.region
            and (self.uid, self.generation) == (other.uid, other.generation)
            and (self.facts is other.facts or of_types(self.facts) == of_types(other.facts))
        )


def of_types(facts: ClassFacts) -> ClassFacts:
    """The facts that types depend on. Free addresses change with every launch, and a profile is created once."""
    subnets = (replace(subnet, free_addresses=0) for subnet in facts.subnets)
    return ClassFacts(
        generation=0,
        subnets=tuple(sorted(subnets, key=lambda subnet: subnet.id)),
        images=facts.images,
        reservations=facts.reservations,
        full_subnets=facts.full_subnets,
        placement_group=facts.placement_group,
        shifted=facts.shifted,
        memory_bytes=facts.memory_bytes,
    )


class Built:
    """A catalogue is computed again when one of its inputs has changed. One thread uses it."""

    def __init__(self) -> None:
        self._rows: dict[str, tuple[Inputs, Catalogue | None]] = {}

    def get(self, name: str, inputs: Inputs, build: Callable[[], Catalogue | None]) -> Catalogue | None:
        """The catalogue of the class of this name; None where `build` has none."""
        row = self._rows.get(name)
        same = row is not None and row[0].same_as(inputs)
        found = row[1] if row is not None and same else build()
        self._rows[name] = inputs, found
        return found

    def forget(self, name: str) -> None:
        self._rows.pop(name, None)
