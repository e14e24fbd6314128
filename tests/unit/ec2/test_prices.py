"""The fallback price table."""

from __future__ import annotations

import pytest

from reconciler.ec2.prices import on_demand


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
    assert on_demand(name, vcpus, memory_mib) == price


@pytest.mark.parametrize(("known", "memory_mib"), [("c7i.large", 4096), ("m7i.large", 8192), ("r7i.large", 16384)])
def test_an_unknown_general_family_is_ranked_near_its_kin(known: str, memory_mib: int) -> None:
    real, guess = on_demand(known, 2, memory_mib), on_demand(f"{known[0]}99.large", 2, memory_mib)
    assert real is not None
    assert guess is not None
    assert abs(guess - real) < real * 0.1
