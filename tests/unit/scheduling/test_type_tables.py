"""Type tables: a later snapshot has an earlier one's table as long as stock and catalogue are the same."""

from __future__ import annotations

from datetime import timedelta

from kerf.model.aws.instance_type import Offering
from kerf.model.snapshot import Snapshot
from kerf.scheduling.offerings.instance_types import NO_PRICE, Columns, Tables, TypeTable
from kerf_api import labels
from kerf_api.requirements import Requirements
from tests.unit.scheduling import worlds as w

COLUMNS = Columns(["cpu", "memory", "pods"])


def _table(snapshot: Snapshot) -> TypeTable:
    found = Tables(snapshot, COLUMNS).of("", "default")
    assert isinstance(found, TypeTable)
    return found


def _price(table: TypeTable, offering: Offering) -> int:
    return int(table.price[table.names.index(offering.instance_type), table.markets.index(offering.market)])


def test_stock_counts_as_of_each_snapshot() -> None:
    sold = next(o for t in w.CATALOGUE for o in t.offerings if o.available)
    gone = {sold.key: w.NOW + timedelta(minutes=3)}
    assert _price(_table(w.world()), sold) == sold.price
    assert _price(_table(w.world(out_of_stock=gone)), sold) == NO_PRICE
    assert _price(_table(w.world(out_of_stock=gone, now=w.NOW + timedelta(minutes=4))), sold) == sold.price


def test_another_catalogue_has_another_table() -> None:
    first, *others = w.CATALOGUE
    assert _table(w.world()).names == tuple(sorted(t.name for t in w.CATALOGUE))
    assert first.name not in _table(w.world(catalogue=tuple(others))).names


def test_masks_of_requirements_are_not_kept_for_a_later_snapshot() -> None:
    wanted = Requirements.of_labels({labels.INSTANCE_TYPE: w.CATALOGUE[0].name})
    first, second = _table(w.world()), _table(w.world())
    assert first.masks(wanted).sum() == 1
    assert first.price is second.price
    assert not second._masks
