"""Events are not repeated and never flood; metrics have Karpenter's names; logs have their shape."""

from __future__ import annotations

import io
import json
import time
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from kerf.model import kinds
from kerf.model.aws.accounts import Measured
from kerf.model.failures import Failure, key
from kerf.model.gauges import PlanGauge
from kerf.model.kinds import Ref
from kerf.model.kubernetes.objects import Node
from kerf.model.plan import CreateNodeClaim, DeleteObject, Event, Plan, Purchase, Reason, Refusal
from kerf.model.settings import Settings
from kerf.model.snapshot import Snapshot
from kerf.ports import Forbidden
from kerf.sandbox.clock import VirtualClock
from kerf.sandbox.world import World
from kerf.telemetry.events import BURST, NOMINATED_BURST, RATE, EventWriter
from kerf.telemetry.log.logs import SAMPLE_EVERY, SAMPLE_FIRST, make_logger
from kerf.telemetry.series.metrics import Metrics
from kerf.telemetry.series.spelling import snake_case
from kerf.telemetry.telemetry import Telemetry
from kerf_api.v1.meta import Condition, NodeClassRef, ObjectMeta
from kerf_api.v1.nodeclaim import NodeClaim, NodeClaimSpec, NodeClaimStatus

REF = Ref("NodeClaim", "", "c")


class Written:
    """A Kube that only takes events, or refuses them."""

    def __init__(self, error: Exception | None = None) -> None:
        self.events, self.error = list[tuple[str, str]](), error

    def emit(self, ref: Ref, uid: str, type_: str, reason: str, message: str, **more: object) -> None:
        if self.error is not None:
            raise self.error
        self.events.append((reason, message))


def event(reason: str = "Launched", dedupe: str = "", ref: Ref = REF, seconds: int = 120) -> Event:
    return Event(ref, "uid", "Normal", reason, "text", dedupe, seconds)


def test_the_same_event_is_written_once_in_its_window() -> None:
    kube, clock = Written(), VirtualClock()
    writer = EventWriter(kube, clock)  # type: ignore[arg-type]
    assert writer.write(event())
    assert not writer.write(event())
    assert writer.write(event(dedupe="other"))
    assert writer.write(event(ref=Ref("NodeClaim", "", "d")))
    clock.sleep(120)
    assert writer.write(event())
    assert len(kube.events) == 4


def test_how_things_stand_is_told_anew_when_that_changes_and_else_after_an_hour() -> None:
    kube, clock = Written(), VirtualClock()
    writer = EventWriter(kube, clock)  # type: ignore[arg-type]

    def tell(text: str) -> bool:
        return writer.write(Event(REF, "uid", "Normal", "DisruptionBlocked", text).standing())

    assert tell("by a")
    for _ in range(9):
        clock.sleep(300)
        assert not tell("by a")
    assert tell("by b")
    clock.sleep(60)
    assert not tell("by c")  # one change in two minutes
    clock.sleep(60)
    assert tell("by c")
    clock.sleep(900)
    assert tell("by a")


def test_what_a_flood_kept_out_is_tried_again_before_an_hour_is_over() -> None:
    clock = VirtualClock()
    writer = EventWriter(Written(), clock)  # type: ignore[arg-type]
    many = [Event(Ref("Node", "", str(n)), "uid", "Normal", "DisruptionBlocked", "text").standing() for n in range(300)]
    assert [writer.write(one) for one in many].count(True) == BURST
    clock.sleep(120)
    assert [writer.write(one) for one in many] == [False] * BURST + [True] * (300 - BURST)


@pytest.mark.parametrize(("reason", "burst"), [("Nominated", NOMINATED_BURST), ("Other", BURST)])
def test_events_never_flood(reason: str, burst: int) -> None:
    kube, clock = Written(), VirtualClock()
    writer = EventWriter(kube, clock)  # type: ignore[arg-type]
    assert sum(writer.write(event(reason, str(n))) for n in range(1000)) == burst
    clock.sleep(1)
    assert writer.write(event(reason, "later"))


def test_what_an_event_costs_does_not_grow_with_those_that_are_remembered() -> None:
    clock = VirtualClock()
    writer = EventWriter(Written(), clock)  # type: ignore[arg-type]
    began = time.process_time()
    for number in range(25_000):
        assert writer.write(event(dedupe=str(number), seconds=3600))
        clock.sleep(1 / RATE)
    assert time.process_time() - began < 5


def test_an_event_that_cannot_be_written_is_dropped() -> None:
    errors: list[Exception] = []
    writer = EventWriter(Written(Forbidden("no")), VirtualClock(), on_error=errors.append)  # type: ignore[arg-type]
    writer.write(event())
    assert len(errors) == 1


def test_a_thread_writes_what_waits_before_it_ends() -> None:
    kube = Written()
    writer = EventWriter(kube, VirtualClock(), threaded=True)  # type: ignore[arg-type]
    for n in range(20):
        writer.write(event(dedupe=str(n)))
    writer.close(5)
    assert len(kube.events) == 20


def test_a_bug_over_one_event_does_not_end_the_thread_that_writes_the_others() -> None:
    kube, errors = Written(ZeroDivisionError()), list[Exception]()
    writer = EventWriter(kube, VirtualClock(), threaded=True, on_error=errors.append)  # type: ignore[arg-type]
    writer.write(event(dedupe="one"))
    writer.write(event(dedupe="two"))
    writer.close(5)
    assert [type(error) for error in errors] == [ZeroDivisionError] * 2


# --- metrics ----------------------------------------------------------------------------------------------------
def claim(*conditions: Condition) -> NodeClaim:
    ref = NodeClassRef(group="karpenter.k8s.aws", kind="EC2NodeClass", name="default")
    own = {
        "karpenter.sh/nodepool": "p",
        "karpenter.sh/capacity-type": "spot",
        "topology.kubernetes.io/zone": "z",
    }
    return NodeClaim(
        metadata=ObjectMeta(name="c", uid="u", labels=own),
        spec=NodeClaimSpec(node_class_ref=ref),
        status=NodeClaimStatus(conditions=conditions, image_id="ami-1"),
    )


@pytest.fixture
def telemetry() -> Telemetry:
    world = World()
    return Telemetry.quiet(world.kube, world.clock)


def value(telemetry: Telemetry, name: str, **labels: str) -> float | None:
    return telemetry.metrics.registry.get_sample_value(name, labels)


def test_claims_are_counted_as_they_come_and_go(telemetry: Telemetry) -> None:
    create = CreateNodeClaim(claim=claim(), reason=Reason("Underutilized"))
    telemetry.done(create, "ok", None, None, None)
    telemetry.done(create, "unavailable", None, None, None)
    named = {"reason": "underutilized", "nodepool": "p", "min_values_relaxed": "false"}
    assert value(telemetry, "karpenter_nodeclaims_created_total", **named) == 1
    delete = DeleteObject(ref=REF, uid="u", reason=Reason("SpotInterrupted"))
    telemetry.done(delete, "ok", None, None, claim())
    named = {"reason": "spot_interrupted", "nodepool": "p", "capacity_type": "spot"}
    named |= {"consolidation_policy": "", "termination_mode": "graceful"}
    assert value(telemetry, "karpenter_nodeclaims_disrupted_total", **named) == 1
    assert value(telemetry, "karpenter_pods_disruption_initiated_total", **named) is None
    sick = DeleteObject(ref=REF, uid="u", reason=Reason("Unhealthy"), condition="KernelReady")
    telemetry.done(sick, "ok", None, None, claim())
    named = {"condition": "kernel_ready", "nodepool": "p", "capacity_type": "spot", "image_id": "ami-1"}
    assert value(telemetry, "karpenter_nodeclaims_unhealthy_disrupted_total", **named) == 1
    telemetry.object_changed(kinds.NODE_CLAIM, claim(), None)
    named = {"nodepool": "p", "capacity_type": "spot", "zone": "z"}
    assert value(telemetry, "karpenter_nodeclaims_terminated_total", **named) == 1
    assert value(telemetry, "kerf_actions_total", action="CreateNodeClaim", outcome="unavailable") == 1


@pytest.mark.parametrize(("grace", "mode"), [(None, "graceful"), ("0s", "forceful"), ("1h", "eventual")])
def test_a_disruption_counts_with_its_policy_its_mode_and_the_pods_that_move(
    telemetry: Telemetry, grace: str | None, mode: str
) -> None:
    one = claim()
    one = replace(one, spec=replace(one.spec, termination_grace_period=grace))
    gone = DeleteObject(
        ref=REF, uid="u", reason=Reason("Empty"), policy="WhenEmptyOrUnderutilized", moved=("ns/a", "ns/b")
    )
    telemetry.done(gone, "ok", None, None, one)
    named = {"reason": "empty", "nodepool": "p", "capacity_type": "spot", "termination_mode": mode}
    named |= {"consolidation_policy": "when_empty_or_underutilized"}
    assert value(telemetry, "karpenter_nodeclaims_disrupted_total", **named) == 1
    assert value(telemetry, "karpenter_pods_disruption_initiated_total", **named) == 2


def test_a_condition_that_changes_is_a_metric_and_an_event() -> None:
    kube, clock = Written(), VirtualClock()
    told = Telemetry.quiet(kube, clock)  # type: ignore[arg-type]
    before, after = Condition(type="Launched"), Condition(type="Launched", status="True", reason="Launched")
    told.object_changed(kinds.NODE_CLAIM, claim(before), claim(after))
    told.object_changed(kinds.NODE_CLAIM, claim(after), claim(after))
    told.object_changed(kinds.NODE_CLAIM, None, claim(after))
    named = {"type": "Launched", "status": "True", "reason": "Launched"}
    assert value(told, "operator_nodeclaim_status_condition_transitions_total", **named) == 1
    assert [reason for reason, _ in kube.events] == ["Launched"]


def test_nodes_are_counted_when_they_register(telemetry: Telemetry) -> None:
    own = {"karpenter.sh/nodepool": "p", "topology.kubernetes.io/zone": "z"}
    young = Node(metadata=ObjectMeta(name="n", labels=own))
    grown = Node(metadata=ObjectMeta(name="n", labels={**own, "karpenter.sh/registered": "true"}))
    for old, new in ((None, young), (young, grown), (grown, grown), (grown, None)):
        telemetry.object_changed(kinds.NODE, old, new)
    assert value(telemetry, "karpenter_nodes_created_total", nodepool="p", zone="z") == 1
    assert value(telemetry, "karpenter_nodes_terminated_total", nodepool="p", zone="z") == 1


def test_gauges_of_a_plan_replace_those_of_the_last_one(telemetry: Telemetry) -> None:
    seen = Snapshot(now=datetime(2026, 1, 1, tzinfo=UTC), settings=Settings(cluster_name="c"))
    refusals = tuple(Refusal(f"pod/d/{n}", Reason("NoRoom")) for n in range(3))
    name, allowed = "karpenter_nodepools_allowed_disruptions", PlanGauge.ALLOWED_DISRUPTIONS
    one, two = (("nodepool", "a"), ("reason", "Empty")), (("nodepool", "b"), ("reason", "Empty"))
    telemetry.planned(Plan(refusals=refusals, gauges={(allowed, one): 3.0, (allowed, two): 4.0}), seen)
    assert value(telemetry, "kerf_refusals", code="NoRoom") == 3
    telemetry.planned(Plan(gauges={(allowed, two): 5.0}), seen)
    assert value(telemetry, name, nodepool="a", reason="Empty") is None
    assert value(telemetry, name, nodepool="b", reason="Empty") == 5
    assert value(telemetry, "kerf_refusals", code="NoRoom") is None
    telemetry.planned(Plan(), seen)
    assert value(telemetry, name, nodepool="b", reason="Empty") == 5


COST, BOUND, RATIO = (f"kerf_scheduling_cost{end}" for end in ("_usd_per_hour", "_bound_usd_per_hour", "_ratio"))


def test_what_was_bought_stands_until_something_is_bought_again(telemetry: Telemetry) -> None:
    seen = Snapshot(now=datetime(2026, 1, 1, tzinfo=UTC), settings=Settings(cluster_name="c"))
    telemetry.planned(Plan(purchase=Purchase(3, 40, 2_500_000, 2_000_000), provisioned=True), seen)
    telemetry.planned(Plan(provisioned=True), seen)
    assert [value(telemetry, name) for name in (COST, BOUND, RATIO)] == [2.5, 2.0, 1.25]


def test_a_bound_that_is_not_known_is_no_number(telemetry: Telemetry) -> None:
    """Neither 0 nor that of an earlier purchase."""
    seen = Snapshot(now=datetime(2026, 1, 1, tzinfo=UTC), settings=Settings(cluster_name="c"))
    telemetry.planned(Plan(purchase=Purchase(3, 40, 2_500_000, 2_000_000)), seen)
    telemetry.planned(Plan(purchase=Purchase(1, 9, 1_500_000)), seen)
    assert [value(telemetry, name) for name in (COST, BOUND, RATIO)] == [1.5, None, None]


def test_what_consolidation_brought_adds_up_by_pool_and_losses_by_themselves(telemetry: Telemetry) -> None:
    seen = Snapshot(now=datetime(2026, 1, 1, tzinfo=UTC), settings=Settings(cluster_name="c"))
    telemetry.planned(Plan(measured=(Measured("a", 1, 500_000, 250_000), Measured("b", 1, 10, 0))), seen)
    telemetry.planned(Plan(measured=(Measured("a", 2, 500_000, -125_000),)), seen)
    found = [
        value(telemetry, f"kerf_consolidation_{what}_usd_per_hour_total", nodepool="a")
        for what in ("promised", "realised", "lost")
    ]
    assert found == [1.0, 0.25, 0.125]


def test_process_metrics_are_there_when_asked_for() -> None:
    registry = Metrics().with_process().registry
    assert registry.get_sample_value("process_resident_memory_bytes") is not None


@pytest.mark.parametrize(
    ("text", "expected"),
    [("SpotInterrupted", "spot_interrupted"), ("Empty", "empty"), ("NodeClassNotReady", "nodeclass_not_ready")],
)
def test_snake_case(text: str, expected: str) -> None:
    assert snake_case(text) == expected


# --- logs -------------------------------------------------------------------------------------------------------
def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_json_with_its_keys_in_order() -> None:
    stream = io.StringIO()
    moment = datetime(2026, 8, 19, 10, 11, 12, 345678, tzinfo=UTC)
    make_logger("info", stream, lambda: moment).info("x", NodeClaim={"name": "c"}, error=ValueError("why"))
    (line,) = lines(stream)
    assert list(line) == ["level", "time", "logger", "message", "NodeClaim", "error"]
    assert (line["level"], line["time"], line["error"]) == ("INFO", "2026-08-19T10:11:12.345Z", "why")


@pytest.mark.parametrize(("level", "count"), [("debug", 3), ("info", 2), ("", 2), ("error", 1)])
def test_levels(level: str, count: int) -> None:
    stream = io.StringIO()
    log = make_logger(level, stream)
    log.debug("x")
    log.info("x")
    log.error("x")
    assert len(lines(stream)) == count


def test_a_message_that_comes_too_often_is_thinned_out() -> None:
    stream = io.StringIO()
    log = make_logger("info", stream)
    for _ in range(SAMPLE_FIRST + 10 * SAMPLE_EVERY):
        log.info("x")
    assert SAMPLE_FIRST <= len(lines(stream)) <= 2 * SAMPLE_FIRST + 10


def test_troubles_are_counted_by_code(telemetry: Telemetry) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    failed = Failure("EvictPod", "pod/d/a", "forbidden", "no", now, now)
    seen = Snapshot(now=now, settings=Settings(cluster_name="c"), failures={key("EvictPod", "pod/d/a"): failed})
    telemetry.planned(Plan(), seen)
    assert value(telemetry, "kerf_troubles", code="ActionFails") == 1
    assert value(telemetry, "kerf_troubles", code="NotReady") == 0
