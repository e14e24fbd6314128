"""NodeOverlays on the real control plane: the chart's roles let the controller read and tell of them, and EC2 launches
by their prices."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .control_plane import ControlPlane
from .installation import Installation

pytestmark = pytest.mark.cluster

HERE = Path(__file__).parent
#: By AWS's prices c6a would be launched: the same processors with half the memory.
OVERLAYS = """
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: savings-plan}
spec:
  requirements: [{key: karpenter.k8s.aws/instance-family, operator: In, values: [m6a]}]
  priceAdjustment: "-90%"
---
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: earlier-name}
spec:
  requirements: [{key: karpenter.k8s.aws/instance-size, operator: In, values: [xlarge]}]
  price: "40"
"""


@pytest.fixture(scope="module")
def kerf(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    folder, gate = tmp_path_factory.mktemp("overlays"), {"settings.featureGates.nodeOverlay": "true"}
    with Installation(control_plane, folder, webhook=False, families=("c6a", "m6a"), values=gate) as installation:
        yield installation


def told(kerf: Installation, name: str) -> dict[str, str]:
    """The reason of each of an overlay's conditions."""
    found = next(one for one in kerf.get("nodeoverlays") if one["metadata"]["name"] == name)
    return {c["type"]: f"{c['status']} {c['reason']}" for c in found.get("status", {}).get("conditions", [])}


def families(kerf: Installation) -> set[str]:
    return {one["instance_type"].partition(".")[0] for one in kerf.running_instances()}


def test_pods_run_on_what_is_cheap_by_overlay_and_overlays_say_what_became_of_them(kerf: Installation) -> None:
    kerf.kubectl("apply", "-f", "-", input_=OVERLAYS)
    kerf.kubectl("apply", "-f", str(HERE / "workloads.yaml"))
    good = {"ValidationSucceeded": "True ValidationSucceeded", "Ready": "True Ready"}
    kerf.wait(lambda: told(kerf, "savings-plan") == good, 60, "the overlay is applied")
    refused = {"ValidationSucceeded": "False Conflict", "Ready": "False UnhealthyDependents"}
    kerf.wait(lambda: told(kerf, "earlier-name") == refused, 60, "the other one says why it is not")
    kerf.kubectl("scale", "deployment/web", "--replicas=4")
    kerf.wait(lambda: len(kerf.running()) == 4, 90, "4 pods run")
    assert families(kerf) == {"m6a"}
    notes = [claim["metadata"]["annotations"] for claim in kerf.get("nodeclaims")]
    assert all(one.get("karpenter.sh/price-overlay-applied") == "true" for one in notes)


def test_without_them_they_run_on_what_is_cheap_by_awss_prices(kerf: Installation) -> None:
    kerf.kubectl("delete", "nodeoverlays", "--all")
    kerf.kubectl("scale", "deployment/web", "--replicas=0")
    kerf.wait(lambda: not kerf.get("nodeclaims") and not kerf.running_instances(), 120, "nothing is left")
    kerf.kubectl("scale", "deployment/web", "--replicas=4")
    kerf.wait(lambda: len(kerf.running()) == 4, 90, "4 pods run")
    assert families(kerf) == {"c6a"}
    kerf.kubectl("scale", "deployment/web", "--replicas=0")
    kerf.wait(lambda: not kerf.get("nodeclaims") and not kerf.running_instances(), 120, "nothing is left")
