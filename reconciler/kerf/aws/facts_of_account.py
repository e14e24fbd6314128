"""Facts of an account that only a preflight asks for: clusters, roles, rules, quotas, and the time of AWS.

Each question raises PortError: Forbidden where the caller lacks the permission. Source: API references of EKS, IAM,
EventBridge, Service Quotas and STS; EC2 user guide, "On-Demand Instance quotas", "Spot Instance quotas".
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from kerf.aws.profiles import role_name
from kerf.aws.requests.clients import Clients, pages
from kerf.aws.requests.errors import translated
from kerf.ec2.quotas import QUOTAS, STANDARD, group_of

_COUNTED: Final = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]


@dataclass(frozen=True, slots=True)
class EksCluster:
    """A cluster as EKS has it: its endpoint, and its certificate authority as base64 of PEM."""

    endpoint: str
    ca_bundle: str


def eks_cluster(clients: Clients, name: str) -> EksCluster:
    """Raises AlreadyGone when there is no cluster of this name in the region."""
    with translated("eks:DescribeCluster"):
        found = clients.get("eks").describe_cluster(name=name)["cluster"]
    return EksCluster(str(found.get("endpoint", "")), str((found.get("certificateAuthority") or {}).get("data", "")))


def cluster_names(clients: Clients) -> frozenset[str]:
    """The names of the clusters of the region."""
    with translated("eks:ListClusters"):
        return frozenset(map(str, pages(clients.get("eks"), "list_clusters", "clusters")))


def associated_role(clients: Clients, cluster_name: str, namespace: str, account: str) -> str:
    """The ARN of the role that EKS Pod Identity gives a ServiceAccount; empty when it gives none."""
    eks = clients.get("eks")
    with translated("eks:ListPodIdentityAssociations"):
        given = {"clusterName": cluster_name, "namespace": namespace, "serviceAccount": account}
        rows = pages(eks, "list_pod_identity_associations", "associations", **given)
    if not rows:
        return ""
    with translated("eks:DescribePodIdentityAssociation"):
        answer = eks.describe_pod_identity_association(clusterName=cluster_name, associationId=rows[0]["associationId"])
    return str(answer["association"].get("roleArn", ""))


def find_role(clients: Clients, role: str) -> None:
    """Raises AlreadyGone when IAM has no role of this name or ARN."""
    with translated("iam:GetRole"):
        clients.get("iam").get_role(RoleName=role_name(role))


def tagged(clients: Clients, operation: str, key: str, tags: dict[str, str]) -> int:
    """Count what `operation` (such as `describe_subnets`) lists under `key` with these tags."""
    wanted = [{"Name": f"tag:{name}", "Values": [value]} for name, value in tags.items()]
    action = "".join(word.title() for word in operation.split("_"))
    with translated(f"ec2:{action}"):
        return len(pages(clients.get("ec2"), operation, key, Filters=wanted))


# --- interruptions ------------------------------------------------------------------------------------------------
def event_types(clients: Clients, queue: str) -> frozenset[str]:
    """The `detail-type`s of the enabled EventBridge rules whose target is the queue of this name."""
    with translated("sqs:GetQueueUrl"):
        address = clients.get("sqs").get_queue_url(QueueName=queue)["QueueUrl"]
    account = address.rstrip("/").split("/")[-2]
    arn = f"arn:{_partition(clients)}:sqs:{clients.region}:{account}:{queue}"
    events = clients.get("events")
    with translated("events:ListRuleNamesByTarget"):
        names = pages(events, "list_rule_names_by_target", "RuleNames", TargetArn=arn)
    found: set[str] = set()
    for name in names:
        with translated("events:DescribeRule"):
            rule = events.describe_rule(Name=name)
        if rule.get("State", "ENABLED").startswith("ENABLED"):
            found |= _types(rule.get("EventPattern") or "{}")
    return frozenset(found)


def _types(pattern: str) -> set[str]:
    """Of an event pattern; one of another shape has none."""
    try:
        found = json.loads(pattern).get("detail-type")
    except (ValueError, AttributeError):
        return set()
    return {str(one) for one in found} if isinstance(found, list) else set()


def _partition(clients: Clients) -> str:
    return str(clients.get("sqs").meta.partition)


# --- quotas -------------------------------------------------------------------------------------------------------
def quota(clients: Clients, capacity_type: str) -> int:
    """The vCPUs that instances of the standard families may have in all."""
    with translated("servicequotas:GetServiceQuota"):
        quotas = clients.get("service-quotas")
        row = quotas.get_service_quota(ServiceCode="ec2", QuotaCode=QUOTAS[capacity_type])["Quota"]
    return int(row.get("Value", 0))


def vcpus_in_use(clients: Clients) -> dict[str, int]:
    """By capacity type, the vCPUs of the account's instances of the standard families that are pending or running."""
    with translated("ec2:DescribeInstances"):
        rows = pages(clients.get("ec2"), "describe_instances", "Reservations", Filters=_COUNTED)
    found = dict.fromkeys(QUOTAS, 0)
    for instance in (one for row in rows for one in row["Instances"]):
        if group_of(str(instance.get("InstanceType", ""))) == STANDARD:
            found["spot" if instance.get("InstanceLifecycle") == "spot" else "on-demand"] += _vcpus(instance)
    return found


def _vcpus(instance: Any) -> int:
    cpu = instance.get("CpuOptions") or {}
    return int(cpu.get("CoreCount", 0)) * int(cpu.get("ThreadsPerCore", 1))


# --- time ---------------------------------------------------------------------------------------------------------
def time_of_aws(clients: Clients) -> datetime | None:
    """The time of an answer of STS, also of a refusal; None without an answer that has one."""
    try:
        answer = clients.get("sts").get_caller_identity()
    except ClientError as error:
        answer = error.response
    except (BotoCoreError, ResponseParserError):
        return None
    headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    try:
        return parsedate_to_datetime(headers["date"])
    except (KeyError, ValueError, TypeError):
        return None
