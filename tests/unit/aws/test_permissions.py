"""The IAM policies allow what the code calls, all of it and nothing else; and all forms of them are the same."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import boto3
import hcl2
import pytest
from cfnlint.api import lint_all
from ruamel.yaml import YAML

from kerf.aws.requests.service_models import OPERATIONS
from kerf.ec2 import tags
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import decode
from tests.sources import ROOT
from tests.unit.aws.policies import AWS, POLICIES, allowed, statement, statements

SERVICES: Final = ("arc-zonal-shift", "ec2", "eks", "events", "iam", "pricing", "s3", "service-quotas", "sqs", "ssm")
#: What AWS does in our name when it is called so. Source: EC2 and IAM user guides, "Required permissions".
IMPLIED: Final = {
    "ec2:CreateFleet": {"ec2:RunInstances", "ec2:CreateTags"},
    "ec2:CreateLaunchTemplate": {"ec2:CreateTags"},
    "iam:CreateInstanceProfile": {"iam:TagInstanceProfile"},
    "iam:AddRoleToInstanceProfile": {"iam:PassRole"},
    "s3:PutObject": {"kms:Decrypt", "kms:GenerateDataKey"},
}
#: Operations that a permission of another name allows. Source: SQS developer guide, "Amazon SQS API permissions";
#: Service Authorization Reference, "Service Quotas" and "Amazon S3".
ALLOWED_BY: Final = {
    "s3:ListObjectsV2": "s3:ListBucket",
    "service-quotas:GetServiceQuota": "servicequotas:GetServiceQuota",
    "sqs:DeleteMessageBatch": "sqs:DeleteMessage",
}
#: Only `kerf preflight` asks; without the permission it reports that it could not check.
OPTIONAL: Final = {
    *("ec2:DescribeVpcEndpoints", "eks:DescribeAccessEntry", "eks:ListPodIdentityAssociations", "iam:GetRole"),
    *("eks:DescribePodIdentityAssociation", "eks:ListClusters", "servicequotas:GetServiceQuota"),
    *("events:DescribeRule", "events:ListRuleNamesByTarget"),
}
#: A managed policy may have so many characters, white space aside.
MOST_CHARACTERS: Final = 6144
#: The names in the documents, as CloudFormation has them.
CLOUD_FORMATION: Final = {
    "AWS::Partition": "partition",
    "AWS::Region": "region",
    "AWS::AccountId": "account_id",
    "ClusterName": "cluster_name",
    "NodeRoleArn": "node_role_arn",
    "QueueArn": "queue_arn",
    "RecordBucket": "record_bucket",
    "RecordPrefix": "record_prefix",
    "RecordKey": "record_key_arn",
}


# --- what is called -----------------------------------------------------------------------------------------------
def operations() -> dict[str, str]:
    """Methods of boto3's clients, and the action that each is."""
    clients = {service: boto3.client(service, region_name="us-west-2") for service in SERVICES}
    return {
        method: ALLOWED_BY.get(f"{service}:{operation}", f"{service}:{operation}")
        for service, client in clients.items()
        for method, operation in client.meta.method_to_api_mapping.items()
    }


def called_names() -> set[str]:
    """Every method that is called on anything, and every text, in the rooms that may talk to AWS."""
    paths = [path for path in (ROOT / "reconciler").rglob("*.py") if "sandbox" not in path.parts]
    return {name for path in paths for name in names_in(path.read_text(encoding="utf-8"))}


def names_in(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def called() -> set[str]:
    known, names = operations(), called_names()
    direct = {action for method, action in known.items() if method in names}
    return direct.union(*(IMPLIED.get(action, set()) for action in direct))


def test_what_is_called_is_allowed_and_nothing_else() -> None:
    assert allowed() - called() == set(), "allowed, and never called"
    assert called() - allowed() - OPTIONAL == set(), "called, and not allowed"


def test_calls_are_found_in_source() -> None:
    source = 'client.terminate_instances(InstanceIds=ids)\npages(client, "describe_subnets", "Subnets")'
    assert {"terminate_instances", "describe_subnets"} <= set(names_in(source))
    assert {"ec2:TerminateInstances", "ec2:RunInstances", "iam:PassRole", "sqs:ReceiveMessage"} <= called()


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.stem)
def test_no_statement_allows_whatever_there_is(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len("".join(text.split())) <= MOST_CHARACTERS
    for one in statements(path):
        assert not any("*" in action for action in one["Action"])
        reads = all(re.search(":(Describe|Get|List)", action) for action in one["Action"])
        assert reads or one["Resource"] != ["*"], one["Sid"]


def test_what_is_launched_has_the_tags_that_the_policy_wants() -> None:
    node_class = decode(EC2NodeClass, {"metadata": {"name": "default", "uid": "u"}, "spec": {"tags": {"team": "a"}}})
    conditions = statement("MakeWhatIsTagged")["Condition"]
    assert missing(conditions, tags.launch(node_class, "general", "demo")) == set()
    assert missing(conditions, {"team": "a"}) != set()
    profile = statement("MakeProfilesThatAreTagged")["Condition"]
    assert missing(profile, tags.profile(node_class, "demo", "us-west-2")) == set()


def missing(conditions: dict[str, dict[str, str]], found: dict[str, str]) -> set[str]:
    """Tags that a request has to have, and has not, or has with another value."""
    names = {"${cluster_name}": "demo", "${region}": "us-west-2"}
    lacking = set()
    for key, value in {**conditions["StringEquals"], **conditions["StringLike"]}.items():
        for name, text in names.items():
            key, value = key.replace(name, text), value.replace(name, text)
        tag = key.removeprefix("aws:RequestTag/")
        if tag not in found or value not in ("*", found[tag]):
            lacking.add(tag)
    return lacking


def test_instances_may_be_given_the_tags_that_they_get_later() -> None:
    keys = statement("TagOwnInstances")["Condition"]["ForAllValues:StringEquals"]["aws:TagKeys"]
    assert {*keys} == {"Name", labels.TAG_NODECLAIM, labels.TAG_EKS_CLUSTER}


def test_the_page_allows_what_the_bucket_of_the_record_needs() -> None:
    page = (ROOT / "docs" / "permissions.md").read_text(encoding="utf-8")
    document = json.loads(page.partition("### Bucket of the record")[2].partition("```json\n")[2].partition("```")[0])
    actions = {"ListObjectsV2": "s3:ListBucket", "HeadBucket": "s3:ListBucket"}
    needed = {actions.get(operation, f"s3:{operation}") for operation in OPERATIONS["s3"]}
    assert {action for one in document["Statement"] for action in one["Action"]} == needed
    text = (AWS / "policies" / "record.json").read_text(encoding="utf-8")
    for name, value in {"partition": "aws", "record_bucket": "my-records", "record_prefix": "kerf/my-cluster"}.items():
        text = text.replace(f"${{{name}}}", value)
    assert document == json.loads(text)


def test_the_record_is_within_the_prefix() -> None:
    """Nothing of another cluster in the same bucket is allowed."""
    path = AWS / "policies" / "record.json"
    assert all("${record_bucket}" in text for one in statements(path) for text in one["Resource"])
    objects = [text for one in statements(path) if one["Sid"] == "KeepTheRecord" for text in one["Resource"]]
    assert all(text.endswith(":::${record_bucket}/${record_prefix}/*") for text in objects)
    assert statement("ListTheRecord")["Condition"] == {"StringLike": {"s3:prefix": ["${record_prefix}/*"]}}


def test_the_prefix_is_the_clusters_own_by_default() -> None:
    """`kerf` alone would be that of all clusters."""
    text = (AWS / "cloudformation.yaml").read_text(encoding="utf-8")
    assert '- RecordPrefix: !If [WithRecordPrefix, !Ref RecordPrefix, !Sub "kerf/${ClusterName}"]' in text
    parameters = YAML(typ="rt", pure=True).load(text)["Parameters"]
    assert parameters["RecordPrefix"]["Default"] == ""
    variables = {name.strip('"'): one for each in _blocks("variable") for name, one in each.items()}
    assert bare(variables["record_prefix"]["default"]) == ""
    assert "kerf/${var.cluster_name}" in bare(terraform()["locals"][0])["names"]["record_prefix"]


@pytest.mark.parametrize(
    ("name", "good", "wrong"),
    [
        ("record_bucket", ("", "my-records"), ("s3://my-records", "my-records/kerf", "A")),
        ("record_prefix", ("", "kerf/my-cluster"), ("/kerf", "kerf/", "kerf/*", "kerf//a")),
        (
            "record_key_arn",
            ("", "arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"),
            ("*", "alias/records", "arn:aws:kms:us-west-2:111122223333:alias/records"),
        ),
    ],
)
def test_terraform_refuses_other_values(name: str, good: tuple[str, ...], wrong: tuple[str, ...]) -> None:
    variables = {key.strip('"'): one for each in _blocks("variable") for key, one in each.items()}
    [rule] = variables[name]["validation"]
    [pattern] = re.findall(r'regex\("(.+)", var\.', rule["condition"])
    for value in good:
        assert re.fullmatch(pattern, value), value
    for value in wrong:
        assert not re.fullmatch(pattern, value), value


def test_the_key_of_the_record_is_used_by_s3_alone() -> None:
    one = statement("EncryptTheRecord")
    assert one["Resource"] == ["${record_key_arn}"]
    assert one["Condition"] == {"StringLike": {"kms:ViaService": ["s3.*"]}}


# --- its other forms ----------------------------------------------------------------------------------------------
def cloud_formation() -> dict[str, Any]:
    yaml = YAML(typ="rt", pure=True)
    found: dict[str, Any] = yaml.load((AWS / "cloudformation.yaml").read_text(encoding="utf-8"))["Resources"]
    return found


def test_cloud_formation_has_nothing_to_be_found_fault_with() -> None:
    faults = lint_all((AWS / "cloudformation.yaml").read_text(encoding="utf-8"))
    assert [str(fault) for fault in faults if fault.rule.severity != "informational"] == []


def test_cloud_formation_has_the_same_policies() -> None:
    found = []
    for resource in cloud_formation().values():
        if resource["Type"] == "AWS::IAM::ManagedPolicy":
            document = resource["Properties"]["PolicyDocument"]
            text = str(document[0] if isinstance(document, list) else document.value)
            for parameter, name in CLOUD_FORMATION.items():
                text = text.replace(f"${{{parameter}}}", f"${{{name}}}")
            found.append(json.loads(text))
    ours = [json.loads(path.read_text(encoding="utf-8")) for path in POLICIES]
    assert sorted(found, key=json.dumps) == sorted(ours, key=json.dumps)


def terraform() -> dict[str, Any]:
    """The module's main file; it has to be HCL."""
    found: dict[str, Any] = hcl2.loads((AWS / "terraform" / "main.tf").read_text(encoding="utf-8"))
    return found


def bare(value: Any) -> Any:
    """What HCL wrote, without its quotes."""
    if isinstance(value, dict):
        return {key.strip('"'): bare(each) for key, each in value.items()}
    return value.strip('"') if isinstance(value, str) else value


def test_terraform_takes_the_same_documents_and_knows_all_their_names() -> None:
    known = bare(terraform()["locals"][0])
    assert {*known["policies"]} == {path.stem for path in POLICIES}
    used = {name for path in POLICIES for name in re.findall(r"\$\{(\w+)\}", path.read_text(encoding="utf-8"))}
    assert {*known["names"]} == used == {*CLOUD_FORMATION.values()}
    [policy] = [each['"aws_iam_policy"'] for each in terraform()["resource"] if '"aws_iam_policy"' in each]
    assert "../policies/${each.key}.json" in policy['"controller"']["policy"]


@pytest.mark.parametrize("path", sorted((AWS / "terraform").glob("*.tf")), ids=lambda path: path.stem)
def test_terraform_can_be_read_and_uses_what_it_declares(path: Path) -> None:
    declared = {name.strip('"') for each in _blocks("variable") for name in each}
    text = path.read_text(encoding="utf-8")
    assert hcl2.loads(text)
    assert set(re.findall(r"\bvar\.(\w+)", text)) <= declared


def _blocks(kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = hcl2.loads((AWS / "terraform" / f"{kind}s.tf").read_text(encoding="utf-8"))[kind]
    return found


def test_both_allow_the_cni_of_an_ipv6_cluster_the_same() -> None:
    (_, (theirs,), _) = cloud_formation()["NodeRole"]["Properties"]["Policies"]
    allows = {action for one in theirs["PolicyDocument"]["Statement"] for action in one["Action"]}
    (ours,) = [each['"aws_iam_role_policy"'] for each in terraform()["resource"] if '"aws_iam_role_policy"' in each]
    assert set(re.findall(r"ec2:[A-Z]\w+", str(ours))) == allows
    assert {"ec2:AssignIpv6Addresses", "ec2:CreateTags"} < allows


def test_the_same_events_reach_the_queue() -> None:
    patterns = [
        (*one["Properties"]["EventPattern"]["source"], *one["Properties"]["EventPattern"]["detail-type"])
        for one in cloud_formation().values()
        if one["Type"] == "AWS::Events::Rule"
    ]
    theirs = bare(terraform()["locals"][0])["events"].values()
    assert sorted(patterns) == sorted((one["source"].strip('"'), one["detail_type"].strip('"')) for one in theirs)
    assert len(patterns) == 5
