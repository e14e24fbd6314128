"""Instance types that the runs of one process share: each run resolves the same EC2NodeClasses in the same region.

The scheduler keeps tables of each catalogue by its identity, so a shared catalogue saves these as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kerf.ec2.instance_types import catalogue
from kerf.ec2.instance_types.built import of_types
from kerf.model.aws.cloud import ClassFacts, Region
from kerf.model.aws.instance_type import Catalogue
from kerf.model.settings import Settings
from kerf_api.v1.ec2nodeclass import EC2NodeClass, EC2NodeClassSpec

#: All that a catalogue depends on: of an EC2NodeClass its spec, of the facts those of types.
_Inputs = tuple[EC2NodeClassSpec, ClassFacts, Region, Settings]
#: Catalogues that are kept: a few EC2NodeClasses, each with the memory that nodes have shown.
_MOST: Final = 32


class SharedCatalogues:
    """Catalogues by their inputs, compared by value; the least recently used is dropped. One thread uses it."""

    def __init__(self, build: Callable[[EC2NodeClass, ClassFacts, Region, Settings], Catalogue]) -> None:
        self._build = build
        self._known: list[tuple[_Inputs, Catalogue]] = []  # the most recently used last

    def __call__(self, node_class: EC2NodeClass, facts: ClassFacts, region: Region, settings: Settings) -> Catalogue:
        """The catalogue of an EC2NodeClass. Raises Unresolvable as `catalogue.build` does, and keeps no failure."""
        inputs = (node_class.spec, of_types(facts), region, settings)
        place = next((i for i, (known, _) in enumerate(self._known) if known == inputs), None)
        if place is not None:
            row = self._known.pop(place)
        else:
            row = inputs, self._build(node_class, facts, region, settings)
        self._known = [*self._known[-_MOST + 1 :], row]
        return row[1]


#: Of this process.
SHARED: Final = SharedCatalogues(catalogue.build)
