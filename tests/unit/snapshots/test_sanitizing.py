"""A file has none of the texts that may be secret, wherever somebody has put them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache
from typing import Any, Final

import msgspec
import pytest

from kerf.decide import decide
from kerf.ec2.userdata import userdata
from kerf.model import kinds
from kerf.model.aws.cloud import FleetRequest
from kerf.model.aws.launch_marks import MarkedLaunch
from kerf.model.cluster import build
from kerf.model.kinds import Kind
from kerf.model.memory import Memory
from kerf.model.plan import LaunchInstances, PatchObject, Plan, Reason, ValidateClass
from kerf.model.snapshot import Snapshot
from kerf.model.writes import with_annotations
from kerf.runtime.controller import Controller
from kerf.runtime.observe.looking import captured
from kerf.runtime.parts import Parts
from kerf.sandbox.world import World
from kerf.snapshots import actions
from kerf.snapshots.captured import Captured
from kerf.snapshots.reading import read
from kerf.snapshots.sanitizing import Sanitizer
from kerf.snapshots.writing import lines
from kerf_api import labels
from kerf_api.v1.meta import decode
from tests.worlds import deployment, node_class, node_pool

from .worlds import SETTINGS, busy

SECRET: Final = "hunter2-9f31c7"
_LAUNCH: Final = labels.LAUNCH_REQUEST
NOTE = {"annotations": {"example.com/token": SECRET}}
CONTAINER = {"name": "web", "image": f"registry.example/{SECRET}", "env": [{"name": "PASSWORD", "value": SECRET}]}
_REF = {"nodeClassRef": {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "default"}}
_COMMAND: Final = json.dumps(
    {
        "id": "a",
        "reason": "Drifted",
        "started": "2026-01-01T00:00:00Z",
        "replacements": ["b"],
        "claims": [{"metadata": {"name": "b", **NOTE}, "spec": _REF}],
    }
)
#: Where a manifest of each kind can have a secret; every text of them is one.
PLACES: Mapping[str, tuple[str, dict[str, Any]]] = {
    "environment variable": ("Pod", {"spec": {"containers": [CONTAINER]}}),
    "environment of an init container": ("Pod", {"spec": {"initContainers": [CONTAINER]}}),
    "ephemeral container": ("Pod", {"spec": {"ephemeralContainers": [CONTAINER]}}),
    "command": ("Pod", {"spec": {"containers": [{"name": "a", "command": ["sh", "-c", SECRET]}]}}),
    "arguments": ("Pod", {"spec": {"containers": [{"name": "a", "args": [f"--token={SECRET}"]}]}}),
    "header of a probe": (
        "Pod",
        {"spec": {"containers": [{"name": "a", "livenessProbe": {"httpGet": {"httpHeaders": [{"value": SECRET}]}}}]}},
    ),
    "hook": (
        "Pod",
        {"spec": {"containers": [{"name": "a", "lifecycle": {"preStop": {"exec": {"command": [SECRET]}}}}]}},
    ),
    "annotation of a pod": ("Pod", {"metadata": NOTE}),
    "applied manifest": (
        "Pod",
        {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": f'{{"a":"{SECRET}"}}'}}},
    ),
    "message of a condition": ("Pod", {"status": {"conditions": [{"type": "example.com/Login", "message": SECRET}]}}),
    "message of a terminated container": (
        "Pod",
        {"status": {"containerStatuses": [{"name": "a", "state": {"terminated": {"message": SECRET}}}]}},
    ),
    "secret of a volume": ("Pod", {"spec": {"volumes": [{"name": "a", "secret": {"secretName": SECRET}}]}}),
    "attributes of a volume": (
        "Pod",
        {"spec": {"volumes": [{"name": "a", "csi": {"driver": "d", "volumeAttributes": {"p": SECRET}}}]}},
    ),
    "pull secret": ("Pod", {"spec": {"imagePullSecrets": [{"name": SECRET}]}}),
    "annotation of a node": ("Node", {"metadata": NOTE}),
    "annotation of a namespace": ("Namespace", {"metadata": NOTE}),
    "template of a Deployment": (
        "Deployment",
        {"spec": {"template": {"metadata": NOTE, "spec": {"containers": [CONTAINER]}}}},
    ),
    "template of a DaemonSet": (
        "DaemonSet",
        {"spec": {"template": {"metadata": NOTE, "spec": {"containers": [CONTAINER]}}}},
    ),
    "PodTemplate": ("PodTemplate", {"template": {"metadata": NOTE, "spec": {"containers": [CONTAINER]}}}),
    "attributes of a PersistentVolume": (
        "PersistentVolume",
        {"spec": {"csi": {"driver": "d", "volumeHandle": "v", "volumeAttributes": {"p": SECRET}}}},
    ),
    "secret of a PersistentVolume": (
        "PersistentVolume",
        {"spec": {"csi": {"driver": "d", "volumeHandle": "v", "nodeStageSecretRef": {"name": SECRET}}}},
    ),
    "path of a node": ("PersistentVolume", {"spec": {"hostPath": {"path": f"/{SECRET}"}}}),
    "path of a local volume": ("PersistentVolume", {"spec": {"local": {"path": f"/{SECRET}"}}}),
    "volume before CSI": ("PersistentVolume", {"spec": {"awsElasticBlockStore": {"volumeID": SECRET}}}),
    "parameters of a StorageClass": ("StorageClass", {"provisioner": "d", "parameters": {"key": SECRET}}),
    "parameters of a device": (
        "ResourceClaim",
        {"spec": {"devices": {"config": [{"opaque": {"driver": "d", "parameters": {"key": SECRET}}}]}}},
    ),
    "user data": ("EC2NodeClass", {"spec": {"userData": f"#!/bin/sh\nexport TOKEN={SECRET}"}}),
    "annotation of a node class": ("EC2NodeClass", {"metadata": NOTE}),
    "annotation of a NodePool": ("NodePool", {"metadata": NOTE}),
    "annotation of a NodePool's template": ("NodePool", {"spec": {"template": {"metadata": NOTE}}}),
    "annotation of a NodeClaim": ("NodeClaim", {"metadata": NOTE}),
    "launch mark": ("NodeClaim", {"metadata": {"annotations": {labels.LAUNCH_MARK: SECRET}}}),
    "NodeClaim of a command": ("NodeClaim", {"metadata": {"annotations": {labels.COMMAND: _COMMAND}}}),
    "unreadable command": ("NodeClaim", {"metadata": {"annotations": {labels.COMMAND: SECRET}}}),
    "unreadable launch request": ("NodeClaim", {"metadata": {"annotations": {labels.LAUNCH_REQUEST: SECRET}}}),
}
_NEEDED: Mapping[str, dict[str, Any]] = {
    "NodePool": {"spec": {"template": {"spec": _REF}}},
    "NodeClaim": {"spec": _REF},
}


def test_there_are_as_many_places_as_are_promised() -> None:
    assert len(PLACES) >= 20


def planted(place: str) -> tuple[Kind, Any]:
    """An object with the secret there, and its kind."""
    kind, manifest = PLACES[place]
    of = kinds.BY_NAME[kind]
    named = {"metadata": {"name": "a", "namespace": "" if of.cluster_scoped else "default"}}
    filled = _merged(_merged(named, _NEEDED.get(kind, {})), manifest)
    assert SECRET in str(filled)
    return of, decode(of.type, filled)


@pytest.mark.parametrize("place", PLACES)
def test_a_secret_is_not_in_the_file(place: str) -> None:
    kind, value = planted(place)
    snapshot = build([value], now=busy().snapshot.now, settings=SETTINGS)
    text = b"".join(lines(Captured(snapshot), b"key"))
    assert b'"kind":"%s"' % kind.name.encode() in text
    assert SECRET.encode() not in text


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(one)
    for key, value in other.items():
        inner = found.get(key)
        found[key] = _merged(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return found


# --- user data --------------------------------------------------------------------------------------------------
def _class(token: str) -> dict[str, Any]:
    own = node_class()
    own["spec"]["userData"] = f"#!/bin/sh\nexport TOKEN={token}"
    own["metadata"]["annotations"] = {"example.com/looked-at": SECRET}
    return own


@dataclass
class Life:
    """What a controller saw when a launch was requested, when all was at rest, and when a class had been edited."""

    seen: list[Captured] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world = World(seed=5)
        self.loop = Controller(self.world.ports, Parts(decide=self._decide), settings=SETTINGS, inline=True)
        pool = node_pool("general", {"disruption": {"consolidateAfter": "Never"}})
        pool["spec"]["template"]["metadata"]["annotations"] = {"example.com/token": SECRET}
        for manifest in (_class(SECRET), pool, deployment("web", {"replicas": 3})):
            self.world.apply(manifest)
        self.world.run(self.loop, timedelta(minutes=3))
        self.at_rest = captured(self.loop.state, self.world.clock.now())
        self.world.apply(_class("other"))
        self.world.run(self.loop, timedelta(seconds=5))
        self.edited = captured(self.loop.state, self.world.clock.now())

    @property
    def launching(self) -> Captured:
        return self.seen[0]

    def _decide(self, snapshot: Snapshot, memory: Memory) -> Plan:
        if not self.seen and any(_LAUNCH in one.metadata.annotations for one in snapshot.node_claims.values()):
            self.seen.append(captured(self.loop.state, snapshot.now))
        return decide(snapshot, memory)


@cache
def life() -> Life:
    return Life()


def _requests(found: Captured) -> list[FleetRequest]:
    texts = (claim.metadata.annotations[_LAUNCH] for claim in found.snapshot.node_claims.values())
    return [msgspec.json.decode(text, type=FleetRequest) for text in texts]


def test_user_data_of_a_launch_request_is_a_digest() -> None:
    found = list(lines(life().launching, b"key"))
    assert SECRET in str(_requests(life().launching))
    assert SECRET.encode() not in b"".join(found)
    requests = _requests(read(found))
    assert requests
    assert all(one.user_data.startswith("# digest:") for request in requests for one in request.templates)


def test_no_node_drifts_for_what_is_left_out() -> None:
    """The hashes cover user data and annotations, and so does the identity of a dry run."""
    found = life().at_rest.snapshot
    again = read(lines(life().at_rest, b"key")).snapshot
    assert found.node_claims
    assert not decide(found).actions
    assert not decide(again).actions
    assert again.node_classes["default"].spec.user_data != found.node_classes["default"].spec.user_data


def test_a_node_that_drifts_does_so_in_the_file_too() -> None:
    found = life().edited.snapshot
    again = read(lines(life().edited, b"key")).snapshot
    drifted = {name for name, one in found.node_claims.items() if one.is_true("Drifted")}
    assert len(drifted) == 1
    assert {name for name, one in again.node_claims.items() if one.is_true("Drifted")} == drifted
    assert [type(one) for one in decide(found).actions] == [type(one) for one in decide(again).actions]


@pytest.mark.parametrize("family", ["AL2", "AL2023", "Bottlerocket", "Windows2022", "Custom"])
@pytest.mark.parametrize("raid", [False, True])
def test_a_digest_is_valid_user_data(family: str, raid: bool) -> None:
    digest = Sanitizer(b"key", busy().snapshot).digest("secret")
    assert userdata.fault(family, digest, raid) is None


def test_digests_need_the_key() -> None:
    one, same, other = (Sanitizer(key, busy().snapshot) for key in (b"a", b"a", b"b"))
    assert one.digest("text") == same.digest("text") != other.digest("text")
    assert one.digest("text") != one.digest("another")
    assert one.digest(one.digest("text")) == one.digest("text")


# --- actions ----------------------------------------------------------------------------------------------------
def test_actions_have_digests_too() -> None:
    request, cleaner = _requests(life().launching)[0], Sanitizer(b"key", busy().snapshot)
    text = msgspec.json.encode(request).decode()
    assert SECRET in text
    why, ref = Reason("a"), kinds.Ref("NodeClaim", "", "a")
    notes = {labels.LAUNCH_REQUEST: text, labels.LAUNCH_MARK: SECRET, "example.com/token": SECRET, labels.COMMAND: None}
    patch = {"metadata": {"annotations": notes, "finalizers": ["a"]}}
    marked = MarkedLaunch("uid", request.group, text)
    found = [
        LaunchInstances(reason=why, request=request, claims=("a",)),
        ValidateClass(reason=why, class_name="default", request=request),
        PatchObject(reason=why, verb="Request", ref=ref, patch=patch, marks=marked),
    ]
    told = [actions.to_plain(one, cleaner) for one in found]
    assert SECRET not in str(told)
    assert told[2]["patch"]["metadata"]["annotations"].keys() == {labels.LAUNCH_REQUEST, labels.COMMAND}
    assert told[2]["patch"]["metadata"]["finalizers"] == ["a"]


# --- tags -------------------------------------------------------------------------------------------------------
def test_tags_of_instances_are_those_that_decisions_read() -> None:
    snapshot = busy().snapshot
    id_, one = next(iter(snapshot.instances.items()))
    tagged = replace(one, tags={**one.tags, "owner": SECRET})
    found = Sanitizer(b"key", snapshot).instance(tagged)
    assert (id_, found.tags) == (found.id, one.tags)


def test_annotations_that_decisions_read_stay() -> None:
    claim = next(iter(busy().snapshot.node_claims.values()))
    noted = with_annotations(claim, {labels.DO_NOT_DISRUPT: "true", labels.ENDS: "2026", "a/b": SECRET})
    kept = Sanitizer(b"key", busy().snapshot).object(kinds.NODE_CLAIM, noted).metadata.annotations
    assert (kept[labels.DO_NOT_DISRUPT], kept[labels.ENDS]) == ("true", "2026")
    assert "a/b" not in kept
