"""Why no instance type is left for a NodePool: rows of its requirements, and fields of its EC2NodeClass.

Each object may be valid by itself. The scheduler only finds that no offering is left; here the smallest set of rows
that excludes all offerings is found by trial, and the field of the EC2NodeClass by the instance types under these rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kerf.ec2 import families, images
from kerf.model.aws.cloud import ClassFacts
from kerf.model.aws.instance_type import InstanceType
from kerf.model.snapshot import Snapshot
from kerf.scheduling.answers.patches import FieldRef, within
from kerf.scheduling.offerings.instance_types import NO_PRICE, Bools, Columns, Tables, TypeTable
from kerf.scheduling.offerings.learned import labels_missing_for
from kerf.scheduling.offerings.nodepools import NodeClaimTemplate
from kerf.scheduling.offerings.stock import out_of_stock
from kerf_api import labels
from kerf_api.requirements import Requirements
from kerf_api.texts import counted
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.nodepool import NodePool

REQUIREMENTS: Final = "spec.template.spec.requirements"
CLASS_NAME: Final = "spec.template.spec.nodeClassRef.name"
_NONE_LEFT: Final = "no instance type is left"
_IMAGES, _SUBNETS, _RESERVATIONS, _GROUP = (
    "spec.amiSelectorTerms",
    "spec.subnetSelectorTerms",
    "spec.capacityReservationSelectorTerms",
    "spec.placementGroupSelector",
)
_HYPERVISOR: Final = f"{labels.AWS_GROUP}/instance-hypervisor"


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Why no node can be launched from a NodePool, without a subject; the fix; the fields, the NodePool's first.

    It `passes` when no edit is necessary, such as when EC2 has capacity again.
    """

    text: str
    fix: str
    fields: tuple[FieldRef, ...]
    passes: bool = False
    missing_class: str = ""

    def __str__(self) -> str:
        return f"{self.text}; {self.fix}"


def of(snapshot: Snapshot, pool: NodePool) -> Contradiction | None:
    """Return why no node can be launched from a NodePool; None when one can, or when the instance types are unknown."""
    node_class = snapshot.node_classes.get(pool.class_name)
    if node_class is None:
        fields = (FieldRef("NodePool", pool.name, CLASS_NAME), FieldRef("EC2NodeClass", pool.class_name))
        fix = f"create it, or correct {CLASS_NAME} of NodePool {pool.name}"
        text = f"EC2NodeClass {pool.class_name} does not exist"
        return Contradiction(text, fix, fields, missing_class=pool.class_name)
    template = _template(snapshot, pool)
    if template is None:
        return None
    table, wanted, types = template.table, template.requirements, template.offered()
    if len(types):
        return _of_min_values(pool, template) if template.strict_min_values else None
    gone = out_of_stock(table, _cells(table, wanted))
    if gone:
        fix = f"wait until EC2 has capacity again, or allow more in {REQUIREMENTS}"
        return Contradiction(f"{_NONE_LEFT}: {gone}", fix, (FieldRef("NodePool", pool.name, REQUIREMENTS),), True)
    rows = _fewest(table, wanted)
    return _Side(snapshot, pool, node_class, table, rows).found()


def _template(snapshot: Snapshot, pool: NodePool) -> NodeClaimTemplate | None:
    """The NodePool with its instance types; None when either cannot be read, which their conditions report."""
    try:
        table = Tables(snapshot, Columns(())).of(pool.name, pool.class_name)
        if not isinstance(table, TypeTable):
            return None
        wanted = pool.requirements().without(*labels_missing_for(snapshot, pool))
        strict = snapshot.settings.min_values_policy == "Strict"
        return NodeClaimTemplate(pool, wanted, table, (), strict_min_values=strict)
    except ValueError:
        return None


def _of_min_values(pool: NodePool, template: NodeClaimTemplate) -> Contradiction | None:
    short = template.shortfall(template.offered())
    if not short:
        return None
    key, count = next(iter(sorted(short.items())))
    ref = _field(pool, key)
    has = f"{ref.path} ({key}) has minValues {template.min_values[key]}"
    text = f"too few instance types are left: {has}, and they have {counted(count, 'value')} of it"
    listed = np.flatnonzero((_cells(template.table, template.requirements) & template.table.listed).any(axis=1))
    if not template.shortfall(listed):
        return Contradiction(text, "wait until EC2 has capacity again, or decrease minValues", (ref,), True)
    return Contradiction(text, "decrease minValues, or allow more instance types", (ref,))


# --- rows of the requirements -----------------------------------------------------------------------------------
def _cells(table: TypeTable, rows: Requirements) -> Bools:
    """Which offerings [types, markets] the rows allow."""
    cells: Bools = table.masks(rows)[:, None] & table.market_mask(rows)[None, :]
    return cells


def _fewest(table: TypeTable, wanted: Requirements) -> Requirements:
    """A smallest set of rows that leaves no offering: without any of them there would be one."""
    buyable = table.price < NO_PRICE
    rows = wanted.within(table.keys)
    for key in sorted(rows):
        fewer = rows.without(key)
        if not (_cells(table, fewer) & buyable).any():
            rows = fewer
    return rows


def _field(pool: NodePool, key: str) -> FieldRef:
    """The field of a NodePool with this label."""
    asked = [labels.normalise(entry.key) for entry in pool.spec.template.spec.requirements]
    if key in asked:
        return FieldRef("NodePool", pool.name, f"{REQUIREMENTS}[{asked.index(key)}]")
    return FieldRef("NodePool", pool.name, within("spec.template.metadata.labels", key))


# --- fields of the EC2NodeClass ---------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Side:
    """The rows that leave nothing, and the EC2NodeClass whose fields decide what is there to be left."""

    snapshot: Snapshot
    pool: NodePool
    node_class: EC2NodeClass
    table: TypeTable
    rows: Requirements

    def found(self) -> Contradiction:
        refs = [_field(self.pool, key) for key in sorted(self.rows)]
        rows = " and ".join(f"{ref.path} ({self.rows[key]})" for ref, key in zip(refs, sorted(self.rows), strict=True))
        name, passing = self.node_class.name, self._passing()
        if passing:
            fix = f"wait, or change {_SUBNETS} of EC2NodeClass {name}"
            fields = (*refs, FieldRef("EC2NodeClass", name, _SUBNETS))
            return Contradiction(f"{_NONE_LEFT} for now: {passing}", fix, fields, True)
        facts = self._facts()
        if self._wants_reserved() and facts is not None and facts.reservations:
            fields = (*refs, FieldRef("EC2NodeClass", name, _RESERVATIONS))
            text = f"the capacity reservations of EC2NodeClass {name} are used up, or have none of the allowed types"
            return Contradiction(f"{_NONE_LEFT} for now: {text}", "wait, or allow on-demand", fields, True)
        own = dict([*self._of_rows(), *self._of_types()])
        fields = (*refs, *(FieldRef("EC2NodeClass", name, path) for path in own))
        sides = ", and ".join(f"{path} of EC2NodeClass {name} {words}" for path, words in own.items())
        if not own:
            text = f"{rows or f'EC2NodeClass {name}'}: {_no_match(len(self.table.types))}"
        else:
            text = f"{rows}, but {sides}" if rows else sides
        return Contradiction(f"{_NONE_LEFT}: {text}", "change one of them" if len(fields) > 1 else "change it", fields)

    def _wants_reserved(self) -> bool:
        kinds = self.rows.allowed(labels.CAPACITY_TYPE)
        reserved = labels.CAPACITY_TYPE in self.rows and kinds.has(labels.RESERVED)
        return reserved or any(key in self.rows for key in labels.RESERVATION_LABELS)

    def _facts(self) -> ClassFacts | None:
        return self.snapshot.class_facts.get(self.node_class.name)

    def _listed(self) -> Bools:
        return _cells(self.table, self.rows) & self.table.listed

    def _types(self) -> list[InstanceType]:
        """The instance types that the rows allow and that the EC2NodeClass excludes."""
        return [self.table.types[int(i)] for i in np.flatnonzero(self._listed().any(axis=1))]

    def _passing(self) -> str:
        """The state of zones that excludes all offerings for a while."""
        facts = self._facts()
        zones = {self.table.markets[int(i)][0] for i in np.flatnonzero(self._listed().any(axis=0))}
        subnets = [one for one in facts.subnets if one.zone in zones] if facts is not None else []
        if facts is None or not subnets:
            return ""
        if all(one.zone_id in facts.shifted for one in subnets):
            return "traffic is shifted away from its zones"
        if all(one.id in facts.full_subnets or one.zone_id in facts.shifted for one in subnets):
            return "its subnets have no free IP address"
        return ""

    def _of_rows(self) -> Iterator[tuple[str, str]]:
        """The fields that decide which values of a label there are, whatever the instance type."""
        spec = self.node_class.spec
        if self._wants_reserved():
            given = spec.capacity_reservation_selector_terms
            yield _RESERVATIONS, "selects none that has capacity" if given else "selects no capacity reservation"
        if labels.OS in self.rows or labels.WINDOWS_BUILD in self.rows:
            run = sorted(self.table.values(labels.OS, np.ones(len(self.table.types), dtype=np.bool_)))
            yield _IMAGES, f"selects images for {' and '.join(run) or 'no operating system'}"
        facts = self._facts()
        if (labels.ZONE in self.rows or labels.ZONE_ID in self.rows) and facts is not None:
            zones = sorted({one.zone for one in facts.subnets})
            yield _SUBNETS, f"selects subnets in {', '.join(zones) or 'no zone'}"
        if labels.PLACEMENT_GROUP in self.rows or labels.PLACEMENT_PARTITION in self.rows:
            yield _GROUP, "selects another placement group" if spec.placement_group_selector else "selects none"

    def _of_types(self) -> Iterator[tuple[str, str]]:
        """The fields that the instance types under the rows do not support."""
        types, spec, facts = self._types(), self.node_class.spec, self._facts()
        if not types:
            return
        these = _these(types, len(self.table.types))
        if facts is not None and not _bootable(types, facts):
            yield _IMAGES, f"selects no image that {these} can boot"
        elif self.node_class.family == families.AL2023.name and all(one.name.startswith("a1.") for one in types):
            yield _IMAGES, f"selects images of AL2023, which {these} cannot boot"
        if spec.connection_tracking is not None and not any(_nitro(one) for one in types):
            yield "spec.connectionTracking", f"needs Nitro, which {these} do not have"
        if spec.network_interfaces:
            yield "spec.networkInterfaces", f"needs network cards or EFA that {these} do not have"
        if spec.cpu_options is not None and spec.cpu_options.nested_virtualization == "enabled":
            path = "spec.cpuOptions.nestedVirtualization"
            yield path, f"is enabled, which {these} do not support"
        if spec.placement_group_selector is not None:
            yield _GROUP, f"selects a placement group that {these} cannot be launched into"


def _bootable(types: Sequence[InstanceType], facts: ClassFacts) -> bool:
    """Whether some of the instance types boots an image of the EC2NodeClass."""
    rows = images.table(images.listed(facts.images))
    return any(images.pick(one.requirements, rows) is not None for one in types)


def _nitro(one: InstanceType) -> bool:
    return one.requirements.allowed(_HYPERVISOR).has("nitro")


def _these(types: Sequence[InstanceType], known: int) -> str:
    if len(types) == 1:
        return types[0].name
    return f"the {known} known instance types" if len(types) == known else f"these {len(types)} instance types"


def _no_match(known: int) -> str:
    return f"none of the {known} known instance types matches" if known > 1 else "no known instance type matches"
