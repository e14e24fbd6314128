"""The CloudFormation template makes what it says, as far as an AWS of tests has such things."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.moto_aws import MotoAws

TEMPLATE = Path(__file__).parents[2] / "manifests" / "aws" / "cloudformation.yaml"
#: EKS access entries and pod identities are nothing that moto's CloudFormation makes.
PARAMETERS = {"ClusterName": "green", "PodIdentity": "false", "AccessEntry": "false"}


def stack(aws: MotoAws) -> dict[str, str]:
    """Made anew; its outputs."""
    formation = aws.client("cloudformation")
    given = [{"ParameterKey": key, "ParameterValue": value} for key, value in PARAMETERS.items()]
    formation.create_stack(StackName="kerf", TemplateBody=TEMPLATE.read_text(encoding="utf-8"), Parameters=given)
    [found] = formation.describe_stacks(StackName="kerf")["Stacks"]
    assert found["StackStatus"] == "CREATE_COMPLETE"
    return {one["OutputKey"]: one["OutputValue"] for one in found["Outputs"]}


@pytest.mark.only_real("the sandbox makes no stacks")
def test_a_stack_has_a_queue_that_events_reach_a_role_and_policies(aws: MotoAws) -> None:
    outputs = stack(aws)
    assert (outputs["QueueName"], outputs["NodeRoleName"]) == ("green", "KarpenterNodeRole-green")
    events = aws.client("events")
    rules = events.list_rules()["Rules"]
    targets = {target["Arn"] for rule in rules for target in events.list_targets_by_rule(Rule=rule["Name"])["Targets"]}
    sqs = aws.client("sqs")
    address = sqs.get_queue_url(QueueName="green")["QueueUrl"]
    queue = sqs.get_queue_attributes(QueueUrl=address, AttributeNames=["All"])["Attributes"]
    assert (targets, queue["MessageRetentionPeriod"]) == ({queue["QueueArn"]}, "300")
    assert len(rules) == 5
    documents = [document(aws, arn) for arn in outputs["PolicyArns"].split(",")]
    assert len(documents) == 4
    assert "${" not in json.dumps(documents)
    assert "aws:ResourceTag/kubernetes.io/cluster/green" in json.dumps(documents)


def document(aws: MotoAws, arn: str) -> Any:
    iam = aws.client("iam")
    version = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
    return iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]
