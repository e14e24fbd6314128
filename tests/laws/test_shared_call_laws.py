"""Laws of NodeClaims that share a CreateFleet call: it asks for each what the NodeClaim would ask for alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kerf.ec2.launch import fleet
from kerf.model.aws.cloud import FleetRequest
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.ec2.ec2_facts import catalogue, claim
from tests.unit.ec2.fleet_requests import BOTH, planned, typed

NAMES = ("c5.large", "m5.large", "m5.xlarge", "m7g.large", "r5.large", "r5.xlarge", "t3.large")
TYPES = catalogue(*NAMES)
LISTS = st.one_of(st.just(()), st.sets(st.sampled_from(NAMES), min_size=1).map(lambda names: (typed(*sorted(names)),)))


@st.composite
def similar(draw: st.DrawFn) -> list[NodeClaim]:
    """Claims that differ in the types that they list and in what they request."""
    market = draw(st.sampled_from([(), (BOTH,)]))
    found = []
    for number in range(draw(st.integers(2, 6))):
        cpu, memory = draw(st.integers(1, 4000)), draw(st.integers(1, 32000))
        requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi", "pods": str(draw(st.integers(1, 60)))}
        found.append(claim(f"c{number}", *market, *draw(LISTS), requests=requests))
    return found


@given(similar())
def test_each_would_ask_for_the_same_alone(claims: list[NodeClaim]) -> None:
    assert len({fleet.similar_launch(one) for one in claims}) == 1
    groups: dict[object, list[NodeClaim]] = {}
    for one in claims:
        alone = planned(one, types=TYPES)
        if isinstance(alone, FleetRequest):
            groups.setdefault(fleet.asked_of_ec2(alone), []).append(one)
    for asked, members in groups.items():
        together = planned(*members, types=TYPES)
        assert isinstance(together, FleetRequest)
        assert fleet.asked_of_ec2(together) == asked
        assert together.members == tuple(one.name for one in members)


@given(similar())
def test_whatever_is_asked_for_together_suits_each(claims: list[NodeClaim]) -> None:
    """Though they would ask for something else alone."""
    together, sold = planned(*claims, types=TYPES), {kind.name: kind for kind in TYPES}
    for name in {override.instance_type for override in getattr(together, "overrides", ())}:
        for one in claims:
            assert one.requests().fits(sold[name].allocatable)
            assert one.requirements().allowed(labels.INSTANCE_TYPE).has(name)
