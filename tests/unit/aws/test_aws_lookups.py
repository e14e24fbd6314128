"""Selector terms as questions to EC2, and where the cluster's facts come from."""

from __future__ import annotations

from typing import Any

from kerf.aws.observe.cluster_facts import KnownFacts, merge
from kerf.aws.observe.networks import questions, tag_filters
from kerf.aws.profiles import profile_path, role_name
from kerf_api.v1.ec2nodeclass import SelectorTerm

FIELDS = {"id": "group-id", "name": "group-name"}
DESCRIBED: dict[str, Any] = {
    "arn": "arn:aws:eks:us-west-2:123456789012:cluster/demo",
    "endpoint": "https://eks.example",
    "certificateAuthority": {"data": "ZWtz"},
    "version": "1.34",
    "kubernetesNetworkConfig": {"serviceIpv4Cidr": "10.100.0.0/16"},
}


def test_ids_and_names_are_pooled_and_tags_asked_alone() -> None:
    terms = (
        SelectorTerm(id="sg-2"),
        SelectorTerm(tags={"b": "2", "a": "*"}),
        SelectorTerm(id="sg-1", tags={"ignored": "yes"}),
        SelectorTerm(name="nodes"),
        SelectorTerm(tags={"c": "3"}),
    )
    assert questions(terms, FIELDS) == [
        [{"Name": "group-id", "Values": ["sg-1", "sg-2"]}],
        [{"Name": "group-name", "Values": ["nodes"]}],
        [{"Name": "tag-key", "Values": ["a"]}, {"Name": "tag:b", "Values": ["2"]}],
        [{"Name": "tag:c", "Values": ["3"]}],
    ]


def test_no_terms_ask_nothing() -> None:
    assert questions((), FIELDS) == []


def test_any_value_of_a_tag() -> None:
    assert tag_filters({"team": "*"}) == [{"Name": "tag-key", "Values": ["team"]}]


def test_eks_fills_what_the_settings_leave_open() -> None:
    facts = merge(KnownFacts(name="demo", dns_ip="10.100.0.10"), DESCRIBED, "us-west-2")
    assert (facts.endpoint, facts.ca_bundle, facts.kubernetes_version) == ("https://eks.example", "ZWtz", "1.34")
    assert (facts.service_cidr, facts.account, facts.dns_ip) == ("10.100.0.0/16", "123456789012", "10.100.0.10")


def test_the_settings_win() -> None:
    known = KnownFacts(name="demo", endpoint="https://mine", ca_bundle="bWluZQ==", kubernetes_version="1.35")
    facts = merge(known, DESCRIBED, "us-west-2")
    assert (facts.endpoint, facts.ca_bundle, facts.kubernetes_version) == ("https://mine", "bWluZQ==", "1.35")


def test_with_an_eks_control_plane_its_version_counts() -> None:
    known = KnownFacts(name="demo", kubernetes_version="1.35", eks_control_plane=True)
    assert merge(known, DESCRIBED, "us-west-2").kubernetes_version == "1.34"


def test_a_cluster_outside_eks() -> None:
    facts = merge(KnownFacts(name="demo", endpoint="https://mine", kubernetes_version="1.35"), {}, "us-west-2")
    assert (facts.endpoint, facts.service_cidr, facts.account) == ("https://mine", "", "")


def test_an_ipv6_cluster() -> None:
    described = {**DESCRIBED, "kubernetesNetworkConfig": {"serviceIpv6Cidr": "fd00::/108"}}
    assert merge(KnownFacts(name="demo"), described, "us-west-2").service_cidr == "fd00::/108"


def test_where_profiles_live_and_what_role_they_carry() -> None:
    assert profile_path("us-west-2", "demo", "uid") == "/karpenter/us-west-2/demo/uid/"
    assert role_name("team/infra/NodeRole") == "NodeRole"
