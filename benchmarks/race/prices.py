"""What moto sells and asks: the prices by which instances are billed, and the catalogue of the bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.scale_down.load import catalogue
from kerf_api import labels
from tests.cluster.moto_aws import market as moto
from tests.cluster.moto_aws.settings import ZONES, MotoSettings

Json = dict[str, Any]


def price(instance_type: str, zone: str, market: str) -> int:
    """In millionths of a dollar per hour."""
    return moto.spot_price(instance_type, zone) if market == labels.SPOT else moto.price(instance_type)


def for_sale(markets: Sequence[str]) -> list[Json]:
    """The types of both sides with the offerings of these markets, as `benchmarks.workloads` writes them."""
    zones = [f"{MotoSettings().region}{letter}" for letter in ZONES]
    return [
        {**row, "offerings": [_offering(row["name"], zone, market) for zone in zones for market in markets]}
        for row in catalogue()
    ]


def _offering(name: str, zone: str, market: str) -> Json:
    asked = price(name, zone, market) / 1e6
    return {"zone": zone, "capacityType": market, "price": asked, "available": True}
