"""A role that IAM does not have, on the real control plane: conditions, preflight, and the role that appears."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .control_plane import ControlPlane
from .installation import Installation

pytestmark = pytest.mark.cluster

HERE = Path(__file__).parent
ROLE = "KarpenterNodeRole-not-there"


@pytest.fixture(scope="module")
def kerf(own_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """By itself: its NodePool and its EC2NodeClass are the only ones."""
    with Installation(own_control_plane, tmp_path_factory.mktemp("role"), webhook=False) as installation:
        yield installation


def condition(kerf: Installation, kind: str, type_: str) -> dict[str, str]:
    (one,) = kerf.get(kind)
    rows = one.get("status", {}).get("conditions", [])
    return next((row for row in rows if row["type"] == type_), {})


def test_the_class_says_so_at_once_and_is_ready_when_the_role_is_there(kerf: Installation) -> None:
    stage = (HERE / "workloads.yaml").read_text(encoding="utf-8")
    kerf.kubectl("apply", "-f", "-", input_=stage.replace("role: KarpenterNodeRole", f"role: {ROLE}"))
    kerf.wait(
        lambda: "InstanceProfileReady=False" in condition(kerf, "nodepools", "NodeClassReady").get("message", ""),
        60,
        "the NodePool follows",
    )
    printed = kerf.kerf("preflight", "--kubeconfig", str(kerf.account()), code=1)
    assert "RoleNotFound: iam:GetRole: NoSuchEntity" in printed
    kerf.aws.client("iam").create_role(RoleName=ROLE, AssumeRolePolicyDocument="{}")
    kerf.wait(lambda: condition(kerf, "ec2nodeclasses", "Ready").get("status") == "True", 180, "the role is noticed")
    kerf.kubectl("scale", "deployment/web", "--replicas=1")
    kerf.wait(lambda: len(kerf.running()) == 1, 180, "the pod runs")
