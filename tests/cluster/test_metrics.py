"""What a running controller serves after a node has come and gone, held against the table of metrics both ways.

Whatever is served is in the table, with the type, the labels and the buckets that it says there; and what the table
calls the same as Karpenter's has a value, but for what nothing in such a life gives one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from reconciler.telemetry.listed_events import EVENTS
from reconciler.telemetry.listing import CONDITIONS, DETAILS, OFFERINGS, PODS, Listed
from reconciler.telemetry.names import METRICS

from .control_plane import ControlPlane
from .installation import Installation

pytestmark = pytest.mark.cluster

HERE = Path(__file__).parent
#: What has no value, and why there is none.
WITHOUT = {
    "nothing of it happened": {
        "karpenter_nodeclaims_unhealthy_disrupted_total",
        "karpenter_voluntary_disruption_failed_validations_total",
        "karpenter_voluntary_disruption_queue_failures_total",
        "karpenter_cloudprovider_instance_launch_failures_total",
        "karpenter_cloudprovider_instance_termination_failures_total",
        "karpenter_interruption_received_messages_total",
        "karpenter_interruption_instance_status_unhealthy_total",
        "karpenter_scheduler_pending_pods_by_effective_zone_count",
        "kerf_refused_pods",
        "kerf_garbage_collection_held",
        "kerf_deletion_held",
        "kerf_ec2_requests_held_seconds_total",
        "kerf_ec2_requests_throttled_total",
        "kerf_latest_failed_action_timestamp_seconds",
        "kerf_errors_total",
    },
    "it comes minutes after the node has gone": {
        f"kerf_consolidation_{what}_usd_per_hour_total" for what in ("promised", "realised", "lost")
    },
    "it has a value only while something is under way": {
        "karpenter_scheduler_unfinished_work_seconds",
        "karpenter_pods_unstarted_time_seconds",
        "karpenter_pods_unbound_time_seconds",
        "karpenter_pods_provisioning_unstarted_time_seconds",
        "karpenter_pods_provisioning_unbound_time_seconds",
        "karpenter_pods_provisioning_scheduling_undecided_time_seconds",
        *(
            f"operator_{kind}_termination_current_time_seconds"
            for kind in ("nodeclaim", "nodepool", "node", "ec2nodeclass")
        ),
    },
    "there is no such object, or the last of them has gone": {
        *(name for name in METRICS if name.startswith("operator_capacitybuffer_")),
        *(f"operator_{kind}_status_condition_count" for kind in ("node", "nodeclaim")),
        *(f"operator_{kind}_status_condition_current_status_seconds" for kind in ("node", "nodeclaim")),
    },
    "the pool has no limits": {"karpenter_nodepools_limit"},
}
ENDS = ("_bucket", "_count", "_sum")


@pytest.fixture(scope="module")
def kerf(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """With everything that has to be asked for, but for conditions, so that there is what is told of by default."""
    details = ",".join(word for word in DETAILS if word != CONDITIONS)
    folder = tmp_path_factory.mktemp("metrics")
    values = {"settings.detailedMetrics": details.replace(",", "\\,")}
    with Installation(control_plane, folder, webhook=False, values=values) as installation:
        installation.kubectl("apply", "-f", str(HERE / "workloads.yaml"))
        yield installation


@pytest.fixture(scope="module")
def lived(kerf: Installation) -> dict[str, list[Sample]]:
    """A node comes for three pods, and goes without them; what was served while it was there, and afterwards."""
    kerf.kubectl("scale", "deployment/web", "--replicas=3")
    kerf.wait(lambda: len(kerf.running()) == 3, 120, "3 pods run")
    kerf.wait(lambda: _ready(kerf) > 0, 60, "a node is told of as Ready")
    during = kerf.metrics()
    kerf.kubectl("scale", "deployment/web", "--replicas=0")
    kerf.wait(lambda: not kerf.get("nodeclaims") and not kerf.running_instances(), 180, "the node is given back")
    kerf.wait(lambda: kerf.metric("karpenter_nodeclaims_terminated_total") > 0, 30, "its end is told of")
    found: dict[str, list[Sample]] = {}
    for text in (during, kerf.metrics()):
        for family in text_string_to_metric_families(text):
            name = family.name if family.name in METRICS else f"{family.name}_total"
            assert name in METRICS, f"{family.name} is not in the table"
            assert METRICS[name].kind == family.type, name
            found.setdefault(name, []).extend(family.samples)
    return found


def _ready(kerf: Installation) -> float:
    return kerf.metric('operator_nodeclaim_status_condition_count{namespace="",name=')


def test_whatever_is_served_has_the_labels_and_buckets_of_the_table(lived: dict[str, list[Sample]]) -> None:
    for name, samples in lived.items():
        row = METRICS[name]
        assert row.here, name
        assert row.process == "controller", name
        for sample in samples:
            assert set(sample.labels) - {"le", "quantile"} == set(row.labels), sample
        bounds = {float(sample.labels["le"]) for sample in samples if "le" in sample.labels}
        assert bounds <= {*row.buckets, float("inf")}, name
        assert not bounds or bounds >= set(row.buckets), name


def test_whatever_the_table_calls_the_same_has_a_value(lived: dict[str, list[Sample]]) -> None:
    empty = {name for names in WITHOUT.values() for name in names}
    expected = {name for name, row in METRICS.items() if row.here and row.process == "controller"} - empty
    missing = {name for name in expected if not any(_counts(METRICS[name], sample) for sample in lived.get(name, ()))}
    assert missing == set()


def _counts(row: Listed, sample: Sample) -> bool:
    """Whether this says that there was something: of a histogram and a summary that something was observed."""
    if row.kind in ("histogram", "summary"):
        return sample.name.endswith("_count") and sample.value > 0
    return not sample.name.endswith(ENDS)


def test_every_event_that_was_written_is_in_the_table(kerf: Installation, lived: dict[str, list[Sample]]) -> None:
    """On an object of a kind, and of a type, that stands there; conditions are told of by their types."""
    rows = [row for part in EVENTS.values() for row in part if row.here]
    known = {(kind, row.reason, row.type) for row in rows for kind in row.objects.split(", ")}
    written = {
        (event["involvedObject"]["kind"], event["reason"], event["type"])
        for event in kerf.get("events", "-A")
        if event["source"].get("component") == "karpenter"
    }
    plain = {row.reason for row in rows}
    others = {one for one in written - known if one[1] in plain}
    assert others == set()
    by_condition = {one for one in written - known if (one[0], "(the type of the condition)", one[2]) in known}
    assert written - known == by_condition
    assert {("NodeClaim", "Launched", "Normal"), ("Pod", "Nominated", "Normal")} <= written
    assert sum(sample.value for sample in lived["kerf_events_total"] if sample.labels["outcome"] == "written") > 0


def test_what_has_to_be_asked_for_is_there(lived: dict[str, list[Sample]]) -> None:
    for detail in (PODS, OFFERINGS):
        assert all(name in lived for name, row in METRICS.items() if row.detail == detail)
