"""Rules, quotas and what the first node needs, as `kerf preflight` finds them in an account."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from kerf.runtime.preflight import account_limits, to_come
from kerf.runtime.preflight.findings import DOUBTFUL, GOOD, UNCHECKED, WRONG, Finding

from .preflights import DENIED, GONE, Account

RARE = "EC2 Capacity Reservation Instance Interruption Warning"
ALL = (*account_limits.EVENTS, RARE)


# --- EventBridge --------------------------------------------------------------------------------------------------
def bridge(*events: str, state: str = "ENABLED", **more: Any) -> Account:
    def described(Name: str) -> dict[str, Any]:  # noqa: N803 - a parameter of AWS
        return {"Name": Name, "State": state, "EventPattern": json.dumps({"detail-type": [Name]})}

    answers = {
        "get_queue_url": {"QueueUrl": "https://sqs.us-west-2.amazonaws.com/123456789012/q"},
        "list_rule_names_by_target": {"RuleNames": [*events]},
        "describe_rule": described,
    }
    return Account({**answers, **more})


def rules(account: Account) -> Finding:
    clients: Any = account
    return account_limits.rules(clients, "q", isolated=False)


@pytest.mark.parametrize(
    ("account", "how", "words"),
    [
        (bridge(*ALL), GOOD, ""),
        (bridge(*account_limits.EVENTS), DOUBTFUL, f"no enabled rule sends {RARE} to the queue q"),
        (bridge(*ALL[1:]), WRONG, "no enabled rule sends AWS Health Event to the queue q"),
        (bridge(), WRONG, "EC2 Spot Instance Interruption Warning"),
        (bridge(*ALL, state="DISABLED"), WRONG, "EC2 Spot Instance Interruption Warning"),
        (bridge(*ALL, describe_rule={"Name": "r", "EventPattern": "no JSON"}), WRONG, "AWS Health Event"),
        (bridge(get_queue_url="QueueDoesNotExist"), UNCHECKED, "there is no queue q"),
        (bridge(*ALL, describe_rule=DENIED), UNCHECKED, "needs events:ListRuleNamesByTarget, events:DescribeRule"),
        (bridge(list_rule_names_by_target=DENIED), UNCHECKED, "needs events:ListRuleNamesByTarget"),
    ],
)
def test_the_rules_of_the_queue(account: Account, how: str, words: str) -> None:
    found = rules(account)
    assert (found.how, words in found.seen) == (how, True), found
    assert ("cloudformation" in found.fix) == (how in (WRONG, DOUBTFUL))


def test_rules_are_found_by_the_arn_of_the_queue() -> None:
    asked: list[str] = []

    def listed(TargetArn: str) -> dict[str, Any]:  # noqa: N803
        asked.append(TargetArn)
        return {"RuleNames": []}

    rules(bridge(list_rule_names_by_target=listed))
    assert asked == ["arn:aws:sqs:us-west-2:123456789012:q"]


# --- quotas -------------------------------------------------------------------------------------------------------
def instance(type_: str, cores: int, lifecycle: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {"InstanceType": type_, "CpuOptions": {"CoreCount": cores, "ThreadsPerCore": 2}}
    return {**found, "InstanceLifecycle": lifecycle} if lifecycle else found


def limited(value: float, *instances: Mapping[str, Any], **more: Any) -> Account:
    answers = {
        "get_service_quota": {"Quota": {"QuotaCode": "L", "Value": value}},
        "describe_instances": {"Reservations": [{"Instances": [*instances]}]},
    }
    return Account({**answers, **more})


def quotas(account: Account, *, isolated: bool = False) -> dict[str, Finding]:
    clients: Any = account
    return {one.what: one for one in account_limits.quotas(clients, isolated=isolated)}


def test_a_quota_that_is_reached_is_wrong_and_one_that_nearly_is_is_doubtful() -> None:
    nodes = (instance("m5.large", 4), instance("c6g.large", 1), instance("r5.large", 9, "spot"))
    found = quotas(limited(10.0, *nodes))
    one = found["quota of on-demand vCPUs"]
    assert (one.how, one.seen.partition(" in us-west-2")[0]) == (
        WRONG,
        "10 of 10 vCPUs of the standard families are in use",
    )
    assert "--quota-code L-1216C47A" in one.fix
    assert found["quota of spot vCPUs"].how == WRONG
    assert quotas(limited(11.0, *nodes))["quota of on-demand vCPUs"].how == DOUBTFUL
    assert quotas(limited(12.0, *nodes))["quota of on-demand vCPUs"].how == GOOD


def test_families_with_quotas_of_their_own_are_not_counted() -> None:
    others = [instance(type_, 100) for type_ in ("g5.large", "p5.large", "inf2.large", "trn1.large", "x2.large")]
    assert quotas(limited(1.0, *others, instance("hpc7a.large", 9)))["quota of on-demand vCPUs"].how == GOOD


@pytest.mark.parametrize("missing", ["get_service_quota", "describe_instances"])
def test_a_quota_that_may_not_be_read_is_not_called_good(missing: str) -> None:
    found = quotas(limited(10.0, **{missing: DENIED}))
    assert {one.how for one in found.values()} == {UNCHECKED}
    assert "needs servicequotas:GetServiceQuota and ec2:DescribeInstances" in found["quota of spot vCPUs"].seen


def test_an_isolated_vpc_asks_neither_for_quotas_nor_for_rules_nor_for_roles() -> None:
    account = Account()
    clients: Any = account
    found = [*quotas(account, isolated=True).values(), account_limits.rules(clients, "q", isolated=True)]
    found.append(to_come.node_role(clients, "demo", isolated=True))
    assert {one.how for one in found} == {UNCHECKED}
    assert account.asked == []


# --- what the first node needs ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("answer", "how", "words"),
    [
        ({"Role": {"RoleName": "r"}}, GOOD, "KarpenterNodeRole-demo"),
        ("NoSuchEntity", WRONG, "IAM has no role KarpenterNodeRole-demo (assumed"),
        ("AccessDenied", UNCHECKED, "needs iam:GetRole"),
    ],
)
def test_the_role_of_nodes(answer: Any, how: str, words: str) -> None:
    clients: Any = Account({"get_role": answer})
    found = to_come.node_role(clients, "demo", isolated=False)
    assert (found.how, words in found.seen) == (how, True)


def test_subnets_and_security_groups_to_be_selected() -> None:
    answers = {
        "describe_subnets": {"Subnets": [{"SubnetId": "s"}]},
        "describe_security_groups": {"SecurityGroups": []},
    }
    clients: Any = Account(answers)
    subnets, groups = to_come.discovery(clients, "demo")
    assert (subnets.how, subnets.seen) == (GOOD, "1 with the tag karpenter.sh/discovery=demo")
    assert (groups.how, "none has the tag karpenter.sh/discovery=demo" in groups.seen) == (WRONG, True)
    assert groups.fix == "aws ec2 create-tags --tags Key=karpenter.sh/discovery,Value=demo --resources IDS"
    clients = Account({"describe_subnets": DENIED, "describe_security_groups": GONE})
    assert {one.how for one in to_come.discovery(clients, "demo")} == {UNCHECKED}


def test_the_image_that_nobody_has_built() -> None:
    assert to_come.image_name("kerf/controller").how == WRONG
    assert to_come.image_name("registry.example.com/kerf").how == GOOD
