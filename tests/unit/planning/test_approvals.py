"""The digest that a plan prints is the one that the controller computes once the change is applied."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kerf.disruption.candidates.approval import gate_of
from kerf.disruption.view import view
from kerf.model.memory import Memory
from kerf.planning.approvals import Approval
from kerf.planning.changes import Change, Comparison
from kerf.planning.forecast import forecast
from kerf.snapshots.captured import Captured
from kerf.snapshots.reading import read
from kerf.snapshots.writing import lines
from kerf_api import labels
from tests.scenarios.story import Story
from tests.worlds import node_class, node_pool

DATA = "#!/bin/bash\necho hello"
NOTES = {labels.PLAN_FIRST: "true"}
POOL: dict[str, Any] = {"disruption": {"consolidateAfter": "Never", "budgets": [{"nodes": "100%"}]}}


def staged(notes: dict[str, str] = NOTES) -> Story:
    """Two nodes of a NodePool whose changes wait, of a class with user data."""
    story = Story()
    story.play({"node_class": {"userData": DATA}, "stage": {"pools": {"general": POOL}}})
    story.play({"annotate": {"NodePool": {"general": notes}}})
    story.play({"deploy": {"web": {"replicas": 2, "alone": True}}, "expect": {"nodes": 2, "within": "3m"}})
    story.play({"run": "1m"})
    return story


def captured(story: Story, *, file: bool) -> Captured:
    found = Captured(story.player.snapshot(), story.world.ec2.region)
    return read(lines(found, b"key")) if file else found


def planned(found: Captured, *manifests: dict[str, Any]) -> tuple[Approval, ...]:
    change = Change(manifests)
    return forecast(found, Comparison(found.snapshot).comparable(change) if found.of_file else change).approvals


def waiting(story: Story) -> str:
    """The digest that the condition of the NodePool names."""
    (record,) = story._chosen("NodePool", "general")
    message = next(c.message for c in record.value.status.conditions if c.type == "ChangeApproved")
    found = re.search(r"plan ([0-9a-f]{20})", message)
    return found[1] if found is not None else ""


def changed_pool(**more: Any) -> dict[str, Any]:
    manifest = node_pool("general", {**POOL, "labels": {"version": "two"}, **more})
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": NOTES}}


def changed_class(**more: Any) -> dict[str, Any]:
    manifest = node_class()
    return {**manifest, "spec": {**manifest["spec"], "userData": DATA, **more}}


CHANGES = [
    pytest.param((changed_pool(),), id="pool"),
    pytest.param((changed_class(userData="#!/bin/bash\necho two"),), id="class"),
    pytest.param((changed_class(tags={"team": "web"}), changed_pool()), id="both"),
]


@pytest.mark.parametrize("file", [False, True], ids=["live", "file"])
@pytest.mark.parametrize("manifests", CHANGES)
def test_the_planned_digest_is_the_one_that_the_controller_waits_for(
    manifests: tuple[dict[str, Any], ...], file: bool
) -> None:
    story = staged()
    (found,) = planned(captured(story, file=file), *manifests)
    assert found.digest
    assert not found.approved
    for manifest in manifests:
        story.world.apply(manifest)
    story.play({"run": "5m"})
    assert found.digest == waiting(story)
    story.play({"annotate": {"NodePool": {"general": {labels.APPROVED_PLAN: found.digest}}}})
    story.play({"expect": {"conditions": {"NodePool general ChangeApproved": "True Approved"}, "within": "1m"}})


def test_the_commit_may_carry_the_digest() -> None:
    story = staged()
    found = captured(story, file=False)
    (row,) = planned(found, changed_pool())
    with_digest = changed_pool()
    with_digest["metadata"]["annotations"] = {**NOTES, labels.APPROVED_PLAN: row.digest}
    assert planned(found, with_digest) == (Approval("general", row.digest, approved=True),)


def test_the_plan_shows_the_time_after_the_approval() -> None:
    found = captured(staged(), file=False)
    assert [one.reason for one in forecast(found, Change((changed_pool(),))).planned.departures] == ["Drifted"] * 2


def test_nothing_is_to_be_approved_where_nothing_waits() -> None:
    assert planned(captured(staged({}), file=False), node_pool("general", {**POOL, "labels": {"a": "b"}})) == ()
    assert planned(captured(staged(), file=False)) == ()


def test_images_that_aws_alone_knows_are_no_digest() -> None:
    terms = [{"alias": "al2023@v20251201"}]
    (row,) = planned(captured(staged(), file=False), changed_class(amiSelectorTerms=terms))
    assert row.digest == ""
    assert row.unknown == "the images of EC2NodeClass default are not known before the change is applied"


def test_an_approved_change_is_approved_in_a_file_too() -> None:
    """The digest covers user data, which the file does not have: the annotations follow."""
    story = staged()
    story.play({"run": "1m"})
    (found,) = planned(captured(story, file=True), changed_pool())
    story.world.apply(changed_pool())
    story.play({"run": "1m"})
    assert found.digest == waiting(story)
    assert [_reason(captured(story, file=one)) for one in (False, True)] == ["", ""]
    story.play({"annotate": {"NodePool": {"general": {labels.APPROVED_PLAN: found.digest}}}})
    story.play({"run": "1s"})
    assert [_reason(captured(story, file=one)) for one in (False, True)] == ["Approved", "Approved"]


def _reason(found: Captured) -> str:
    seen = view(found.snapshot, Memory().turn(found.snapshot))
    return gate_of(seen, found.snapshot.node_pools["general"]).reason


def test_a_plan_of_a_file_without_the_class_has_the_digest_of_the_cluster() -> None:
    """The file has another digest of the class in place of the one that covers user data."""
    story = staged()
    live, file = (planned(captured(story, file=one), changed_pool()) for one in (False, True))
    assert live == file
    assert live[0].digest


def test_a_class_that_the_file_lacks_in_part_is_no_digest() -> None:
    """The NodePool gets the annotation with this change: the controller has noted nothing of its class."""
    (row,) = planned(captured(staged({}), file=True), changed_pool())
    assert row.unknown == "the snapshot does not have all of EC2NodeClass default; add its manifest"
