"""Requests of a workload: its own, those of its containers, and the defaults."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.simulating.scenario import Workload
from kerf.simulating.workloads import manifests


def requests(**fields: Any) -> list[Any]:
    """The requests of each container of the Deployment."""
    (deployment,) = manifests(Workload(name="web", **fields))
    return [
        (one["name"], one.get("resources", {}).get("requests"))
        for one in deployment["spec"]["template"]["spec"]["containers"]
    ]


LIMITED = {"name": "app", "resources": {"limits": {"memory": "1Gi"}, "requests": {"memory": "1Gi"}}}


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, [("main", {"cpu": "500m", "memory": "512Mi"})]),
        ({"cpu": 2}, [("main", {"cpu": "2", "memory": "512Mi"})]),
        ({"pod": {"containers": [{"name": "app"}]}}, [("app", None)]),
        ({"cpu": 2, "pod": {"containers": [{"name": "app"}, {"name": "log"}]}}, [("app", {"cpu": "2"}), ("log", None)]),
        ({"cpu": 2, "pod": {"containers": [LIMITED]}}, [("app", {"memory": "1Gi", "cpu": "2"})]),
    ],
    ids=("defaults", "own", "containers without requests", "the first container", "beside other requests"),
)
def test_requests_of_containers(fields: dict[str, Any], found: list[Any]) -> None:
    assert requests(**fields) == found
