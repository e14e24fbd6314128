"""Offerings that are out of stock for now, in words: they come back without an edit."""

from __future__ import annotations

from typing import Final

import numpy as np

from kerf.scheduling.offerings.instance_types import Bools, TypeTable

#: The words by which a text says that capacity is missing.
OUT_OF_STOCK: Final = "out of stock for now"


def out_of_stock(table: TypeTable, cells: Bools) -> str:
    """How many of the offerings `cells` [types, markets] are out of stock, and one of them; empty for none."""
    gone = cells & table.sold_out
    count = int(gone.sum())
    if not count:
        return ""
    row, market = (int(found[0]) for found in np.nonzero(gone))
    zone, kind = table.markets[market][:2]
    number = f"{count} offering{'s' if count > 1 else ''}"
    return f"{number} {OUT_OF_STOCK}, such as {table.names[row]} {kind} in {zone}"
