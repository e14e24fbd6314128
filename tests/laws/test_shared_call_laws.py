"""Laws of NodeClaims that share a CreateFleet call: it asks for each what the NodeClaim would ask for alone."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from kerf.ec2.launch import fleet
from kerf.ec2.launch.holding import Holding
from kerf.model.aws.cloud import FleetRequest, Override
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.ec2.ec2_facts import NOW, ZONES, catalogue, claim
from tests.unit.ec2.fleet_requests import BOTH, planned, typed

NAMES = ("c5.large", "m5.large", "m5.xlarge", "m7g.large", "r5.large", "r5.xlarge", "t3.large")
TYPES = catalogue(*NAMES)
LISTS = st.one_of(st.just(()), st.sets(st.sampled_from(NAMES), min_size=1).map(lambda names: (typed(*sorted(names)),)))
OFFERINGS = st.tuples(st.sampled_from(NAMES), st.sampled_from(ZONES), st.sampled_from(("spot", "on-demand")))
STOCK_OUTS = st.sets(OFFERINGS, max_size=30).map(lambda keys: dict.fromkeys(keys, NOW + timedelta(minutes=3)))


@st.composite
def similar(draw: st.DrawFn) -> list[NodeClaim]:
    """Claims that differ in the types that they list and in what they request."""
    market = draw(st.sampled_from([(), (BOTH,)]))
    found = []
    for number in range(draw(st.integers(2, 6))):
        cpu, memory = draw(st.integers(0, 4000)), draw(st.integers(0, 32000))
        requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi", "pods": str(draw(st.integers(1, 60)))}
        if draw(st.booleans()):
            requests["example.com/thing"] = "0"
        found.append(claim(f"c{number}", *market, *draw(LISTS), requests=requests))
    return found


def asked(claims: list[NodeClaim], out_of_stock: dict[tuple[str, str, str], datetime]) -> tuple[Override, ...] | None:
    found = planned(*claims, types=TYPES, out_of_stock=out_of_stock)
    return found.overrides if isinstance(found, FleetRequest) else None


@given(similar(), STOCK_OUTS)
def test_each_would_ask_for_the_same_alone(
    claims: list[NodeClaim], out_of_stock: dict[tuple[str, str, str], datetime]
) -> None:
    assert len({fleet.similar_launch(one) for one in claims}) == 1
    holding = Holding(claims[0], TYPES, out_of_stock, NOW)
    groups: dict[object, list[NodeClaim]] = {}
    for one in claims:
        key = holding.of(one)
        assert (key is None) is (asked([one], out_of_stock) is None)
        groups.setdefault(key, []).append(one)
    for key, members in groups.items():
        if key is not None:
            assert {asked([one], out_of_stock) for one in members} == {asked(members, out_of_stock)}
