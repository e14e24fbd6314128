"""Region, name of the cluster and clocks, as `kerf preflight` compares them with the cluster and with AWS."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from kerf.ports import PortError
from kerf.runtime.preflight import identity
from kerf.runtime.preflight.asking import Asker
from kerf.runtime.preflight.findings import DOUBTFUL, GOOD, UNCHECKED, WRONG, Finding
from kerf.runtime.preflight.run import World, look
from kerf.runtime.preflight.situation import Given, Situation
from kerf.runtime.settings.options import Options

from .preflights import DENIED, GONE, Account, ApiServer

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
ROOT_CA = "/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt"
NODES = "/api/v1/nodes?limit=50"


# --- clocks -------------------------------------------------------------------------------------------------------
def answered(at: datetime) -> dict[str, Any]:
    return {"ResponseMetadata": {"HTTPHeaders": {"date": format_datetime(at, usegmt=True)}}, "Arn": "a"}


@pytest.mark.parametrize(
    ("ahead", "how", "words"),
    [
        (0, GOOD, ""),
        (30, GOOD, ""),
        (-31, DOUBTFUL, "it is 31 s behind AWS"),
        (299, DOUBTFUL, "it is 299 s ahead of AWS"),
        (300, WRONG, "it is 300 s ahead of AWS: AWS refuses requests that are signed so"),
        (-3600, WRONG, "it is 3600 s behind AWS: AWS refuses requests that are signed so"),
    ],
)
def test_the_clock_of_this_machine(ahead: int, how: str, words: str) -> None:
    account: Any = Account({"get_caller_identity": answered(NOW)})
    found = identity.clock(account, lambda: NOW + timedelta(seconds=ahead))
    assert (found.what, found.how, found.seen) == ("clock of this machine", how, words)
    assert ("synchronize" in found.fix) == (how != GOOD)


def test_a_refused_signature_shows_the_time_of_aws_too() -> None:
    account: Any = Account({"get_caller_identity": ("SignatureDoesNotMatch", answered(NOW)["ResponseMetadata"])})
    assert identity.clock(account, lambda: NOW + timedelta(hours=1)).how == WRONG


@pytest.mark.parametrize("answer", [{"ResponseMetadata": {}}, {"ResponseMetadata": {"HTTPHeaders": {"date": "noon"}}}])
def test_an_answer_without_a_time_is_not_called_good(answer: Any) -> None:
    account: Any = Account({"get_caller_identity": answer})
    assert identity.clock(account, lambda: NOW).how == UNCHECKED


# --- region -------------------------------------------------------------------------------------------------------
def node(region: str, provider: str = "aws:///x/i-1") -> dict[str, Any]:
    labels = {"topology.kubernetes.io/region": region} if region else {}
    return {"metadata": {"name": "n", "labels": labels}, "spec": {"providerID": provider}}


@pytest.mark.parametrize(
    ("nodes", "how", "words"),
    [
        ([node("us-west-2")], GOOD, "us-west-2"),
        ([node("eu-west-1"), node("us-west-2")], GOOD, "us-west-2"),
        ([], GOOD, "us-west-2"),
        ([node(""), node("frankfurt", "kind://n")], GOOD, "us-west-2"),
        ([node("eu-west-1")], WRONG, "AWS is called in us-west-2, and the nodes are in eu-west-1"),
    ],
)
def test_the_region(nodes: list[Any], how: str, words: str) -> None:
    account: Any = Account()
    found = identity.region(Asker(ApiServer({NODES: {"items": nodes}})), account)
    assert (found.how, found.seen) == (how, words)
    assert ("AWS_REGION=eu-west-1 (--aws-region" in found.fix) == (how == WRONG)


def test_nodes_that_may_not_be_listed() -> None:
    account: Any = Account()
    found = identity.region(Asker(ApiServer(denied=("list nodes",))), account)
    assert (found.how, found.seen) == (UNCHECKED, "not checked: needs list nodes")


# --- cluster ------------------------------------------------------------------------------------------------------
def named(account: Account, server: ApiServer, **options: Any) -> Finding:
    clients: Any = account
    situation = Situation(Options(cluster_name="demo", **options))
    (found,) = identity.cluster_name(Asker(server), clients, situation)
    return found


def eks(pem: str = PEM) -> dict[str, Any]:
    data = base64.b64encode(pem.encode()).decode()
    return {"cluster": {"name": "demo", "endpoint": "https://e", "certificateAuthority": {"data": data}}}


SERVER = {ROOT_CA: {"data": {"ca.crt": PEM}}}


def test_the_cluster_of_eks_and_of_the_api_server_is_the_same() -> None:
    assert named(Account({"describe_cluster": eks()}), ApiServer(SERVER)).how == GOOD


@pytest.mark.parametrize("pem", ["another", ""])
def test_another_cluster_of_eks(pem: str) -> None:
    found = named(Account({"describe_cluster": eks(pem)}), ApiServer(SERVER))
    assert (found.how, "certificate authorities differ" in found.seen) == (WRONG, True)


def test_a_name_that_eks_does_not_know() -> None:
    account = Account({"describe_cluster": GONE, "list_clusters": {"clusters": ["dema", "x"]}})
    found = named(account, ApiServer(SERVER))
    assert (found.how, found.seen.partition("us-west-2")[0]) == (WRONG, "EKS has no cluster demo in ")
    assert "dema" in found.seen
    assert found.fix.endswith("(clusters there: dema, x)")
    found = named(account, ApiServer(SERVER), cluster_endpoint="https://e")
    assert (found.how, "not of EKS" in found.seen) == (DOUBTFUL, True)


def test_clusters_that_may_not_be_listed_are_for_the_caller_to_list() -> None:
    found = named(Account({"describe_cluster": GONE, "list_clusters": DENIED}), ApiServer(SERVER))
    assert (found.how, "aws eks list-clusters" in found.fix) == (WRONG, True)


@pytest.mark.parametrize(
    ("account", "server", "words"),
    [
        (Account({"describe_cluster": DENIED}), ApiServer(SERVER), "needs eks:DescribeCluster"),
        (
            Account({"describe_cluster": eks()}),
            ApiServer(SERVER, denied=("get configmaps in kube-system",)),
            "needs get configmaps in kube-system",
        ),
        (Account({"describe_cluster": eks()}), ApiServer(), "shows no CA to compare with"),
    ],
)
def test_a_name_that_cannot_be_compared(account: Account, server: ApiServer, words: str) -> None:
    found = named(account, server)
    assert (found.how, words in found.seen) == (UNCHECKED, True), found


def test_an_isolated_cluster_with_an_endpoint_asks_eks_for_nothing() -> None:
    account = Account()
    assert named(account, ApiServer(), isolated_vpc=True, cluster_endpoint="https://e").how == UNCHECKED
    assert account.asked == []


# --- an API server that does not answer ---------------------------------------------------------------------------
def test_the_advice_for_an_api_server_that_does_not_answer_is_the_callers() -> None:
    def kube() -> Any:
        raise PortError("refused")

    world = World(kube, lambda options: None, lambda options, client: None, lambda: NOW)  # type: ignore[arg-type, return-value]
    ((check, found),) = look(world, Given([], {}, {}), "fix of {}".format)
    assert (check.name, found.how, found.fix) == ("api-server", WRONG, "fix of refused")
