"""The stable hash of a pod's shape."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.scheduling.placing.pod_shapes import PodShapes
from tests.unit.scheduling import worlds as w

HASH = {"app": "web", "pod-template-hash": "5d9c7"}


def shape(name: str = "web-1", *args: Any, **spec: Any) -> str:
    daemons = spec.pop("daemons", [])
    return PodShapes(w.world(*daemons)).of(w.pod(name, *args, **spec))


def spread(template: str, **more: Any) -> dict[str, Any]:
    """A constraint as the API server stores it, with the label of `matchLabelKeys` in its selector."""
    expression = {"key": "pod-template-hash", "operator": "In", "values": [template]}
    row = w.spread(matchLabelKeys=["pod-template-hash"], **more)
    return {**row, "labelSelector": {"matchLabels": {"app": "web"}, "matchExpressions": [expression]}}


@pytest.mark.parametrize(
    "other",
    [
        {"name": "web-2"},
        {"labels": {"app": "web", "pod-template-hash": "77777"}},
        {"labels": {**HASH, "version": "2"}},
        {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}},
        {"priority": 7},
    ],
)
def test_another_pod_of_the_workload_has_the_same_shape(other: dict[str, Any]) -> None:
    assert shape(**{"labels": HASH, **other}) == shape(labels=HASH)


def test_a_new_replica_set_that_is_spread_by_its_hash_has_the_same_shape() -> None:
    one, two = (
        shape(labels={**HASH, "pod-template-hash": h}, topologySpreadConstraints=[spread(h)]) for h in ("a", "b")
    )
    assert one == two != shape(labels=HASH)


@pytest.mark.parametrize(
    "other",
    [
        {"cpu": "200m"},
        {"namespace": "other"},
        {"nodeSelector": {"a": "b"}},
        {"tolerations": [{"operator": "Exists"}]},
        {"ports": [{"containerPort": 1, "hostPort": 80}]},
        {"schedulerName": "other"},
        {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "gp3"}}}}]},
        {"affinity": w.between("podAntiAffinity")},
    ],
)
def test_a_pod_that_asks_for_something_else_has_another_shape(other: dict[str, Any]) -> None:
    assert shape(**other) != shape()


def test_labels_count_where_daemon_sets_look_at_them() -> None:
    daemons = [w.daemon_set("agent", affinity=w.between("podAntiAffinity"))]
    assert shape(labels={"app": "web"}, daemons=daemons) != shape(labels={"app": "api"}, daemons=daemons)
    assert shape(labels={"app": "web"}) == shape(labels={"app": "api"})
