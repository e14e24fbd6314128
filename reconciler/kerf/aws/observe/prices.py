"""Prices: on-demand from the Price List service, spot from EC2's price history, both as integers.

All prices are in millionths of a US dollar per hour (in China: of a yuan). The Price List service lives in few
regions and is easily out of reach: what then takes the place of its prices, `kerf.ec2.pricing.prices` says.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import Any, Final

from botocore.exceptions import UnknownRegionError

from kerf.aws.requests import service_models
from kerf.aws.requests.clients import Clients, pages
from kerf.aws.requests.errors import translated
from kerf.aws.requests.parallel import each
from kerf.ports import Unavailable

MICRO: Final = 1_000_000
#: No machine costs more an hour.
MOST_DOLLARS: Final = 1_000_000
COMMON_FILTERS: Final = {
    "serviceCode": "AmazonEC2",
    "preInstalledSw": "NA",
    "operatingSystem": "Linux",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
}
#: Ordinary types are sold on shared hosts, bare metal only as dedicated.
OFFERS: Final = (
    {"tenancy": "Shared", "productFamily": "Compute Instance"},
    {"tenancy": "Dedicated", "productFamily": "Compute Instance (bare metal)"},
)
#: Where the Price List service answers, by the beginning of a region's name; in `us-east-1` for all others.
CONTINENTS: Final = {"ap-": "ap-south-1", "eu-": "eu-central-1"}
#: In the name that botocore forms for the service's FIPS endpoint.
_NO_SUCH_HOST: Final = ".pricing-fips."
SPOT_PRODUCTS: Final = ["Linux/UNIX", "Linux/UNIX (Amazon VPC)"]


def price_list(clients: Clients) -> Any | None:
    """Return the client of the Price List service; None where the service has no endpoint: GovCloud, FIPS.

    With FIPS endpoints (AWS_USE_FIPS_ENDPOINT) botocore forms a name that does not exist, unless the SDK's
    AWS_ENDPOINT_URL_PRICING gives another one. Source: botocore's endpoints.json, `api.pricing` has no variant `fips`.
    """
    home = price_list_region(clients.region)
    if not home:
        return None
    client = clients.get("pricing", region=home)
    return None if _NO_SUCH_HOST in client.meta.endpoint_url else client


@cache
def price_list_region(region: str) -> str:
    """Return the region in which the Price List service answers for a region; empty where its partition has none.

    That is one of the same partition, and of the same continent if there is one. A region that botocore does not know
    counts as one of the partition `aws`.
    """
    session = service_models.session()
    try:
        partition = session.get_partition_for_region(region)
    except UnknownRegionError:
        partition = "aws"
    homes = session.get_available_regions("pricing", partition_name=partition)
    near = next((home for prefix, home in CONTINENTS.items() if region.startswith(prefix)), "us-east-1")
    return near if near in homes else min(homes, default="")


def read_on_demand(clients: Clients) -> dict[str, int]:
    """The on-demand price of every type sold in the region; empty where the Price List service has no endpoint.

    A region may have no bare metal. Raises Unavailable when there is no price of a shared host.
    """
    pricing = price_list(clients)
    if pricing is None:
        return {}
    currency = "CNY" if clients.region.startswith("cn-") else "USD"
    lists = each(lambda offer: _products(pricing, clients.region, offer), OFFERS)
    found = [on_demand_prices(products, currency) for products in lists]
    if not found[0]:
        raise Unavailable("pricing:GetProducts: no on-demand price found")
    return {name: price for prices in found for name, price in sorted(prices.items())}


def _products(pricing: Any, region: str, offer: Mapping[str, str]) -> list[str]:
    fields = {"regionCode": region, **COMMON_FILTERS, **offer}
    filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in fields.items()]
    with translated("pricing:GetProducts"):
        return pages(
            pricing,
            "get_products",
            "PriceList",
            ServiceCode="AmazonEC2",
            Filters=filters,
            PaginationConfig={"PageSize": 100},
        )


def on_demand_prices(products: Iterable[str], currency: str = "USD") -> dict[str, int]:
    """The lowest non-zero price of each type in a list of products (JSON texts of the Price List service).

    Raises Unavailable for a text that is no product.
    """
    prices: dict[str, int] = {}
    for text in products:
        name, terms = _product(text)
        for term in terms:
            for dimension in _object(term, "priceDimensions").values():
                price = micro_dollars(_object(dimension, "pricePerUnit").get(currency, ""))
                if name and price:
                    prices[name] = min(price, prices.get(name, price))
    return prices


def _product(text: str) -> tuple[str, Iterable[Any]]:
    """The instance type of a product, and its on-demand terms."""
    try:
        product = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unavailable(f"pricing:GetProducts: a product is not JSON: {error}") from error
    name = _object(_object(product, "product"), "attributes").get("instanceType", "")
    return str(name), _object(_object(product, "terms"), "OnDemand").values()


def _object(value: Any, key: str) -> Mapping[str, Any]:
    """The object under a key, empty without one."""
    found = value.get(key, {}) if isinstance(value, Mapping) else None
    if not isinstance(found, Mapping):
        raise Unavailable(f"pricing:GetProducts: a product has no object {key}")
    return found


def read_spot(ec2: Any) -> dict[tuple[str, str], int]:
    """The spot price by type and zone, now."""
    with translated("ec2:DescribeSpotPriceHistory"):
        rows = pages(
            ec2,
            "describe_spot_price_history",
            "SpotPriceHistory",
            ProductDescriptions=SPOT_PRODUCTS,
            StartTime=datetime.now(UTC),
            PaginationConfig={"PageSize": 1000},
        )
    return spot_prices(rows)


def spot_prices(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], int]:
    """The newest price of each (type, zone); rows without a time or a readable price are skipped."""
    newest: dict[tuple[str, str], tuple[datetime, int]] = {}
    for row in rows:
        price, at = micro_dollars(row.get("SpotPrice", "")), row.get("Timestamp")
        if not price or at is None:
            continue
        key = (row["InstanceType"], row["AvailabilityZone"])
        newest[key] = max((at, price), newest.get(key, (at, price)))
    return {key: newest[key][1] for key in sorted(newest)}


def micro_dollars(text: str) -> int:
    """`"0.0960000000"` as 96000; 0 when it is no price, or one beyond MOST_DOLLARS."""
    try:
        price = Decimal(text)
        return int((price * MICRO).to_integral_value()) if 0 <= price <= MOST_DOLLARS else 0
    except (InvalidOperation, TypeError, ValueError):
        return 0
