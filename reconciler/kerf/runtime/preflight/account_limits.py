"""Events that reach the interruption queue, and quotas of the account that a launch may reach."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kerf.aws import facts_of_account as facts
from kerf.aws.requests.clients import Clients
from kerf.ec2.quotas import QUOTAS
from kerf.ports import AlreadyGone
from kerf.runtime.preflight.findings import DOUBTFUL, GOOD, WRONG, Finding, asked, unchecked
from kerf.runtime.preflight.to_come import TEMPLATE

#: What nodes are lost without, by the events of the rules in manifests/aws.
EVENTS: Final = (
    "AWS Health Event",
    "EC2 Instance Rebalance Recommendation",
    "EC2 Instance State-change Notification",
    "EC2 Spot Instance Interruption Warning",
)
#: Only capacity blocks and interruptible reservations have them.
_RARE: Final = ("EC2 Capacity Reservation Instance Interruption Warning",)
#: From this share of a quota on a few nodes reach it.
_NEARLY: Final = 0.9


def rules(clients: Clients, queue: str, *, isolated: bool) -> Finding:
    """The EventBridge rules that send events to the queue."""
    what = "EventBridge rules"
    if isolated:
        return unchecked(what, "needs an EventBridge endpoint, and ISOLATED_VPC is set")

    def ask() -> Finding:
        try:
            found = facts.event_types(clients, queue)
        except AlreadyGone:
            return unchecked(what, f"there is no queue {queue}")
        missing = [name for name in (*EVENTS, *_RARE) if name not in found]
        if not missing:
            return Finding(what, GOOD)
        seen = f"no enabled rule sends {', '.join(missing)} to the queue {queue}"
        how = WRONG if set(missing) & set(EVENTS) else DOUBTFUL
        return Finding(what, how, seen, f"deploy {TEMPLATE}, or add the rules with the queue as their target")

    return asked(what, ask, "events:ListRuleNamesByTarget, events:DescribeRule and sqs:GetQueueUrl")


def quotas(clients: Clients, *, isolated: bool) -> Iterator[Finding]:
    """For each capacity type, the vCPUs in use against the quota."""
    for capacity_type in QUOTAS:
        what = f"quota of {capacity_type} vCPUs"
        if isolated:
            yield unchecked(what, "needs an endpoint of Service Quotas, and ISOLATED_VPC is set")
            continue
        right = "servicequotas:GetServiceQuota and ec2:DescribeInstances"
        yield asked(what, lambda of=(what, capacity_type): _quota(clients, *of), right)  # type: ignore[misc]


def _quota(clients: Clients, what: str, capacity_type: str) -> Finding:
    most, used = facts.quota(clients, capacity_type), facts.vcpus_in_use(clients)[capacity_type]
    seen = f"{used} of {most} vCPUs of the standard families are in use in {clients.region}"
    code = QUOTAS[capacity_type]
    fix = (
        "aws service-quotas request-service-quota-increase --service-code ec2 "
        f"--quota-code {code} --desired-value NUMBER --region {clients.region}"
    )
    if used >= most:
        return Finding(what, WRONG, f"{seen}: EC2 launches no more", fix)
    return Finding(what, DOUBTFUL if used >= _NEARLY * most else GOOD, seen, fix)
