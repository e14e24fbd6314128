"""NodeRegistrationHealthy: what a NodePool remembers of its last launches and registrations."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.model import kinds
from kerf.model.backoff import registrations
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool
from tests.unit.lifecycle.world import World, node_claim, prepared

OWNER = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "default", "uid": "uid-pool-default"}
MINUTES = 60


PLACE = {
    labels.NODEPOOL: "default",
    labels.ZONE: "us-west-2a",
    labels.ARCH: "amd64",
    labels.INSTANCE_TYPE: "m5.large",
}


def owned(name: str, uid: str = "uid-pool-default") -> NodeClaim:
    return node_claim(name, meta={"ownerReferences": [{**OWNER, "uid": uid}]})


def pool(world: World) -> NodePool:
    found: NodePool = world.get(kinds.NODE_POOL, "default")
    return found


def health(world: World) -> tuple[str, str]:
    (found,) = (c for c in pool(world).status.conditions if c.type == "NodeRegistrationHealthy")
    return found.status, found.reason


def born(world: World, claim: NodeClaim) -> None:
    """The claim is created now and launches."""
    conditions: Any = ()
    meta = replace(claim.metadata, creation_timestamp=world.now)
    world.put(replace(claim, metadata=meta, status=replace(claim.status, conditions=conditions)))
    world.settle()


def succeeds(world: World, name: str) -> None:
    born(world, owned(name))
    world.join(world.claim(name))
    world.settle()


def fails(world: World, *claims: NodeClaim) -> None:
    """They launch, and no node comes of it."""
    for claim in claims:
        born(world, claim)
    world.pass_time(16 * MINUTES)
    world.settle()
    world.pass_time(1 * MINUTES)
    world.settle()
    assert all(world.get(kinds.NODE_CLAIM, claim.name) is None for claim in claims)


def test_the_first_registration_makes_it_healthy_and_writes_no_note() -> None:
    world = prepared()
    assert health(world) == ("Unknown", "AwaitingReconciliation")
    succeeds(world, "a")
    assert health(world) == ("True", "NodeRegistrationHealthy")
    assert labels.REGISTRATIONS not in pool(world).metadata.annotations


def test_two_failures_make_it_unhealthy_and_three_successes_healthy_again() -> None:
    world = prepared()
    fails(world, owned("a"))
    assert health(world) == ("Unknown", "AwaitingReconciliation"), "one failure says nothing"
    fails(world, owned("b"))
    assert health(world) == ("False", "RegistrationFailed")
    for number, expected in enumerate(("False", "False", "True", "True")):
        world.pass_time(5)
        succeeds(world, f"s{number}")
        assert health(world)[0] == expected
    assert labels.REGISTRATIONS not in pool(world).metadata.annotations


def test_failures_at_the_same_time_count_each() -> None:
    world = prepared()
    fails(world, owned("a"), owned("b"))
    assert health(world) == ("False", "RegistrationFailed")


@pytest.mark.parametrize("claims", [(owned("a", "another"), owned("b", "another")), (node_claim("a"), node_claim("b"))])
def test_claims_of_a_former_pool_or_of_nobody_do_not_count(claims: tuple[NodeClaim, ...]) -> None:
    world = prepared()
    fails(world, *claims)
    assert health(world) == ("Unknown", "AwaitingReconciliation")


def test_a_failure_is_remembered_with_its_place_and_its_pods() -> None:
    world = prepared()
    claim, notes = owned("a"), {labels.PLANNED_PODS: ",".join(f"m{n}" for n in range(9))}
    fails(world, replace(claim, metadata=replace(claim.metadata, annotations=notes, labels=PLACE | {"app": "web"})))
    (found,) = registrations(pool(world), world.now)
    assert (dict(found.where), found.pods) == (PLACE, tuple(f"m{n}" for n in range(8)))


def test_claims_from_before_an_edit_say_nothing_of_the_pool() -> None:
    world = prepared()
    version = pool(world).metadata.annotations[labels.NODEPOOL_HASH_VERSION]
    notes = {labels.NODEPOOL_HASH: "before", labels.NODEPOOL_HASH_VERSION: version}
    claims = [owned("a"), owned("b")]
    fails(world, *(replace(one, metadata=replace(one.metadata, annotations=notes)) for one in claims))
    assert health(world) == ("Unknown", "AwaitingReconciliation")


def test_claims_that_cannot_be_read_say_nothing_of_the_pool() -> None:
    world = prepared()
    for name in ("a", "b"):
        born(world, owned(name))
        claim = world.claim(name)
        torn = replace(claim.metadata, unreadable="Expected `array`, got `object` - at `$.status.conditions`")
        world.put(replace(claim, metadata=torn, status=replace(claim.status, conditions=())))
    world.pass_time(16 * MINUTES)
    world.settle()
    assert health(world) == ("Unknown", "AwaitingReconciliation")


#: The second one has a time without a zone.
@pytest.mark.parametrize("text", ["{", '[{"claim":"u","at":"2026-01-01T12:00:00","reason":"RegistrationFailed"}]'])
def test_a_note_that_cannot_be_read_is_made_anew(text: str) -> None:
    world = prepared()
    known = pool(world)
    notes = {**known.metadata.annotations, labels.REGISTRATIONS: text}
    world.put(replace(known, metadata=replace(known.metadata, annotations=notes)))
    world.settle()
    assert labels.REGISTRATIONS not in pool(world).metadata.annotations
    fails(world, owned("a"), owned("b"))
    assert health(world)[0] == "False"
