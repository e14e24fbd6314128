"""The services that Kerf calls by its settings, and their addresses: private clusters, IPv6, China, GovCloud, FIPS."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import BotoCoreError
from botocore.loaders import create_loader

from kerf.aws.observe.prices import price_list
from kerf.aws.requests.clients import Clients
from kerf.ec2.instance_types.catalogue import build
from kerf.model.aws.cloud import ClusterFacts
from kerf.ports import PortError, Unavailable
from kerf.runtime.inbox import ClusterRead, Inbox
from kerf.runtime.observe.observer import Observer
from kerf.runtime.preflight import account
from kerf.runtime.process import connecting
from kerf.runtime.settings.options import Options
from kerf.runtime.state.state import State
from kerf.sandbox.clock import VirtualClock
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import decode
from tests.unit.docs.clusters_page import TEXT, VALUES, environment_of, options

#: What an ordinary cluster calls.
USUAL: Final = frozenset({"ec2", "eks", "iam", "pricing", "sqs", "ssm"})
NODE_CLASS: Final = decode(
    EC2NodeClass,
    {
        "metadata": {"name": "default", "uid": "u", "generation": 1},
        "spec": {
            "role": "KarpenterNodeRole-my-cluster",
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "my-cluster"}}],
            "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "my-cluster"}}],
        },
    },
)
CLUSTER: Final = ClusterFacts(
    "my-cluster", "https://example.com", kubernetes_version="1.34", arn="arn:aws:eks:eu-central-1:1:cluster/my-cluster"
)


class Network:
    """The hosts that were called, by service. No call gets through."""

    def __init__(self) -> None:
        self.hosts: dict[str, set[str]] = {}

    def watch(self, client: Any) -> None:
        client.meta.events.register("before-send", partial(self._called, client.meta.service_model.service_name))

    def _called(self, service: str, request: Any, **_: Any) -> None:
        self.hosts.setdefault(service, set()).add(urlsplit(request.url).hostname or "")
        raise BotoCoreError  # in place of a connection to AWS

    @property
    def all_hosts(self) -> set[str]:
        return set().union(*self.hosts.values())


class ApiServer:
    """As much of a Kubernetes client as the cluster's facts need."""

    ca_bundle = "Y2E="

    def request(self, method: str, path: str, **_: Any) -> Any:
        del method
        return {"major": "1", "minor": "34"} if path == "/version" else {"spec": {"clusterIP": "10.100.0.10"}}


@pytest.fixture(scope="module")
def loader() -> Any:
    """Reads botocore's models of services, each once for all tests of this file."""
    return create_loader()


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch, loader: Any) -> None:
    monkeypatch.setattr("botocore.session.create_loader", lambda path: loader)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "a")


def called(chosen: Options) -> Network:
    """What a leading controller with these settings asks AWS: all that it repeats, and a node class."""
    network, clock = Network(), VirtualClock()
    kube: Any = ApiServer()
    cloud = connecting.cloud(chosen, kube, clock, on_client=network.watch)
    state = State(chosen.settings, build=build, interpret=lambda message: None)
    state.take(ClusterRead(CLUSTER, clock.now()), clock.now())
    observer = Observer(cloud, clock, Inbox(), state)
    observer.run_due(clock.now())
    clock.sleep(600)
    observer.run_due(clock.now())
    with suppress(PortError):
        cloud.resolve(NODE_CLASS, CLUSTER)
    return network


def of_page(name: str, monkeypatch: pytest.MonkeyPatch, region: str = "eu-central-1", **settings: Any) -> Network:
    """The same with values of the page, and further settings."""
    values: Mapping[str, Any] = VALUES[name]
    for variable, text in environment_of(values).items():
        monkeypatch.setenv(variable, text)
    return called(options({**values, "settings": {**values["settings"], **settings}}, region))


def rows(heading: str) -> set[str]:
    """The services in the first column of the first table under a heading."""
    table = TEXT.partition(f"## {heading}\n")[2].partition("\n|")[2].partition("\n\n")[0]
    return set(re.findall(r"^\| `(?:com\.amazonaws\.REGION\.)?([\w-]+)` \|", table, re.MULTILINE))


# --- services -----------------------------------------------------------------------------------------------------
def test_the_page_lists_every_service_that_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    network = of_page("pod-identity.yaml", monkeypatch, enableZonalShift=True)
    assert set(network.hosts) == {*USUAL, "arc-zonal-shift"}
    assert rows("Services and endpoints") == {*network.hosts, "sts"}


def test_without_a_queue_and_zonal_shifts_neither_service_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(of_page("pod-identity.yaml", monkeypatch, interruptionQueue="").hosts) == USUAL - {"sqs"}


def test_an_isolated_vpc_calls_neither_iam_nor_the_price_list(monkeypatch: pytest.MonkeyPatch) -> None:
    network = of_page("private-values.yaml", monkeypatch, enableZonalShift=True)
    assert set(network.hosts) == {"arc-zonal-shift", "ec2", "eks", "sqs", "ssm"}
    assert rows("Private clusters") == {*network.hosts, "sts", "eks-auth"}


def test_a_private_cluster_has_its_facts_without_eks_but_no_service_cidr(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = options(VALUES["private-values.yaml"])
    kube: Any = ApiServer()
    facts = connecting.cloud(chosen, kube, VirtualClock(), on_client=Network().watch).cluster()
    assert (facts.endpoint, facts.service_cidr) == (chosen.cluster_endpoint, "")
    for lacking in ("isolatedVPC", "clusterEndpoint"):
        settings = {key: value for key, value in VALUES["private-values.yaml"]["settings"].items() if key != lacking}
        cloud = connecting.cloud(options({"settings": settings}), kube, VirtualClock(), on_client=Network().watch)
        with pytest.raises(Unavailable, match="eks:DescribeCluster: An unspecified error"):
            cloud.cluster()


@pytest.mark.parametrize(
    ("name", "services"),
    [("pod-identity.yaml", {*USUAL, "sts"}), ("private-values.yaml", {"ec2", "eks", "sqs", "ssm", "sts"})],
)
def test_preflight_asks_for_its_identity_too(name: str, services: set[str]) -> None:
    network, chosen = Network(), options(VALUES[name])
    findings = list(account.look(Clients("eu-central-1", on_client=network.watch), chosen))
    assert set(network.hosts) == services
    assert "caller not checked: needs an STS endpoint" in findings[0].seen
    assert "`kerf preflight`: `caller not checked: needs an STS endpoint`" in TEXT


# --- addresses ----------------------------------------------------------------------------------------------------
def test_the_price_list_is_asked_where_it_answers() -> None:
    homes = {}
    for region in ("us-west-2", "sa-east-1", "eu-north-1", "ap-southeast-2", "cn-north-1"):
        client = price_list(Clients(region))
        assert client is not None
        homes[region] = urlsplit(client.meta.endpoint_url).netloc.split(".")[2]
    assert homes == {
        "us-west-2": "us-east-1",
        "sa-east-1": "us-east-1",
        "eu-north-1": "eu-central-1",
        "ap-southeast-2": "ap-south-1",
        "cn-north-1": "cn-northwest-1",
    }
    sentence = TEXT.partition("`pricing` answers in")[2].partition(".")[0]
    assert set(re.findall(r"`([\w-]+)`", sentence)) == set(homes.values())


def test_dual_stack_is_asked_for_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    network = of_page("ipv6.yaml", monkeypatch, enableZonalShift=True)
    assert set(network.hosts) == {*USUAL, "arc-zonal-shift"}
    assert {host.rpartition(".api.aws")[1:] for host in network.all_hosts} == {(".api.aws", "")}
    assert network.hosts["ec2"] == {"ec2.eu-central-1.api.aws"}
    assert network.hosts["iam"] == {"iam.global.api.aws"}
    assert "`https://iam.global.api.aws`" in TEXT


def test_china_has_addresses_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    network = of_page("china.yaml", monkeypatch, enableZonalShift=True)
    assert set(network.hosts) == {*USUAL, "arc-zonal-shift"}
    assert all(host.endswith(".amazonaws.com.cn") for host in network.all_hosts)


def test_govcloud_calls_no_price_list(monkeypatch: pytest.MonkeyPatch) -> None:
    network = of_page("pod-identity.yaml", monkeypatch, "us-gov-west-1")
    assert set(network.hosts) == USUAL - {"pricing"}
    assert all("us-gov" in host for host in network.all_hosts)


def test_with_fips_every_address_is_a_fips_one_and_the_price_list_is_not_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = of_page("fips.yaml", monkeypatch)
    assert set(network.hosts) == USUAL - {"pricing"}
    assert all("fips" in host for host in network.all_hosts)


def test_with_fips_the_addresses_of_the_page_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    given = dict(re.findall(r"`(AWS_ENDPOINT_URL_\w+)` with the\s+value `(https://[\w.-]+)`", TEXT))
    for variable, address in given.items():
        monkeypatch.setenv(variable, address)
    network = of_page("fips.yaml", monkeypatch, enableZonalShift=True)
    assert {*network.hosts["pricing"], *network.hosts["arc-zonal-shift"]} == {
        address.removeprefix("https://") for address in given.values()
    }
    assert len(given) == 2
