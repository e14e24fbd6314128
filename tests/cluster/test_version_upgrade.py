"""The control plane is upgraded while the controller lives: nodes drift to images of the next version.

The API server's answer to `/version` is replaced on its way, as it is one binary that runs. In `make long`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from .control_plane import ControlPlane
from .fleet import Fleet
from .fleet import fleet as a_fleet
from .installation import Installation
from .proxy import KUBE, PASS, Answer, Decision, Request

pytestmark = [pytest.mark.cluster, pytest.mark.long]

HERE = Path(__file__).parent
NEXT = "1.37"


@pytest.fixture(scope="module")
def kerf(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with Installation(control_plane, tmp_path_factory.mktemp("upgrade"), proxied=True) as installation:
        installation.kubectl("apply", "-f", str(HERE / "workloads.yaml"))
        yield installation


@pytest.fixture
def fleet(kerf: Installation) -> Iterator[Fleet]:
    with a_fleet(kerf) as ready:
        yield ready


def upgraded(request: Request) -> Decision:
    """The answer of an API server of the next version."""
    if request.port != KUBE or request.path != "/version":
        return PASS
    major, _, minor = NEXT.partition(".")
    told = {"major": major, "minor": minor, "gitVersion": f"v{NEXT}.0", "platform": "linux/amd64"}
    return Answer(200, json.dumps(told).encode(), {"Content-Type": "application/json"})


def images(fleet: Fleet) -> set[str]:
    return {claim.get("status", {}).get("imageID", "") for claim in fleet.claims()}


@pytest.mark.timeout(1200)
def test_nodes_follow_the_version_within_budgets(fleet: Fleet) -> None:
    """It counts once two answers, a minute apart, agree; images are asked for at once, and budgets pace the nodes."""
    kerf = fleet.kerf
    fleet.scale(2)
    new, old = set(kerf.aws.release_images(NEXT)), images(fleet)
    assert not new & old
    kerf.proxy.rule = upgraded
    most = 0

    def rolled() -> bool:
        nonlocal most
        going = [one for one in fleet.claims() if "deletionTimestamp" in one["metadata"]]
        most = max(most, len(going))
        return fleet.whole(2) and images(fleet) <= new

    took = kerf.wait(rolled, 900, "both nodes have an image of the next version")
    assert most == 1
    assert took > 60
    leases = kerf.get("leases", namespace="kerf")
    assert {one["metadata"]["annotations"]["kerf.sh/kubernetes-version"] for one in leases} == {NEXT}
