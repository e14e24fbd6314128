"""Launch groups and requests that others wrote to NodeClaims launch nothing, and instances of an earlier version are
adopted."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest
from msgspec.structs import replace

from kerf.lifecycle.nodeclaim.unmarked import UNMARKED
from kerf.model import kinds
from kerf.model.aws.cloud import FleetRequest
from kerf.model.aws.launch_marks import MarkedLaunch
from kerf.model.kinds import ref
from kerf.model.plan import LaunchInstances, TerminateInstance
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.lifecycle.world import World, node_claim, prepared, running


def noted(claim: NodeClaim, notes: Mapping[str, str]) -> NodeClaim:
    return replace(claim, metadata=replace(claim.metadata, annotations={**claim.metadata.annotations, **notes}))


def write(world: World, name: str, **notes: str) -> None:
    world.put(noted(world.claim(name), notes))


def requested(*names: str) -> tuple[World, Mapping[str, str]]:
    """Claims that bear a marked request, before its call; and the annotations of the first of them."""
    world = prepared(*(node_claim(name) for name in names))
    world.obey(world.decide())
    assert not world.calls
    return world, world.claim(names[0]).metadata.annotations


def without_mark(world: World, *names: str) -> None:
    """As the version before marks wrote them."""
    for name in names:
        claim = world.claim(name)
        notes = {key: value for key, value in claim.metadata.annotations.items() if key != labels.LAUNCH_MARK}
        world.put(replace(claim, metadata=replace(claim.metadata, annotations=notes)))


def requests(world: World) -> list[FleetRequest]:
    return [deed.request for deed in world.done(LaunchInstances)]


# --- what others write ------------------------------------------------------------------------------------------
def planted(text: str, group: str = "theirs") -> dict[str, str]:
    return {labels.LAUNCH_GROUP: group, labels.LAUNCH_REQUEST: text}


def a_request(world: World, **changed: object) -> str:
    """Kerf's own request with another image, profile or members, as an editor of NodeClaims would write it."""
    own = msgspec.json.decode(world.claim("a").metadata.annotations[labels.LAUNCH_REQUEST])
    return msgspec.json.encode({**own, "group": "theirs", **changed}).decode()


@pytest.mark.parametrize("mark", ["", "x", "copied", "own"])
def test_a_planted_request_is_not_sent(mark: str) -> None:
    world, own = requested("a")
    text = a_request(world, members=["b", *(f"ghost-{n}" for n in range(19))])
    world.put(node_claim("b"))
    copied = {"": {}, "x": {labels.LAUNCH_MARK: "x"}, "copied": {labels.LAUNCH_MARK: own[labels.LAUNCH_MARK]}}
    other = world.keys.mark(MarkedLaunch("uid-of-an-earlier-claim", "theirs", text))
    write(world, "b", **planted(text), **(copied[mark] if mark != "own" else {labels.LAUNCH_MARK: other}))
    for _ in range(5):
        world.settle()
        world.pass_time(30)
    assert [request.group for request in requests(world) if request.group == "theirs"] == []
    assert all(len(request.members) == 1 for request in requests(world))
    assert len(world.instances) == 2
    assert world.claim("b").is_true("Launched")


def test_a_request_that_was_changed_under_its_mark_is_not_sent() -> None:
    world, own = requested("a")
    group = own[labels.LAUNCH_GROUP]
    text = a_request(world, group=group, members=["a", *(f"ghost-{n}" for n in range(19))])
    write(world, "a", **{labels.LAUNCH_REQUEST: text})
    world.settle()
    assert [request.members for request in requests(world)] == [("a",)]
    assert len(world.instances) == 1


def test_a_claim_says_that_it_waits_and_why() -> None:
    world = prepared(node_claim("b"))
    write(world, "b", **planted("{}"))
    plan = world.settle()
    assert world.condition("Launched", "b") == ("Unknown", UNMARKED)
    assert [refusal.reason.code for refusal in plan.refusals] == [UNMARKED]
    assert plan.next_due is not None


def test_a_claim_whose_annotations_keep_changing_runs_out_of_time() -> None:
    world = prepared(node_claim("b"))
    for number in range(14):
        if world.get(kinds.NODE_CLAIM, "b") is not None:
            write(world, "b", **planted("{}", group=f"g{number}"))
        world.settle()
        world.pass_time(30)
    assert not world.calls
    assert world.get(kinds.NODE_CLAIM, "b") is None


def test_a_claim_that_names_the_group_of_others_takes_none_of_their_instances() -> None:
    world, own = requested("c", "d")
    world.put(node_claim("a"))  # the first by name
    write(world, "a", **{labels.LAUNCH_GROUP: own[labels.LAUNCH_GROUP]})
    world.settle()
    assert {world.claim(name).instance_id for name in ("c", "d")} == set(world.instances)
    world.pass_time(62)
    world.settle()
    ids = [world.claim(name).instance_id for name in ("a", "c", "d")]
    assert len(set(ids)) == 3 == len(world.instances)


def test_a_marked_claim_that_still_waits_is_dealt_its_instance_first() -> None:
    """The types of its class are unknown for a while, so that it cannot take its instance yet."""
    world, own = requested("c")
    world.obey(world.decide())
    assert len(world.instances) == 1
    world.put(node_claim("a"))
    write(world, "a", **{labels.LAUNCH_GROUP: own[labels.LAUNCH_GROUP]})
    world.facts["catalogues"] = {}
    world.settle()
    world.pass_time(62)
    world.settle()
    del world.facts["catalogues"]
    world.settle()
    assert world.claim("c").instance_id == "i-0000"
    assert world.claim("a").instance_id != "i-0000"
    assert not world.snapshot().launch_marks["a"].group or world.claim("a").instance_id


def test_a_claim_that_names_the_instance_of_another_does_not_get_it() -> None:
    world = running(node_claim("a"))
    instance = world.claim("a").instance_id
    world.put(node_claim("b"))
    write(world, "b", **{labels.INSTANCE: instance})
    plan = world.settle()
    assert not world.claim("b").instance_id
    assert "NotItsInstance" in {refusal.reason.code for refusal in plan.refusals}
    for _ in range(14):
        world.pass_time(30)
        world.settle()
    assert world.get(kinds.NODE_CLAIM, "b") is None
    assert not world.done(TerminateInstance)


def test_an_untagged_instance_is_not_terminated_for_a_claim_whose_group_bears_no_mark() -> None:
    world = running(node_claim("a"))
    world.add_instance("i-victim", {labels.LAUNCH_GROUP: "g"})
    world.put(node_claim("b"))
    write(world, "b", **{labels.INSTANCE: "i-victim", labels.LAUNCH_GROUP: "g"})
    world.delete(ref(world.claim("b")))
    for _ in range(3):
        world.settle()
        world.pass_time(5)
    assert world.get(kinds.NODE_CLAIM, "b") is None
    assert not world.done(TerminateInstance)


def test_an_eternal_claim_with_the_group_of_an_orphan_keeps_it_for_two_minutes_at_most() -> None:
    world = running(node_claim("a"))
    world.add_instance("i-orphan", {labels.LAUNCH_GROUP: "g"})
    claim = noted(node_claim("b"), {labels.LAUNCH_GROUP: "g"})
    world.put(replace(claim, spec=replace(claim.spec, resources=replace(claim.spec.resources, requests={"cpu": "x"}))))
    for _ in range(8):
        world.settle()
        world.pass_time(30)
    assert "i-orphan" in {one.instance_id for one in world.done(TerminateInstance)}


# --- what an earlier version, or a lost key, leaves -------------------------------------------------------------
def test_after_an_upgrade_the_instances_of_a_call_are_adopted() -> None:
    world, own = requested("a", "b")
    group = own[labels.LAUNCH_GROUP]
    without_mark(world, "a", "b")
    for number in range(2):
        world.add_instance(f"i-{number}", {labels.LAUNCH_GROUP: group})
    world.settle()
    assert not world.claim("a").instance_id
    world.pass_time(62)
    world.settle()
    assert {world.claim(name).instance_id for name in ("a", "b")} == {"i-0", "i-1"}
    assert not world.calls
    assert labels.LAUNCH_REQUEST not in world.claim("a").metadata.annotations
    assert world.snapshot().launch_marks["a"].group


def test_after_an_upgrade_a_call_that_was_not_made_is_made_as_another_one() -> None:
    world, own = requested("a", "b")
    without_mark(world, "a", "b")
    world.settle()
    assert not world.calls
    world.pass_time(62)
    world.settle()
    assert [sorted(request.members) for request in requests(world)] == [["a", "b"]]
    assert own[labels.LAUNCH_GROUP] not in world.calls
    assert all(world.claim(name).is_true("Launched") for name in ("a", "b"))
    assert len(world.instances) == 2


def test_a_call_that_gave_too_few_is_followed_by_another_for_the_rest() -> None:
    world, own = requested("a", "b", "c")
    without_mark(world, "a", "b", "c")
    world.add_instance("i-late", {labels.LAUNCH_GROUP: own[labels.LAUNCH_GROUP]})
    world.pass_time(62)
    world.settle()
    world.pass_time(62)
    world.settle()
    assert sorted(bool(world.claim(name).instance_id) for name in ("a", "b", "c")) == [True, True, True]
    assert len(world.instances) == 3


def test_after_an_upgrade_a_chosen_instance_that_is_not_tagged_yet_stays_chosen() -> None:
    world, own = requested("a")
    group = own[labels.LAUNCH_GROUP]
    without_mark(world, "a")
    world.add_instance("i-chosen", {labels.LAUNCH_GROUP: group})
    write(world, "a", **{labels.INSTANCE: "i-chosen"})
    world.settle()
    world.pass_time(62)
    world.settle()
    assert world.claim("a").instance_id == "i-chosen"
    assert not world.calls


def test_nothing_is_adopted_or_launched_before_a_list_that_is_late_enough() -> None:
    world, _ = requested("a")
    without_mark(world, "a")
    listed = world.now
    world.settle()
    world.pass_time(300)
    world.listed = listed
    world.settle()
    assert not world.calls


def test_running_claims_of_an_earlier_version_stay_as_they_are_and_end_as_before() -> None:
    world = running(node_claim("a"), node_claim("b"))
    without_mark(world, "a", "b")
    for _ in range(5):
        world.settle()
        world.pass_time(60)
    assert not world.deeds
    own = world.claim("a").instance_id
    world.delete(ref(world.claim("a")))
    for _ in range(6):
        world.settle()
        world.pass_time(30)
    assert {one.instance_id for one in world.done(TerminateInstance)} == {own}
    assert world.get(kinds.NODE_CLAIM, "a") is None
