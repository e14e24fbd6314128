"""Users with a single right write what only Kerf writes.

Nothing is launched that Kerf would not launch, and no instance of others ends. The webhook is away, so that all of it
reaches the controller.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from kerf.model.annotations import text_of
from kerf.model.aws.cloud import FleetRequest, LaunchTemplate, Override
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import MetadataOptions

from .control_plane import ControlPlane
from .fleet import Fleet, is_true
from .fleet import fleet as a_fleet
from .installation import NAMESPACE, Installation

pytestmark = pytest.mark.cluster

HERE = Path(__file__).parent
KEY_SECRET: Final = "kerf-launch-key"
#: A list of EC2 that is a minute later than an unmarked group, and the looks around it.
DOUBT_SECONDS: Final = 120
CLAIMS: Final = ("karpenter.sh", "nodeclaims", "create", "get", "patch", "delete")
STOLEN_PROFILE, STOLEN_TYPE = "stolen-profile", "m5.24xlarge"


class User:
    """A user with one rule of one ClusterRole and nothing else."""

    def __init__(self, kerf: Installation, name: str, group: str, resource: str, *verbs: str) -> None:
        self._kerf, self._name = kerf, name
        rule = {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": [rule]}
        kerf.kubectl("apply", "-f", "-", input_=json.dumps({**role, "metadata": {"name": name}}))
        kerf.kubectl("create", "clusterrolebinding", name, f"--clusterrole={name}", f"--user={name}")

    def does(self, *arguments: str, input_: str | None = None) -> None:
        self._kerf.kubectl(f"--as={self._name}", *arguments, input_=input_)

    def patches(self, kind: str, name: str, patch: dict[str, Any], *flags: str) -> None:
        self.does("patch", kind, name, "--type=merge", *flags, "-p", json.dumps(patch))


@pytest.fixture(scope="module")
def kerf(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with Installation(control_plane, tmp_path_factory.mktemp("trust"), webhook=False) as installation:
        installation.kubectl("apply", "-f", str(HERE / "workloads.yaml"))
        yield installation


@pytest.fixture(scope="module")
def fleet(kerf: Installation) -> Iterator[Fleet]:
    """Two nodes of the pool `trusted`, with a pod each; none of them goes of its own accord."""
    with a_fleet(kerf, "trusted") as found:
        still = {"spec": {"disruption": {"budgets": [{"nodes": "0"}]}}}
        kerf.kubectl("patch", "nodepool", found.name, "--type=merge", "-p", json.dumps(still))
        found.scale(2)
        yield found


@pytest.fixture(scope="module")
def editor(kerf: Installation) -> User:
    return User(kerf, "claim-editor", *CLAIMS)


# --- write NodeClaims -------------------------------------------------------------------------------------------
def test_a_planted_request_is_not_sent(kerf: Installation, fleet: Fleet, editor: User) -> None:
    victim = _own(fleet)[0]
    before, calls = _ids(kerf), len(kerf.aws.calls("CreateFleet"))
    note = {
        labels.LAUNCH_GROUP: "theirs",
        labels.LAUNCH_REQUEST: text_of(_stolen("planted", *(f"ghost-{n}" for n in range(19)))),
        labels.LAUNCH_MARK: victim["metadata"]["annotations"][labels.LAUNCH_MARK],
    }
    _create(editor, victim, "planted", note)
    kerf.wait(lambda: is_true(_claim(kerf, "planted"), "Launched"), DOUBT_SECONDS, "Kerf launches by its own request")
    new = [one for one in kerf.aws.instances() if one["id"] not in before]
    assert len(new) == 1 == len(kerf.aws.calls("CreateFleet")) - calls
    assert new[0]["instance_type"] != STOLEN_TYPE
    assert STOLEN_PROFILE not in new[0]["profile_arn"]
    assert "theirs" not in new[0]["tags"].values()
    editor.does("delete", "nodeclaim", "planted", "--wait=false")
    kerf.wait(lambda: not _is_there(kerf, "planted"), 90, "the claim goes")


def test_a_named_instance_of_another_claim_does_not_end_with_the_claim(
    kerf: Installation, fleet: Fleet, editor: User
) -> None:
    victim = _own(fleet)[0]
    instance = _instance(victim)
    reported = len(kerf.events("NotItsInstance"))
    _create(editor, victim, "thief", {labels.INSTANCE: instance})
    kerf.wait(lambda: len(kerf.events("NotItsInstance")) > reported, 30, "the controller reports the claim")
    editor.does("delete", "nodeclaim", "thief", "--wait=false")
    kerf.wait(lambda: not _is_there(kerf, "thief"), 60, "the claim goes")
    _unharmed(kerf, fleet, instance)


def test_limits_hold_for_claims_that_others_create(kerf: Installation, fleet: Fleet, editor: User) -> None:
    kerf.kubectl("patch", "nodepool", fleet.name, "--type=merge", "-p", '{"spec": {"limits": {"nodes": "3"}}}')
    before, victim = _ids(kerf), _own(fleet)[0]
    for number in range(6):
        _create(editor, victim, f"extra-{number}", {})
    kerf.wait(lambda: len(_extra(kerf)) <= 1, 60, "the claims beyond the limits go")
    assert len(_ids(kerf) - before) <= 1
    assert any("limits of NodePool trusted" in text for text in kerf.events("LimitsExceeded"))
    for name in _extra(kerf):
        editor.does("delete", "nodeclaim", name, "--wait=false")
    kerf.kubectl("patch", "nodepool", fleet.name, "--type=merge", "-p", '{"spec": {"limits": null}}')


# --- write one status -------------------------------------------------------------------------------------------
def test_a_provider_id_that_others_wrote_ends_no_instance_and_drains_no_node(kerf: Installation, fleet: Fleet) -> None:
    user = User(kerf, "status-editor", "karpenter.sh", "nodeclaims/status", "patch", "get")
    first, second = _own(fleet)[:2]
    other, reported = second["status"]["providerID"], len(kerf.events("NotItsInstance"))
    user.patches("nodeclaim", first["metadata"]["name"], {"status": {"providerID": other}}, "--subresource=status")
    kerf.wait(lambda: len(kerf.events("NotItsInstance")) > reported, 60, "the controller reports the claim")
    kerf.kubectl("delete", "nodeclaim", first["metadata"]["name"], "--wait=false")
    kerf.wait(lambda: not _is_there(kerf, first["metadata"]["name"]), 90, "the claim goes")
    states = {one["id"]: one["state"] for one in kerf.aws.instances()}
    assert states[_instance(second)] == "running"
    assert _claim(kerf, second["metadata"]["name"])["metadata"].get("deletionTimestamp") is None
    assert "deletionTimestamp" not in _node(kerf, second).get("metadata", {"deletionTimestamp": "gone"})
    fleet.scale(2)


def test_a_class_status_that_others_wrote_launches_nothing_of_theirs(kerf: Installation, fleet: Fleet) -> None:
    user = User(kerf, "class-status-editor", "karpenter.k8s.aws", "ec2nodeclasses/status", "patch", "get")
    before = _ids(kerf)
    theirs = {"instanceProfile": STOLEN_PROFILE, "securityGroups": [{"id": "sg-00000000000000000", "name": "theirs"}]}
    kerf.kubectl("scale", "deployment", fleet.name, "--replicas=3")
    for _ in range(20):
        user.patches("ec2nodeclass", "default", {"status": theirs}, "--subresource=status")
        if _ids(kerf) - before:
            break
    fleet.scale(3)
    new = [one for one in kerf.aws.instances() if one["id"] not in before]
    assert new
    assert not any(STOLEN_PROFILE in one["profile_arn"] for one in new)
    assert "sg-00000000000000000" not in {group for one in new for group in one["security_group_ids"]}
    assert not any(STOLEN_PROFILE in str(call) for call in kerf.aws.calls("CreateLaunchTemplate"))


def test_a_pool_status_that_others_wrote_breaks_no_limits_and_ends_no_node(kerf: Installation, fleet: Fleet) -> None:
    """Kerf writes the status again by what it finds, and launches and keeps nodes as before."""
    user = User(kerf, "pool-status-editor", "karpenter.sh", "nodepools/status", "patch", "get")
    fleet.scale(3)
    known, before, generation = fleet.uids(), _ids(kerf), fleet.pool()["metadata"]["generation"] + 1
    kerf.kubectl("patch", "nodepool", fleet.name, "--type=merge", "-p", '{"spec": {"limits": {"nodes": "3"}}}')
    theirs = {"status": "False", "reason": "Theirs", "message": "theirs", "observedGeneration": generation}
    kinds = ("ValidationSucceeded", "NodeClassReady", "NodeRegistrationHealthy", "Ready")
    rows = [{**theirs, "type": kind, "lastTransitionTime": "2026-01-01T00:00:00Z"} for kind in kinds]
    lie = {"conditions": rows, "resources": {"cpu": "0", "nodes": "0"}, "nodes": 0}
    for _ in range(5):
        user.patches("nodepool", fleet.name, {"status": lie}, "--subresource=status")
    kerf.wait(lambda: is_true(fleet.pool(), "Ready"), 60, "the pool is ready again")
    assert fleet.pool()["status"]["nodes"] == 3
    kerf.kubectl("scale", "deployment", fleet.name, "--replicas=5")
    kerf.wait(lambda: _beyond_limits(kerf), 60, "limits hold")
    assert (fleet.uids(), _ids(kerf)) == (known, before)
    kerf.kubectl("patch", "nodepool", fleet.name, "--type=merge", "-p", '{"spec": {"limits": null}}')
    fleet.scale(5)
    assert known <= fleet.uids()


# --- write NodePools, tags --------------------------------------------------------------------------------------
def test_a_template_hands_no_instance_down(kerf: Installation, fleet: Fleet) -> None:
    user = User(kerf, "pool-editor", "karpenter.sh", "nodepools", "patch", "get")
    victim = _own(fleet)[0]
    notes = {labels.INSTANCE: _instance(victim), labels.LAUNCH_GROUP: "theirs"}
    user.patches("nodepool", fleet.name, {"spec": {"template": {"metadata": {"annotations": notes}}}})
    fleet.scale(len(fleet.claims()) + 1)
    others = [one for one in fleet.claims() if one["metadata"]["uid"] != victim["metadata"]["uid"]]
    named = {one["metadata"]["annotations"].get(labels.INSTANCE) for one in others}
    assert _instance(victim) not in named
    user.patches("nodepool", fleet.name, {"spec": {"template": {"metadata": {"annotations": None}}}})


def test_a_tag_that_names_another_claim_keeps_the_instance(kerf: Installation, fleet: Fleet) -> None:
    victim, other = _own(fleet)[:2]
    tag = {"Key": labels.TAG_NODECLAIM, "Value": other["metadata"]["name"]}
    kerf.aws.client("ec2").create_tags(Resources=[_instance(victim)], Tags=[tag])
    kerf.wait(lambda: _tag(kerf, victim) == other["metadata"]["name"], 30, "EC2 shows the tag")
    known = fleet.uids()
    kerf.kubectl("delete", "nodeclaim", other["metadata"]["name"], "--wait=false")
    kerf.wait(lambda: other["metadata"]["uid"] not in fleet.uids(), 90, "the other claim goes with its own instance")
    states = {one["id"]: one["state"] for one in kerf.aws.instances()}
    assert states[_instance(victim)] == "running"
    assert victim["metadata"]["uid"] in fleet.uids() & known


# --- the key ----------------------------------------------------------------------------------------------------
def test_a_malformed_key_is_replaced_and_nodes_come_as_before(kerf: Installation, fleet: Fleet) -> None:
    kerf.kubectl("patch", "secret", KEY_SECRET, "-n", NAMESPACE, "-p", '{"data": {"key": "eA=="}}')
    kerf.stop_controller()
    kerf.start_controller()
    kerf.wait(lambda: len(_key(kerf)) == 32, 60, "the leader replaces the key")
    assert KEY_SECRET in kerf.tail("controller")
    fleet.scale(len(fleet.claims()) + 1)


def _key(kerf: Installation) -> bytes:
    data = kerf.one("secret", KEY_SECRET, NAMESPACE)["data"]
    return base64.b64decode(data["key"])


def _stolen(*members: str) -> FleetRequest:
    template = LaunchTemplate(
        name="theirs",
        image_id="ami-00000000000000000",
        user_data="#!/bin/sh\n",
        instance_profile=STOLEN_PROFILE,
        security_group_ids=("sg-00000000000000000",),
        metadata_options=MetadataOptions(),
    )
    override = Override(
        instance_type=STOLEN_TYPE,
        zone="us-west-2a",
        subnet_id="subnet-0",
        image_id=template.image_id,
        template="theirs",
    )
    return FleetRequest(
        group="theirs", capacity_type="on-demand", members=members, templates=(template,), overrides=(override,)
    )


def _create(user: User, like: dict[str, Any], name: str, notes: dict[str, str]) -> None:
    meta = {
        "name": name,
        "labels": {labels.NODEPOOL: like["metadata"]["labels"][labels.NODEPOOL]},
        "annotations": notes,
    }
    claim = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": meta, "spec": like["spec"]}
    user.does("create", "-f", "-", input_=json.dumps(claim))


def _own(fleet: Fleet) -> list[dict[str, Any]]:
    """The claims that Kerf made and that stay, by name."""
    claims = [claim for claim in fleet.claims() if claim["metadata"]["name"].startswith(f"{fleet.name}-")]
    staying = [claim for claim in claims if "deletionTimestamp" not in claim["metadata"]]
    return sorted(staying, key=lambda claim: str(claim["metadata"]["name"]))


def _beyond_limits(kerf: Installation) -> bool:
    return any("node limits have been exhausted" in text for text in kerf.events("FailedScheduling"))


def _ids(kerf: Installation) -> set[str]:
    return {one["id"] for one in kerf.aws.instances()}


def _instance(claim: dict[str, Any]) -> str:
    return str(claim["status"]["providerID"]).rpartition("/")[2]


def _extra(kerf: Installation) -> list[str]:
    names = [claim["metadata"]["name"] for claim in kerf.get("nodeclaims")]
    return [name for name in names if name.startswith("extra-")]


def _is_there(kerf: Installation, name: str) -> bool:
    return name in {claim["metadata"]["name"] for claim in kerf.get("nodeclaims")}


def _claim(kerf: Installation, name: str) -> dict[str, Any]:
    return next((claim for claim in kerf.get("nodeclaims") if claim["metadata"]["name"] == name), {})


def _node(kerf: Installation, claim: dict[str, Any]) -> dict[str, Any]:
    name = claim["status"]["nodeName"]
    return next((node for node in kerf.get("nodes") if node["metadata"]["name"] == name), {})


def _tag(kerf: Installation, claim: dict[str, Any]) -> str:
    tags = next(one["tags"] for one in kerf.aws.instances() if one["id"] == _instance(claim))
    return str(tags.get(labels.TAG_NODECLAIM, ""))


def _unharmed(kerf: Installation, fleet: Fleet, instance: str) -> None:
    states = {one["id"]: one["state"] for one in kerf.aws.instances()}
    assert states[instance] == "running"
    assert instance in {_instance(claim) for claim in fleet.claims()}
