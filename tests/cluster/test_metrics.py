"""What a running controller serves after a node has come and gone, held against the table of metrics both ways.

Whatever is served is in the table, with the type, the labels and the buckets that it says there; and what the table
calls the same as Karpenter's has a value, but for what nothing in such a life gives one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kerf.telemetry.catalogue.listing import CONDITIONS, DETAILS
from tests.ipv6 import HAS_IPV6
from tests.metric_lives import Served, missing, served, unlike_the_table, unlisted

from .control_plane import ControlPlane
from .installation import Installation

pytestmark = pytest.mark.cluster

HERE = Path(__file__).parent


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
def lived(kerf: Installation) -> Served:
    """A node comes for three pods, and goes without them; what was served while it was there, and afterwards."""
    kerf.kubectl("scale", "deployment/web", "--replicas=3")
    kerf.wait(lambda: len(kerf.running()) == 3, 120, "3 pods run")
    for name in ("karpenter_nodes_created_total", "karpenter_nodes_total_daemon_requests", "karpenter_nodepools_usage"):
        kerf.wait(lambda name=name: kerf.metric(name) > 0, 60, f"{name} is told of")  # type: ignore[misc]
    during = kerf.metrics()
    kerf.kubectl("scale", "deployment/web", "--replicas=0")
    kerf.wait(lambda: not kerf.get("nodeclaims") and not kerf.running_instances(), 180, "the node is given back")
    kerf.wait(lambda: kerf.metric("karpenter_nodeclaims_terminated_total") > 0, 30, "its end is told of")
    return served(during, kerf.metrics())


def test_whatever_is_served_has_the_labels_and_buckets_of_the_table(lived: Served) -> None:
    assert unlike_the_table(lived) == []


def test_whatever_the_table_says_is_there_has_a_value(lived: Served) -> None:
    assert missing(lived) == set()


def test_every_event_that_was_written_is_in_the_table(kerf: Installation, lived: Served) -> None:
    """On an object of a kind, and of a type, that stands there."""
    written = {
        (event["involvedObject"]["kind"], event["reason"], event["type"])
        for event in kerf.get("events", namespace="")
        if event["source"].get("component") == "karpenter"
    }
    assert unlisted(written) == set()
    assert {("NodeClaim", "Launched", "Normal"), ("Pod", "Nominated", "Normal")} <= written
    assert sum(sample.value for sample in lived["kerf_events_total"] if sample.labels["outcome"] == "written") > 0


@pytest.mark.skipif(not HAS_IPV6, reason="this machine has no IPv6")
def test_probes_and_metrics_answer_over_ipv6_as_over_ipv4(kerf: Installation) -> None:
    assert kerf.readiness(host="[::1]") == kerf.readiness() == (200, "ok\n")
    assert kerf.metrics(host="[::1]").count("\n") > 100
