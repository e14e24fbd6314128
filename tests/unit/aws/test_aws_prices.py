"""Prices as AWS writes them, as integers."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest

from kerf.aws.observe import prices
from kerf.aws.observe.prices import (
    micro_dollars,
    on_demand_prices,
    price_list,
    price_list_region,
    read_on_demand,
    spot_prices,
)
from kerf.aws.requests.clients import Clients
from kerf.ports import Unavailable

NOW = datetime(2026, 11, 20, tzinfo=UTC)


def product(name: str, *prices: str, currency: str = "USD") -> str:
    terms = {f"t{i}": {"priceDimensions": {"d": {"pricePerUnit": {currency: p}}}} for i, p in enumerate(prices)}
    return json.dumps({"product": {"attributes": {"instanceType": name}}, "terms": {"OnDemand": terms}})


def spot_row(price: str, at: datetime | None = NOW, zone: str = "us-west-2a") -> dict[str, Any]:
    return {"InstanceType": "m5.large", "AvailabilityZone": zone, "SpotPrice": price, "Timestamp": at}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0.0960000000", 96_000), ("4.0", 4_000_000), ("0.0000004", 0), ("0", 0), ("", 0), ("cheap", 0)],
)
def test_a_price_is_an_integer(text: str, expected: int) -> None:
    assert micro_dollars(text) == expected


def test_the_lowest_price_that_is_not_zero_counts() -> None:
    assert on_demand_prices([product("m5.large", "0.2", "0.0", "0.096")]) == {"m5.large": 96_000}
    assert on_demand_prices([product("m5.large", "0.0"), product("", "1.0")]) == {}


def test_china_pays_in_yuan() -> None:
    assert on_demand_prices([product("m5.large", "0.7", currency="CNY")], "CNY") == {"m5.large": 700_000}
    assert on_demand_prices([product("m5.large", "0.7", currency="CNY")]) == {}


def test_the_newest_spot_price_of_each_zone_counts() -> None:
    rows = [
        spot_row("0.040"),
        spot_row("0.050", NOW - timedelta(hours=1)),
        spot_row("0.030", zone="us-west-2b"),
        spot_row("0.001", None, zone="us-west-2c"),
        spot_row("free", zone="us-west-2c"),
    ]
    assert spot_prices(rows) == {("m5.large", "us-west-2a"): 40_000, ("m5.large", "us-west-2b"): 30_000}


@pytest.mark.parametrize(
    ("region", "home"),
    [
        ("us-west-2", "us-east-1"),
        ("eu-north-1", "eu-central-1"),
        ("ap-southeast-2", "ap-south-1"),
        ("cn-north-1", "cn-northwest-1"),
        ("sa-east-1", "us-east-1"),
        ("xx-north-9", "us-east-1"),
        ("us-gov-west-1", ""),
        ("us-iso-west-1", "us-iso-east-1"),
        ("eu-isoe-west-1", "eu-isoe-west-1"),
        ("eusc-de-east-1", "eusc-de-east-1"),
    ],
)
def test_where_the_price_list_answers(region: str, home: str) -> None:
    assert price_list_region(region) == home


@pytest.mark.parametrize("metal", [[], [product("m5.metal", "4.6")]], ids=["no bare metal", "bare metal"])
def test_a_region_may_have_no_bare_metal(monkeypatch: pytest.MonkeyPatch, metal: list[str]) -> None:
    lists = {"Shared": [product("m5.large", "0.096")], "Dedicated": metal}
    monkeypatch.setattr(prices, "_products", lambda client, region, offer: lists[offer["tenancy"]])
    clients = Clients("us-west-2", boto3.session.Session("a", "b", region_name="us-west-2"))
    assert read_on_demand(clients) == {"m5.large": 96_000, **({"m5.metal": 4_600_000} if metal else {})}
    lists["Shared"] = []
    with pytest.raises(Unavailable, match="no on-demand price"):
        read_on_demand(clients)


@pytest.mark.parametrize("region", ["us-gov-west-1", "us-gov-east-1"])
def test_govcloud_has_no_price_list(region: str) -> None:
    clients = Clients(region)
    assert (price_list(clients), read_on_demand(clients)) == (None, {})
    assert price_list(Clients("us-west-2")) is not None


@pytest.mark.parametrize("region", ["us-west-2", "eu-west-1", "ap-south-1", "cn-north-1"])
def test_fips_has_no_price_list_but_the_address_that_the_sdk_is_given(
    monkeypatch: pytest.MonkeyPatch, region: str
) -> None:
    monkeypatch.setenv("AWS_USE_FIPS_ENDPOINT", "true")
    assert read_on_demand(Clients(region)) == {}
    address = "https://api.pricing.us-east-1.amazonaws.com"
    monkeypatch.setenv("AWS_ENDPOINT_URL_PRICING", address)
    asked = price_list(Clients(region))
    assert asked is not None
    assert asked.meta.endpoint_url == address
