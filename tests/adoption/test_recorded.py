"""The objects that were recorded from Karpenter's own controller, where they are: taken over as they are.

They lie beside the project (`../shared/adoption`, or where KERF_ADOPTION says). What they hold is in `predecessor.py`,
too; here the two are held against each other.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kerf.model import kinds
from kerf_api import labels
from tests.simulation.trouble import lives

from . import predecessor
from .predecessor import Manifest
from .world import Adopted

FOLDER: Final = Path(os.environ.get("KERF_ADOPTION") or Path(__file__).resolve().parents[3] / "shared" / "adoption")
_OBJECTS: Final = ("ec2nodeclasses", "nodepools", "nodeclaims", "nodes", "workload")

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"nothing was recorded in {FOLDER}")


def _recorded() -> dict[str, list[Manifest]]:
    """By kind; without the Deployments, whose ReplicaSets are there, too."""
    found: dict[str, list[Manifest]] = {}
    for name in _OBJECTS:
        for item in yaml.safe_load((FOLDER / f"{name}.yaml").read_text())["items"]:
            found.setdefault(item["kind"], []).append(item)
    del found["Deployment"]
    return found


@pytest.fixture(scope="module")
def recorded() -> dict[str, list[Manifest]]:
    return _recorded()


@pytest.fixture(scope="module")
def play(recorded: dict[str, list[Manifest]]) -> Adopted:
    """A day after it was left."""
    made = Adopted([one for row in recorded.values() for one in row], cluster="adoption")
    made.settle()
    return made


def test_ten_minutes_and_a_day_go_by_and_no_node_is_touched(play: Adopted) -> None:
    play.live(minutes=10)
    (value,) = play.values(kinds.NODE_CLASS)
    assert value.metadata.annotations[labels.NODECLASS_HASH] == "15398843644261431408"
    play.live(days=1)
    assert play.seam.writes("create", "delete", "evict", "create_fleet", "terminate", "tag") == []
    assert all(lives(machine) for machine in play.world.ec2.instances.values())
    assert not any(claim.condition("Drifted") for claim in play.values(kinds.NODE_CLAIM))
    assert not any(node.spec.taints for node in play.values(kinds.NODE))


def test_what_we_make_ourselves_has_the_same_parts(recorded: dict[str, list[Manifest]]) -> None:
    (of_class,), (pool,) = recorded["EC2NodeClass"], recorded["NodePool"]
    claim = recorded["NodeClaim"][0]
    made = predecessor.node_claim(_launched(claim), pool, of_class, "adoption")
    own, theirs = made["metadata"]["annotations"], claim["metadata"]["annotations"]
    assert own.keys() == theirs.keys()
    for part in ("finalizers", "generateName"):
        assert made["metadata"][part] == claim["metadata"][part]
    assert made["metadata"]["labels"].items() <= claim["metadata"]["labels"].items()
    assert _types(made) == _types(claim)
    node = next(one for one in recorded["Node"] if one["spec"]["providerID"] == claim["status"]["providerID"])
    own_node = predecessor.node(_launched(claim), claim)
    assert own_node["metadata"]["annotations"].items() <= node["metadata"]["annotations"].items()
    assert own_node["metadata"]["labels"].items() <= node["metadata"]["labels"].items()


def test_our_hashes_of_what_was_recorded(recorded: dict[str, list[Manifest]]) -> None:
    (of_class,), (pool,) = recorded["EC2NodeClass"], recorded["NodePool"]
    own = of_class["metadata"]["annotations"]["karpenter.k8s.aws/ec2nodeclass-hash"]
    assert predecessor.v5_hash(of_class["spec"], predecessor.RECORDED_CA) == own == predecessor.RECORDED_HASH
    assert pool["metadata"]["annotations"]["karpenter.sh/nodepool-hash"] == predecessor.RECORDED_POOL_HASH


def test_instances_and_launch_templates_have_the_tags_that_we_know_them_by(recorded: dict[str, list[Manifest]]) -> None:
    common = predecessor.resource_tags("default", "default", "adoption")
    reservations = json.loads((FOLDER / "instances.json").read_text())["Reservations"]
    instances = {row["InstanceId"]: row for one in reservations for row in one["Instances"]}
    assert len(instances) == len(recorded["NodeClaim"])
    for claim in recorded["NodeClaim"]:
        one = _launched(claim)
        tags = _tags(instances[one.instance_id]["Tags"])
        assert predecessor.instance_tags(one, "default", "default", "adoption") == tags
    templates = json.loads((FOLDER / "launch-templates.json").read_text())["LaunchTemplateVersions"]
    assert templates
    assert all(_tags(template["Tags"]) == common for template in templates)


# --- aids -------------------------------------------------------------------------------------------------------
def _launched(claim: Manifest) -> predecessor.Launched:
    of, status = claim["metadata"]["labels"], claim["status"]
    return predecessor.Launched(
        claim=claim["metadata"]["name"],
        node=status["nodeName"],
        instance_id=status["providerID"].rpartition("/")[2],
        instance_type=of["node.kubernetes.io/instance-type"],
        zone=of["topology.kubernetes.io/zone"],
        zone_id=of["topology.k8s.aws/zone-id"],
        capacity_type=of["karpenter.sh/capacity-type"],
        image_id=status["imageID"],
    )


def _types(manifest: Manifest) -> set[str]:
    return {row["type"] for row in manifest["status"]["conditions"]}


def _tags(rows: list[dict[str, Any]]) -> dict[str, str]:
    return {row["Key"]: row["Value"] for row in rows if not row["Key"].startswith("aws:")}
