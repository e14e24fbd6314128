"""Slips beside others: values of a wrong shape, a second controller, and a lease in another namespace."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.runtime.preflight import controller, values
from kerf.runtime.preflight.asking import Asker
from kerf.runtime.preflight.findings import DOUBTFUL, UNCHECKED
from kerf.runtime.settings.options import Options
from kerf.runtime.settings.settings import SettingsError

from .preflights import ApiServer
from .test_preflight_controller import KERF, deployment, found, server, variable


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"controller": {"env": {"AWS_REGION": "x"}}}, "controller.env: must be a list of {name: …, value: …}"),
        ({"controller": {"env": "AWS_REGION"}}, "controller.env: must be a list"),
        ({"controller": {"env": ["AWS_REGION"]}}, "and has 'AWS_REGION'"),
        ({"controller": {"env": [{"value": "x"}]}}, "and has {'value': 'x'}"),
        ({"settings": {"featureGates": "NodeRepair=true"}}, "featureGates: must be a map"),
    ],
)
def test_values_of_a_wrong_shape_are_named(given: Any, words: str) -> None:
    with pytest.raises(SettingsError) as raised:
        values.expected(given, "kerf")
    (problem,) = raised.value.problems
    assert problem.startswith("--values: ")
    assert words in problem


@pytest.mark.parametrize(
    "given", [{"settings": {"featureGates": None}}, {"controller": {"env": None}}, {"settings": None}]
)
def test_values_that_are_empty_are_none(given: Any) -> None:
    assert values.expected(given, "kerf").environment in ({}, {"FEATURE_GATES": ""})


def test_a_second_controller_is_named() -> None:
    first = deployment(variable("CLUSTER_NAME", "demo"))
    alone = found(server(first)).installed
    both = found(server(first, deployment(variable("CLUSTER_NAME", "demo"), name="z"))).installed
    assert alone is not None
    assert both is not None
    assert list(controller.others(alone)) == []
    (note,) = controller.others(both)
    assert note.how == DOUBTFUL
    assert note.seen == "the cluster has Deployment kerf/z too, and this is about Deployment kerf/kerf"


def test_the_lease_is_looked_for_in_its_own_namespace() -> None:
    options = Options(leader_election_name="l", leader_election_namespace="elsewhere")
    one = controller.clock(Asker(ApiServer()), options, KERF)
    assert (one.how, "there is no Lease elsewhere/l" in one.seen) == (UNCHECKED, True)
