"""Thirty nodes of three EC2NodeClasses change from Karpenter to Kerf and back, on the real control plane.

Kerf is installed while the other controller still holds its lease. What is there is `tests/adoption/sample.py`, made
as Karpenter 1.14.1 leaves it (`predecessor.py`). The tests are one story, in which docs/migration.md is read from its
first command to its last. In `make long` Kerf leads for ten minutes before anything changes.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from kerf.kube.client import KubeClient
from kerf.model import kinds
from kerf.runtime.leadership.leases import DURATION, KARPENTER
from tests.adoption import sample
from tests.adoption.differences import differences, unexplained
from tests.adoption.world import Adopted
from tests.simulation.trouble import lives
from tests.sources import ROOT, python_path

from .components import ADMINISTRATOR
from .control_plane import ControlPlane
from .fleet import is_true
from .installation import CLUSTER_NAME, Installation
from .predecessor import SPACE, HeldLease, Legacy, release

pytestmark = pytest.mark.cluster

HASH: Final = "karpenter.k8s.aws/ec2nodeclass-hash"
VERSION: Final = f"{HASH}-version"
#: What kubelets and the control plane write, and what is counted anew.
_NOT_OURS: Final = ("status", "metadata.annotations.node", "metadata.annotations.volumes", "metadata.generation")
#: Calls of AWS that change something.
_CHANGING: Final = ("Create", "Delete", "Terminate", "Add", "Tag", "Modify", "Put", "Remove")
CHANGED: Final = "web"


class Guide:
    """docs/migration.md: its commands, one after the other, by an administrator of cluster and account."""

    def __init__(self, kerf: Installation, folder: Path) -> None:
        text = (ROOT / "docs" / "migration.md").read_text(encoding="utf-8")
        blocks = re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        self.left = re.findall(r"^\$ (.*)$", "".join(blocks), re.MULTILINE)
        self._folder, programs = folder / "home", folder / "programs"
        self._folder.mkdir()
        programs.mkdir()
        (self._folder / "charts").symlink_to(ROOT / "charts")
        (programs / "kerf").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kerf.cli.main "$@"\n')
        (programs / "kerf").chmod(0o755)
        plane = kerf.control_plane
        self._environment = {
            **os.environ,
            **kerf.aws.environment(),
            "PATH": f"{programs}:{plane.binaries}:{os.environ['PATH']}",
            "KUBECONFIG": str(plane.kubeconfig),
            "PYTHONPATH": python_path(),
        }

    def run(self, beginning: str) -> str:
        """What the next command prints, which begins so."""
        command = self.left.pop(0)
        assert command.startswith(beginning)
        done = subprocess.run(
            ["/bin/sh", "-c", command], cwd=self._folder, env=self._environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def lease(control_plane: ControlPlane) -> Iterator[HeldLease]:
    held = HeldLease(KubeClient.from_kubeconfig(str(control_plane.kubeconfig)))
    held.start()
    yield held
    held.die()
    control_plane.kubectl("delete", "lease", KARPENTER, "--namespace", SPACE, "--ignore-not-found")


@pytest.fixture(scope="module")
def kerf(
    control_plane: ControlPlane, lease: HeldLease, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("adoption")
    # The administrator makes what Karpenter's account would make.
    values = {"webhook.trustedAccounts[0]": ADMINISTRATOR}
    with Installation(control_plane, folder, families=("c6a", "m6a"), values=values) as installation:
        installation.stop_controller()  # it comes when all of this has been there for long
        release(installation, folder)
        Legacy(installation, KubeClient.from_kubeconfig(str(control_plane.kubeconfig))).make()
        installation.start_controller()
        installation.wait(lambda: "only watching" in installation.readiness()[1], 60, "Kerf watches")
        yield installation
        lease.give_up()
        for name in sample.CLASSES:
            installation.kubectl("delete", "replicaset", name, "--ignore-not-found")
        installation.kubectl("delete", "nodepools", *sample.CLASSES, "--ignore-not-found", "--wait=false")
        installation.wait(lambda: not _claims(installation), 180, "all nodes are given back")


@pytest.fixture(scope="module")
def guide(kerf: Installation, tmp_path_factory: pytest.TempPathFactory) -> Guide:
    return Guide(kerf, tmp_path_factory.mktemp("guide"))


def test_the_check_finds_nothing_in_the_way(kerf: Installation, guide: Guide) -> None:
    """Of the cluster, with its AWS; and of what was written to a file."""
    before = _objects(kerf)
    page = guide.run("kerf migrate check")
    assert "no node has drifted" in page
    assert "no node would be consolidated now" in page
    assert "\n0 blocking" in page
    guide.run("kubectl get nodepools,ec2nodeclasses")
    assert "\n0 blocking" in guide.run("kerf migrate check -f")
    assert _differences(before, _objects(kerf)) == []


def test_beside_karpenter_kerf_only_watches(kerf: Installation, guide: Guide) -> None:
    before = _objects(kerf)
    kerf.aws.clear_calls()
    guide.run("helm get values karpenter")
    guide.run("helm upgrade --install kerf-crd")
    guide.run("helm upgrade --install kerf ")
    time.sleep(8)
    assert "WaitsForKarpenter" in guide.run("kubectl get events")
    assert _differences(before, _objects(kerf)) == []
    assert _changing(kerf) == []


def test_it_takes_over_and_touches_no_node(kerf: Installation, lease: HeldLease, guide: Guide) -> None:
    before = _objects(kerf)
    kerf.aws.clear_calls()
    guide.run("kubectl scale deployment/karpenter")
    lease.die()
    kerf.wait(lambda: _all_stamped(kerf), DURATION.total_seconds() + 30, "all hashes are stamped as v6")
    time.sleep(60)
    _only_stamped(kerf, before)
    stamped = guide.run("kubectl get ec2nodeclasses")
    assert all(re.search(rf"^{name} +v6$", stamped, re.MULTILINE) for name in sample.CLASSES)
    guide.run("kubectl get nodeclaims")


@pytest.mark.long
def test_ten_minutes_go_by(kerf: Installation, lease: HeldLease) -> None:
    lease.die()  # nobody else has ended it when this test runs alone
    kerf.wait(lambda: _all_stamped(kerf), DURATION.total_seconds() + 30, "all hashes are stamped as v6")
    before = _objects(kerf)
    kerf.aws.clear_calls()
    time.sleep(600)
    _only_stamped(kerf, before)


def test_a_day_goes_by_in_a_copy_of_the_cluster(kerf: Installation) -> None:
    """Objects, instance types and prices as they are now; from there on the sandbox's clock."""
    saved = [one for kind in ("ec2nodeclasses", "nodepools", "nodeclaims", "nodes") for one in kerf.get(kind)]
    saved = [one for one in saved if one["kind"] != "Node" or "karpenter.sh/nodepool" in one["metadata"]["labels"]]
    load = [*kerf.get("replicasets"), *kerf.get("pods")]
    saved += [one for one in load if one["metadata"]["name"].partition("-")[0] in sample.CLASSES]
    ca_bundle = KubeClient.from_kubeconfig(str(kerf.account())).ca_bundle
    play = Adopted(saved, cluster=CLUSTER_NAME, ca_bundle=ca_bundle, region=kerf.region())
    play.settle()
    play.live(days=1)
    assert play.seam.writes("create", "delete", "evict", "create_fleet", "terminate", "tag") == []
    assert len([m for m in play.world.ec2.instances.values() if lives(m)]) == len(_claims(kerf))
    assert not any(node.spec.taints for node in play.values(kinds.NODE))


def test_a_real_drift_replaces_the_nodes_of_one_class_and_no_other(kerf: Installation) -> None:
    before = {claim["metadata"]["uid"]: _pool(claim) for claim in _claims(kerf)}
    _patch(kerf, "nodepool", CHANGED, {"spec": {"disruption": {"budgets": [{"nodes": "50%"}]}}})
    _patch(kerf, "ec2nodeclass", CHANGED, {"spec": {"tags": {"team": "other"}}})
    ours = {uid for uid, pool in before.items() if pool == CHANGED}
    took = kerf.wait(lambda: not ours & _uids(kerf) and _whole(kerf), 240, "the ten nodes of one class are replaced")
    print(f"\nthe nodes of one class were replaced in {took:.0f} s")
    assert {uid for uid, pool in before.items() if pool != CHANGED} <= _uids(kerf)
    assert not any(is_true(claim, "Drifted") for claim in _claims(kerf))


def test_it_is_given_back_as_karpenter_expects_it(kerf: Installation, lease: HeldLease, guide: Guide) -> None:
    guide.run("kubectl scale deployment/karpenter")
    lease.start()
    kerf.wait(lambda: "only watching" in kerf.readiness()[1], 10, "Kerf has noticed")
    objects = _objects(kerf)
    claims = {name: one for name, one in objects.items() if one["kind"] == "NodeClaim"}
    assert 2 * sample.EACH < len(claims) <= 3 * sample.EACH
    for one in claims.values():
        pool = objects[f"NodePool/{_pool(one)}"]
        of_class = objects[f"EC2NodeClass/{one['spec']['nodeClassRef']['name']}"]
        meta = one["metadata"]
        assert meta["finalizers"] == ["karpenter.sh/termination"]
        assert [owner["uid"] for owner in meta["ownerReferences"]] == [pool["metadata"]["uid"]]
        for parent, key in ((pool, "karpenter.sh/nodepool-hash"), (of_class, HASH)):
            for annotation in (key, f"{key}-version"):
                assert meta["annotations"][annotation] == parent["metadata"]["annotations"][annotation]
        assert all(is_true(one, type_) for type_ in ("Launched", "Registered", "Initialized", "Ready"))
    with_tags = [one for one in kerf.running_instances() if "karpenter.sh/nodeclaim" in one["tags"]]
    assert {one["tags"]["karpenter.sh/nodeclaim"] for one in with_tags} == {
        one["metadata"]["name"] for one in claims.values()
    }
    before = _objects(kerf)
    time.sleep(8)
    assert _differences(before, _objects(kerf)) == []


def test_karpenter_is_uninstalled_and_kerf_leads(kerf: Installation, lease: HeldLease, guide: Guide) -> None:
    lease.give_up()
    guide.run("helm uninstall karpenter")
    guide.run("kubectl delete lease")
    kerf.wait(lambda: "only watching" not in kerf.readiness()[1], 30, "Kerf leads")
    assert guide.left == []


def test_with_a_class_go_the_templates_and_profiles_that_karpenter_made_for_it(kerf: Installation) -> None:
    name = "default"
    kerf.kubectl("delete", "replicaset", name)
    kerf.kubectl("delete", "nodepool", name, "--wait=false")
    kerf.wait(lambda: name not in {_pool(claim) for claim in _claims(kerf)}, 120, "its nodes are given back")
    assert _templates(kerf, name)
    kerf.kubectl("delete", "ec2nodeclass", name, "--wait=false")
    kerf.wait(lambda: name not in {one["metadata"]["name"] for one in kerf.get("ec2nodeclasses")}, 60, "it is gone")
    assert _templates(kerf, name) == []
    profiles = kerf.aws.client("iam").list_instance_profiles()["InstanceProfiles"]
    assert not [one for one in profiles if any(tag["Value"] == name for tag in one["Tags"])]


# --- aids -------------------------------------------------------------------------------------------------------
def _claims(kerf: Installation) -> list[dict[str, Any]]:
    return [claim for claim in kerf.get("nodeclaims") if _pool(claim) in sample.CLASSES]


def _pool(claim: dict[str, Any]) -> str:
    return str(claim["metadata"]["labels"].get("karpenter.sh/nodepool", ""))


def _uids(kerf: Installation) -> set[str]:
    return {claim["metadata"]["uid"] for claim in _claims(kerf)}


def _whole(kerf: Installation) -> bool:
    """Nothing is on its way, and all pods run: on as many nodes as before, or on fewer and larger ones."""
    claims = _claims(kerf)
    ready = [c for c in claims if is_true(c, "Initialized") and "deletionTimestamp" not in c["metadata"]]
    return len(ready) == len(claims) <= 3 * sample.EACH and len(kerf.running(CHANGED)) == sample.EACH


def _objects(kerf: Installation) -> dict[str, dict[str, Any]]:
    """By kind and name, those of this test."""
    found = [one for kind in ("ec2nodeclasses", "nodepools", "nodeclaims", "nodes") for one in kerf.get(kind)]
    named = {f"{one['kind']}/{one['metadata']['name']}": one for one in found}
    return {name: one for name, one in named.items() if _ours(one)}


def _ours(one: dict[str, Any]) -> bool:
    return one["metadata"]["name"] in sample.CLASSES or _pool({"metadata": {"labels": {}, **one["metadata"]}}) in (
        sample.CLASSES
    )


def _differences(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, str, Any, Any]]:
    """But for what kubelets and the control plane write, and for statuses."""
    return [row for row in differences(before, after) if not row[1].startswith(_NOT_OURS)]


def _all_stamped(kerf: Installation) -> bool:
    found = [one for one in _objects(kerf).values() if one["kind"] in ("EC2NodeClass", "NodeClaim")]
    return all(one["metadata"]["annotations"].get(VERSION) == "v6" for one in found)


def _only_stamped(kerf: Installation, before: dict[str, Any]) -> None:
    """Since then nothing was written without a reason, and nothing was asked of AWS but trying launches."""
    after = _objects(kerf)
    assert [row for row in unexplained(before, after) if not row[0].startswith("Node/")] == []
    assert [row for row in _differences(before, after) if row[0].startswith("Node/")] == []
    for one in after.values():
        assert not (one["kind"] == "Node" and one["spec"].get("taints"))
        assert not is_true(one, "Drifted")
        if one["kind"] == "NodeClaim":
            parent = after[f"EC2NodeClass/{one['spec']['nodeClassRef']['name']}"]
            assert one["metadata"]["annotations"][HASH] == parent["metadata"]["annotations"][HASH]
    assert set(_changing(kerf)) <= {"CreateLaunchTemplate", "DeleteLaunchTemplate", "CreateFleet"}  # launches tried dry
    assert len(kerf.running_instances()) == len(_claims(kerf))


def _changing(kerf: Installation) -> list[str]:
    """What was asked of AWS that changes something; CreateFleet may be a dry run, and then has changed nothing."""
    return [call.action for call in kerf.aws.calls() if call.action.startswith(_CHANGING)]


def _templates(kerf: Installation, name: str) -> list[str]:
    filters = [{"Name": "tag:karpenter.k8s.aws/ec2nodeclass", "Values": [name]}]
    rows = kerf.aws.client("ec2").describe_launch_templates(Filters=filters)["LaunchTemplates"]
    return [row["LaunchTemplateName"] for row in rows]


def _patch(kerf: Installation, kind: str, name: str, patch: dict[str, Any]) -> None:
    kerf.kubectl("patch", kind, name, "--type=merge", "-p", json.dumps(patch))
