"""The CloudFormation template makes what it says, as far as an AWS of tests has such things."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.moto_aws import MotoAws

TEMPLATE = Path(__file__).parents[2] / "manifests" / "aws" / "cloudformation.yaml"
#: EKS access entries and pod identities are nothing that moto's CloudFormation makes.
PARAMETERS = {"PodIdentity": "false", "AccessEntry": "false"}


def stack(aws: MotoAws, name: str, **parameters: str) -> dict[str, str]:
    """Create a stack and return its outputs."""
    formation = aws.client("cloudformation")
    given = [{"ParameterKey": key, "ParameterValue": value} for key, value in {**PARAMETERS, **parameters}.items()]
    formation.create_stack(StackName=name, TemplateBody=TEMPLATE.read_text(encoding="utf-8"), Parameters=given)
    [found] = formation.describe_stacks(StackName=name)["Stacks"]
    assert found["StackStatus"] == "CREATE_COMPLETE"
    return {one["OutputKey"]: one["OutputValue"] for one in found["Outputs"]}


@pytest.mark.only_real("the sandbox makes no stacks")
def test_a_stack_has_a_queue_that_events_reach_a_role_and_policies(aws: MotoAws) -> None:
    outputs = stack(aws, "green", ClusterName="green")
    assert (outputs["QueueName"], outputs["NodeRoleName"]) == ("green", "KarpenterNodeRole-green")
    sqs = aws.client("sqs")
    address = sqs.get_queue_url(QueueName="green")["QueueUrl"]
    queue = sqs.get_queue_attributes(QueueUrl=address, AttributeNames=["All"])["Attributes"]
    assert aws.client("iam").list_role_policies(RoleName=outputs["NodeRoleName"])["PolicyNames"] == []
    assert (targets(aws).count(queue["QueueArn"]), queue["MessageRetentionPeriod"]) == (5, "300")
    documents = [document(aws, arn) for arn in outputs["PolicyArns"].split(",")]
    assert len(documents) == 4
    assert "${" not in json.dumps(documents)
    assert "aws:ResourceTag/kubernetes.io/cluster/green" in json.dumps(documents)


@pytest.mark.only_real("the sandbox makes no stacks")
def test_a_stack_with_a_bucket_has_permissions_for_its_prefix(aws: MotoAws) -> None:
    outputs = stack(aws, "grey", ClusterName="grey", RecordBucket="my-records", RecordPrefix="kerf/others")
    documents = [document(aws, arn) for arn in outputs["PolicyArns"].split(",")]
    assert len(documents) == 5
    resources = {text for one in documents[-1]["Statement"] for text in one["Resource"]}
    assert resources == {"arn:aws:s3:::my-records", "arn:aws:s3:::my-records/kerf/others/*"}


@pytest.mark.only_real("the sandbox makes no stacks")
def test_a_stack_with_a_key_has_the_clusters_own_prefix_and_may_use_the_key(aws: MotoAws) -> None:
    key = "arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    outputs = stack(aws, "gold", ClusterName="gold", RecordBucket="my-records", RecordKey=key)
    documents = [document(aws, arn) for arn in outputs["PolicyArns"].split(",")]
    resources = [{text for one in each["Statement"] for text in one["Resource"]} for each in documents[4:]]
    assert resources == [{"arn:aws:s3:::my-records", "arn:aws:s3:::my-records/kerf/gold/*"}, {key}]


@pytest.mark.only_real("the sandbox makes no stacks")
def test_a_stack_with_pod_identity_has_a_role_for_the_controller(aws: MotoAws) -> None:
    stack(aws, "white", ClusterName="white", PodIdentity="true")
    (statement,) = aws.client("iam").get_role(RoleName="KerfController-white")["Role"]["AssumeRolePolicyDocument"][
        "Statement"
    ]
    assert statement["Principal"] == {"Service": ["pods.eks.amazonaws.com"]}


@pytest.mark.only_real("the sandbox makes no stacks")
def test_a_stack_takes_over_the_roles_and_the_queue_of_karpenter(aws: MotoAws) -> None:
    iam, sqs = aws.client("iam"), aws.client("sqs")
    for name in ("KarpenterNodeRole-red", "red-karpenter"):
        iam.create_role(RoleName=name, AssumeRolePolicyDocument="{}")
    sqs.create_queue(QueueName="red-interruptions")
    outputs = stack(
        aws,
        "red",
        ClusterName="red",
        ExistingNodeRole="KarpenterNodeRole-red",
        ExistingControllerRole="red-karpenter",
        ExistingQueue="red-interruptions",
    )
    assert (outputs["QueueName"], outputs["NodeRoleName"]) == ("red-interruptions", "KarpenterNodeRole-red")
    roles = {one["RoleName"] for one in iam.list_roles()["Roles"] if "red" in one["RoleName"]}
    assert roles == {"KarpenterNodeRole-red", "red-karpenter"}
    assert len(sqs.list_queues(QueueNamePrefix="red")["QueueUrls"]) == 1
    assert not [arn for arn in targets(aws) if arn.endswith(":red") or "red-interruptions" in arn]
    attached = iam.list_attached_role_policies(RoleName="red-karpenter")["AttachedPolicies"]
    assert {one["PolicyArn"] for one in attached} == {*outputs["PolicyArns"].split(",")}
    assert len(attached) == 4
    documents = json.dumps([document(aws, one["PolicyArn"]) for one in attached])
    assert ':role/KarpenterNodeRole-red"' in documents
    assert ':red-interruptions"' in documents
    assert "${" not in documents


@pytest.mark.only_real("the sandbox makes no stacks")
def test_a_stack_of_an_ipv6_cluster_with_a_long_name_has_short_names_and_permissions_for_the_cni(aws: MotoAws) -> None:
    cluster, name = "blue-" * 20, "blue-" * 9
    outputs = stack(aws, "blue", ClusterName=cluster, Name=name, IpFamily="ipv6")
    assert (outputs["QueueName"], outputs["NodeRoleName"]) == (name, f"KarpenterNodeRole-{name}")
    policies = outputs["PolicyArns"].split(",")
    assert all(arn.endswith(f"-{name}") for arn in policies)
    documents = json.dumps([document(aws, arn) for arn in policies])
    assert f"aws:ResourceTag/kubernetes.io/cluster/{cluster}" in documents
    assert aws.client("iam").list_role_policies(RoleName=outputs["NodeRoleName"])["PolicyNames"] == [
        "AssignIPv6Addresses"
    ]


def targets(aws: MotoAws) -> list[str]:
    """The targets of all rules of EventBridge."""
    events = aws.client("events")
    rules = [one["Name"] for one in events.list_rules()["Rules"]]
    return [target["Arn"] for name in rules for target in events.list_targets_by_rule(Rule=name)["Targets"]]


def document(aws: MotoAws, arn: str) -> Any:
    iam = aws.client("iam")
    version = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
    return iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]
