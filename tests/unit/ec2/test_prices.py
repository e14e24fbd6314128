"""The fallback price table, and its level in a region."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from kerf.ec2.instance_types.catalogue import build
from kerf.ec2.pricing.prices import on_demand_estimate, priced
from tests.unit.ec2.ec2_facts import SETTINGS, facts, node_class, region
from tests.unit.scheduling import worlds as w


@pytest.mark.parametrize(
    ("name", "vcpus", "memory_mib", "price"),
    [
        ("m5.large", 2, 8192, 96_000),
        ("c6a.4xlarge", 16, 32768, 612_000),
        ("g4dn.xlarge", 4, 16384, 526_000),
        ("c4.8xlarge", 36, 61440, 1_591_000),
        ("t3.nano", 2, 512, 5_200),
        ("p5.48xlarge", 192, 2097152, 55_040_000),
        ("m99x.large", 2, 8192, 97_600),
        ("p99.48xlarge", 192, 2097152, None),
        ("mac9.metal", 12, 16384, None),
    ],
)
def test_prices(name: str, vcpus: int, memory_mib: int, price: int | None) -> None:
    assert on_demand_estimate(name, vcpus, memory_mib) == price


@pytest.mark.parametrize(("known", "memory_mib"), [("c7i.large", 4096), ("m7i.large", 8192), ("r7i.large", 16384)])
def test_an_unknown_general_family_is_ranked_near_its_kin(known: str, memory_mib: int) -> None:
    real, guess = on_demand_estimate(known, 2, memory_mib), on_demand_estimate(f"{known[0]}99.large", 2, memory_mib)
    assert real is not None
    assert guess is not None
    assert abs(guess - real) < real * 0.1


# --- the prices of a region ---------------------------------------------------------------------------------------
BARE = replace(region("m5.large", "m5.xlarge", "c5.large", "r5.large"), on_demand={}, spot={})
TRUTH = {"m5.large": 96_000, "m5.xlarge": 192_000, "c5.large": 85_000, "r5.large": 126_000}
SPOT = {(name, zone): price * 2 // 5 for name, price in TRUTH.items() for zone in BARE.zones_by_type[name]}


def times(factor: int, prices: Mapping[Any, int], *without: str) -> dict[Any, int]:
    return {key: factor * price for key, price in prices.items() if key not in without}


def test_a_type_without_vcpus_has_no_estimate() -> None:
    odd = replace(BARE, types={**BARE.types, "m5.large": replace(BARE.types["m5.large"], vcpus=0)})
    assert priced(odd, TRUTH, {}).on_demand == TRUTH
    assert "m5.large" not in priced(odd, times(1, TRUTH, "m5.large"), SPOT).on_demand


@pytest.mark.parametrize("factor", [1, 7])
@pytest.mark.parametrize("missing", TRUTH)
def test_a_missing_price_is_estimated_at_the_level_of_the_known_ones(factor: int, missing: str) -> None:
    found = priced(BARE, times(factor, TRUTH, missing), times(factor, SPOT))
    assert found.on_demand == times(factor, TRUTH)
    assert found.spot == times(factor, SPOT)


@pytest.mark.parametrize("factor", [1, 7])
def test_where_only_spot_prices_are_known_estimates_are_in_their_currency(factor: int) -> None:
    assert priced(BARE, {}, times(factor, SPOT)).on_demand == times(factor, TRUTH)


def test_one_price_that_is_far_off_does_not_move_the_level() -> None:
    known = {**times(1, TRUTH, "c5.large"), "r5.large": 1}
    assert priced(BARE, known, SPOT).on_demand["c5.large"] == TRUTH["c5.large"]


def test_without_any_price_estimates_are_in_dollars_and_spot_costs_as_much() -> None:
    found = priced(BARE, {}, {})
    assert found.on_demand == TRUTH
    assert set(found.spot) == set(SPOT)
    assert all(price == TRUTH[name] for (name, _), price in found.spot.items())


def test_a_special_type_without_a_known_price_stays_without_one() -> None:
    odd = replace(BARE.types["m5.large"], name="p99.48xlarge")
    sold = replace(BARE, types={**BARE.types, "p99.48xlarge": odd})
    assert "p99.48xlarge" not in priced(sold, TRUTH, SPOT).on_demand
    assert priced(sold, {**TRUTH, "p99.48xlarge": 5}, SPOT).on_demand["p99.48xlarge"] == 5


@pytest.mark.parametrize(
    "missing", [(), ("m5.large",), ("m5.xlarge", "c5.large"), tuple(TRUTH)], ids=["none", "one", "two", "all"]
)
@pytest.mark.parametrize("spot", [SPOT, {}], ids=["spot", "no spot"])
def test_at_seven_times_every_price_the_same_types_are_chosen(
    missing: tuple[str, ...], spot: Mapping[Any, int]
) -> None:
    def chosen(factor: int) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        sold = priced(BARE, times(factor, TRUTH, *missing), times(factor, spot))
        pods = [w.pod(f"p{i}", f"{300 + 170 * (i % 7)}m", f"{200 + 350 * (i % 5)}Mi") for i in range(40)]
        found = w.solved(w.pool(), *pods, catalogue=build(node_class(), facts(), sold, SETTINGS))
        return [(node.instance_types, node.pods) for node in found.new_nodes]

    assert len(chosen(1)) > 1
    assert chosen(7) == chosen(1)
