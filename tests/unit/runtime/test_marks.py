"""The table of launch marks follows NodeClaims and keys, and says since when an unmarked group is doubted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from kerf.model.aws.launch_marks import LaunchMark, MarkedLaunch
from kerf.runtime.secrets.launch_keys import LaunchKeys
from kerf.runtime.state.marks import Marks
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.lifecycle.world import node_claim

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(seconds=10)
KEY, OTHER = b"k" * 32, b"o" * 32


def keys(current: bytes = KEY, *earlier: bytes) -> LaunchKeys:
    found = LaunchKeys("c")
    found.use(current, earlier)
    return found


def bearing(claim: NodeClaim, **notes: str) -> NodeClaim:
    return replace(claim, metadata=replace(claim.metadata, annotations={**claim.metadata.annotations, **notes}))


def marked(by: LaunchKeys, group: str = "g", request: str = "{}") -> NodeClaim:
    claim = node_claim("a")
    mark = by.mark(MarkedLaunch.of(claim, group, request))
    rows = {labels.LAUNCH_GROUP: group, labels.LAUNCH_REQUEST: request, labels.LAUNCH_MARK: mark}
    return bearing(claim, **rows)


def unmarked(group: str = "g") -> NodeClaim:
    return bearing(node_claim("a"), **{labels.LAUNCH_GROUP: group})


def test_a_claim_without_a_group_is_not_in_the_table() -> None:
    marks, claim = Marks(keys()), node_claim("a")
    marks.noticed(None, claim, NOW)
    assert marks.at({"a": claim}, NOW) == {}


def test_a_marked_claim_comes_changes_and_goes() -> None:
    marks, claim = Marks(keys()), marked(keys())
    marks.noticed(None, claim, NOW)
    assert marks.at({"a": claim}, NOW) == {"a": LaunchMark(True, True)}
    other = bearing(claim, **{labels.LAUNCH_REQUEST: "[]"})
    marks.noticed(claim, other, NOW)
    assert marks.at({"a": other}, NOW) == {"a": LaunchMark(True, False)}
    marks.noticed(other, None, NOW)
    assert marks.at({}, NOW) == {}


def test_an_unmarked_group_is_doubted_from_when_it_was_first_seen() -> None:
    marks, claim = Marks(keys()), unmarked()
    marks.noticed(None, claim, NOW)
    later = bearing(claim, **{labels.LAUNCH_REQUEST: "{}"})
    marks.noticed(claim, later, LATER)
    assert marks.at({"a": later}, LATER)["a"].doubted_since == NOW
    again = bearing(later, **{labels.LAUNCH_GROUP: "h"})
    marks.noticed(later, again, LATER)
    assert marks.at({"a": again}, LATER)["a"].doubted_since == LATER


def test_a_doubt_begins_again_while_this_process_stands_by() -> None:
    marks, claim = Marks(keys()), unmarked()
    marks.noticed(None, claim, NOW)
    marks.stand_by(LATER)
    assert marks.at({"a": claim}, LATER)["a"].doubted_since == LATER
    assert marks.at({"a": claim}, LATER + timedelta(hours=1))["a"].doubted_since == LATER


def test_doubts_keep_their_age_when_the_clock_is_set_back() -> None:
    marks, claim = Marks(keys()), unmarked()
    marks.noticed(None, claim, LATER)
    marks.set_back(timedelta(seconds=10))
    assert marks.at({"a": claim}, NOW)["a"].doubted_since == NOW


def test_a_key_that_is_read_later_settles_the_doubt() -> None:
    own = LaunchKeys("c")
    marks, claim = Marks(own), marked(keys())
    marks.noticed(None, claim, NOW)
    assert marks.at({"a": claim}, NOW)["a"] == LaunchMark(doubted_since=NOW)
    own.use(KEY)
    assert marks.at({"a": claim}, LATER)["a"] == LaunchMark(True, True)


def test_an_earlier_key_is_in_use_while_a_claim_bears_a_mark_by_it() -> None:
    marks, claim = Marks(keys(KEY, OTHER)), marked(keys(OTHER))
    marks.at({}, NOW)
    assert not marks.earlier_key_in_use
    marks.noticed(None, claim, NOW)
    assert marks.at({"a": claim}, NOW)["a"].request
    assert marks.earlier_key_in_use
    marks.noticed(claim, None, NOW)
    assert not marks.earlier_key_in_use


def test_an_earlier_key_may_be_in_use_until_all_claims_have_been_checked_by_the_present_keys() -> None:
    """The leader keeps it in the Secret, though it leads before it knows the claims."""
    own = LaunchKeys("c")
    marks, claim = Marks(own), marked(keys(OTHER))
    assert marks.earlier_key_in_use
    marks.noticed(None, claim, NOW)
    marks.at({"a": claim}, NOW)
    own.use(KEY, (OTHER,))
    assert marks.earlier_key_in_use
    marks.noticed(claim, None, NOW)
    marks.at({}, NOW)
    assert not marks.earlier_key_in_use


def test_the_table_is_the_same_object_until_something_changes() -> None:
    marks, claim = Marks(keys()), marked(keys())
    marks.noticed(None, claim, NOW)
    first = marks.at({"a": claim}, NOW)
    marks.noticed(claim, bearing(claim, other="x"), LATER)
    assert marks.at({"a": claim}, LATER) is first
