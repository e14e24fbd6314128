"""What a NodePool and an EC2NodeClass say of themselves, and how a class ends."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.lifecycle.nodepool import node_pools
from kerf.model import kinds
from kerf.model.aws.cloud import ClassFacts
from kerf.model.plan import DeleteClassResources, EnsureInstanceProfile, PatchObject, Plan
from kerf_api import labels
from kerf_api.lint.rules import rules_nodepool
from kerf_api.v1 import hashes
from tests.unit.lifecycle.world import CLUSTER, FACTS, World, node_claim, node_class, node_pool, prepared, running


def pool_condition(world: World, type_: str) -> tuple[str, str]:
    found = next(c for c in world.get(kinds.NODE_POOL, "default").status.conditions if c.type == type_)
    return found.status, found.reason


def class_condition(world: World, type_: str) -> tuple[str, str]:
    found = next(c for c in world.get(kinds.NODE_CLASS, "default").status.conditions if c.type == type_)
    return found.status, found.reason


def with_annotations(world: World, kind: kinds.Kind, name: str, **notes: str) -> None:
    value = world.get(kind, name)
    world.put(replace(value, metadata=replace(value.metadata, annotations={**value.metadata.annotations, **notes})))


# --- pools ------------------------------------------------------------------------------------------------------
def test_a_good_pool_is_ready() -> None:
    world = prepared()
    assert pool_condition(world, "Ready") == ("True", "Ready")
    assert pool_condition(world, "ValidationSucceeded") == ("True", "ValidationSucceeded")
    assert pool_condition(world, "NodeClassReady") == ("True", "NodeClassReady")
    assert pool_condition(world, "NodeRegistrationHealthy") == ("Unknown", "AwaitingReconciliation")
    pool = world.get(kinds.NODE_POOL, "default")
    assert pool.metadata.annotations == {
        labels.NODEPOOL_HASH: hashes.nodepool_hash(pool),
        labels.NODEPOOL_HASH_VERSION: "v3",
    }
    assert pool.status.resources == {"cpu": "0", "memory": "0", "pods": "0", "ephemeral-storage": "0", "nodes": "0"}
    assert pool.status.node_class_observed_generation == 1


@pytest.mark.parametrize(
    "template",
    [
        {"requirements": [{"key": labels.NODEPOOL, "operator": "In", "values": ["x"]}]},
        {"requirements": [{"key": "not a key", "operator": "Exists"}]},
        {"requirements": [{"key": labels.CAPACITY_TYPE, "operator": "In", "values": ["free"]}]},
        {"taints": [{"key": "not a key", "effect": "NoSchedule"}]},
    ],
)
def test_a_pool_that_breaks_a_run_time_rule(template: dict[str, Any]) -> None:
    world = World(node_class(), node_pool(**template))
    world.settle()
    assert pool_condition(world, "ValidationSucceeded") == ("False", "NodePoolValidationFailed")
    assert pool_condition(world, "Ready") == ("False", "UnhealthyDependents")


def test_pools_that_differ_in_sound_requirements_are_checked_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be millions of values; no rule is left for sound ones."""
    checked = list[Any]()
    original = rules_nodepool.check

    def check(manifest: Any) -> Any:
        checked.append(manifest)
        return original(manifest)

    monkeypatch.setattr(rules_nodepool, "check", check)
    node_pools._verdict.cache_clear()
    for number in range(3):
        row = {"key": f"example.com/k{number}", "operator": "In", "values": [f"v{number}-{i}" for i in range(9)]}
        world = World(node_class(), node_pool(requirements=[row]))
        world.settle()
        assert pool_condition(world, "ValidationSucceeded") == ("True", "ValidationSucceeded")
    (manifest,) = checked
    assert "requirements" not in manifest["spec"]["template"]["spec"]


def test_a_budget_that_cannot_be_read_leaves_the_pool_ready() -> None:
    pool = node_pool()
    budget = replace(pool.spec.disruption.budgets[0], schedule="61 * * * *", duration="1h")
    world = World(
        node_class(),
        replace(pool, spec=replace(pool.spec, disruption=replace(pool.spec.disruption, budgets=(budget,)))),
    )
    world.settle()
    assert pool_condition(world, "Ready") == ("True", "Ready")


def test_a_repaired_pool_is_looked_at_again() -> None:
    world = World(node_class(), node_pool(requirements=[{"key": "not a key", "operator": "Exists"}]))
    world.settle()
    broken = world.get(kinds.NODE_POOL, "default")
    world.put(replace(broken, spec=node_pool().spec, metadata=replace(broken.metadata, generation=2)))
    world.settle()
    assert pool_condition(world, "Ready") == ("True", "Ready")


@pytest.mark.parametrize(("key", "planted", "found"), [(labels.ARCH, "False", "True"), ("not a key", "True", "False")])
def test_a_verdict_that_others_wrote_is_replaced(key: str, planted: str, found: str) -> None:
    """A valid NodePool stays valid, and an invalid one invalid, whatever its status claims."""
    world = World(node_class(), node_pool(requirements=[{"key": key, "operator": "Exists"}]))
    world.settle()
    pool = world.get(kinds.NODE_POOL, "default")
    rows = tuple(
        replace(row, status=planted, reason="Theirs", observed_generation=pool.metadata.generation)
        for row in pool.status.conditions
    )
    world.put(replace(pool, status=replace(pool.status, conditions=rows)))
    world.settle()
    assert pool_condition(world, "ValidationSucceeded")[0] == found
    assert pool_condition(world, "Ready")[0] == found


def test_a_pool_of_another_provider_is_left_alone() -> None:
    world = World(node_pool(nodeClassRef={"group": "example.com", "kind": "Other", "name": "x"}))
    assert world.decide() == Plan()


# --- the version of a hash --------------------------------------------------------------------------------------
HASHES = [
    (kinds.NODE_POOL, labels.NODEPOOL_HASH, labels.NODEPOOL_HASH_VERSION, "v2"),
    (kinds.NODE_CLASS, labels.NODECLASS_HASH, labels.NODECLASS_HASH_VERSION, "v5"),
]


@pytest.mark.parametrize(("kind", "hash_key", "version_key", "old"), HASHES)
def test_a_claim_whose_new_hash_was_not_written_gets_it_before_its_pool_or_class(
    kind: kinds.Kind, hash_key: str, version_key: str, old: str
) -> None:
    world = running(node_claim("a"), node_claim("b"))
    current = world.get(kind, "default").metadata.annotations[hash_key]
    for of, name in ((kind, "default"), (kinds.NODE_CLAIM, "a"), (kinds.NODE_CLAIM, "b")):
        with_annotations(world, of, name, **{hash_key: "1", version_key: old})
    for _ in range(3):
        plan = world.decide()
        world.obey(changed(plan, actions=tuple(a for a in plan.actions if a.lane != "nodeclaim/a")))
        assert world.get(kind, "default").metadata.annotations[version_key] == old
    world.settle()
    assert [world.claim(name).metadata.annotations[hash_key] for name in "ab"] == [current, current]
    assert world.get(kind, "default").metadata.annotations[hash_key] == current


def test_a_claim_that_was_rehashed_before_it_got_its_instance_stays_so() -> None:
    """The class follows in the very look that deals out the instance: what the claim has then is never made anew."""
    world = prepared(node_claim("a"))
    with_annotations(world, kinds.NODE_CLASS, "default", **{labels.NODECLASS_HASH_VERSION: "v5"})
    while not world.instances:
        plan = world.decide()
        world.obey(changed(plan, actions=tuple(a for a in plan.actions if a.lane != "ec2nodeclass/default")))
    assert world.claim().metadata.annotations[labels.NODECLASS_HASH_VERSION] == hashes.NODECLASS_HASH_VERSION
    world.settle()
    assert world.claim().metadata.annotations[labels.NODECLASS_HASH_VERSION] == hashes.NODECLASS_HASH_VERSION


@pytest.mark.parametrize(("kind", "hash_key", "version_key", "old"), HASHES)
def test_a_claim_that_cannot_be_read_holds_up_no_new_version(
    kind: kinds.Kind, hash_key: str, version_key: str, old: str
) -> None:
    world = running(node_claim("a"))
    current = world.get(kind, "default").metadata.annotations[hash_key]
    for of, name in ((kind, "default"), (kinds.NODE_CLAIM, "a")):
        with_annotations(world, of, name, **{hash_key: "1", version_key: old})
    claim = world.claim()
    world.put(replace(claim, metadata=replace(claim.metadata, unreadable="Expected `str`, got `int`")))
    world.settle()
    assert world.claim().metadata.annotations[version_key] == old
    assert world.get(kind, "default").metadata.annotations[hash_key] == current


@pytest.mark.parametrize(("kind", "hash_key", "version_key", "old"), HASHES)
def test_with_the_same_version_claims_keep_their_hash(
    kind: kinds.Kind, hash_key: str, version_key: str, old: str
) -> None:
    world = running(node_claim("a"))
    version = hashes.NODEPOOL_HASH_VERSION if kind is kinds.NODE_POOL else hashes.NODECLASS_HASH_VERSION
    with_annotations(world, kinds.NODE_CLAIM, "a", **{hash_key: "1", version_key: version})
    with_annotations(world, kind, "default", **{hash_key: old})
    world.settle()
    assert world.claim().metadata.annotations[hash_key] == "1"


# --- classes ----------------------------------------------------------------------------------------------------
def test_a_good_class_is_ready() -> None:
    world = prepared()
    found = world.get(kinds.NODE_CLASS, "default")
    assert class_condition(world, "Ready") == ("True", "Ready")
    assert found.metadata.finalizers == (labels.NODECLASS_FINALIZER,)
    assert found.metadata.annotations[labels.NODECLASS_HASH] == hashes.nodeclass_hash(found, CLUSTER.ca_bundle)
    assert [subnet.id for subnet in found.status.subnets] == ["subnet-a"]
    assert found.status.instance_profile == "demo_1"


def test_a_role_without_a_profile_gets_one() -> None:
    world = World(node_class(), node_pool())
    world.class_facts["default"] = changed(FACTS, instance_profile="")
    for _ in range(4):
        world.obey(world.decide())
    made = world.done(EnsureInstanceProfile)[0]
    assert (made.class_name, made.role) == ("default", "node-role")
    assert made.path == "/karpenter/us-west-2/demo/uid-default/"
    assert class_condition(world, "Ready") == ("Unknown", "ReconcilingDependents")
    world.class_facts["default"] = FACTS
    world.settle()
    assert class_condition(world, "Ready") == ("True", "Ready")


@pytest.mark.parametrize(
    "facts",
    [
        FACTS,
        changed(FACTS, generation=0, instance_profile=""),
        changed(FACTS, instance_profile="", problems={"InstanceProfileReady": ("Throttled", "later")}),
    ],
)
def test_no_profile_is_made_without_need(facts: ClassFacts) -> None:
    world = World(node_class(), node_pool())
    world.class_facts["default"] = facts
    world.settle()
    assert not world.done(EnsureInstanceProfile)


def test_a_given_profile_is_not_made() -> None:
    world = World(node_class(role=None, instanceProfile="mine"))
    world.class_facts["default"] = changed(FACTS, instance_profile="")
    world.settle()
    assert not world.done(EnsureInstanceProfile)


def test_a_class_waits_for_its_claims() -> None:
    world = running(*(node_claim(f"c{number}") for number in range(7)))
    world.delete(kinds.ref(world.get(kinds.NODE_CLASS, "default")))
    events = [e for e in world.decide().events if e.reason == "WaitingOnNodeClaimTermination"]
    assert [e.message for e in events] == ["waiting for 7 node claims: c0, c1, c2, c3, c4, …"]
    world.settle()
    assert world.get(kinds.NODE_CLASS, "default") is not None
    assert not world.done(DeleteClassResources)


@pytest.mark.parametrize(
    ("spec", "isolated", "path"),
    [
        ({}, False, "/karpenter/us-west-2/demo/uid-default/"),
        ({}, True, ""),
        ({"role": None, "instanceProfile": "mine"}, False, ""),
    ],
)
def test_a_class_without_claims_goes_after_its_resources(spec: dict[str, Any], isolated: bool, path: str) -> None:
    world = World(node_class(**spec))
    world.settings = changed(world.settings, isolated_vpc=isolated)
    world.settle()
    world.delete(kinds.ref(world.get(kinds.NODE_CLASS, "default")))
    first, second = world.decide().actions
    assert isinstance(first, DeleteClassResources)
    assert isinstance(second, PatchObject)
    assert first.lane == second.lane
    assert first.profile_path == path
    world.settle()
    assert world.get(kinds.NODE_CLASS, "default") is None


def test_a_pool_reports_the_words_of_its_class() -> None:
    """False or Unknown: the first condition of the class that is not True, with its message."""
    world = prepared()
    known = world.get(kinds.NODE_CLASS, "default")
    for status, ready, head in (
        ("False", "False", "InstanceProfileReady=False: "),  # not once more: InstanceProfileReady is False
        ("Unknown", "Unknown", "the node class is not ready yet: InstanceProfileReady is Unknown: "),
    ):
        conditions = tuple(
            replace(c, status=ready, message="InstanceProfileReady=False" if ready == "False" else "")
            if c.type == "Ready"
            else replace(c, status=status, reason="RoleNotFound", message="iam:GetRole: NoSuchEntity")
            if c.type == "InstanceProfileReady"
            else c
            for c in known.status.conditions
        )
        broken = replace(known, status=replace(known.status, conditions=conditions))
        told = node_pools._class_readiness(broken)
        assert told[0] == "False"
        assert told[2] == f"{head}RoleNotFound: iam:GetRole: NoSuchEntity"
