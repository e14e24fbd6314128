"""What is counted as things happen: drains, commands, launches, messages, thoughts, looks, events."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kerf.disruption.command import Command, Failure
from kerf.model import kinds
from kerf.model.annotations import text_of
from kerf.model.aws.cloud import INSTANCE_CHECK, SCHEDULED, SYSTEM_CHECK, FleetRequest
from kerf.model.kinds import Ref
from kerf.model.plan import EnsureTemplate, Event, EvictPod, LaunchInstances, PatchObject, Reason
from kerf.ports import Forbidden
from kerf.sandbox.clock import VirtualClock
from kerf.sandbox.world import World
from kerf.telemetry.events import BURST, LONGEST, EventWriter
from kerf.telemetry.series.metrics import Metrics
from kerf.telemetry.telemetry import Telemetry
from tests.unit.ec2.ec2_facts import claim as ec2_claim
from tests.unit.ec2.fleet_requests import request, typed
from tests.unit.telemetry.test_troubles import claim

NOW = VirtualClock().now()
WHY = Reason("Test")


@pytest.fixture
def told() -> Telemetry:
    world = World()
    return Telemetry.quiet(world.kube, world.clock)


def value(told: Telemetry, name: str, **labels: str) -> float | None:
    return told.metrics.registry.get_sample_value(name, labels)


# --- drains and commands ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(("outcome", "drained"), [("ok", 1), ("blocked", None)])
def test_an_evicted_pod_is_drained_for_what_its_node_goes_for(told: Telemetry, outcome: str, drained: Any) -> None:
    evict = EvictPod(reason=Reason("Forceful Termination"), ref=Ref("Pod", "d", "p"), uid="u")
    told.done(evict, outcome, None, None, None)
    assert value(told, "karpenter_pods_drained_total", reason="Forceful Termination") == drained


def command(reason: str, *replacements: str) -> str:
    return text_of(Command(id="7f", reason=reason, started=NOW, replacements=replacements))


def patched(verb: str, **annotations: str | None) -> PatchObject:
    patch = {
        "metadata": {"annotations": {f"kerf.sh/{name.replace('_', '-')}": text for name, text in annotations.items()}}
    }
    return PatchObject(reason=Reason("Drifted"), verb=verb, ref=Ref("NodeClaim", "", "c"), patch=patch)


def test_a_decision_is_counted_for_its_pool_as_well(told: Telemetry) -> None:
    told.done(patched("StartCommand", command=command("Drifted", "a")), "ok", None, None, claim())
    row = {"decision": "replace", "reason": "drifted", "consolidation_type": "", "nodepool": "p"}
    assert value(told, "karpenter_voluntary_disruption_decisions_by_nodepool_total", **row) == 1


def test_replacements_of_a_command_that_failed_are_counted(told: Telemetry) -> None:
    one = claim()
    one.metadata.annotations["kerf.sh/command"] = command("Underutilized", "a", "b")  # type: ignore[index]
    row = {"decision": "replace", "reason": "underutilized", "consolidation_type": "single"}
    name = "karpenter_voluntary_disruption_queue_failures_total"
    told.done(patched("RollBackCommand", command=None), "ok", None, None, one)
    assert value(told, name, **row) is None
    failure = text_of(Failure(at=NOW, count=1))
    told.done(patched("RollBackCommand", command=None, command_failed=failure), "ok", None, None, one)
    assert value(told, name, **row) == 2
    assert value(told, "karpenter_voluntary_disruption_failed_validations_total", consolidation_type="single") == 1


# --- AWS --------------------------------------------------------------------------------------------------------
@pytest.fixture
def asked() -> FleetRequest:
    return request(ec2_claim("a", typed("m5.large")))


def test_a_fleet_call_is_counted_with_how_many_it_is_for(told: Telemetry, asked: FleetRequest) -> None:
    told.done(LaunchInstances(reason=WHY, request=asked, claims=("a", "b", "c")), "ok", None, None, None)
    assert value(told, "karpenter_cloudprovider_batcher_batch_size_sum", batcher="create_fleet") == 3


def test_the_size_of_user_data_is_that_of_the_template_that_was_made(told: Telemetry, asked: FleetRequest) -> None:
    """Whether it was made ahead of the launch or with it."""
    (template,) = asked.templates
    size = len(template.user_data.encode())
    launch = LaunchInstances(reason=WHY, request=asked, claims=("a",))
    for action in (EnsureTemplate(reason=WHY, template=template), launch):
        told.metrics.user_data.clear()
        told.done(action, "unavailable", None, Forbidden("no"), None)
        assert value(told, "karpenter_ec2nodeclasses_userdata_bytes", nodeclass="default") is None
        told.done(action, "ok", None, None, None)
        assert value(told, "karpenter_ec2nodeclasses_userdata_bytes", nodeclass="default") == size > 100


def test_a_message_is_counted_with_how_long_it_was_in_the_queue() -> None:
    world = World()
    told = Telemetry.quiet(world.kube, world.clock)
    told.received("no_op", None)
    told.received("spot_interrupted", world.clock.now() - timedelta(seconds=7))
    name = "karpenter_interruption_message_queue_duration_seconds"
    assert (value(told, f"{name}_count"), value(told, f"{name}_sum")) == (1, 7)


@pytest.mark.parametrize(
    ("category", "spelt"),
    [(INSTANCE_CHECK, "InstanceStatus"), (SYSTEM_CHECK, "SystemStatus"), (SCHEDULED, "EventStatus")],
)
def test_what_ails_an_instance_is_counted_as_karpenter_spells_it(told: Telemetry, category: str, spelt: str) -> None:
    told.impaired(category)
    assert value(told, "karpenter_interruption_instance_status_unhealthy_total", category=spelt) == 1


# --- the loop ---------------------------------------------------------------------------------------------------
def test_a_look_that_a_bug_ends_is_an_error_and_the_next_is_none(told: Telemetry) -> None:
    with told.tick():
        assert value(told, "controller_runtime_active_workers", controller="loop") == 1
        told.deciding_failed(ZeroDivisionError())
    with told.tick():
        pass
    for result in ("error", "success"):
        assert value(told, "controller_runtime_reconcile_total", controller="loop", result=result) == 1
    assert value(told, "controller_runtime_reconcile_errors_total", controller="loop") == 1
    assert value(told, "controller_runtime_active_workers", controller="loop") == 0
    assert value(told, "controller_runtime_reconcile_time_seconds_count", controller="loop") == 2


def test_a_pass_of_consolidation_is_timed(told: Telemetry) -> None:
    told.proposed(2.5)
    name = "karpenter_voluntary_disruption_decision_evaluation_duration_seconds_sum"
    assert value(told, name, reason="underutilized", consolidation_type="") == 2.5


# --- events -----------------------------------------------------------------------------------------------------
class Written:
    """A Kube that only takes events, or refuses them."""

    def __init__(self, error: Exception | None = None) -> None:
        self.messages, self.error = list[str](), error

    def emit(self, ref: Ref, uid: str, type_: str, reason: str, message: str, **more: object) -> None:
        if self.error is not None:
            raise self.error
        self.messages.append(message)


def event(name: str = "c", message: str = "text") -> Event:
    return Event(Ref(kinds.NODE_CLAIM.name, "", name), "uid", "Warning", "Launched", message)


def test_what_becomes_of_events_is_counted() -> None:
    found, kube = Metrics(), Written()

    def counted(type_: str, outcome: str) -> None:
        found.events.labels(type_, outcome).inc()

    writer = EventWriter(kube, VirtualClock(), on_event=counted)  # type: ignore[arg-type]
    for number in range(BURST + 3):
        writer.write(event(str(number)))
    writer.write(event("0"))
    kube.error = Forbidden("no")
    refused = EventWriter(kube, VirtualClock(), on_event=counted)  # type: ignore[arg-type]
    refused.write(event())
    rows = {"written": BURST, "repeated": 1, "flood": 3, "failed": 1}
    read = found.registry.get_sample_value
    assert {outcome: read("kerf_events_total", {"type": "Warning", "outcome": outcome}) for outcome in rows} == rows


def test_no_message_is_longer_than_kubernetes_takes() -> None:
    kube = Written()
    writer = EventWriter(kube, VirtualClock())  # type: ignore[arg-type]
    writer.write(event("a", "x" * LONGEST))
    writer.write(event("b", "x" * (LONGEST + 1)))
    assert kube.messages == ["x" * LONGEST, "x" * (LONGEST - 1) + "…"]
