"""Kerf leaves NodePools, NodeClaims and Nodes of other controllers alone, whatever state they are in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from flask.testing import FlaskClient
from msgspec import to_builtins
from msgspec.structs import replace

from kerf.decide import decide
from kerf.model import kinds
from kerf.model.aws.interruptions import Interruption, InterruptionKind, Message
from kerf.model.cluster import Cluster
from kerf.model.kinds import Ref
from kerf.model.kubernetes.objects import Node
from kerf.model.plan import CreateNodeClaim, DeleteMessage, PatchObject
from kerf.model.settings import FeatureGates, Settings
from kerf.runtime.inbox import Changed, Listed, Removed
from kerf.runtime.state.notices import ObjectChanged
from kerf.runtime.state.state import State
from kerf.telemetry.series.fleet import Fleet
from kerf_api import labels, lint
from kerf_api.foreign import is_foreign, own_pool
from kerf_api.lint.differences.changes import Located, changes
from kerf_api.v1.meta import NodeClassRef, Taint, decode
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool
from kerf_webhook import create_app
from tests.unit.api.manifests import changed
from tests.unit.disruption import worlds as w
from tests.unit.webhook.reviews import review

OWN = NodeClassRef(group=labels.AWS_GROUP, kind="EC2NodeClass", name="default")
#: Wholly of another controller, of another group, and of another kind of our group. Each has the name of Kerf's class.
FOREIGN = [
    NodeClassRef(group="eks.amazonaws.com", kind="NodeClass", name="default"),
    NodeClassRef(group="karpenter.example.com", kind="EC2NodeClass", name="default"),
    NodeClassRef(group=labels.AWS_GROUP, kind="OutpostNodeClass", name="default"),
]
REFS = pytest.mark.parametrize("ref", FOREIGN, ids=str)


def pool_of(ref: NodeClassRef, name: str = "auto", **more: Any) -> NodePool:
    one = w.pool(name, **more)
    spec = replace(one.spec.template.spec, node_class_ref=ref)
    return replace(one, spec=replace(one.spec, template=replace(one.spec.template, spec=spec)))


def claim_of(ref: NodeClassRef, name: str, **more: Any) -> NodeClaim:
    one = w.claim(name, **{"pool_name": "auto", **more})
    return replace(one, spec=replace(one.spec, node_class_ref=ref))


def deleted(value: Any, finalizer: str = labels.TERMINATION_FINALIZER) -> Any:
    meta = replace(value.metadata, deletion_timestamp=w.NOW - w.HOUR, finalizers=(finalizer,))
    return replace(value, metadata=meta)


def node_of(claim: NodeClaim, ref: NodeClassRef, **more: Any) -> Node:
    one = w.node(claim, **more)
    own = {**one.metadata.labels, f"{ref.group}/{ref.kind.lower()}": ref.name}
    return replace(one, metadata=replace(one.metadata, labels=own))


def strangers(ref: NodeClassRef, pool_name: str = "auto") -> list[Any]:
    """NodeClaims and Nodes of another controller in every state in which Kerf would act on its own."""
    old = {"pool_name": pool_name, "since": w.NOW - 9000 * w.HOUR}
    command = {labels.COMMAND: "{}", labels.COMMAND_FAILED: "{}", labels.LAUNCH_GROUP: "g", labels.PLANNED_PODS: "m"}
    claims = [
        claim_of(ref, "old", **old, expireAfter="1h"),
        claim_of(ref, "drifted", pool_name=pool_name, drifted=w.NOW - w.HOUR),
        claim_of(ref, "commanded", pool_name=pool_name, annotations=command),
        *(deleted(claim_of(ref, f"gone-{number}", **old)) for number in range(9)),
        deleted(claim_of(ref, "kept", pool_name=pool_name), "example.com/other"),
    ]
    coming = claim_of(ref, "coming", **old)
    coming = replace(coming, status=replace(coming.status, provider_id="", node_name="", conditions=()))
    nodes = [node_of(claim, ref, ready=number % 2 == 0) for number, claim in enumerate(claims)]
    tainted = claim_of(ref, "tainted", pool_name=pool_name)
    taint = Taint(key="karpenter.sh/disrupted", effect="NoSchedule")
    disrupted = node_of(tainted, ref)
    disrupted = replace(disrupted, spec=replace(disrupted.spec, taints=(taint,)))
    leaving = deleted(node_of(claim_of(ref, "leaving", pool_name=pool_name), ref))
    return [*claims, coming, *nodes, tainted, disrupted, claim_of(ref, "leaving", pool_name=pool_name), leaving]


# --- the controller ---------------------------------------------------------------------------------------------
WAITS = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
INTERRUPTED = Interruption(InterruptionKind.SPOT_INTERRUPTED, ("i-old", "i-commanded"), Message("m", "r", ""))
#: What a plan may only have for objects of Kerf.
OBJECTS = ("NodePool", "NodeClaim", "Node")


@REFS
def test_no_plan_touches_what_another_controller_has(ref: NodeClassRef) -> None:
    pod = w.pod("waiting", phase="Pending", pod_conditions=WAITS)
    pools = [pool_of(ref), pool_of(ref, "static", replicas=3)]
    plan = decide(w.snapshot([*pools, *strangers(ref), pod], interruptions=(INTERRUPTED,)))
    assert {type(action) for action in plan.actions} <= {DeleteMessage, PatchObject}
    assert not [one for one in (*plan.actions, *plan.events) if hasattr(one, "ref") and one.ref.kind in OBJECTS]


@REFS
def test_a_pool_of_kerf_counts_none_of_them_though_they_have_its_name(ref: NodeClassRef) -> None:
    own = [w.pool("auto", replicas=2), *w.pairs("mine", pool_name="auto")]
    settings = Settings("test", gates=FeatureGates(static_capacity=True))
    alone, beside = (decide(w.snapshot(all_, settings=settings)) for all_ in (own, [*own, *strangers(ref)]))
    created = [sum(isinstance(action, CreateNodeClaim) for action in plan.actions) for plan in (alone, beside)]
    assert created == [1, 1]
    patches = [a.patch for a in beside.actions if isinstance(a, PatchObject) and a.ref.kind == "NodePool"]
    assert [patch["status"]["nodes"] for patch in patches if "status" in patch] == [1]
    assert {a.ref.name for a in beside.actions if isinstance(a, PatchObject)} <= {"auto", "mine", "node-mine"}


# --- a pool that moves ------------------------------------------------------------------------------------------
def version(pool: NodePool, number: int, ref: NodeClassRef) -> NodePool:
    moved = pool_of(ref, pool.name)
    return replace(moved, metadata=replace(moved.metadata, resource_version=str(number)))


@REFS
@pytest.mark.parametrize("listed", [False, True])
def test_a_pool_moves_from_another_controller_to_kerf_and_back(ref: NodeClassRef, listed: bool) -> None:
    beside = Cluster()  # as the process that looks for consolidation has it: from the changes alone
    known = State(Settings(cluster_name="c"), build=lambda *_: (), interpret=lambda _: None)
    for number, now in enumerate((ref, OWN, OWN, ref, ref, OWN, ref), start=1):
        value = version(w.pool("auto"), number, now)
        known.take(
            Listed(kinds.NODE_POOL, (value,), str(number), w.NOW) if listed else Changed(kinds.NODE_POOL, value), w.NOW
        )
        shown = now is OWN
        assert ("auto" in known.snapshot(w.NOW).node_pools) is shown
        assert known.cluster.count(kinds.NODE_POOL) == len(known.cluster.objects(kinds.NODE_POOL)) == shown
        if (found := known.changes.pop(Ref("NodePool", "", "auto"), None)) is not None:
            beside.apply(kinds.NODE_POOL, found)
        assert ("auto" in beside.objects(kinds.NODE_POOL)) is shown
    known.take(Changed(kinds.NODE_POOL, version(w.pool("auto"), 6, OWN)), w.NOW)  # late, and out of date
    assert "auto" not in known.snapshot(w.NOW).node_pools
    known.take(Removed(kinds.NODE_POOL, "", "auto", "pool-auto"), w.NOW)
    changes = [one for one in known.notices.drain() if isinstance(one, ObjectChanged)]
    seen = [(one.old is not None, one.new is not None) for one in changes]
    assert seen == [(False, True), (True, True), (True, False), (False, True), (True, False)]


@REFS
def test_a_node_is_kerfs_while_its_claim_is(ref: NodeClassRef) -> None:
    claim = claim_of(ref, "a")
    cluster = Cluster()
    cluster.apply(kinds.NODE, w.node(claim))
    for number, one in enumerate((claim, claim_of(OWN, "a"), claim), start=1):
        cluster.apply(kinds.NODE_CLAIM, replace(one, metadata=replace(one.metadata, resource_version=str(number))))
        seen = cluster.snapshot(now=w.NOW, settings=Settings("c"))
        assert set(seen.state_nodes) == {"a" if one.managed else "node/node-a"}
        assert bool(seen.claims_by_pool) is bool(seen.node_claims) is one.managed
        assert bool(seen.foreign_by_provider) is not one.managed


# --- metrics ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("own", "pool"),
    [
        ({}, ""),
        ({labels.NODEPOOL: "a"}, "a"),
        ({labels.NODEPOOL: "a", labels.NODECLASS: "default"}, "a"),
        ({labels.NODEPOOL: "a", "eks.amazonaws.com/nodeclass": "default"}, ""),
        ({labels.NODEPOOL: "a", "karpenter.azure.com/aksnodeclass": "default"}, ""),
        ({labels.NODEPOOL: "a", labels.NODECLASS: "b", "eks.amazonaws.com/nodeclass": "c"}, "a"),
        ({"eks.amazonaws.com/nodeclass": "default"}, ""),
    ],
)
def test_nodes_of_other_controllers_are_in_no_count_of_nodepools(own: Mapping[str, str], pool: str) -> None:
    assert own_pool(own) == pool
    fleet = Fleet()
    fleet.see(None, decode(Node, {"metadata": {"name": "n", "labels": dict(own)}}))
    (family,) = fleet.collect()
    assert [sample.labels["nodepool"] for sample in family.samples] == ([pool] if pool else [])


# --- the webhook ------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def client() -> FlaskClient:
    return create_app().test_client()


def manifest(kind: str, ref: Any, **spec: Any) -> dict[str, Any]:
    """A NodePool or NodeClaim that would be refused if it were Kerf's: unknown fields, bad values, no requirements."""
    inner = {"nodeClassRef": ref, "taints": [{"key": "!", "effect": "Never"}], "unknown": 1, **spec}
    whole = {"template": {"spec": inner}, "disruption": {"budgets": []}} if kind == "NodePool" else inner
    notes = {labels.COMMAND: "x"}
    meta = {"name": "auto", "annotations": notes}
    return {"apiVersion": "karpenter.sh/v1", "kind": kind, "metadata": meta, "spec": whole, "status": {"nodes": 40}}


def answer(client: FlaskClient, path: str, **request: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(client.post(path, json=review(**request)).data)["response"]
    return found


@REFS
@pytest.mark.parametrize("kind", ["NodePool", "NodeClaim"])
@pytest.mark.parametrize("path", ["/mutate", "/validate", "/annotations"])
def test_the_webhook_neither_refuses_nor_changes_them(
    client: FlaskClient, ref: NodeClassRef, kind: str, path: str
) -> None:
    theirs = manifest(kind, to_builtins(ref))
    for request in (
        {"new": theirs},
        {"new": theirs, "old": manifest(kind, to_builtins(ref), taints=[]), "operation": "UPDATE"},
        {"new": None, "old": theirs, "operation": "DELETE"},
    ):
        said = answer(client, path, kind=kind, **request)
        assert said["allowed"]
        assert "patch" not in said


@REFS
def test_a_change_from_or_to_a_class_of_kerf_is_judged(client: FlaskClient, ref: NodeClassRef) -> None:
    theirs, mine = manifest("NodePool", to_builtins(ref)), manifest("NodePool", to_builtins(OWN))
    for new, old in ((theirs, mine), (mine, theirs)):
        assert not answer(client, "/validate", new=new, old=old, operation="UPDATE")["allowed"]
    assert not answer(client, "/validate", new=None, old=mine, operation="DELETE")["allowed"]


@pytest.mark.parametrize(
    "ref",
    [
        None,
        "text",
        {},
        {"group": 1, "kind": []},
        {"group": "", "kind": ""},
        {"group": "karpenter.k8s.aws/v1"},
        {"name": "x"},
    ],
)
def test_a_reference_that_names_no_other_class_is_kerfs_business(ref: Any) -> None:
    assert not is_foreign(manifest("NodePool", ref))
    assert not is_foreign({**manifest("NodePool", {"group": "a.b", "kind": "C"}), "apiVersion": "example.com/v1"})


# --- files ------------------------------------------------------------------------------------------------------
AUTO = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "auto"},
    "spec": {
        "template": {
            "metadata": {"labels": {"example.com/team": "a"}},
            "spec": {
                "nodeClassRef": {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"},
                "taints": [{"key": "example.com/alone", "effect": "NoSchedule"}],
                "requirements": [
                    {"key": "eks.amazonaws.com/instance-category", "operator": "In", "values": ["c", "m"]},
                    {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m99.huge"]},
                ],
            },
        },
        "disruption": {"budgets": [{"nodes": "10%", "schedule": "0 0 31 2 *", "duration": "1h"}]},
    },
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "image": "i"}], "nodeSelector": {"example.com/team": "b"}},
}


def named(name: str, **spec: Any) -> dict[str, Any]:
    return {**AUTO, "metadata": {"name": name}, "spec": {**AUTO["spec"], **spec}}  # type: ignore[dict-item]


def test_files_have_no_problem_with_them() -> None:
    assert lint.validate(AUTO) == []
    assert lint.together([AUTO, named("second"), POD]) == [[], [], []]
    before, after = [Located("f", AUTO), Located("f", named("gone"))], [Located("f", named("auto", weight=9))]
    found = changes(before, after)
    assert (found.found, found.removed) == (((),), ((), ()))


@pytest.mark.parametrize(
    ("group", "kind", "warned"),
    [
        ("eks.amazonaws.com", "NodeClass", False),
        ("karpenter.azure.com", "AKSNodeClass", False),
        ("karpenter.k8s.aws", "NodeClass", True),
        ("karpenter.k8s.asw", "NodeClass", True),
        ("eks.amazonaws.com", "EC2NodeClass", True),
        ("example.com", "ec2nodeclass", True),
    ],
)
def test_a_class_that_may_be_misspelt_has_a_warning(client: FlaskClient, group: str, kind: str, warned: bool) -> None:
    one = json.loads(json.dumps(AUTO))
    one["spec"]["template"]["spec"]["nodeClassRef"] |= {"group": group, "kind": kind}
    assert {problem.rule for problem in lint.validate(one)} == ({"KERF-NP-207"} if warned else set())
    assert bool(answer(client, "/validate", new=one).get("warnings")) is warned


@pytest.mark.parametrize(
    ("group", "kind", "field", "hint"),
    [
        ("karpenter.k8s.io", "EC2Nodeclass", "group", "did you mean karpenter.k8s.aws EC2NodeClass?"),
        ("karpenter.k8s.aws", "Ec2NodeClass", "kind", "did you mean EC2NodeClass?"),
        ("eks.amazonaws.com", "EC2NodeClass", "group", "write karpenter.k8s.aws for Kerf; for EKS Auto Mode"),
        ("karpenter.k8s.aws", "NodeClass", "kind", "write EC2NodeClass for Kerf; for EKS Auto Mode"),
    ],
)
def test_a_misspelt_node_class_is_one_problem(group: str, kind: str, field: str, hint: str) -> None:
    reference = {"group": group, "kind": kind, "name": "default"}
    (problem,) = [p for p in lint.validate(changed("NodePool", "T.nodeClassRef", reference)) if p.rule == "KERF-NP-207"]
    assert problem.steps[-1] == field
    assert problem.hint.startswith(hint)


def test_the_node_class_of_auto_mode_is_left_alone() -> None:
    reference = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"}
    assert lint.validate(changed("NodePool", "T.nodeClassRef", reference)) == []
