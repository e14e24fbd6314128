"""What Kerf deletes it notes first, so that nobody takes it for somebody else's deletion."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from kerf.model import ends, kinds
from kerf.model.plan import Action, DeleteObject, PatchObject, Reason, Source
from kerf.model.writes import deletion
from kerf_api import labels
from tests.unit.lifecycle.world import World, node_claim, prepared, running

EXPIRED = Reason("Expired", "it is old")


def noted(world: World, reason: Reason = EXPIRED, name: str = "a") -> list[Action]:
    action = deletion(world.claim(name), reason, Source.NODE_CLAIMS)
    return list(ends.noted(world.snapshot(), [action]))


def test_the_note_comes_first_and_in_the_same_lane() -> None:
    world = running(node_claim())
    found = noted(world)
    assert [action.key for action in found] == ["NoteEnd nodeclaim/a", "DeleteObject nodeclaim/a"]
    note, end = found
    assert isinstance(note, PatchObject)
    assert isinstance(end, DeleteObject)
    assert note.lane == end.lane == "nodeclaim/a"
    assert note.patch == {"metadata": {"annotations": {labels.ENDS: "2026-01-01T12:00:00Z Expired"}}}
    assert note.resource_version == ""
    world.obey(world.decide().__class__(actions=(note, end)))
    assert ends.by_us(world.claim())


def test_a_note_that_is_ahead_of_the_deletion_is_not_believed() -> None:
    """An editor of NodeClaims could write one for all deletions to come."""
    for year in (2026, 2027, 9999):
        world = running(node_claim(meta={"annotations": {labels.ENDS: f"{year}-01-02T12:00:00Z Expired"}}))
        world.delete(kinds.ref(world.claim()))
        assert not ends.by_us(world.claim()), year


def test_what_has_no_node_or_a_command_or_was_a_persons_wish_gets_none() -> None:
    bare: dict[str, Any] = {"annotations": {labels.COMMAND: "{}"}}
    assert len(noted(prepared(node_claim()))) == 1
    assert len(noted(running(node_claim(meta=bare)))) == 1
    assert len(noted(running(node_claim()), Reason(ends.NODE_DELETED))) == 1


def test_it_is_written_once_a_minute_while_the_deletion_does_not_come_off() -> None:
    world = running(node_claim())
    world.obey(world.decide().__class__(actions=(noted(world)[0],)))
    assert len(noted(world)) == 1
    world.pass_time(timedelta(seconds=61).total_seconds())
    assert len(noted(world)) == 2


def test_other_deletions_are_left_as_they_are() -> None:
    world = running(node_claim())
    pod_or_node = deletion(world.node("node-a"), EXPIRED, Source.NODES)
    assert list(ends.noted(world.snapshot(), [pod_or_node])) == [pod_or_node]
    assert kinds.ref(world.node("node-a")).kind == "Node"
