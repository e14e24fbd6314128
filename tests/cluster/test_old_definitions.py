"""Kerf where the definitions of an older release of Karpenter are installed: as GitOps or an upgrade may leave them.

Pools scale out, drift and are consolidated, and at rest hardly anything is written. The first release is tried in every
run, the others in `make long`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import definitions
from .control_plane import ControlPlane
from .fleet import Fleet, condition, fleet, is_true
from .installation import Installation

pytestmark = pytest.mark.cluster

HERE = Path(__file__).parent
OLDEST, *LATER = definitions.RELEASES
#: What a release before 1.9 knows of bounds.
BOUNDS = [
    {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": ["1"]},
    {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Lt", "values": ["17"]},
    {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m", "r"]},
]
REST_SECONDS = 18


@pytest.fixture(scope="module", params=[OLDEST, *(pytest.param(one, marks=pytest.mark.long) for one in LATER)])
def kerf(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Installation, Path]]:
    """With the log of the API server's requests."""
    folder = tmp_path_factory.mktemp("old")
    log, files = folder / "audit.log", definitions.of(request.param)
    with ControlPlane(audit_log=log) as plane, Installation(plane, folder, definitions=files) as installation:
        installation.kubectl("apply", "-f", str(HERE / "workloads.yaml"))
        yield installation, log


def writes(log: Path, since: float) -> list[str]:
    """Requests of the controller that changed something but its lease, from that time on."""
    rows = [json.loads(line) for line in log.read_text().splitlines() if line]
    return [
        f"{row['verb']} {row['requestURI']}"
        for row in rows
        if row["verb"] in ("create", "update", "patch", "delete")
        and row["user"]["username"].endswith(":kerf:kerf")
        and "/leases/" not in row["requestURI"]
        and row["stageTimestamp"] >= time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(since))
    ]


@pytest.mark.timeout(600)
def test_pools_with_bounds_scale_out_drift_and_are_consolidated(kerf: tuple[Installation, Path]) -> None:
    installation, log = kerf
    with fleet(installation) as rolling:
        patch = [{"op": "replace", "path": "/spec/template/spec/requirements", "value": BOUNDS}]
        installation.kubectl("patch", "nodepool", rolling.name, "--type=json", "-p", json.dumps(patch))
        rolling.scale(1)
        _drift(installation, rolling)
        _rest(installation, rolling, log)
        _consolidate(installation, rolling)


def _drift(kerf: Installation, rolling: Fleet) -> None:
    old = rolling.uids()
    rolling.change_template("next")
    kerf.wait(lambda: rolling.whole(1) and not old & rolling.uids(), 180, "the node is replaced")


def _rest(kerf: Installation, rolling: Fleet, log: Path) -> None:
    """Nothing that the definitions drop is written over and over, and it is reported once."""
    kerf.wait(lambda: is_true(rolling.pool(), "UpToDate"), 60, "the pool is up to date")
    time.sleep(3)
    begun = time.time()
    time.sleep(REST_SECONDS)
    found = writes(log, begun)
    assert len(found) <= 10 * REST_SECONDS / 60, found


def _consolidate(kerf: Installation, rolling: Fleet) -> None:
    patch = {"spec": {"disruption": {"consolidateAfter": "1s", "budgets": [{"nodes": "100%"}]}}}
    kerf.kubectl("patch", "nodepool", rolling.name, "--type=merge", "-p", json.dumps(patch))
    kerf.kubectl("scale", "deployment", rolling.name, "--replicas=0")
    kerf.wait(lambda: rolling.whole(0), 120, "the empty node is gone")
    assert condition(rolling.pool(), "Ready")["status"] == "True"
