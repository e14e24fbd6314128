"""docs/clusters.md: its values are values of the chart, its manifests are valid, and its settings do what it says."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import Any, Final

import pytest
from botocore.utils import ContainerMetadataFetcher

from kerf.aws.surroundings import SPOT_ROLE
from kerf.ec2.errors import classify
from kerf.ec2.nodeclass import profile_verdicts
from kerf.runtime.preflight import surroundings
from kerf_api import lint
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import decode
from tests.unit.charts.test_values import problems
from tests.unit.docs.clusters_page import MANIFESTS, TEXT, VALUES, options

#: An image that only exists as the newest.
ACCEPTED: Final = {"windows.yaml": {"KERF-EC2-201"}}


def test_there_is_a_file_for_each_kind_of_cluster() -> None:
    assert {*VALUES} == {
        *("private-values.yaml", "ipv6.yaml", "china.yaml", "fips.yaml", "auto-mode.yaml", "fargate.yaml"),
        *("pod-identity.yaml", "irsa.yaml", "host-network.yaml"),
    }
    assert {*MANIFESTS} == {
        *("private-class.yaml", "ipv6-class.yaml", "fips-class.yaml", "auto-mode-pool.yaml", "windows.yaml")
    }


@pytest.mark.parametrize("name", sorted(VALUES))
def test_its_values_are_values_of_the_chart(name: str) -> None:
    assert [*problems(VALUES[name])] == []
    assert options(VALUES[name]).cluster_name == "my-cluster"


def test_a_value_that_the_chart_does_not_have_is_found() -> None:
    assert [*problems({"settings": {"isolatedVpc": True}})]


@pytest.mark.parametrize("name", sorted(MANIFESTS))
def test_its_manifests_are_valid(name: str) -> None:
    found = [one for manifest in MANIFESTS[name] for one in lint.validate(manifest)]
    assert [one for one in found if one.rule not in ACCEPTED.get(name, ())] == []


def test_its_private_cluster_asks_for_nothing_that_needs_iam() -> None:
    assert options(VALUES["private-values.yaml"]).settings.isolated_vpc
    assert options(VALUES["private-values.yaml"]).cluster_endpoint.startswith("https://")
    (manifest,) = MANIFESTS["private-class.yaml"]
    node_class = decode(EC2NodeClass, manifest)
    assert (bool(node_class.spec.instance_profile), node_class.spec.role) == (True, None)
    assert f"`{profile_verdicts.isolated(node_class)[0]}`" in TEXT


def test_its_host_network_closes_the_debug_port() -> None:
    assert (VALUES["host-network.yaml"]["hostNetwork"], options(VALUES["host-network.yaml"]).debug_port) == (True, -1)
    assert options(VALUES["irsa.yaml"]).debug_port == 8082


def test_its_trust_policy_fits_the_service_account_of_its_values() -> None:
    (text,) = re.findall(r"^```json\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    (statement,) = json.loads(text)["Statement"]
    provider = statement["Principal"]["Federated"].partition("oidc-provider/")[2]
    name = VALUES["irsa.yaml"]["serviceAccount"]["name"]
    assert statement["Condition"]["StringEquals"] == {
        f"{provider}:aud": "sts.amazonaws.com",
        f"{provider}:sub": f"system:serviceaccount:kerf:{name}",
    }


class Agent:
    """In place of the HTTP session of botocore: answers every request with the same credentials."""

    def send(self, request: Any) -> Any:
        del request
        return SimpleNamespace(status_code=200, content=b'{"AccessKeyId": "a"}')


def test_the_sdk_takes_credentials_from_both_addresses_of_the_pod_identity_agent() -> None:
    fetcher = ContainerMetadataFetcher(session=Agent())
    named = re.findall(r"`(169\.254\.170\.23|\[fd00:ec2::23\])`", TEXT)
    assert len(named) == 2
    for host in named:
        assert fetcher.retrieve_full_uri(f"http://{host}/v1/credentials") == {"AccessKeyId": "a"}
    with pytest.raises(ValueError, match="Unsupported host"):
        fetcher.retrieve_full_uri("http://169.254.170.24/v1/credentials")


def test_it_lists_the_endpoints_that_preflight_looks_for_and_quotes_its_findings() -> None:
    endpoints = set(re.findall(r"`com\.amazonaws\.REGION\.([\w.-]+)`", TEXT))
    assert {*surroundings.SERVICES, "sqs", "eks-auth", "arc-zonal-shift"} <= endpoints
    assert f"`there is no DaemonSet {surroundings.AGENT}`" in TEXT
    assert f"`there is no role {SPOT_ROLE}`" in TEXT


def test_its_reason_for_the_service_linked_role_of_spot_is_that_of_the_code() -> None:
    reason, _ = classify("AuthFailure.ServiceLinkedRoleCreationNotPermitted: no")
    assert f"`Launched` is False, `{reason}`" in TEXT
