"""Pods without a place because of a used-up quota of vCPUs: the named quota, its times, and the edits that help."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import pytest

from kerf.cli.answering.account_page import page
from kerf.model.aws.cloud import FleetError
from kerf.model.aws.instance_type import OfferingKey
from kerf.model.snapshot import Batch, LaunchFailure
from kerf.provisioning.groups import groups
from kerf.provisioning.provision import provision
from kerf.provisioning.why import Answer, why
from kerf_api import labels
from tests.unit.scheduling import worlds as w

MINUTE = timedelta(minutes=1)
AT = w.NOW - MINUTE
UNTIL = AT + 3 * MINUTE
TYPES = (w.instance_type("m5.large", 2, 8), w.instance_type("m5.xlarge", 4, 16), w.instance_type("g5.xlarge", 4, 16))
LIMIT = "your current vCPU limit is 32"
ON_DEMAND, SPOT = ("VcpuLimitExceeded", "on-demand"), ("MaxSpotInstanceCountExceeded", "spot")
RAISE = "request a higher quota (Service Quotas, EC2); kerf preflight shows its use"


def market(*kinds: str) -> dict[str, Any]:
    return {"requirements": [{"key": labels.CAPACITY_TYPE, "operator": "In", "values": list(kinds)}]}


def of_type(name: str) -> dict[str, str]:
    return {labels.INSTANCE_TYPE: name}


def names(*values: str) -> dict[str, Any]:
    return {"key": labels.INSTANCE_TYPE, "operator": "In", "values": list(values)}


def stock(kind: str, names: Iterable[str], zones: Iterable[str] = w.ZONES) -> dict[OfferingKey, datetime]:
    return {(name, zone, kind): UNTIL for name in names for zone in zones}


def refused(
    quota: tuple[str, str], *names: str, at: datetime = AT, more: tuple[FleetError, ...] = ()
) -> dict[str, Any]:
    """The facts after a launch of the last one of these types, each of which the quota has closed."""
    error = FleetError(quota[0], LIMIT, names[-1], "z1", capacity=True)
    return {"out_of_stock": stock(quota[1], names), "launch_failures": {quota[0]: LaunchFailure((error, *more), at)}}


def both(*names: str) -> dict[str, Any]:
    one, other = refused(ON_DEMAND, *names), refused(SPOT, *names)
    return {key: {**one[key], **other[key]} for key in one}


def asked(*objects: Any, **facts: Any) -> Answer:
    return why(w.world(*objects, catalogue=TYPES, **facts), "default/p")


def quotas(answer: Answer) -> list[str]:
    return [one.capacity_type for one in answer.refusal.quotas] if answer.refusal is not None else []


def edits(answer: Answer) -> list[str]:
    return [patch.text for patch in answer.patches]


# --- a quota is named ---------------------------------------------------------------------------------------------
def test_the_quota_of_on_demand_is_named_with_its_times_and_what_helps() -> None:
    pool = w.pool(**market("on-demand"))
    found = asked(pool, w.pod("p", "3", nodeSelector=of_type("m5.xlarge")), **refused(ON_DEMAND, "m5.xlarge"))
    name = "the quota of on-demand vCPUs of the standard families (L-1216C47A)"
    assert found.text == (
        f"{name} is used up since 11:59:00 UTC; Kerf requests no types with 4 or more vCPUs until 12:02:00 UTC: "
        f"VcpuLimitExceeded: {LIMIT}"
    )
    assert found.cause is not None
    assert (found.cause.text, found.cause.fields[0].kind) == (f"{name}: used up", "ServiceQuota")
    assert edits(found)[:2] == [
        f"{name}: {RAISE}",
        "NodePool default: allow spot in the requirement karpenter.sh/capacity-type",
    ]
    assert f"To do:\n  - {name}: {RAISE}\n" in page(found)


def test_the_quota_of_spot_is_another_one() -> None:
    found = asked(w.pool(**market("spot")), w.pod("p", "3"), **refused(SPOT, "m5.xlarge"))
    assert found.code == "Planned"  # of the families of g5, another quota counts the vCPUs
    found = asked(
        w.pool(**market("spot")), w.pod("p", "3", nodeSelector=of_type("m5.xlarge")), **refused(SPOT, "m5.xlarge")
    )
    assert quotas(found) == ["spot"]
    assert "(L-34B43A08)" in found.text
    assert "allow on-demand" in edits(found)[1]


def test_both_quotas_are_named_where_each_would_do() -> None:
    pod = w.pod("p", "3", nodeSelector=of_type("m5.xlarge"))
    found = asked(w.pool(**market("on-demand", "spot")), pod, **both("m5.xlarge"))
    assert quotas(found) == ["spot", "on-demand"]
    assert [text.endswith(RAISE) for text in edits(found)[:2]] == [True, True]
    only = asked(w.pool(**market("on-demand")), pod, **both("m5.xlarge"))
    assert quotas(only) == ["on-demand"]
    assert not any("allow spot" in text for text in edits(only))


def test_smaller_types_that_are_requested_are_an_edit_of_the_pod() -> None:
    pool = w.pool(requirements=[*market("on-demand")["requirements"], names("m5.large", "m5.xlarge")])
    found = asked(pool, w.pod("p", "3"), **refused(ON_DEMAND, "m5.xlarge"))
    assert edits(found)[2] == "the pod: lower its request for cpu from 3 to 1900m"


def test_a_quota_that_leaves_a_nodepool_nothing_at_all() -> None:
    pool = w.pool(requirements=[*market("on-demand")["requirements"], names("m5.large", "m5.xlarge")])
    found = asked(pool, w.pod("p"), **refused(ON_DEMAND, "m5.xlarge", "m5.large"))
    assert quotas(found) == ["on-demand"]
    assert [text.partition(":")[0] for text in edits(found)] == [found.refusal.quotas[0].name, "NodePool default"]  # type: ignore[union-attr]


def test_a_pod_is_refused_because_of_the_larger_type_of_another_pod() -> None:
    """The launch of another pod's node closed what this pod needs: no launch for this pod has failed."""
    types = (*TYPES, w.instance_type("m5.4xlarge", 16, 64))
    facts = refused(ON_DEMAND, "m5.4xlarge")
    objects = w.pool(requirements=[*market("on-demand")["requirements"], names("m5.large", "m5.4xlarge")])
    snapshot = w.world(objects, w.pod("p", "8"), w.pod("q", "1"), catalogue=types, **facts)
    assert quotas(why(snapshot, "default/p")) == ["on-demand"]
    assert why(snapshot, "default/q").code == "Planned"


def test_families_with_a_quota_of_their_own_are_named() -> None:
    pool = w.pool(requirements=[*market("on-demand")["requirements"], names("g5.xlarge")])
    found = asked(pool, w.pod("p", "3"), **refused(ON_DEMAND, "g5.xlarge"))
    assert found.text.startswith("the quota of on-demand vCPUs of the g families is used up")


def test_launches_that_failed_one_after_another_began_with_the_first() -> None:
    facts = refused(ON_DEMAND, "m5.xlarge")
    (latest,) = facts["launch_failures"].values()
    earlier = {f"g{n}": LaunchFailure(latest.errors, AT - n * 3 * MINUTE) for n in (1, 2, 5)}
    facts["launch_failures"] = {**facts["launch_failures"], **earlier}
    pod = w.pod("p", "3", nodeSelector=of_type("m5.xlarge"))
    assert "since 11:53:00 UTC" in asked(w.pool(**market("on-demand")), pod, **facts).text


# --- the same words everywhere ------------------------------------------------------------------------------------
def test_the_event_and_the_pending_view_give_the_same_answer() -> None:
    pod = w.pod("p", "3", nodeSelector=of_type("m5.xlarge"))
    facts = refused(ON_DEMAND, "m5.xlarge")
    snapshot = w.world(w.pool(**market("on-demand")), pod, catalogue=TYPES, **facts)
    text = why(snapshot, pod.key).text
    (group,) = groups(snapshot)
    assert group.answer.text == text
    closed = w.world(w.pool(**market("on-demand")), pod, catalogue=TYPES, batch=Batch(AT, AT), **facts)
    (event,) = [one for one in provision(closed).events if one.reason == "FailedScheduling"]
    assert event.message.startswith(f"Failed to schedule pod, {text}")
    assert RAISE in event.message
    assert len(event.message) <= 1024


# --- and no other closure is --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "facts",
    [
        {"out_of_stock": stock("on-demand", ["m5.xlarge"])},
        {
            "out_of_stock": stock("on-demand", ["m5.xlarge"]),
            "launch_failures": {
                "g": LaunchFailure((FleetError("InsufficientInstanceCapacity", "no", "m5.xlarge", "z1", True),), AT)
            },
        },
        {**refused(ON_DEMAND, "m5.xlarge"), "out_of_stock": {}},
        refused(ON_DEMAND, "m5.xlarge", at=AT - MINUTE),
        refused(SPOT, "m5.xlarge"),
    ],
    ids=["a stock-out", "a stock-out of a launch", "the quota was freed", "closed by another launch", "of spot"],
)
def test_another_closure_is_no_quota(facts: dict[str, Any]) -> None:
    pod = w.pod("p", "3", nodeSelector=of_type("m5.xlarge"))
    assert quotas(asked(w.pool(**market("on-demand")), pod, **facts)) == []


def test_a_zone_that_is_out_of_stock_in_the_same_call_is_no_quota() -> None:
    """The quota of larger types is used up, and the pod's own zone is out of stock of its type."""
    gone = FleetError("InsufficientInstanceCapacity", "no", "m5.large", "z3", capacity=True)
    facts = refused(ON_DEMAND, "m5.xlarge", more=(gone,))
    facts["out_of_stock"] = {**facts["out_of_stock"], ("m5.large", "z3", "on-demand"): UNTIL}
    pod = w.pod("p", "1", nodeSelector={labels.ZONE: "z3", **of_type("m5.large")})
    assert quotas(asked(w.pool(**market("on-demand")), pod, **facts)) == []


def test_another_cause_beside_a_used_up_quota_is_the_cause() -> None:
    facts = refused(ON_DEMAND, "m5.xlarge")
    pod = w.pod("p", "3", nodeSelector={"example.com/team": "web", **of_type("m5.xlarge")})
    found = asked(w.pool(**market("on-demand")), pod, **facts)
    assert quotas(found) == []
    assert not any("quota" in text for text in edits(found))
    huge = asked(w.pool(**market("on-demand")), w.pod("p", "900"), **facts)
    assert quotas(huge) == []


def test_the_pod_that_is_asked_about_is_tried_before_many_others() -> None:
    """Tries are limited, and 25 other kinds of pods have no place for another reason."""
    others = [w.pod(f"a{number:02}", "1", nodeSelector={f"example.com/x{number}": "y"}) for number in range(25)]
    facts = refused(ON_DEMAND, "m5.xlarge")
    found = asked(w.pool(**market("on-demand")), *others, w.pod("p", "3", nodeSelector=of_type("m5.xlarge")), **facts)
    assert quotas(found) == ["on-demand"]


def test_every_kind_of_pods_has_the_quota_in_its_event_and_in_the_pending_view() -> None:
    """The first twenty have edits of NodePools, too."""
    pods = [w.pod(f"p{n:02}", f"{3000 + n}m", nodeSelector=of_type("m5.xlarge")) for n in range(45)]
    others = [w.pod(f"q{n:02}", f"{900 + n}", nodeSelector=of_type("m5.xlarge")) for n in range(3)]
    facts = refused(ON_DEMAND, "m5.xlarge")
    snapshot = w.world(w.pool(**market("on-demand")), *pods, *others, catalogue=TYPES, batch=Batch(AT, AT), **facts)
    named = {one.pod: one for group in groups(snapshot) if quotas(one := group.answer)}
    assert named.keys() == {pod.key for pod in pods}
    assert sum(bool(one.refusal.around) for one in named.values() if one.refusal is not None) == 20
    events = [one for one in provision(snapshot).events if one.reason == "FailedScheduling"]
    assert {one.ref.name for one in events if "L-1216C47A" in one.message} == {pod.metadata.name for pod in pods}


def test_pods_beyond_the_twentieth_kind_that_others_leave_no_place_have_no_quota() -> None:
    pods = [w.pod(f"p{n:02}", f"{3000 + n}m", nodeSelector=of_type("m5.xlarge")) for n in range(25)]
    small = [w.pod(f"z{n:02}", f"{1000 + n}m", nodeSelector={labels.ZONE: zone}) for n, zone in enumerate(w.ZONES)]
    pool = w.pool(
        requirements=[*market("on-demand")["requirements"], names("m5.large", "m5.xlarge")], limits={"cpu": "4"}
    )
    snapshot = w.world(pool, *pods, *small, catalogue=TYPES, **refused(ON_DEMAND, "m5.xlarge"))
    found = {one.pod: quotas(one) for group in groups(snapshot) for one in [group.answer]}
    assert [key for key, known in found.items() if "/z" in key and known] == []
    assert [key for key, known in found.items() if "/p" in key and not known] == []


# --- several quotas -----------------------------------------------------------------------------------------------
LARGE = (*TYPES, w.instance_type("p3.xlarge", 4, 16), w.instance_type("x2.xlarge", 4, 16))
ALL = ("m5.xlarge", "g5.xlarge", "p3.xlarge", "x2.xlarge")


def of_groups(*types: str) -> dict[str, Any]:
    """The facts after launches of these types, of as many groups of families, that quotas have refused."""
    found = [refused((f"VcpuLimitExceeded {name}", "on-demand"), name) for name in types]
    launches = {
        name: LaunchFailure((FleetError("VcpuLimitExceeded", LIMIT, name, "z1", capacity=True),), AT) for name in types
    }
    out = {key: until for one in found for key, until in one["out_of_stock"].items()}
    return {"out_of_stock": out, "launch_failures": launches}


def least(count: int) -> Any:
    return w.pool(requirements=[*market("on-demand")["requirements"], {**names(*ALL), "minValues": count}])


@pytest.mark.parametrize(("count", "expected"), [(1, 4), (2, 2), (3, 3), (4, 4)])
def test_where_no_quota_alone_is_enough_the_fewest_that_are_are_named(count: int, expected: int) -> None:
    """The NodePool needs so many types, each of a quota of its own; one is enough where each would do."""
    snapshot = w.world(least(count), w.pod("p", "3"), catalogue=LARGE, **of_groups(*ALL))
    found = why(snapshot, "default/p")
    assert found.refusal is not None
    assert len({one.group for one in found.refusal.quotas}) == expected
    assert found.text.count("is used up since") == expected


def test_a_quota_of_types_that_are_not_needed_is_not_named() -> None:
    """Two of three types are enough, and the third one is too small."""
    pool = w.pool(
        requirements=[
            *market("on-demand")["requirements"],
            {**names("m5.large", "g5.xlarge", "p3.xlarge"), "minValues": 2},
        ]
    )
    facts = of_groups("m5.large", "g5.xlarge", "p3.xlarge")
    found = why(w.world(pool, w.pod("p", "3"), catalogue=LARGE, **facts), "default/p")
    assert found.refusal is not None
    assert {one.group for one in found.refusal.quotas} == {"g", "p"}
