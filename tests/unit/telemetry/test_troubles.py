"""What is told of troubles and of commands: once, to whom it concerns, in the fields that tools read."""

from __future__ import annotations

import io
import json
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from kerf.disruption.command import Command
from kerf.model import kinds
from kerf.model.annotations import text_of
from kerf.model.aws.accounts import Measured
from kerf.model.cluster import build
from kerf.model.kinds import Ref
from kerf.model.plan import (
    EnsureInstanceProfile,
    EvictPod,
    Nomination,
    PatchObject,
    Plan,
    Purchase,
    Reason,
    Refusal,
)
from kerf.model.settings import Settings
from kerf.ports import Forbidden, Unavailable
from kerf.runtime.act.performing import concerned
from kerf.sandbox.clock import VirtualClock
from kerf.telemetry.events import EventWriter
from kerf.telemetry.log import disrupting
from kerf.telemetry.log.logs import make_logger
from kerf.telemetry.repeats import TOLD_AGAIN_SECONDS, Repeats
from kerf.telemetry.series.metrics import Metrics
from kerf.telemetry.telemetry import Telemetry
from kerf_api.v1.meta import Condition, NodeClassRef, ObjectMeta
from kerf_api.v1.nodeclaim import NodeClaim, NodeClaimSpec, NodeClaimStatus

CLASS = NodeClassRef(group="karpenter.k8s.aws", kind="EC2NodeClass", name="default")


def claim(*conditions: Condition) -> NodeClaim:
    own = {
        "karpenter.sh/nodepool": "p",
        "karpenter.sh/capacity-type": "spot",
        "node.kubernetes.io/instance-type": "m5.large",
    }
    return NodeClaim(
        metadata=ObjectMeta(name="c", uid="u", labels=own),
        spec=NodeClaimSpec(node_class_ref=CLASS),
        status=NodeClaimStatus(node_name="n", conditions=conditions),
    )


class Seconds:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_same_trouble_is_told_again_only_after_a_while() -> None:
    clock = Seconds()
    repeats = Repeats(clock)
    assert repeats.news("pods", "429 after 3 tries, request 4f6e01aa9b") == 0
    assert repeats.news("pods", "429 after 4 tries, request 00ff6e01aa") is None
    assert repeats.news("pods", "403 for this account") == 0
    assert repeats.news("nodes", "429 after 3 tries, request 4f6e01aa9b") == 0
    clock.now = TOLD_AGAIN_SECONDS
    assert repeats.news("pods", "429 after 5 tries, request 77aa77aa77") == 1


class Written:
    def __init__(self) -> None:
        self.events = list[tuple[Ref, str, str]]()

    def emit(self, ref: Ref, uid: str, type_: str, reason: str, message: str, **more: object) -> None:
        self.events.append((ref, type_, reason))


def test_what_somebody_must_mend_is_an_event_on_the_object() -> None:
    kube = Written()
    told = Telemetry.quiet(kube, VirtualClock())  # type: ignore[arg-type]
    evict = EvictPod(ref=Ref("NodeClaim", "", "c"), uid="u", reason=Reason("Terminating"))
    told.done(evict, "forbidden", None, Forbidden("may not"), claim())
    told.done(evict, "forbidden", None, Forbidden("may not"), claim())
    told.done(evict, "unavailable", None, Unavailable("soon"), claim())
    assert kube.events == [(Ref("NodeClaim", "", "c"), "Warning", "FailedEvictPod")]
    code = told.metrics.registry.get_sample_value("karpenter_pods_eviction_requests_total", {"code": "403"})
    assert code == 2


def test_an_instance_profile_concerns_its_node_class() -> None:
    ensure = EnsureInstanceProfile(
        reason=Reason("Profile"), class_name="default", profile="x", role="r", path="/", tags={}
    )
    assert concerned(ensure) == Ref("EC2NodeClass", "", "default")


def test_a_claim_that_appears_launched_was_launched() -> None:
    kube = Written()
    told = Telemetry.quiet(kube, VirtualClock())  # type: ignore[arg-type]
    told.object_changed(kinds.NODE_CLAIM, claim(), claim(Condition(type="Launched", status="True", reason="Launched")))
    told.object_changed(kinds.NODE_CLAIM, claim(), claim(Condition(type="Registered")))
    assert [reason for _, _, reason in kube.events] == ["Launched"]


def test_conditions_are_gauges_for_as_long_as_their_object_is_there() -> None:
    told = Telemetry.quiet(Written(), VirtualClock())  # type: ignore[arg-type]
    name = "operator_nodeclaim_status_condition_count"
    rest = {"namespace": "", "karpenter_sh_nodepool": "p", "karpenter_k8s_aws_ec2nodeclass": "default"}

    def rows(status: str) -> float | None:
        row = {"name": "c", "type": "Drained", "status": status, "reason": "", **rest}
        families = text_string_to_metric_families(told.metrics.text().decode())
        found = [s.value for family in families for s in family.samples if (s.name, s.labels) == (name, row)]
        return found[0] if found else None

    before, after = claim(Condition(type="Drained")), claim(Condition(type="Drained", status="True"))
    told.object_changed(kinds.NODE_CLAIM, None, before)
    assert rows("Unknown") == 1
    told.object_changed(kinds.NODE_CLAIM, before, after)
    assert (rows("Unknown"), rows("True")) == (None, 1)
    assert told.metrics.registry.get_sample_value("karpenter_nodes_drained_total", {"nodepool": "p"}) == 1
    told.object_changed(kinds.NODE_CLAIM, after, None)
    assert rows("True") is None


def test_a_scrape_gives_way_before_each_small_step() -> None:
    told, steps = Telemetry.quiet(Written(), VirtualClock()), list[int]()  # type: ignore[arg-type]
    for number in range(41):
        one = claim(Condition(type="Drained"))
        told.metrics.conditions.see("nodeclaim", ObjectMeta(name=f"c-{number}"), one)
    told.metrics.unsynced.synced = True
    assert told.metrics.text(lambda: steps.append(1)) == told.metrics.text()
    assert len(steps) == 1 + 3 * 3  # what is not a condition; of each family 20 claims, 20 claims, 1 claim


def test_what_a_condition_says_is_escaped() -> None:
    told = Telemetry.quiet(Written(), VirtualClock())  # type: ignore[arg-type]
    odd = 'a "quoted" \\ line\nbreak'
    told.object_changed(kinds.NODE_CLAIM, None, claim(Condition(type="Drained", reason=odd)))
    families = text_string_to_metric_families(told.metrics.text().decode())
    assert odd in [sample.labels.get("reason") for family in families for sample in family.samples]


def test_pods_without_a_place_are_told_from_those_that_are_not_ours() -> None:
    told = Telemetry.quiet(Written(), VirtualClock())  # type: ignore[arg-type]
    codes = {"pod/d/a": "OptedOut", "pod/d/b": "Incompatible", "pod/d/c": "NoRoom", "node/n": "Budget"}
    snapshot = build([], now=VirtualClock().now(), settings=Settings(cluster_name="c"))
    told.planned(Plan(refusals=tuple(Refusal(s, Reason(code)) for s, code in codes.items())), snapshot)
    value = told.metrics.registry.get_sample_value
    assert value("karpenter_scheduler_unschedulable_pods_count", {"controller": "provisioner"}) == 2
    assert value("karpenter_scheduler_ignored_pods_count", {}) == 1


def test_a_decision_is_counted_when_its_command_is_stored() -> None:
    told = Telemetry.quiet(Written(), VirtualClock())  # type: ignore[arg-type]
    now = VirtualClock().now()
    patch = {"metadata": {"annotations": {"kerf.sh/command": text_of(Command(id="7f", reason="Empty", started=now))}}}
    ref = Ref("NodeClaim", "", "c")
    start = PatchObject(reason=Reason("Empty"), verb="StartCommand", ref=ref, patch=patch)
    told.done(start, "conflict", None, None, claim())
    told.done(start, "ok", None, None, claim())
    row = {"decision": "delete", "reason": "empty", "consolidation_type": "empty"}
    assert told.metrics.registry.get_sample_value("karpenter_voluntary_disruption_decisions_total", row) == 1


def test_a_command_is_told_in_the_fields_that_parsers_read() -> None:
    now = VirtualClock().now()
    command = Command(id="7f", reason="Drifted", started=now, replacements=("p-1",), pods=("a", "b"), why="AMIDrift")
    patch = {"metadata": {"annotations": {"kerf.sh/command": text_of(command)}}}
    assert disrupting.fields(claim(), patch) == {
        "command": "Drifted/7f: replace: nodepools=[p]: [n] -> [1 replacement]",
        "decision": "replace",
        "disrupted-node-count": 1,
        "replacement-node-count": 1,
        "pod-count": 2,
        "disrupted-nodes": [
            {"Node": {"name": "n"}, "NodeClaim": {"name": "c"}, "capacity-type": "spot", "instance-type": "m5.large"}
        ],
        "replacement-nodes": [{"NodeClaim": {"name": "p-1"}}],
        "why": "AMIDrift",
    }


def test_a_replica_that_waits_tells_nothing() -> None:
    kube = Written()
    told = Telemetry.quiet(kube, VirtualClock())  # type: ignore[arg-type]
    after = claim(Condition(type="Launched", status="True", reason="Launched"))
    told.object_changed(kinds.NODE_CLAIM, claim(Condition(type="Launched")), after, telling=False)
    told.object_changed(kinds.NODE_CLAIM, after, None, telling=False)
    assert kube.events == []
    row = {"nodepool": "p", "capacity_type": "spot", "zone": ""}
    assert told.metrics.registry.get_sample_value("karpenter_nodeclaims_terminated_total", row) is None


def test_pods_without_a_place_are_a_line_for_each_answer() -> None:
    stream, clock = io.StringIO(), VirtualClock()
    told = Telemetry(make_logger(stream=stream), Metrics(), EventWriter(Written(), clock), clock)  # type: ignore[arg-type]
    answers = {"d/b": "no room, 3 looked at", "d/a": "no room, 3 looked at", "e/c": "a taint", "e/out": ""}
    refusals = tuple(Refusal(f"pod/{key}", Reason("Incompatible", text)) for key, text in answers.items())
    snapshot = build((), now=clock.now(), settings=Settings("c"))
    told.planned(Plan(refusals=refusals), snapshot)
    told.planned(Plan(refusals=refusals[:1]), snapshot)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["Pod"], line["pods"]) for line in lines] == [
        ({"name": "a", "namespace": "d"}, 2),
        ({"name": "c", "namespace": "e"}, 1),
    ]


def test_ever_so_many_answers_are_few_lines() -> None:
    stream, clock = io.StringIO(), VirtualClock()
    told = Telemetry(make_logger(stream=stream), Metrics(), EventWriter(Written(), clock), clock)  # type: ignore[arg-type]
    words = ["".join(chr(ord("a") + int(digit)) for digit in str(n)) for n in range(500)]
    refusals = tuple(Refusal(f"pod/d/{word}", Reason("Incompatible", word)) for word in words)
    told.planned(Plan(refusals=refusals), build((), now=clock.now(), settings=Settings("c")))
    assert len(stream.getvalue().splitlines()) == 50


class Priceless(Purchase):
    @property
    def cost_ratio(self) -> float | None:
        raise TypeError("no ratio")


def test_a_number_that_cannot_be_reported_costs_no_other_number() -> None:
    stream, clock = io.StringIO(), VirtualClock()
    told = Telemetry(make_logger(stream=stream), Metrics(), EventWriter(Written(), clock), clock)  # type: ignore[arg-type]
    nonsense: Any = None
    plan = Plan(
        purchase=Priceless(1, 1, 1, 1),
        measured=(Measured("a", 1, nonsense, 0), Measured("b", 1, 2_000_000, 1_000_000)),
        nominations=(Nomination(nonsense, nonsense, nonsense), Nomination("uid", "n", clock.now())),
        refusals=(Refusal("pod/d/huge", Reason("Incompatible", "no room")),),
        provisioned=True,
    )
    told.planned(plan, build((), now=clock.now(), settings=Settings("c")))
    value = told.metrics.registry.get_sample_value
    assert value("kerf_consolidation_promised_usd_per_hour_total", {"nodepool": "b"}) == 2
    assert value("karpenter_scheduler_unschedulable_pods_count", {"controller": "provisioner"}) == 1
    messages = [json.loads(line)["message"] for line in stream.getvalue().splitlines()]
    assert messages.count("telling what happened failed") == 2
    assert "could not schedule pod" in messages
