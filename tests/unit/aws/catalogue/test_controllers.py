"""What else is kept up: orphans, tags, prices, reservations' ends, what is known of the cluster (62, 212 to 222)."""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.aws.observe.prices import on_demand_prices, price_list, price_list_region, spot_prices
from kerf.aws.requests.clients import Clients
from kerf.disruption.forced.expiration import expire
from kerf.ec2.instance_types.catalogue import build
from kerf.ec2.pricing.prices import priced
from kerf.model import kinds
from kerf.model.kubernetes.objects import Node
from kerf.model.memory import Memory
from kerf.model.plan import DeleteObject, TagInstance, TerminateInstance
from kerf.ports import Unavailable
from kerf.runtime.inbox import ChoreFailed, Inbox
from kerf.runtime.observe.observer import REGION_EVERY, STEPS, Observer
from kerf.runtime.state.state import State
from kerf.sandbox.faults import Call, Faults
from kerf.sandbox.world import World as Sandbox
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import ResolvedReservation
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.aws.test_aws_prices import product, spot_row
from tests.unit.ec2.ec2_facts import SETTINGS, ZONES, facts, node_class, region
from tests.unit.lifecycle.nodes import launched
from tests.unit.lifecycle.world import World, node_claim, prepared, running
from tests.unit.runtime.clocks import SetBack

OWN = {labels.TAG_NODEPOOL: "default", labels.TAG_NODECLASS: "default"}


# --- orphans ----------------------------------------------------------------------------------------------------
def orphaned(seconds: float, *, tags: Any = OWN) -> World:
    """An instance of this age that no claim has."""
    world = prepared()
    world.add_instance("i-lost", tags, launched=world.now - timedelta(seconds=seconds))
    world.settle()
    return world


def test_212_an_instance_without_a_claim_goes_with_its_node() -> None:
    """It is a minute old then, not half of one: until then its claim may only not be seen."""
    assert [end.instance_id for end in orphaned(60).done(TerminateInstance)] == ["i-lost"]
    assert orphaned(59).done(TerminateInstance) == []
    world = running(node_claim("a"))
    claim = world.claim()
    world.objects.pop(kinds.ref(claim))
    world.put(node_claim("b"))
    world.pass_time(60)
    world.settle()
    node = world.get(kinds.NODE, "node-a")
    assert node is None or node.metadata.deleting
    assert claim.instance_id in [end.instance_id for end in world.done(TerminateInstance)]


def test_212_one_that_a_claim_has_stays() -> None:
    world = running(node_claim("a"))
    world.pass_time(600)
    world.settle()
    assert world.done(TerminateInstance) == []


def test_062_an_instance_that_ends_by_itself_is_not_asked_to() -> None:
    world = running(node_claim("a"))
    (id_,) = world.instances
    world.instances[id_] = changed(world.instances[id_], state="shutting-down")
    world.shutting_down[id_] = world.now
    world.delete(kinds.ref(world.claim()))
    for _ in range(6):
        world.settle()
        world.pass_time(10)
    assert world.done(TerminateInstance) == []
    assert world.get(kinds.NODE_CLAIM, "a") is None


# --- tags -------------------------------------------------------------------------------------------------------
def joined(**tags: str) -> World:
    world = launched()
    id_ = world.claim().instance_id
    world.instances[id_] = changed(world.instances[id_], tags={**world.instances[id_].tags, **tags})
    world.join(world.claim())
    return world


NAMES = {labels.TAG_NAME: "node-a", labels.TAG_NODECLAIM: "a", labels.TAG_EKS_CLUSTER: "demo"}


@pytest.mark.parametrize("there", [{}, {labels.TAG_NAME: "mine"}, {labels.TAG_EKS_CLUSTER: "demo"}, NAMES])
def test_213_tags_that_an_instance_lacks_are_written_and_then_noted(there: dict[str, str]) -> None:
    world = joined(**there)
    before = world.instances[world.claim().instance_id].tags
    world.settle()
    written = [dict(deed.tags) for deed in world.done(TagInstance)]
    missing = {key: value for key, value in NAMES.items() if key not in before}
    assert written == ([missing] if missing else [])
    notes = world.claim().metadata.annotations
    assert (notes[labels.TAGGED], notes[labels.CLUSTER_NAME_TAGGED]) == ("true", "true")


@pytest.mark.parametrize("trouble", ["no node", "no provider ID", "deleting", "gone"])
def test_213_where_there_is_nothing_to_tag_nothing_is_written(trouble: str) -> None:
    world = joined() if trouble != "no node" else launched()
    claim = world.claim()
    if trouble == "no provider ID":
        world.objects.pop(kinds.ref(world.node("node-a")))
        world.put(replace(claim, status=replace(claim.status, provider_id="i-am-no-provider-id")))
    elif trouble == "deleting":
        world.delete(kinds.ref(claim))
    elif trouble == "gone":
        world.instances.clear()
        world.facts["fresh_at"] = {}
    plan = world.decide()
    world.obey(plan)
    assert world.done(TagInstance) == []
    assert not [r for r in plan.refusals if r.reason.code == "InternalError"]
    assert labels.TAGGED not in claim.metadata.annotations


# --- prices -----------------------------------------------------------------------------------------------------
def test_214_prices_that_aws_does_not_return_are_those_known_else_our_own() -> None:
    sold = changed(region("m5.large", "c5.large"), on_demand={})
    assert priced(sold, {"m5.large": 96_000}, {}).on_demand == {"m5.large": 96_000, "c5.large": 85_000}
    pages = [product("m5.large", "0.1"), product("c5.large", "0.2")]
    assert on_demand_prices(pages) == {"m5.large": 100_000, "c5.large": 200_000}


def test_214_china_pays_in_yuan_and_govcloud_has_no_list() -> None:
    yuan = [product("m5.large", "0.7", currency="CNY")]
    assert (on_demand_prices(yuan, "CNY"), on_demand_prices(yuan)) == ({"m5.large": 700_000}, {})
    assert price_list_region("cn-north-1") == "cn-northwest-1"
    assert [price_list(Clients(name)) is None for name in ("us-gov-west-1", "us-west-2")] == [True, False]


def test_215_spot_in_a_zone_without_a_price_is_not_launched() -> None:
    told = spot_prices([spot_row("0.03", zone=zone) for zone in ZONES[:2]])
    (found,) = build(node_class(), facts(), changed(region("m5.large"), spot=told), SETTINGS)
    spot = {o.zone: o.available for o in found.offerings if o.capacity_type == "spot"}
    assert spot == {ZONES[0]: True, ZONES[1]: True, ZONES[2]: False}
    assert {o.available for o in found.offerings if o.capacity_type == "on-demand"} == {True}


class Failing(Faults):
    """The region cannot be read while `down`."""

    down = False

    def before(self, call: Call) -> None:
        if self.down and call.verb == "region":
            raise Unavailable("ec2:DescribeInstanceTypes: no instance types found")


def test_120_what_is_known_of_the_region_is_kept_while_it_cannot_be_read() -> None:
    faults, inbox, clock = Failing(), Inbox(), SetBack()
    known = State(SETTINGS, build=build, interpret=lambda _: None)
    observer = Observer(Sandbox(faults=faults).cloud, clock, inbox, known)

    def look() -> list[str]:
        """What could not be asked."""
        observer.run_due(clock.now())
        news = inbox.drain()
        for item in news:
            known.take(item, clock.now())
        return [item.key for item in news if isinstance(item, ChoreFailed)]

    assert look() == []
    before = known.catalogues.region
    assert before is not None
    faults.down = True
    clock.sleep(REGION_EVERY.total_seconds())
    assert look() == ["region"]
    assert known.catalogues.region is before
    assert [one.object for one in known.snapshot(clock.now()).failures.values()] == ["aws/region"]
    faults.down = False
    clock.sleep(STEPS.longest.total_seconds())
    assert look() == []
    assert known.catalogues.region == before
    assert not known.snapshot(clock.now()).failures


# --- capacity reservations --------------------------------------------------------------------------------------
HELD = {labels.CAPACITY_TYPE: "reserved", labels.RESERVATION_ID: "cr-1", labels.RESERVATION_TYPE: "default"}


@pytest.mark.parametrize("stale", [("claim", "node"), ("node",), ("claim",)])
def test_216_what_ec2_says_is_on_demand_is_called_so(stale: tuple[str, ...]) -> None:
    world = running(node_claim("a"))
    values: dict[str, NodeClaim | Node] = {"claim": world.claim(), "node": world.node("node-a")}
    for name in stale:
        meta = values[name].metadata
        world.put(replace(values[name], metadata=replace(meta, labels={**meta.labels, **HELD})))
    world.settle()
    for value in (world.claim(), world.node("node-a")):
        assert value.metadata.labels.get(labels.CAPACITY_TYPE) == "on-demand"
        assert not set(labels.RESERVATION_LABELS) & set(value.metadata.labels)


@pytest.mark.parametrize(("state", "ends"), [("expiring", ["a"]), ("active", [])])
def test_217_what_is_in_a_capacity_block_goes_before_that_ends(state: str, ends: list[str]) -> None:
    world = running(node_claim("a"), node_claim("b"))
    claim, of = world.claim("a"), world.get(kinds.NODE_CLASS, "default")
    world.put(replace(claim, metadata=replace(claim.metadata, labels={**claim.metadata.labels, **HELD})))
    row = ResolvedReservation(
        availability_zone="us-west-2a",
        id="cr-1",
        instance_match_criteria="targeted",
        instance_type="m5.large",
        owner_id="1" * 12,
        state=state,
    )
    world.put(replace(of, status=replace(of.status, capacity_reservations=(row,))))
    plan = expire(Memory().turn(world.snapshot()))
    assert [action.ref.name for action in plan.actions if isinstance(action, DeleteObject)] == ends
