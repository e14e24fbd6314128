"""SCHEDULER_CONFIG: what it may say, and that each mistake is named with its place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kerf.model.kubernetes.objects import TopologySpreadConstraint
from kerf.runtime.settings.readers import SeveralProblems
from kerf.runtime.settings.scheduler_config import read
from kerf.runtime.settings.settings import SettingsError, parse

NAME = {"CLUSTER_NAME": "c"}
ZONE = "topology.kubernetes.io/zone"
PLACE = "podTopologySpread.defaultConstraints"
GOOD = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
YAML = """
podTopologySpread:
  defaultConstraints:
    - maxSkew: 3
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      minDomains: 2
      nodeTaintsPolicy: Honor
    - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule}
"""


def document(*rows: Any) -> str:
    return json.dumps({"podTopologySpread": {"defaultConstraints": list(rows)}})


def problems(text: str) -> list[str]:
    with pytest.raises(SeveralProblems) as caught:
        read(text)
    return list(caught.value.problems)


def test_yaml_and_json_are_read_once_at_start() -> None:
    host = "kubernetes.io/hostname"
    soft = TopologySpreadConstraint(
        max_skew=3,
        topology_key=host,
        when_unsatisfiable="ScheduleAnyway",
        min_domains=2,
        node_taints_policy="Honor",
    )
    hard = TopologySpreadConstraint(max_skew=1, topology_key=host, when_unsatisfiable="DoNotSchedule")
    assert parse([], {**NAME, "SCHEDULER_CONFIG": YAML}).settings.default_constraints == (soft, hard)
    zone = TopologySpreadConstraint(max_skew=1, topology_key=ZONE, when_unsatisfiable="DoNotSchedule")
    flag = ["--scheduler-config", document({**GOOD, "minDomains": None})]
    assert parse(flag, {**NAME, "SCHEDULER_CONFIG": YAML}).settings.default_constraints == (zone,)


@pytest.mark.parametrize(
    "text", ["", " \n", "{}", "podTopologySpread:", "podTopologySpread: {defaultConstraints: }", document()]
)
def test_what_says_nothing_sets_nothing(text: str) -> None:
    assert read(text) == ()


@pytest.mark.parametrize(
    ("row", "named"),
    [
        ({**GOOD, "maxSkew": 0}, "maxSkew"),
        ({**GOOD, "maxSkew": -1}, "maxSkew"),
        ({**GOOD, "maxSkew": True}, "maxSkew"),
        ({**GOOD, "maxSkew": "1"}, "maxSkew"),
        ({**GOOD, "maxSkew": 1.5}, "maxSkew"),
        ({**GOOD, "maxSkew": 2**31}, "maxSkew"),
        ({k: v for k, v in GOOD.items() if k != "maxSkew"}, "maxSkew"),
        ({**GOOD, "topologyKey": ""}, "topologyKey"),
        ({**GOOD, "topologyKey": "a/b/c"}, "topologyKey"),
        ({**GOOD, "topologyKey": 7}, "topologyKey"),
        ({**GOOD, "whenUnsatisfiable": "Never"}, "whenUnsatisfiable"),
        ({**GOOD, "whenUnsatisfiable": None}, "whenUnsatisfiable"),
        ({**GOOD, "whenUnsatisfiable": ["DoNotSchedule"]}, "whenUnsatisfiable"),
        ({**GOOD, "minDomains": 0}, "minDomains"),
        ({**GOOD, "nodeAffinityPolicy": "honor"}, "nodeAffinityPolicy"),
        ({**GOOD, "nodeTaintsPolicy": 1}, "nodeTaintsPolicy"),
        ({**GOOD, "labelSelector": {"matchLabels": {}}}, "labelSelector"),
        ({**GOOD, "matchLabelKeys": ["app"]}, "matchLabelKeys"),
        ({**GOOD, "maxskew": 1}, "maxskew"),
    ],
)
def test_a_mistake_in_a_constraint_is_named_with_its_place(row: dict[str, Any], named: str) -> None:
    other = {**GOOD, "topologyKey": "kubernetes.io/hostname"}
    (problem,) = problems(document(other, row))
    assert problem.startswith(f"{PLACE}[1].{named}: ")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[1]", "the document: "),
        ("text", "the document: "),
        ("profiles: []", "profiles: "),
        ("podTopologySpread: []", "podTopologySpread: "),
        ("podTopologySpread: {defaultingType: List}", "podTopologySpread.defaultingType: "),
        ("podTopologySpread: {defaultConstraints: {}}", f"{PLACE}: "),
        (document(7), f"{PLACE}[0]: "),
        (document(GOOD, GOOD), f"{PLACE}[1]: "),
        ("podTopologySpread: {\n  a: [", "line 2, column 7: "),
        ("podTopologySpread: {}\npodTopologySpread: {}", "line 2, column 1: "),
        ("a: 1\n---\nb: 2", "line 2, column 1: "),
    ],
)
def test_a_mistake_in_the_document_is_named_with_its_place(text: str, place: str) -> None:
    (problem,) = problems(text)
    assert problem.startswith(place)


def test_all_mistakes_are_told_at_once_with_the_name_of_the_setting() -> None:
    bad = document({**GOOD, "maxSkew": 0}, {**GOOD, "whenUnsatisfiable": ""})
    with pytest.raises(SettingsError) as caught:
        parse([], {"SCHEDULER_CONFIG": bad})
    assert [line.partition(": must")[0] for line in caught.value.problems] == [
        f"SCHEDULER_CONFIG: {PLACE}[0].maxSkew",
        f"SCHEDULER_CONFIG: {PLACE}[1].whenUnsatisfiable",
        "CLUSTER_NAME (--cluster-name): is required",
    ]


def test_one_key_may_have_a_hard_and_a_soft_constraint() -> None:
    assert len(read(document(GOOD, {**GOOD, "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 5}))) == 2
