"""Consolidation moves a pod only where the kube-scheduler would bind it: host ports of sidecars, resizes under way."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.model.kubernetes.objects import ContainerStatus, Pod, Requested
from tests.unit.disruption import markets as m
from tests.unit.disruption import worlds as w

LARGE = m.machine("m.large", 2, 96_000)


def pair(*pods: Pod) -> list[tuple[str, str]]:
    """The moves on two nodes of two cores, `a` and `b`."""
    return m.moves(w.pool(), *m.host("a", LARGE), *m.host("b", LARGE), *pods, types=(LARGE,))


@pytest.mark.parametrize(("policy", "found"), [("Always", []), ("", [("a", "delete")])])
def test_a_pod_stays_away_from_the_port_of_a_sidecar(policy: str, found: list[Any]) -> None:
    mesh = {"name": "mesh", "ports": [{"containerPort": 9901, "hostPort": 9901}], "restartPolicy": policy}
    assert pair(*(m.pod(str(n), on, initContainers=[mesh]) for n, on in enumerate("ab"))) == found


@pytest.mark.parametrize(("actual", "found"), [("1500m", []), ("200m", [("b", "delete")])])
def test_room_that_a_resize_has_not_freed_yet_is_no_place(actual: str, found: list[Any]) -> None:
    resized = m.pod("0", "a", cpu="200m")
    status = ContainerStatus(name="c", resources=Requested(requests={"cpu": actual}))
    resized = replace(resized, status=replace(resized.status, container_statuses=(status,)))
    fixed = m.pod("1", "a", cpu="100m", annotations=w.PROTECTED)
    assert pair(resized, fixed, m.pod("2", "b", cpu="1")) == found
