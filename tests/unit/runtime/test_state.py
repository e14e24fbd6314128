"""What may be believed of what is known: from when on it is too old, and what puts it in doubt."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from kerf.model import kinds
from kerf.model.aws.accounts import NO_ACCOUNTS, Account, Accounts
from kerf.model.aws.cloud import ClassFacts, Region
from kerf.model.aws.instance_type import Catalogue
from kerf.model.kubernetes.objects import Node, Pod
from kerf.model.plan import Plan, Source
from kerf.model.settings import FeatureGates, Settings
from kerf.runtime.inbox import Changed, Described, Fresh, Listed, RegionRead, Removed, Resolved
from kerf.runtime.state.notices import TypesFailed
from kerf.runtime.state.state import State
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import Condition, NodeClassRef, ObjectMeta, decode
from kerf_api.v1.nodeclaim import NodeClaim, NodeClaimSpec, NodeClaimStatus
from kerf_api.v1.nodeoverlay import NodeOverlay, NodeOverlaySpec, NodeOverlayStatus

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SAID = NodeOverlayStatus(conditions=(Condition(type="Ready", status="True"),))


def state() -> State:
    return State(Settings(cluster_name="c"), build=lambda *_: (), interpret=lambda _: None)


def after(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


def fresh(known: State, now: datetime) -> bool:
    """Whether instances are, both to the plan and to the action."""
    found = known.fresh(frozenset({Source.INSTANCES}), now)
    assert known.snapshot(now).fresh(Source.INSTANCES) is found
    return found


def test_the_first_snapshot_already_says_that_types_cannot_be_worked_out() -> None:
    def fails(*_: object) -> Catalogue:
        raise KeyError("no such family")

    known = State(Settings(cluster_name="c"), build=fails, interpret=lambda _: None)
    odd = EC2NodeClass(metadata=ObjectMeta(name="odd", uid="u", resource_version="1"))
    known.take(Changed(kinds.NODE_CLASS, odd), NOW)
    known.take(RegionRead(Region("us-west-2", {}, {}, {}, {}), NOW), NOW)
    known.take(Resolved("odd", "u", ClassFacts(1), NOW), NOW)
    seen = known.snapshot(NOW)
    assert "odd" not in seen.catalogues
    assert seen.class_facts["odd"].problems
    assert [one.class_name for one in known.notices.drain() if isinstance(one, TypesFailed)] == ["odd"]


# --- feature gates ----------------------------------------------------------------------------------------------
GATE = FeatureGates(node_overlay=True)


@pytest.mark.parametrize(("gates", "missing"), [(FeatureGates(), []), (GATE, ["NodeOverlay"])])
def test_what_is_watched_only_with_its_gate_is_waited_for_only_with_it(gates: FeatureGates, missing: list[str]) -> None:
    known = State(Settings(cluster_name="c", gates=gates), build=lambda *_: (), interpret=lambda _: None)
    for kind in kinds.WATCHED:
        known.take(Listed(kind, (), "1", NOW), NOW)
    assert (known.missing(), known.synced) == (missing, not missing)


def test_an_overlay_that_comes_changes_or_goes_has_waiting_pods_looked_at_at_once() -> None:
    known = State(Settings(cluster_name="c", gates=GATE), build=lambda *_: (), interpret=lambda _: None)
    known.batch.trigger("pod", NOW)
    one = NodeOverlay(metadata=ObjectMeta(name="o", uid="u", resource_version="1"))
    dearer = replace(one, metadata=replace(one.metadata, resource_version="2"), spec=NodeOverlaySpec(price="1"))
    told = replace(dearer, metadata=replace(one.metadata, resource_version="3"), status=SAID)
    for news, opens in ((one, True), (dearer, True), (told, False), (None, True)):
        known.batch.served(NOW)
        known.take(Removed(kinds.NODE_OVERLAY, "", "o") if news is None else Changed(kinds.NODE_OVERLAY, news), NOW)
        assert (known.batch.at(NOW) is not None) is opens


def test_a_claim_whose_end_is_held_up_has_places_looked_for_its_pods() -> None:
    known = state()
    known.batch.served(NOW)
    meta = ObjectMeta(name="a", uid="u", deletion_timestamp=NOW, finalizers=("x",))
    gone = NodeClaim(metadata=meta, spec=NodeClaimSpec(node_class_ref=NodeClassRef(name="default")))
    for version, status, asks in (("1", None, False), ("2", "True", True), ("3", "False", False)):
        said = (Condition(type="DeletionHeld", status=status, reason="TooMany"),) if status is not None else ()
        changed = replace(
            gone, metadata=replace(meta, resource_version=version), status=NodeClaimStatus(conditions=said)
        )
        known.take(Changed(kinds.NODE_CLAIM, changed), NOW)
        assert (known.batch.at(NOW) is not None) is asks
        known.batch.served(NOW)
        assert (known.batch.at(after(1)) is not None) is asks, "it asks again for as long as it is held"
        known.batch.served(NOW)


# --- doubt ------------------------------------------------------------------------------------------------------
def test_a_kind_in_doubt_is_not_fresh_again_whatever_is_read_of_it() -> None:
    known = state()
    for kind in (kinds.POD, kinds.NODE):
        known.take(Listed(kind, (), "1", NOW), NOW)
    known.doubt(kinds.POD)
    known.take(Listed(kinds.POD, (), "2", NOW), NOW)
    known.take(Fresh(kinds.POD, NOW), NOW)
    assert not known.fresh(frozenset({Source.PODS}), NOW)
    assert known.fresh(frozenset({Source.NODES}), NOW)


def test_a_kind_on_which_nothing_that_is_destroyed_rests_can_be_doubted() -> None:
    known = state()
    known.take(Described((), NOW), NOW)
    known.doubt(kinds.NAMESPACE)
    assert fresh(known, NOW)


# --- threads ----------------------------------------------------------------------------------------------------
class Vanishing(dict[Source, datetime]):
    """Another thread takes a source away as soon as somebody has looked whether it is there."""

    def __contains__(self, source: object) -> bool:
        return self.pop(source, None) is not None  # type: ignore[call-overload]


def test_a_source_that_goes_while_it_is_asked_for_is_no_error() -> None:
    """The loop's thread withholds what a thread that performs actions is asking for."""
    known = state()
    known.freshness.at = Vanishing({Source.PODS: NOW})
    assert known.fresh(frozenset({Source.PODS}), NOW)
    assert not known.fresh(frozenset({Source.NODES}), NOW)


# --- a clock that is set back -----------------------------------------------------------------------------------
def test_what_was_read_before_the_clock_was_set_back_is_not_fresh() -> None:
    known = state()
    known.take(Described((), NOW), NOW)
    assert fresh(known, NOW)
    assert not fresh(known, after(-60))


def test_what_is_read_after_the_clock_was_set_back_is_fresh() -> None:
    known = state()
    known.take(Described((), NOW), NOW)
    known.take(Described((), after(-60)), after(-60))
    assert fresh(known, after(-60))
    assert not fresh(known, after(-58))


def test_an_answer_from_before_the_clock_was_set_back_does_not_hide_later_ones() -> None:
    known = state()
    known.take(Described((), NOW), after(-60))
    known.take(Described((), after(-59)), after(-59))
    assert fresh(known, after(-59))


def test_what_lay_ahead_is_not_fresh_when_its_time_comes_again() -> None:
    """It is an hour old by then."""
    known = state()
    known.take(Described((), NOW), NOW)
    assert not fresh(known, after(-60))
    assert not fresh(known, after(1))


# --- expectations -----------------------------------------------------------------------------------------------
SPEC = NodeClaimSpec(node_class_ref=NodeClassRef(group=labels.AWS_GROUP, kind="EC2NodeClass", name="default"))
STATUS = NodeClaimStatus(provider_id="aws:///a/i-1")
REFUSED = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}


def waiting(version: str, node_name: str = "") -> Pod:
    meta = {"name": "web", "namespace": "default", "uid": "u-web", "resourceVersion": version}
    status = {"phase": "Pending", "nominatedNodeName": node_name, **REFUSED}
    return decode(Pod, {"metadata": meta, "spec": {}, "status": status})


@pytest.mark.parametrize(("expected_on", "kept"), [("n", True), ("", False), ("other", False)])
def test_a_node_on_which_a_pod_is_expected_no_more_is_kept_until_the_pod_has_been_looked_at(
    expected_on: str, kept: bool
) -> None:
    known = state()
    claim = NodeClaim(metadata=ObjectMeta(name="c", uid="u-c", resource_version="1"), spec=SPEC, status=STATUS)
    node = {"metadata": {"name": "n", "uid": "u-n", "resourceVersion": "1"}, "spec": {"providerID": "aws:///a/i-1"}}
    known.take(Changed(kinds.NODE_CLAIM, claim), NOW)
    known.take(Changed(kinds.NODE, decode(Node, node)), NOW)
    known.take(Changed(kinds.POD, waiting("1", expected_on)), NOW)
    known.take(Changed(kinds.POD, waiting("2")), NOW)
    until = known.snapshot(NOW).nominated_until.get("c")
    assert (until is not None and until >= NOW + known.settings.batch_max) is kept
    assert not known.snapshot(after(1)).nominated_until


def test_a_pod_waits_again_when_the_node_that_it_is_expected_on_is_gone() -> None:
    known = state()
    node = decode(Node, {"metadata": {"name": "n", "uid": "u-n", "resourceVersion": "1"}})
    known.take(Changed(kinds.NODE, node), NOW)
    known.take(Changed(kinds.POD, waiting("1", "n")), NOW)
    before = known.snapshot(NOW)
    assert (before.batch, list(before.pods.pending)) == (None, [])
    known.take(Removed(kinds.NODE, "", "n", "u-n"), NOW)
    after_ = known.snapshot(NOW)
    assert after_.batch is not None
    assert list(after_.pods.pending) == ["default/web"]
    known.take(
        Changed(kinds.NODE, decode(Node, {"metadata": {"name": "n", "uid": "u-2", "resourceVersion": "2"}})), NOW
    )
    assert not known.snapshot(NOW).pods.pending


def test_what_consolidation_promised_is_remembered_until_a_plan_says_otherwise() -> None:
    known, open_ = state(), Accounts({"c": Account("c", NOW, 1, {}, (), {})})
    known.planned(Plan(accounts=open_), NOW)
    known.planned(Plan(), NOW)
    assert known.snapshot(NOW).accounts == open_
    known.planned(Plan(accounts=NO_ACCOUNTS), NOW)
    assert known.snapshot(NOW).accounts == NO_ACCOUNTS
