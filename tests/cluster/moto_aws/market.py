"""What this AWS sells, where and at what price: instance types, offerings, spot history and the Price List service."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, INSTANCE_TYPES

from kerf.ec2.pricing import prices as estimates

from .settings import MotoSettings
from .wire import page_of

SPOT_SHARE = (38, 39, 40)  # per cent of the on-demand price, by zone in turn
FALLBACK_PER_VCPU, FALLBACK_PER_GIB = 60_000, 4_000


@cache
def price(instance_type: str) -> int:
    """On-demand, in millionths of a dollar per hour."""
    info = INSTANCE_TYPES[instance_type]
    vcpus, memory = info["VCpuInfo"]["DefaultVCpus"], info["MemoryInfo"]["SizeInMiB"]
    known = estimates.on_demand_estimate(instance_type, vcpus, memory)
    return known or FALLBACK_PER_VCPU * vcpus + FALLBACK_PER_GIB * memory // 1024


def spot_price(instance_type: str, zone: str) -> int:
    """About two fifths of the on-demand price, a little different from zone to zone."""
    return price(instance_type) * SPOT_SHARE["abc".find(zone[-1]) % 3] // 100


class Market:
    """The types of the chosen families, as `region` offers them."""

    def __init__(self, settings: MotoSettings) -> None:
        self._families = frozenset(settings.families)
        self._answers: dict[str, list[dict[str, Any]]] = {}

    def sells(self, instance_type: str) -> bool:
        return not self._families or instance_type.partition(".")[0] in self._families

    def offered(self, region: str) -> frozenset[tuple[str, str]]:
        """All (type, zone name) of a region."""
        return frozenset((row["InstanceType"], row["Location"]) for row in self._offerings(region))

    def types_page(self, response: Any) -> str:
        """DescribeInstanceTypes, in pages of at most 100. Source: EC2 API reference, DescribeInstanceTypes."""
        response.error_on_dryrun()
        names = response._get_param("InstanceTypes", [])
        filters = response._filters_from_querystring()
        key = json.dumps([sorted(names), filters], sort_keys=True)
        if key not in self._answers:
            found = response.ec2_backend.describe_instance_types(names or None, filters)
            self._answers[key] = [dict(row) for row in found if self.sells(row["InstanceType"])]
        return page_of(response, "DescribeInstanceTypes", "InstanceTypes", self._answers[key], 100)

    def offerings_page(self, response: Any) -> str:
        """DescribeInstanceTypeOfferings by availability zone, in pages of at most 1000."""
        rows = self._offerings(response.region)
        return page_of(response, "DescribeInstanceTypeOfferings", "InstanceTypeOfferings", rows, 1000)

    def spot_page(self, response: Any) -> str:
        """DescribeSpotPriceHistory: today's price of every offering, newest only. Pages of at most 1000."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        rows = [
            {
                "InstanceType": row["InstanceType"],
                "AvailabilityZone": row["Location"],
                "ProductDescription": "Linux/UNIX",
                "SpotPrice": f"{spot_price(row['InstanceType'], row['Location']) / 1e6:.6f}",
                "Timestamp": now,
            }
            for row in self._offerings(response.region)
        ]
        return page_of(response, "DescribeSpotPriceHistory", "SpotPriceHistory", rows, 1000)

    def products(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """GetProducts of the Price List service. Source: AWS Price List API reference, GetProducts."""
        wanted = {one["Field"]: one["Value"] for one in request.get("Filters", ())}
        metal = wanted.get("productFamily", "").endswith("(bare metal)")
        found = list(self._products(wanted.get("regionCode", ""), metal))
        start, size = int(request.get("NextToken") or 0), int(request.get("MaxResults") or 100)
        answer: dict[str, Any] = {"FormatVersion": "aws_v1", "PriceList": found[start : start + size]}
        if start + size < len(found):
            answer["NextToken"] = str(start + size)
        return answer

    def _products(self, region: str, metal: bool) -> Iterator[str]:
        for name in sorted({row["InstanceType"] for row in self._offerings(region)}):
            if ("metal" in name) == metal:
                dollars = {"USD": f"{price(name) / 1e6:.10f}"}
                terms = {"OnDemand": {"T": {"priceDimensions": {"D": {"unit": "Hrs", "pricePerUnit": dollars}}}}}
                yield json.dumps({"product": {"attributes": {"instanceType": name}}, "terms": terms})

    def _offerings(self, region: str) -> list[dict[str, Any]]:
        if region not in self._answers:
            rows = INSTANCE_TYPE_OFFERINGS["availability-zone"].get(region, [])
            known = (row for row in rows if row["InstanceType"] in INSTANCE_TYPES and self.sells(row["InstanceType"]))
            self._answers[region] = list(known)
        return self._answers[region]
