"""The steps to read constraints: terms that ask for a label are held against the pods that have it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kerf.model.kubernetes.objects import Pod
from kerf.scheduling.placing.reading import Reading
from tests.unit.scheduling import worlds as w

NEAR: dict[str, Any] = {"matchLabels": {"app": "x"}}


def near(selector: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": w.between("podAffinity", labelSelector=selector)}


def read(*pods: Pod) -> Reading:
    found = Reading(len(pods))
    for pod in pods:
        found.read(b"", pod.spec, tuple(sorted(pod.metadata.labels.items())))
    return found


def test_a_term_that_asks_for_a_label_meets_the_pods_that_have_it() -> None:
    pods = [w.pod(f"p{i}", labels={"app": "x" if i % 10 == 0 else "y"}) for i in range(100)]
    for order in ([*pods, w.pod("q", **near(NEAR))], [w.pod("q", **near(NEAR)), *pods]):
        found = read(*order)
        assert (found.others, found.matches, found.steps) == (0, 10, 101 + 1)


@pytest.mark.parametrize(
    "spec",
    [
        near({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["x"]}]}),
        near({}),
        {"topologySpreadConstraints": [w.spread("zone", labelSelector=None)]},
        {"topologySpreadConstraints": [{**w.spread("zone"), "matchLabelKeys": ["app"]}]},
    ],
)
def test_any_other_term_meets_all_pods(spec: dict[str, Any]) -> None:
    found = read(w.pod("q", **spec), *(w.pod(f"p{i}") for i in range(99)))
    assert (found.others, found.matches, found.steps) == (1, 0, 100 + 10)


def test_terms_that_later_relaxations_share_take_little() -> None:
    """Of 41 relaxations with 40, 39, … preferences all but the first one repeat terms: 780 of them."""
    found = Reading(1)
    found.read(b"", w.pod("q", affinity=w.preferences(40)).spec, ())
    assert found.own == 780 // 8


def test_long_constraints_take_more_for_each_byte() -> None:
    short, long = Reading(1), Reading(1)
    short.read(bytes(8_000), w.pod("p").spec, ())
    long.read(bytes(80_000), w.pod("p").spec, ())
    assert short.steps == 1 + 500
    assert long.steps == 1 + 25_000


def test_node_affinity_takes_less_for_each_byte() -> None:
    spec = w.pod("p", affinity=w.node_affinity(*([("example.com/x", "NotIn", [f"v{i}"])] for i in range(100)))).spec
    node = len(msgspec.msgpack.encode(spec.affinity.node_affinity)) if spec.affinity is not None else 0
    found = Reading(1)
    found.read(bytes(node + 800), spec, ())
    assert node > 2_400
    assert found.steps == 1 + 50 + node // 24
