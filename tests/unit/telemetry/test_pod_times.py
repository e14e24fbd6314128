"""What is told of pods that wait, from when they are seen until they run; by whom, and what is forgotten."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from kerf.model import kinds
from kerf.model.cluster import build
from kerf.model.kubernetes.objects import Pod, PodCondition
from kerf.model.plan import Nomination, Plan, Reason, Refusal
from kerf.model.settings import Settings
from kerf.sandbox.clock import VirtualClock
from kerf.sandbox.world import World
from kerf.telemetry.catalogue.listing import DURATIONS
from kerf.telemetry.events import EventWriter
from kerf.telemetry.log.logs import silent
from kerf.telemetry.series.collectors import LATELY_SECONDS, REMEMBERED, Summary
from kerf.telemetry.series.metrics import Metrics
from kerf.telemetry.telemetry import Telemetry
from kerf_api.v1.meta import decode
from kerf_api.v1.nodepool import NodePool
from tests.unit.scheduling import worlds as w

SECOND = timedelta(seconds=1)
WAITS = {
    "unstarted": "karpenter_pods_unstarted_time_seconds",
    "unbound": "karpenter_pods_unbound_time_seconds",
    "place unstarted": "karpenter_pods_provisioning_unstarted_time_seconds",
    "place unbound": "karpenter_pods_provisioning_unbound_time_seconds",
    "undecided": "karpenter_pods_provisioning_scheduling_undecided_time_seconds",
}
DURATION = {
    "decided": "karpenter_pods_scheduling_decision_duration_seconds",
    "bound": "karpenter_pods_bound_duration_seconds",
    "started": "karpenter_pods_startup_duration_seconds",
    "place bound": "karpenter_pods_provisioning_bound_duration_seconds",
    "place started": "karpenter_pods_provisioning_startup_duration_seconds",
}


def pool(healthy: bool) -> NodePool:
    """Whether its nodes are known to register."""
    conditions = [{"type": "NodeRegistrationHealthy", "status": "True" if healthy else "Unknown"}]
    return decode(NodePool, {**msgspec.to_builtins(w.pool()), "status": {"conditions": conditions}})


class Replica:
    """A process with a clock. It leads, or watches; `passes` are what it decides."""

    def __init__(self, leads: bool = True) -> None:
        self.clock, self.leads = VirtualClock(w.NOW), leads
        self.telemetry = Telemetry.quiet(World().kube, self.clock)
        self.known: dict[str, Pod] = {}

    def sees(self, pod: Pod) -> None:
        self.telemetry.object_changed(kinds.POD, self.known.get(pod.key), pod, telling=self.leads)
        self.known[pod.key] = pod

    def loses(self, pod: Pod) -> None:
        self.telemetry.object_changed(kinds.POD, self.known.pop(pod.key), None, telling=self.leads)

    def passes(
        self, *refused: Pod, placed: tuple[Pod, ...] = (), healthy: bool = True, provisioned: bool = True
    ) -> None:
        node = w.node("n", labels={"karpenter.sh/nodepool": "default"})
        snapshot = build([pool(healthy), node, *self.known.values()], now=self.clock.now(), settings=Settings("c"))
        until = self.clock.now() + SECOND
        plan = Plan(
            refusals=tuple(Refusal(f"pod/{pod.key}", Reason("Incompatible")) for pod in refused),
            nominations=tuple(Nomination(pod.metadata.uid, "node/n", until) for pod in placed),
            provisioned=provisioned,
        )
        self.telemetry.planned(plan, snapshot)

    def samples(self) -> dict[str, dict[str, float]]:
        """By name; by the name of the pod, else by the quantile, else by nothing."""
        found: dict[str, dict[str, float]] = {}
        for family in text_string_to_metric_families(self.telemetry.metrics.text().decode()):
            for sample in family.samples:
                key = sample.labels.get("name", sample.labels.get("quantile", ""))
                found.setdefault(sample.name, {})[key] = sample.value
        return found

    def family(self, name: str) -> list[Sample]:
        families = text_string_to_metric_families(self.telemetry.metrics.text().decode())
        return [sample for family in families for sample in family.samples if sample.name == name]

    def waits(self, pod: str = "p") -> dict[str, float]:
        found = self.samples()
        return {word: found[name][pod] for word, name in WAITS.items() if pod in found.get(name, {})}

    def durations(self) -> dict[str, list[float]]:
        """How many were measured and what they come to, of those of which there are any."""
        found = self.samples()
        rows = {word: [found[f"{name}_{part}"][""] for part in ("count", "sum")] for word, name in DURATION.items()}
        return {word: row for word, row in rows.items() if row[0]}


def pod(name: str = "p", **spec: Any) -> Pod:
    made = w.pod(name, **spec)
    return replace(made, metadata=replace(made.metadata, creation_timestamp=w.NOW - 10 * SECOND))


def with_status(one: Pod, phase: str, node: str = "", **conditions: datetime) -> Pod:
    """The pod on a node, with conditions that are true since then."""
    told = tuple(PodCondition(type=kind, status="True", last_transition_time=at) for kind, at in conditions.items())
    status = replace(one.status, phase=phase, conditions=told)
    return replace(one, spec=replace(one.spec, node_name=node), status=status)


def test_the_life_of_a_pod() -> None:
    """Created 10 s ago; decided about after 2 s, placed after 5, bound after 7, run after 11."""
    here, one = Replica(), pod()
    here.sees(one)
    assert here.waits() == {"unstarted": 10, "unbound": 10, "undecided": 0}
    here.clock.sleep(2)
    assert here.waits()["undecided"] == 2
    here.passes(one)
    assert here.waits() == {"unstarted": 12, "unbound": 12}
    here.clock.sleep(3)
    here.passes(placed=(one,))
    here.clock.sleep(2)
    here.passes(placed=(one,))
    assert here.waits() == {"unstarted": 17, "unbound": 17, "place unstarted": 2, "place unbound": 2}
    assert here.durations() == {"decided": [1, 2]}
    here.sees(with_status(one, "Pending", "n"))
    assert here.waits() == {"unstarted": 17, "place unstarted": 2}
    here.clock.sleep(4)
    here.sees(with_status(one, "Running", "n"))
    assert here.waits() == {}
    assert here.durations() == {
        "decided": [1, 2],
        "bound": [1, 17],
        "place bound": [1, 2],
        "started": [1, 21],
        "place started": [1, 6],
    }


def test_the_server_knows_best_when_a_pod_was_bound_and_ran() -> None:
    here, one = Replica(), pod()
    here.sees(one)
    here.clock.sleep(60)
    here.sees(with_status(one, "Running", "n", PodScheduled=w.NOW + 3 * SECOND, Ready=w.NOW + 9 * SECOND))
    assert here.durations() == {"bound": [1, 13], "started": [1, 19]}


def test_a_refusal_takes_back_that_a_place_was_found_and_so_does_a_pool_whose_nodes_do_not_register() -> None:
    here, one, other = Replica(), pod(), pod("other")
    for each in (one, other):
        here.sees(each)
    here.passes(placed=(one,))
    here.passes(placed=(other,), healthy=False)
    assert "place unbound" in here.waits()
    assert "place unbound" not in here.waits("other")
    here.passes(one)
    here.clock.sleep(1)
    assert "place unbound" not in here.waits()
    here.passes(placed=(one,))
    here.clock.sleep(1)
    assert here.waits()["place unbound"] == 1
    assert here.durations()["decided"][0] == 2


@pytest.mark.parametrize("end", ["Running", "Succeeded", "Failed", "gone", "another"])
def test_nothing_is_kept_of_a_pod_that_does_not_wait_any_more(end: str) -> None:
    here, one = Replica(), pod()
    here.sees(one)
    if end == "gone":
        here.loses(one)
    elif end == "another":
        here.sees(replace(with_status(one, "Running", "n"), metadata=replace(one.metadata, uid="another")))
    else:
        here.sees(with_status(one, end, "n"))
    assert here.waits() == {}
    assert ("started" in here.durations()) == (end in ("Running", "Succeeded"))


def test_a_new_leader_knows_since_when_pods_wait_but_not_what_was_decided() -> None:
    """He measures decisions from when he began, and counts nothing that the leader before him has counted."""
    here, one, later = Replica(leads=False), pod(), pod("later")
    here.sees(one)
    here.sees(bound := with_status(pod("bound"), "Pending", "n"))
    here.clock.sleep(100)
    assert here.waits() == {"unstarted": 110, "unbound": 110}
    here.leads = True
    here.sees(later)
    here.clock.sleep(1)
    assert (here.waits()["undecided"], here.waits("later")["undecided"]) == (1, 1)
    here.passes(one, later)
    assert here.durations() == {"decided": [2, 2]}
    here.sees(with_status(bound, "Running", "n"))
    assert here.durations() == {"decided": [2, 2], "started": [1, 111]}


def test_a_leader_without_news_of_pods_begins_with_its_first_look() -> None:
    here, one = Replica(leads=False), pod()
    here.sees(one)
    here.clock.sleep(50)
    here.passes(provisioned=False)
    here.clock.sleep(1)
    assert here.waits()["undecided"] == 1
    here.passes(one)
    assert here.durations() == {"decided": [1, 1]}


def test_who_leads_no_more_forgets_what_it_decided_and_counts_nothing() -> None:
    here, one = Replica(), pod()
    here.sees(one)
    here.passes(placed=(one,))
    here.leads = False
    here.sees(replace(one, metadata=replace(one.metadata, resource_version="2")))
    assert set(here.waits()) == {"unstarted", "unbound"}
    here.sees(with_status(one, "Running", "n"))
    assert here.durations() == {"decided": [1, 0]}


def test_who_asks_for_no_node_is_not_undecided_about() -> None:
    """A daemon's pod, and one that the kube-scheduler has not looked at."""
    here = Replica()
    fresh = pod()
    here.sees(replace(fresh, status=replace(fresh.status, conditions=())))
    assert set(here.waits()) == {"unstarted", "unbound"}


def test_types_labels_and_buckets_are_karpenters() -> None:
    here = Replica()
    here.sees(pod())
    here.passes(placed=(pod(),))
    families = {f.name: f for f in text_string_to_metric_families(here.telemetry.metrics.text().decode())}
    kind = {name: families[name].type for name in (*WAITS.values(), *DURATION.values())}
    assert {kind[name] for name in WAITS.values()} == {"gauge"}
    assert kind.pop(DURATION["started"]) == "summary"
    assert {kind[name] for name in DURATION.values() if name in kind} == {"histogram"}
    (sample,) = families[WAITS["unbound"]].samples
    assert sample.labels == {"name": "p", "namespace": "default"}
    bounds = [s.labels["le"] for s in families[DURATION["bound"]].samples if s.name.endswith("_bucket")]
    assert [float(text) for text in bounds] == [*DURATIONS, math.inf]
    quantiles = [s.labels["quantile"] for s in families[DURATION["started"]].samples if s.labels]
    assert quantiles == ["0", "0.5", "0.9", "0.99", "1"]


def test_series_of_single_pods_can_be_left_out() -> None:
    """What was measured of pods is there all the same."""
    world = World()
    told = Telemetry(silent(), Metrics(), EventWriter(world.kube, world.clock), world.clock, single_objects=False)
    told.object_changed(kinds.POD, None, pod())
    told.object_changed(kinds.POD, pod(), with_status(pod(), "Running", "n"))
    told.object_changed(kinds.POD, None, pod("other"))
    text = told.metrics.text().decode()
    assert not any(name in text for name in WAITS.values())
    assert f"{DURATION['bound']}_count 1.0" in text


def test_quantiles_are_of_what_was_observed_lately() -> None:
    seconds = [0.0]
    summary = Summary("x", "X.", clock=lambda: seconds[0])

    def told() -> dict[str, float]:
        (family,) = summary.collect()
        return {sample.labels.get("quantile", sample.name): sample.value for sample in family.samples}

    assert all(math.isnan(told()[q]) for q in ("0", "0.5", "1"))
    for number in range(100):
        summary.observe(float(number))
    assert told() == {"0": 0, "0.5": 50, "0.9": 90, "0.99": 99, "1": 99, "x_count": 100, "x_sum": 4950}
    seconds[0] = LATELY_SECONDS + 1
    summary.observe(7)
    assert told() == {"0": 7, "0.5": 7, "0.9": 7, "0.99": 7, "1": 7, "x_count": 101, "x_sum": 4957}
    for _ in range(REMEMBERED + 5):
        summary.observe(1)
    assert (told()["1"], told()["x_count"]) == (1, 101 + REMEMBERED + 5)


# --- of passes ----------------------------------------------------------------------------------------------------
UNSCHEDULABLE = "karpenter_scheduler_unschedulable_pods_count"


def test_how_many_have_no_place_stands_until_the_next_pass_or_until_nobody_waits() -> None:
    """A look between two passes says nothing about pods."""
    here, one = Replica(), pod()
    here.sees(one)
    here.passes(one)
    assert here.samples()[UNSCHEDULABLE] == {"": 1}
    here.passes(provisioned=False)
    assert here.samples()[UNSCHEDULABLE] == {"": 1}
    here.passes(placed=(one,))
    assert here.samples()[UNSCHEDULABLE] == {"": 0}
    here.passes(one)
    here.loses(one)
    here.passes(provisioned=False)
    assert here.samples()[UNSCHEDULABLE] == {"": 0}


def test_pods_of_a_node_that_goes_are_not_forgotten_between_passes() -> None:
    here, moving = Replica(), pod("moving", node="n")
    here.sees(moving)
    here.passes(moving)
    here.clock.sleep(10)
    here.passes(provisioned=False)
    assert here.samples()[UNSCHEDULABLE] == {"": 1}
    here.clock.sleep(20)
    here.passes(provisioned=False)
    assert here.samples()[UNSCHEDULABLE] == {"": 0}


def test_work_under_way_has_an_age_and_the_queue_its_labels() -> None:
    here = Replica()
    name = "karpenter_scheduler_unfinished_work_seconds"
    solver = {"controller": "provisioner", "scheduling_id": ""}
    value = here.telemetry.metrics.registry.get_sample_value
    with here.telemetry.tick():
        first = value(name, solver)
        assert first is not None
        assert (value(name, solver) or 0) >= first >= 0
    assert value(name, solver) is None
    with pytest.raises(ZeroDivisionError), here.telemetry.tick():
        raise ZeroDivisionError
    assert value(name, solver) is None
    here.sees(pod())
    here.passes()
    assert value("karpenter_scheduler_queue_depth", solver) == 1


def test_a_scheduler_that_neither_binds_nor_refuses_a_pod_is_silent_until_it_does() -> None:
    here, patience = Replica(), timedelta(minutes=2)
    unanswered = with_status(pod(), "Pending")
    own = with_status(pod("own", schedulerName="own"), "Pending")
    for one in (unanswered, own, pod("refused"), with_status(pod("bound"), "Pending", "n")):
        here.sees(one)
    found = here.telemetry.series.pods.silent_schedulers
    assert found(patience) == set()
    here.clock.sleep(110)
    assert found(patience) == {"default-scheduler", "own"}
    here.sees(pod())
    assert found(patience) == {"own"}
    here.loses(own)
    assert found(patience) == set()


def test_a_silent_scheduler_is_a_trouble() -> None:
    here = Replica()
    here.sees(with_status(pod(), "Pending"))
    here.clock.sleep(200)
    here.passes()
    codes = {s.labels["code"]: s.value for s in here.family("kerf_troubles")}
    assert codes == {"ActionFails": 0, "NotReady": 0, "GuardTripped": 0, "LaunchRefused": 0, "NotScheduled": 1}
