"""Scenarios and NodePools for the tests of `kerf simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

from tests.worlds import node_class, node_pool

#: Half of the spot instances of an hour are interrupted: seeds differ.
SCENARIO: Final[dict[str, Any]] = {
    "name": "Interruptions",
    "duration": "40m",
    "world": {"manifests": ["pools/"], "nodes": {"spotInterruptionsPerHour": 2}},
    "workloads": [{"name": "web", "replicas": 2, "replicasFile": "web.csv", "cpu": 1}],
    "assertions": [{"podsRunWithin": {"duration": "5m"}}, {"evictions": {"atMost": 50, "workload": "web"}}],
}
#: Without weather, for runs whose result does not matter.
SHORT: Final[dict[str, Any]] = {**SCENARIO, "duration": "12m"}
#: The same with few instance types: a run takes less time.
FEW: Final[dict[str, Any]] = {**SHORT, "world": {**SCENARIO["world"], "instanceTypes": ["c6i.large", "c6i.xlarge"]}}
#: A limit below the request of a pod.
TOO_SMALL: Final = {"limits": {"cpu": "1"}}


def pools(folder: Path, name: str, change: dict[str, Any] | None = None) -> str:
    """A new folder with an EC2NodeClass and a NodePool."""
    path = folder / name
    path.mkdir(parents=True)
    (path / "pools.yaml").write_text(yaml.safe_dump_all([node_class(), node_pool("general", change or {})]))
    return str(path)


def furnished(folder: Path) -> Path:
    """The folder with two sets of NodePools and a CSV file."""
    pools(folder, "pools")
    pools(folder, "small", TOO_SMALL)
    (folder / "web.csv").write_text("time,replicas\n10m,4\n")
    return folder


def written(folder: Path, scenario: dict[str, Any]) -> str:
    """The path of the scenario as a file in the folder."""
    path = folder / "scenario.yaml"
    path.write_text(yaml.safe_dump(scenario, sort_keys=False))
    return str(path)
