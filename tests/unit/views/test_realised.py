"""Savings of consolidation by hand: which removals count, with which prices, for how long."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from msgspec.structs import replace

from kerf.disruption.command import Command
from kerf.disruption.view import view
from kerf.model.annotations import text_of
from kerf.views.realised import PoolSaving, Savings, Tally
from kerf_api import labels
from tests.unit.disruption.worlds import CATALOGUE, HOUR, NOW, claim, pool, snapshot

LARGE, XLARGE = (
    next(one for one in CATALOGUE if one.name == name).offerings[0].price for name in ("m5.large", "m5.xlarge")
)
_NAMES: Final = ("a", "b", "n")


def going(name: str, command: Command, *, deleting: bool = True, **more: Any) -> Any:
    """A NodeClaim with the command, that is being deleted."""
    made = claim(name, annotations={labels.COMMAND: text_of(command)}, **more)
    meta = replace(made.metadata, deletion_timestamp=NOW if deleting else None, finalizers=("x",))
    return replace(made, metadata=meta)


def command(reason: str = "Underutilized", **more: Any) -> Command:
    return Command(id="0123456789", reason=reason, started=NOW, **more)


def tallied(*moments: tuple[datetime, list[Any]]) -> Savings:
    """The savings of NodeClaims as of some times."""
    tally = Tally()
    for at, claims in moments:
        tally.take(view(snapshot([pool(), pool("other"), *claims], now=at)), _NAMES)
    found = tally.found()
    assert found is not None
    return found


def test_a_replacement_saves_the_difference_from_the_removal_on() -> None:
    replaced = command(replacements=("n",))
    new = claim("n", instance_type="m5.large")
    old = going("a", replaced, instance_type="m5.xlarge")
    found = tallied((NOW, [old, new]), (NOW + HOUR, [new]), (NOW + 3 * HOUR, [new]))
    assert found.pools == (PoolSaving("default", 1, 1, XLARGE, LARGE),)
    assert found.amount == 2 * (XLARGE - LARGE) > 0
    assert (found.began, found.ended, found.unpriced, found.open) == (NOW, NOW + 3 * HOUR, 0, 0)


def test_a_deletion_saves_the_whole_price() -> None:
    found = tallied((NOW, [going("a", command("Empty"))]), (NOW + HOUR, []))
    assert (found.all.saved, found.amount) == (LARGE, 0)


def test_a_command_of_two_node_pools_counts_for_each_by_price() -> None:
    shared = command(replacements=("n",), peers=("a", "b"))
    first, second = going("a", shared, instance_type="m5.xlarge"), going("b", shared, pool_name="other")
    new = claim("n")
    halfway = tallied((NOW, [first, second, new]), (NOW + HOUR, [second, new]))
    assert (halfway.pools, halfway.open) == ((), 1)
    found = tallied((NOW, [first, second, new]), (NOW + HOUR, [second, new]), (NOW + 2 * HOUR, [new]))
    parts = {one.name: (one.before, one.after) for one in found.pools}
    whole = XLARGE + LARGE
    assert parts == {"default": (XLARGE, LARGE * XLARGE // whole), "other": (LARGE, LARGE * LARGE // whole)}


def test_drift_and_nodes_that_stay_do_not_count() -> None:
    drifted = tallied((NOW, [going("a", command("Drifted"))]), (NOW + HOUR, []))
    staying = tallied((NOW, [going("a", command(), deleting=False)]), (NOW + HOUR, [claim("a")]))
    by_hand = tallied((NOW, [claim("a")]), (NOW + HOUR, []))
    assert [(one.pools, one.open) for one in (drifted, staying, by_hand)] == [((), 0)] * 3


def test_unknown_prices_are_no_saving() -> None:
    strange = tallied((NOW, [going("a", command(), instance_type="x99.metal")]), (NOW + HOUR, []))
    lost = tallied((NOW, [going("a", command(replacements=("n",)))]), (NOW + HOUR, []))
    assert [(one.pools, one.amount, one.unpriced) for one in (strange, lost)] == [((), 0, 1)] * 2


def test_a_costlier_replacement_is_a_loss() -> None:
    old, new = going("a", command(replacements=("n",))), claim("n", instance_type="m5.xlarge")
    found = tallied((NOW, [old, new]), (NOW + HOUR, [new]), (NOW + 2 * HOUR, [new]))
    assert (found.all.saved, found.amount) == (LARGE - XLARGE, LARGE - XLARGE)


def test_a_clock_that_goes_back_counts_no_time_twice() -> None:
    removed: list[tuple[datetime, list[Any]]] = [(NOW, [going("a", command("Empty"))]), (NOW + HOUR, [])]
    back: list[tuple[datetime, list[Any]]] = [(NOW + HOUR - timedelta(minutes=30), []), (NOW + 2 * HOUR, [])]
    assert tallied(*removed, *back).amount == LARGE


def test_nothing_is_found_before_the_first_snapshot() -> None:
    assert Tally().found() is None
