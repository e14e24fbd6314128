"""What `kerf preflight` finds around Kerf: a role, endpoints, an agent and access entries that others have to make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError

from kerf.model import kinds
from kerf.model.kinds import Kind
from kerf.model.kubernetes.objects import DaemonSet
from kerf.ports import Forbidden, Listing
from kerf.runtime.preflight.findings import DOUBTFUL, GOOD, UNCHECKED, WRONG, Finding
from kerf.runtime.preflight.surroundings import SERVICES, look
from kerf.runtime.settings.options import Options
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import decode
from kerf_api.v1.nodepool import NodePool

DENIED, GONE = "AccessDenied", "NoSuchEntity"
ROLE = {"Role": {"RoleName": "r", "Arn": "arn:aws:iam::123456789012:role/r"}}
CLUSTER = {"cluster": {"name": "c", "resourcesVpcConfig": {"vpcId": "vpc-0123456789abcdef0"}}}
SPOT, ENDPOINTS, IDENTITY = "service-linked role for spot", "VPC endpoints", "EKS Pod Identity"


@dataclass
class Account:
    """It has these answers by method; a text is the code of an error."""

    answers: Mapping[str, Any] = field(default_factory=dict)
    region: str = "us-west-2"
    asked: list[str] = field(default_factory=list)

    def get(self, service: str) -> Account:
        return self

    def get_paginator(self, method: str) -> Any:
        account = self

        class Paginator:
            def paginate(self, **parameters: Any) -> Any:
                yield account.answer(method, **parameters)

        return Paginator()

    def __getattr__(self, method: str) -> Callable[..., Any]:
        return lambda **parameters: self.answer(method, **parameters)

    def answer(self, method: str, **parameters: Any) -> Any:
        self.asked.append(method)
        found = self.answers.get(method, {"associations": []} if "identity" in method else GONE)
        if isinstance(found, str):
            raise ClientError({"Error": {"Code": found, "Message": "no"}, "ResponseMetadata": {}}, method)
        return found


@dataclass
class Server:
    """It has these DaemonSets, or lists none."""

    daemon_sets: tuple[str, ...] = ()
    denied: bool = False

    def list(self, kind: Kind) -> Listing:
        assert kind is kinds.DAEMON_SET
        if self.denied:
            raise Forbidden("daemonsets")
        rows = ({"metadata": {"name": name, "namespace": "kube-system"}} for name in self.daemon_sets)
        return Listing(tuple(decode(DaemonSet, row) for row in rows), "1")


def pool(*capacity_types: str, group: str = "karpenter.k8s.aws", **more: Any) -> NodePool:
    ref = {"group": group, "kind": "EC2NodeClass", "name": "default"}
    rows = [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": list(capacity_types)}]
    spec = {"template": {"spec": {"nodeClassRef": ref, "requirements": rows if capacity_types else []}}, **more}
    return decode(NodePool, {"metadata": {"name": "general"}, "spec": spec})


def windows(**spec: Any) -> EC2NodeClass:
    terms = [{"alias": "windows2022@latest"}]
    return decode(EC2NodeClass, {"metadata": {"name": "win"}, "spec": {"amiSelectorTerms": terms, **spec}})


def found(
    account: Account,
    *objects: NodePool | EC2NodeClass,
    server: Server | None = None,
    isolated: bool = False,
    queue: str = "",
    shifts: bool = False,
) -> dict[str, Finding]:
    options = Options(cluster_name="c", isolated_vpc=isolated, interruption_queue=queue, enable_zonal_shift=shifts)
    pools = [one for one in objects if isinstance(one, NodePool)]
    classes = [one for one in objects if isinstance(one, EC2NodeClass)]
    rows = look(server or Server(), account, options, pools, classes)  # type: ignore[arg-type]
    return {one.what: one for one in rows}


# --- spot ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("answer", "how", "words"),
    [
        (ROLE, GOOD, ""),
        (GONE, WRONG, "there is no role AWSServiceRoleForEC2Spot"),
        (DENIED, UNCHECKED, "not checked: needs iam:GetRole"),
        ("Throttling", UNCHECKED, "not checked: "),
    ],
)
def test_the_role_for_spot(answer: Any, how: str, words: str) -> None:
    one = found(Account({"get_role": answer}), pool("spot", "on-demand"))[SPOT]
    assert (one.how, words in one.seen) == (how, True)
    assert ("create-service-linked-role" in one.fix) == (answer == GONE)


def test_a_nodepool_without_a_requirement_launches_spot_too() -> None:
    assert found(Account({"get_role": GONE}), pool())[SPOT].how == WRONG


@pytest.mark.parametrize("other", [pool("on-demand"), pool(replicas=3), pool("spot", group="eks.amazonaws.com")])
def test_who_launches_no_spot_needs_no_such_role(other: NodePool) -> None:
    account = Account({"get_role": GONE})
    assert SPOT not in found(account, other)
    assert "get_role" not in account.asked


# --- networks without a way out -----------------------------------------------------------------------------------
def endpoints(*services: str, state: str = "available", prefix: str = "com.amazonaws.us-west-2") -> dict[str, Any]:
    rows = [{"ServiceName": f"{prefix}.{name}", "State": state} for name in services]
    return {"describe_cluster": CLUSTER, "describe_vpc_endpoints": {"VpcEndpoints": rows}}


@pytest.mark.parametrize(
    ("answers", "queue", "missing"),
    [
        (endpoints(*SERVICES), "", ""),
        (endpoints(*SERVICES), "q", "sqs"),
        (endpoints(*SERVICES, "sqs"), "q", ""),
        (endpoints(*(name for name in SERVICES if name not in ("eks", "ssm"))), "", "eks, ssm"),
        (endpoints(*SERVICES, state="pending"), "", ", ".join(SERVICES)),
        (endpoints(*SERVICES, prefix="cn.com.amazonaws.us-west-2"), "", ""),
    ],
)
def test_the_endpoints_of_a_private_cluster(answers: Mapping[str, Any], queue: str, missing: str) -> None:
    one = found(Account(answers), isolated=True, queue=queue)[ENDPOINTS]
    assert one.how == (DOUBTFUL if missing else GOOD)
    assert one.seen.endswith(f"no endpoint of {missing}" if missing else "")


def test_the_agent_of_pod_identity_and_zonal_shifts_need_endpoints_too() -> None:
    account, server = Account(endpoints(*SERVICES)), Server(("eks-pod-identity-agent",))
    assert found(account, server=server, isolated=True)[ENDPOINTS].seen.endswith("no endpoint of eks-auth")
    one = found(account, server=server, isolated=True, shifts=True)[ENDPOINTS]
    assert one.seen.endswith("no endpoint of arc-zonal-shift, eks-auth")


def test_endpoints_are_asked_for_only_where_the_vpc_is_isolated_and_iam_is_not() -> None:
    account = Account(endpoints(*SERVICES))
    assert ENDPOINTS not in found(account, pool("spot"))
    account = Account(endpoints(*SERVICES))
    assert "needs an IAM endpoint" in found(account, pool("spot"), isolated=True)[SPOT].seen
    assert "get_role" not in account.asked


def test_endpoints_that_may_not_be_listed_are_not_called_good() -> None:
    account = Account({"describe_cluster": CLUSTER, "describe_vpc_endpoints": "UnauthorizedOperation"})
    one = found(account, isolated=True)[ENDPOINTS]
    assert (one.how, "needs eks:DescribeCluster and ec2:DescribeVpcEndpoints" in one.seen) == (UNCHECKED, True)


# --- credentials of pods ------------------------------------------------------------------------------------------
ASSOCIATED = {
    "list_pod_identity_associations": {
        "associations": [{"associationId": "a-1", "namespace": "kerf", "serviceAccount": "kerf"}]
    }
}


USUAL = {"describe_cluster": {"cluster": {"name": "c"}}}
AUTO_MODE = {"describe_cluster": {"cluster": {"name": "c", "computeConfig": {"enabled": True}}}}


@pytest.mark.parametrize(
    ("answers", "server", "how", "words"),
    [
        (ASSOCIATED | USUAL, Server(), WRONG, "1 ServiceAccount has a role (kerf/kerf), and there is no DaemonSet"),
        (ASSOCIATED | AUTO_MODE, Server(), DOUBTFUL, "nodes of EKS Auto Mode contain the agent, nodes of Kerf do not"),
        (ASSOCIATED | {"describe_cluster": DENIED}, Server(), UNCHECKED, "and eks:DescribeCluster"),
        ({}, Server(), GOOD, "not used"),
        ({"list_pod_identity_associations": DENIED}, Server(), UNCHECKED, "needs eks:ListPodIdentityAssociations"),
        (ASSOCIATED, Server(denied=True), UNCHECKED, "needs list daemonsets.apps"),
    ],
)
def test_the_agent_of_pod_identity(answers: Mapping[str, Any], server: Server, how: str, words: str) -> None:
    one = found(Account(answers), server=server)[IDENTITY]
    assert (one.how, words in one.seen) == (how, True)


def test_with_the_agent_nothing_is_asked() -> None:
    account = Account(ASSOCIATED)
    assert found(account, server=Server(("eks-pod-identity-agent",)))[IDENTITY].how == GOOD
    assert account.asked == []


# --- Windows ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("answer", "how", "words"),
    [
        ({"accessEntry": {"principalArn": "r", "type": "EC2_WINDOWS"}}, GOOD, ""),
        ({"accessEntry": {"principalArn": "r", "type": "EC2_LINUX"}}, WRONG, "of type EC2_LINUX"),
        ("ResourceNotFoundException", DOUBTFUL, "none for role path/r, unless aws-auth maps it"),
        ("AccessDeniedException", UNCHECKED, "not checked: needs iam:GetRole and eks:DescribeAccessEntry"),
    ],
)
def test_the_access_entry_of_windows_nodes(answer: Any, how: str, words: str) -> None:
    account = Account({"get_role": ROLE, "describe_access_entry": answer})
    one = found(account, windows(role="path/r"))["access entry of Windows nodes of EC2NodeClass win"]
    assert (one.how, words in one.seen) == (how, True), one


def test_an_isolated_vpc_asks_iam_for_no_role_of_windows_nodes() -> None:
    account = Account({"describe_access_entry": {"accessEntry": {"type": "EC2_LINUX"}}})
    assert not [what for what in found(account, windows(role="r"), isolated=True) if "Windows" in what]
    assert "get_role" not in account.asked


def test_other_classes_need_no_such_entry() -> None:
    account = Account({"get_role": ROLE})
    linux = windows(role="r", amiSelectorTerms=[{"alias": "al2023@latest"}])
    assert not [what for what in found(account, linux, windows(instanceProfile="p")) if "Windows" in what]
