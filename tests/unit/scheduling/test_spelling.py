"""What a pod selects in another spelling than nodes have: the edit that writes it as they do, tried like any other."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.scheduling.answers.edits import Respell
from kerf.scheduling.refusals.spelling import near, value_near
from kerf_api import labels
from tests.unit.scheduling import worlds as w
from tests.unit.scheduling.accounts import fixes

ZONES = ("us-west-2a", "us-west-2b")


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("m5.larg", ("m5.large", "m5.xlarge"), "m5.large"),
        ("M5.Large", ("m5.large",), "m5.large"),
        ("m8.large", ("m5.large",), None),  # another generation is no spelling
        ("m5.2xlarge", ("m5.4xlarge",), None),
        ("karpenter.sh/capacityType", ("karpenter.sh/capacity-type",), "karpenter.sh/capacity-type"),
        ("front", ("back",), None),
        ("", ("a",), None),
    ],
)
def test_only_letters_may_differ(word: str, known: tuple[str, ...], meant: str | None) -> None:
    assert near(word, known) == meant


@pytest.mark.parametrize(
    ("key", "value", "known", "meant"),
    [
        (labels.ZONE, "us-west-2c", ZONES, None),  # a zone that exists, if not here
        (labels.ZONE, "US-WEST-2A", ZONES, "us-west-2a"),
        (labels.ARCH, "x86_64", ("amd64", "arm64"), "amd64"),
        (labels.ARCH, "aarch64", ("amd64", "arm64"), "arm64"),
        (labels.ARCH, "aarch64", ("amd64",), None),
        (labels.CAPACITY_TYPE, "OnDemand", ("on-demand", "spot"), "on-demand"),
        (labels.OS, "Linux", ("linux",), "linux"),
    ],
)
def test_values(key: str, value: str, known: tuple[str, ...], meant: str | None) -> None:
    assert value_near(key, value, known) == meant


def first(selector: dict[str, str], **spec: Any) -> str:
    return fixes(w.pool(**spec), w.pod("p", nodeSelector=selector))[0]


def test_the_first_edit_is_the_right_spelling() -> None:
    assert first({labels.ARCH: "x86_64"}) == "write kubernetes.io/arch=amd64, not x86_64"
    assert first({"topology.kubernetes.io/zones": "z1"}) == (
        "write the label topology.kubernetes.io/zone, not topology.kubernetes.io/zones"
    )
    assert first({"beta.kubernetes.io/arch": "AMD64"}) == "write kubernetes.io/arch=amd64, not AMD64"
    assert first({labels.NODEPOOL: "defalt"}) == "write karpenter.sh/nodepool=default, not defalt"
    team = [{"key": "team", "operator": "In", "values": ["payments"]}]
    assert first({"team": "payment"}, requirements=team) == "write team=payments, not payment"
    assert first({"taem": "payments"}, requirements=team) == "remove taem from its nodeSelector"


def test_it_is_no_edit_when_it_does_not_help() -> None:
    """The zone is spelled right then, and the nodes are in another one."""
    only = [{"key": labels.ZONE, "operator": "In", "values": ["z1"]}]
    assert first({"topology.kubernetes.io/zones": "z2"}, requirements=only) == (
        "remove topology.kubernetes.io/zones from its nodeSelector"
    )


def test_the_selector_and_each_term_are_written_anew() -> None:
    affinity = w.node_affinity([(labels.ARCH, "In", ["x86_64", "arm64"])], [("team", "Exists", [])])
    before = w.pod("p", nodeSelector={"beta.kubernetes.io/arch": "x86_64", "team": "x86_64"}, affinity=affinity)
    after = Respell(labels.ARCH, labels.ARCH, "x86_64", "amd64").made(before).spec
    assert after.node_selector == {"beta.kubernetes.io/arch": "amd64", "team": "x86_64"}
    assert after.affinity is not None
    assert after.affinity.node_affinity is not None
    assert after.affinity.node_affinity.required is not None
    rows = [e for term in after.affinity.node_affinity.required.node_selector_terms for e in term.match_expressions]
    assert [(e.key, e.values) for e in rows] == [(labels.ARCH, ("amd64", "arm64")), ("team", ())]
    renamed = Respell("team", "example.com/team").made(before).spec
    assert renamed.node_selector == {"beta.kubernetes.io/arch": "x86_64", "example.com/team": "x86_64"}


def test_nothing_to_write_anew() -> None:
    pod = w.pod("p", nodeSelector={"team": "red"})
    assert Respell(labels.ARCH, labels.ARCH, "x86_64", "amd64").made(pod) is pod
