"""What a controller serves after a node has come and gone in the sandbox, held against the table of metrics both ways.

The same on real parts, with requests, the lease and the process: `tests/cluster/test_metrics.py`.
"""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from kerf.model.settings import Settings
from kerf.ports import Ports
from kerf.runtime.controller import Controller
from kerf.runtime.parts import Parts
from kerf.sandbox.world import World
from kerf.telemetry.catalogue.listing import CONDITIONS, DETAILS
from kerf.telemetry.events import EventWriter
from kerf.telemetry.log.logs import silent
from kerf.telemetry.series.clouds import MeasuredCloud
from kerf.telemetry.series.metrics import Metrics
from kerf.telemetry.telemetry import Telemetry
from tests.metric_lives import Served, missing, served, unlike_the_table
from tests.simulation.scripts import TYPES
from tests.simulation.stage import EAGER
from tests.worlds import deployment, node_class, node_pool

#: What a whole process has: requests over the network, the lease, a queue of messages, thoughts in another process.
#: And daemons, of which there are none here; and node pools counted anew every few seconds, of which none pass here.
OF_A_PROCESS = re.compile(
    r"client_go_|aws_sdk_go_|leader_|workqueue_|kerf_karpenter_lease"
    r"|karpenter_voluntary_disruption_decision_evaluation"
    r"|karpenter_nodes_total_daemon_requests|karpenter_nodepools_usage"
)


class Lived:
    """A node comes for three pods, and goes without them."""

    def __init__(self) -> None:
        self.world = world = World(types=TYPES)
        metrics = Metrics(details=set(DETAILS) - {CONDITIONS}).with_process()
        events = EventWriter(
            world.kube, world.clock, on_event=lambda type_, outcome: metrics.events.labels(type_, outcome).inc()
        )
        telemetry = Telemetry(silent(), metrics, events, world.clock)
        controller = Controller(
            Ports(kube=world.kube, cloud=MeasuredCloud(world.cloud, metrics), clock=world.clock),
            Parts(telemetry=telemetry),
            settings=Settings(cluster_name="sandbox"),
            inline=True,
        )
        for manifest in (node_class(), node_pool("general", {"disruption": EAGER}), deployment("web", {"replicas": 3})):
            world.apply(manifest)
        world.run(controller, timedelta(minutes=5))
        during = metrics.text()
        world.apply(deployment("web", {"replicas": 0}))
        world.run(controller, timedelta(minutes=10))
        self.served: Served = served(during.decode(), metrics.text().decode())


@pytest.fixture(scope="module")
def lived() -> Lived:
    return Lived()


def test_whatever_is_served_has_the_labels_and_buckets_of_the_table(lived: Lived) -> None:
    assert unlike_the_table(lived.served) == []


def test_whatever_the_table_says_is_there_has_a_value(lived: Lived) -> None:
    assert {name for name in missing(lived.served) if not OF_A_PROCESS.match(name)} == set()


def test_a_node_came_and_went_in_the_numbers(lived: Lived) -> None:
    def total(name: str) -> float:
        return max(sample.value for sample in lived.served[name])

    for name in (
        "karpenter_nodeclaims_created_total",
        "karpenter_nodeclaims_disrupted_total",
        "karpenter_nodeclaims_terminated_total",
        "karpenter_nodes_created_total",
        "karpenter_nodes_terminated_total",
        "karpenter_voluntary_disruption_decisions_by_nodepool_total",
    ):
        assert total(name) == 1, name
    assert total("karpenter_nodepools_cost_total") > 0
    assert lived.served["karpenter_nodepools_cost_total"][-1].value == 0
