"""The ledger of capacity reservations: behaviour 201 of the catalogue."""

from __future__ import annotations

import pytest

from kerf.scheduling.offerings.reservations import Ledger


def test_201_the_ledger() -> None:
    """One host counts once; what is released is there again; what nobody knows of is an error."""
    ledger = Ledger({"cr": 1})
    ledger.reserve("host-1", "cr")
    ledger.reserve("host-1", "cr")
    assert not ledger.free("host-2", "cr")
    assert ledger.free("host-1", "cr")
    with pytest.raises(ValueError, match="cr has no machine left for host-2"):
        ledger.reserve("host-2", "cr")
    ledger.release("host-1", "cr")
    ledger.release("host-1", "cr")
    assert ledger.free("host-2", "cr")
    assert ledger.left("cr") == 1
    with pytest.raises(ValueError, match="unknown"):
        ledger.reserve("host-1", "unknown")
