"""Small worlds with a known end: which nodes take the pod `web`, and which plugin refuses it on the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.oracle.client import ALL_NODES, Oracle
from tests.oracle.objects import ZONE, Json, pod

FITS: Final = ""
IN_A: Final = {ZONE: "a"}
IN_B: Final = {ZONE: "b"}
TERMINATING: Final = {"deletionTimestamp": "2030-01-01T00:00:00Z", "deletionGracePeriodSeconds": 3600}


@dataclass(frozen=True)
class Known:
    """Objects by kind, and the plugin that refuses the pod `web` on each node."""

    world: dict[str, list[Json]]
    refused_by: dict[str, str]


def known(nodes: list[Json], pods: list[Json], refused_by: dict[str, str], **more: list[Json]) -> Known:
    """A world of nodes and pods, and of other objects by kind."""
    return Known({"nodes": nodes, "pods": pods, **more}, refused_by)


def resized(requests: Mapping[str, str], container: Mapping[str, Any], **status: Any) -> Json:
    """A pod on the node `n1`; the status of its container differs from its spec."""
    states = [{"name": "app", "image": "app", "imageID": "", **container}]
    return pod("other", on="n1", requests=requests, status={"containerStatuses": states, **status})


def judge(case: Known, oracle: Oracle) -> None:
    """Assert that the oracle comes to the known end."""
    answer = oracle.ask(case.world, verdicts=[("default/web", ALL_NODES)])
    assert {one.node: one.plugin for one in answer.verdicts} == case.refused_by
    assert all(one.fits == (one.plugin == FITS) == (not one.message) for one in answer.verdicts)
