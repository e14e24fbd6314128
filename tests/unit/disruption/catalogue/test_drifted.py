"""Whether a claim has drifted, and why (116 to 123 of the disruption catalogue)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.disruption.drift.conditions import conditions
from kerf.disruption.view import view
from kerf.model import kinds
from kerf.model.aws.instance_type import InstanceType, Offering
from kerf.model.plan import PatchObject
from kerf_api import labels
from kerf_api.requirements import IN, Requirements, requirement
from kerf_api.v1.conditions import put
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.hashes import NODECLASS_HASH_VERSION, NODEPOOL_HASH_VERSION, nodepool_hash
from kerf_api.v1.meta import ObjectMeta, decode, encode
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool
from tests.merge_patch import merged
from tests.unit.disruption import worlds as w
from tests.unit.lifecycle import world as life

TEAM = {"key": "team", "operator": "Exists"}
#: Annotations of the hash of a NodePool and of a node class, with their versions.
HASH_OF = {kinds.NODE_POOL: labels.NODEPOOL_HASH, kinds.NODE_CLASS: labels.NODECLASS_HASH}
VERSION_OF = {kinds.NODE_POOL: labels.NODEPOOL_HASH_VERSION, kinds.NODE_CLASS: labels.NODECLASS_HASH_VERSION}
CURRENT = {kinds.NODE_POOL: NODEPOOL_HASH_VERSION, kinds.NODE_CLASS: NODECLASS_HASH_VERSION}


def drifted(*objects: Any, **facts: Any) -> dict[str, str]:
    """Why the claims end up drifted, by name, of those that do."""
    snapshot = w.snapshot(objects, **facts)
    found = {
        name: said.reason for name, c in snapshot.node_claims.items() if (said := c.condition("Drifted")) is not None
    }
    for action in conditions(view(snapshot)).actions:
        assert isinstance(action, PatchObject)
        found.pop(action.ref.name, None)
        for row in action.patch["status"]["conditions"]:
            if row["type"] == "Drifted":
                found[action.ref.name] = row["reason"]
    return found


def reason(one: NodeClaim, *objects: Any, **facts: Any) -> str | None:
    return drifted(one, w.node(one), *objects, **facts).get(one.name)


def hashes(value: str, version: str = "v3") -> dict[str, str]:
    return {labels.NODEPOOL_HASH: value, labels.NODEPOOL_HASH_VERSION: version}


def class_hashes(value: str) -> dict[str, str]:
    """Of a version that nobody can check against a spec."""
    return {labels.NODECLASS_HASH: value, labels.NODECLASS_HASH_VERSION: "v5"}


def node_class(value: str) -> EC2NodeClass:
    return EC2NodeClass(metadata=ObjectMeta(name="default", annotations=class_hashes(value)))


def said(one: NodeClaim, type_: str, status: str) -> NodeClaim:
    rows = tuple(replace(c, status=status) if c.type == type_ else c for c in one.status.conditions)
    return replace(one, status=replace(one.status, conditions=rows))


def test_116_the_hash_comes_before_requirements_and_these_before_the_class() -> None:
    one = w.claim("a", annotations={**hashes("1"), **class_hashes("1")})
    changed = node_class("2")
    assert reason(one, w.pool(annotations=hashes("2"), requirements=[TEAM]), changed) == "NodePoolDrifted"
    assert reason(one, w.pool(annotations=hashes("1"), requirements=[TEAM]), changed) == "RequirementsDrifted"
    assert reason(one, w.pool(annotations=hashes("1")), changed) == "NodeClassDrift"
    assert reason(one, w.pool(annotations=hashes("1")), node_class("1")) is None


@pytest.mark.parametrize("status", ["Unknown", "False"])
def test_117_what_is_not_launched_has_not_drifted(status: str) -> None:
    """Nor has what is as it should be again; without its NodePool nobody can tell."""
    one, changed = w.claim("a", drifted=w.NOW - w.HOUR), w.pool(annotations=hashes("new"))
    assert reason(one, changed) == "NodePoolDrifted"
    assert reason(said(one, "Launched", status), changed) is None
    assert reason(one, w.pool(annotations=hashes("old")), node_class("1")) == "NodePoolDrifted", "EC2 does not say yet"
    assert reason(one, w.pool(annotations=hashes("old"))) is None
    assert reason(one) == "NodePoolDrifted"


def made(**changes: Any) -> NodePool:
    """A pool with its own hash; `changes` are merged into what it is made of."""
    spec = {
        "template": {
            "metadata": {"labels": {"team": "red"}, "annotations": {"note": "1"}},
            "spec": {
                "nodeClassRef": {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "default"},
                "requirements": [],
                "taints": [{"key": "a", "effect": "NoSchedule"}],
                "startupTaints": [{"key": "b", "effect": "NoSchedule"}],
                "expireAfter": "720h",
                "terminationGracePeriod": "1h",
            },
        },
        "disruption": {"budgets": [{"nodes": "10%"}]},
    }
    found = decode(NodePool, {"metadata": {"name": "default", "uid": "p"}, "spec": merged(spec, changes)})
    return replace(found, metadata=replace(found.metadata, annotations=hashes(nodepool_hash(found))))


def template(**spec: Any) -> dict[str, Any]:
    return {"template": {"spec": spec}}


REF = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass"}


@pytest.mark.parametrize(
    "change",
    [
        {"template": {"metadata": {"annotations": {"note": "2"}}}},
        {"template": {"metadata": {"labels": {"size": "x"}}}},
        template(taints=[{"key": "a", "effect": "NoExecute"}]),
        template(startupTaints=[]),
        template(nodeClassRef={**REF, "name": "other"}),
        template(expireAfter="Never"),
        template(terminationGracePeriod="2h"),
        template(terminationGracePeriod=None),
    ],
)
def test_118_a_change_of_the_template_is_drift(change: dict[str, Any]) -> None:
    one = w.claim("a", annotations=dict(made().metadata.annotations))
    assert reason(one, made()) is None
    assert reason(one, made(**change)) == "NodePoolDrifted"


@pytest.mark.parametrize(
    "change",
    [
        {"weight": 50},
        {"limits": {"cpu": "10"}},
        {"replicas": 3},
        {"disruption": {"budgets": [{"nodes": "5"}], "consolidateAfter": "9m", "consolidationPolicy": "WhenEmpty"}},
        template(requirements=[{"key": labels.ARCH, "operator": "In", "values": ["amd64"]}]),
    ],
)
def test_118_no_other_change_of_a_pool_is(change: dict[str, Any]) -> None:
    assert encode(made(**change).spec) != encode(made().spec)
    assert nodepool_hash(made(**change)) == nodepool_hash(made())


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ({}, hashes("2")),
        (hashes("1"), {}),
        ({labels.NODEPOOL_HASH: "1"}, hashes("2")),
        (hashes("1"), {labels.NODEPOOL_HASH: "2"}),
        ({labels.NODEPOOL_HASH_VERSION: "v3"}, hashes("2")),
        (hashes("1"), {labels.NODEPOOL_HASH_VERSION: "v3"}),
        ({labels.NODEPOOL_HASH: "1"}, {labels.NODEPOOL_HASH: "2"}),
        (hashes("1", "v2"), hashes("2")),
        (hashes("1"), hashes("2", "v4")),
    ],
)
def test_119_hashes_are_compared_when_all_is_there_and_versions_agree(mine: dict[str, str], theirs: Any) -> None:
    assert reason(w.claim("a", annotations=mine), w.pool(annotations=theirs)) is None
    assert reason(w.claim("a", annotations=hashes("1")), w.pool(annotations=hashes("2"))) == "NodePoolDrifted"


@pytest.mark.parametrize("kind", [kinds.NODE_POOL, kinds.NODE_CLASS])
def test_120_a_new_version_of_the_hash_drifts_no_node(kind: kinds.Kind) -> None:
    """Who has drifted keeps the hash by which it did, and gets the version only."""
    world = life.running(life.node_claim("a"), life.node_claim("b"))
    current = world.get(kind, "default").metadata.annotations[HASH_OF[kind]]
    old = world.claim("b")
    told = put(old.status.conditions, "Drifted", "True", "NodePoolDrifted", generation=1, now=life.NOW)
    world.put(replace(old, status=replace(old.status, conditions=told)))
    for of, name in ((kind, "default"), (kinds.NODE_CLAIM, "a"), (kinds.NODE_CLAIM, "b")):
        value = world.get(of, name)
        notes = {**value.metadata.annotations, HASH_OF[kind]: "1", VERSION_OF[kind]: "v1"}
        world.put(replace(value, metadata=replace(value.metadata, annotations=notes)))
    world.settle()
    found = {name: world.claim(name).metadata.annotations for name in "ab"}
    assert (found["a"][HASH_OF[kind]], found["a"][VERSION_OF[kind]]) == (current, CURRENT[kind])
    assert (found["b"][HASH_OF[kind]], found["b"][VERSION_OF[kind]]) == ("1", CURRENT[kind])
    notes = world.get(kind, "default").metadata.annotations
    assert (notes[HASH_OF[kind]], notes[VERSION_OF[kind]]) == (current, CURRENT[kind])


@pytest.mark.parametrize(
    ("of_claim", "expected"),
    [
        ({"instance_type": "m9.huge"}, "InstanceTypeNotFound"),
        ({"instance_type": ""}, "InstanceTypeNotFound"),
        ({"instance_type": "bare.large"}, "InstanceTypeNotFound"),
        ({"instance_type": "far.large"}, "InstanceTypeNotFound"),
        ({"capacity_type": "spot", "instance_type": "dear.large"}, "InstanceTypeNotFound"),
        ({}, None),
    ],
    ids=["unknown", "no label", "no offering", "another zone", "another capacity type", "offered"],
)
def test_121_a_type_that_is_no_longer_offered_is_drift_after_an_hour(of_claim: Any, expected: str | None) -> None:
    types = (*w.CATALOGUE, offered("bare"), offered("far", "us-west-2b"), offered("dear", w.ZONE))
    facts = {"catalogues": {"default": types}}
    old, young = (w.claim("a", since=w.NOW - age, **of_claim) for age in (w.HOUR, w.HOUR - timedelta(seconds=1)))
    assert reason(old, w.pool(), **facts) == expected
    assert reason(young, w.pool(), **facts) is None


def offered(family: str, *zones: str, capacity_type: str = "on-demand") -> InstanceType:
    name, known = f"{family}.large", w.CATALOGUE[0]
    rows = Requirements([requirement(labels.INSTANCE_TYPE, IN, (name,))])
    offerings = tuple(Offering(name, zone, capacity_type, 96_000) for zone in zones)
    return InstanceType(name, rows, known.capacity, known.allocatable, offerings)


@pytest.mark.parametrize(
    ("sold_as", "expected"),
    [("reserved", None), ("on-demand", None), ("spot", "InstanceTypeNotFound"), ("", "InstanceTypeNotFound")],
)
def test_122_what_is_reserved_may_become_on_demand_and_never_spot(sold_as: str, expected: str | None) -> None:
    known = offered("r", *([w.ZONE] if sold_as else []), capacity_type=sold_as)
    one = w.claim("a", since=w.NOW - 2 * w.HOUR, instance_type="r.large", capacity_type="reserved")
    assert reason(one, w.pool(), catalogues={"default": (known,)}) == expected


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"key": "size", "operator": "In", "values": ["s"]}, ["large", "none"]),
        ({"key": "size", "operator": "In", "values": ["s", "l"]}, ["none"]),
        ({"key": "size", "operator": "NotIn", "values": ["s"]}, ["small"]),
        ({"key": "size", "operator": "Exists"}, ["none"]),
        ({"key": "size", "operator": "DoesNotExist"}, ["large", "small"]),
    ],
)
def test_123_only_those_that_a_changed_pool_excludes_drift(entry: dict[str, Any], expected: list[str]) -> None:
    claims = [labelled("small", size="s"), labelled("large", size="l"), labelled("none")]
    found = drifted(w.pool(requirements=[entry]), *claims)
    assert found == dict.fromkeys(expected, "RequirementsDrifted")


def labelled(name: str, **own: str) -> NodeClaim:
    one = w.claim(name)
    return replace(one, metadata=replace(one.metadata, labels={**one.metadata.labels, **own}))
