"""Failing actions and refused launches as a command reads them from the events of the API server."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kerf.cli.answering.account_page import page as pod_page
from kerf.cli.answering.node_page import page as node_page
from kerf.cli.answering.pool_page import page as pool_page
from kerf.ec2.errors import launch_condition
from kerf.judgement import judge, pools, troubles
from kerf.model.aws.cloud import FleetError
from kerf.model.failures import key
from kerf.model.instants import rfc3339
from kerf.model.snapshot import Snapshot
from kerf.provisioning.why import why
from kerf.runtime.observe import reported
from tests.unit.scheduling import worlds as w

QUOTA = FleetError("VcpuLimitExceeded", "your current vCPU limit is 32", "m5.large", "z1", capacity=True)
SUBNET = FleetError("InsufficientFreeAddressesInSubnet", "subnet-1 has too few free addresses", "m5.large", "z1", True)
SCARCE = FleetError("InsufficientInstanceCapacity", "no m5.large in z1", "m5.large", "z1", capacity=True)


class Server:
    def __init__(self, *events: Any) -> None:
        self.events = events

    def request(self, method: str, path: str) -> Any:
        assert (method, path.partition("?")[0]) == ("GET", "/api/v1/events")
        return {"items": list(self.events)}


def event(kind: str, name: str, reason: str, message: str, minutes: float) -> dict[str, Any]:
    at = rfc3339(w.NOW - timedelta(minutes=minutes))
    about = {"kind": kind, "name": name}
    times = {"firstTimestamp": at, "lastTimestamp": at}
    return {"involvedObject": about, "reason": reason, "message": message, **times}


def refused(error: FleetError, minutes: float, name: str = "default-1a2b3c4d") -> dict[str, Any]:
    return event("NodeClaim", name, "InsufficientCapacityError", launch_condition((error,))[1], minutes)


def failed(minutes: float) -> dict[str, Any]:
    return event("NodePool", "p", "FailedCreateNodeClaim", f"CreateNodeClaim failed: at {minutes}", minutes)


def cluster(*events: Any) -> Snapshot:
    known = reported.read(Server(*events), w.NOW)
    return replace(w.world(w.pool(), w.pod("p", "1")), failures=known.failures, launch_failures=known.launches)


@pytest.mark.parametrize("error", [QUOTA, SUBNET, SCARCE], ids=lambda error: str(error.code))
def test_every_page_names_the_error_of_a_refused_launch(error: FleetError) -> None:
    found = cluster(refused(error, 1))
    words = f"EC2 refuses launches of NodePool default: {launch_condition((error,))[1]} (1 launch, since "
    assert words in pod_page(why(found, "default/p"))
    assert words in pool_page(pools.why(found, "default"), w.NOW)
    of_claim = judge.why(found, "default-1a2b3c4d")
    assert f"EC2 refused its launch: {launch_condition((error,))[1]}" in node_page(of_claim, w.NOW)


@pytest.mark.parametrize(("error", "lacks"), [(QUOTA, True), (SUBNET, True), (SCARCE, False)])
def test_a_lack_of_the_account_is_a_trouble_with_the_same_words(error: FleetError, lacks: bool) -> None:
    launches = cluster(refused(error, 1)).launch_failures.values()
    texts = [one.text for one in troubles.refused(launches, (), 1, w.NOW)]
    assert texts == ([f"refuses launches: {launch_condition((error,))[1]}"] if lacks else [])


@pytest.mark.parametrize(
    "row",
    [refused(QUOTA, 5), refused(QUOTA, 1, "other-1a2b3c4d"), {**refused(QUOTA, 1), "message": "the class is gone"}],
    ids=["long ago", "another NodePool", "no error of EC2"],
)
def test_another_event_is_no_reason(row: dict[str, Any]) -> None:
    found = cluster(row)
    assert "refuses" not in pod_page(why(found, "default/p"))
    assert "refuses" not in pool_page(pools.why(found, "default"), w.NOW)


def test_the_fault_is_as_old_as_the_first_event_whichever_process_wrote_it() -> None:
    rows = [refused(QUOTA, minutes, f"default-{minutes:08}") for minutes in (1, 4, 8, 20)]
    (found,) = troubles.refused(cluster(*rows).launch_failures.values(), (), 1, w.NOW)
    assert (found.since, found.at_least) == (w.NOW - timedelta(minutes=8), False)
    known = cluster(*map(failed, (1, 10, 20, 35))).failures[key("CreateNodeClaim", "nodepool/p")]
    assert (known.since, known.error, known.at_least) == (w.NOW - timedelta(minutes=20), "at 1", False)


def test_events_expire_so_the_oldest_may_not_be_the_first() -> None:
    known = cluster(*map(failed, range(1, 60, 10))).failures[key("CreateNodeClaim", "nodepool/p")]
    assert (known.since, known.at_least) == (w.NOW - timedelta(minutes=51), False)
    known = cluster(*map(failed, range(5, 60, 10))).failures[key("CreateNodeClaim", "nodepool/p")]
    assert (known.since, known.at_least) == (w.NOW - timedelta(minutes=55), True)
    assert "since at least" in known.standing(w.NOW)


def test_an_action_that_failed_long_ago_fails_no_more() -> None:
    assert not cluster(failed(12), failed(15)).failures
