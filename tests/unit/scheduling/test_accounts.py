"""The account of a refusal, rule by rule: what was left, what came nearest, and which edit helps."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kerf.model import kinds
from kerf.model.kubernetes.storage import CSINode
from kerf.scheduling.answers import explanation as words
from kerf.scheduling.refusals.explain import MOST_ACCOUNTS, MOST_CLASSES
from kerf.scheduling.solve import SolveOptions, context_of, solve
from kerf_api import labels
from kerf_api.v1.meta import decode
from tests.unit.scheduling import worlds as w
from tests.unit.scheduling.accounts import account, explained, fixes, only_pool, refusal
from tests.unit.scheduling.test_catalogue_volumes import claim, using, waiting

EBS = "ebs.csi.aws.com"
DEDICATED = [{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}]
HARD = [{"key": "hard", "effect": "NoExecute"}]


def zones(*names: str, **spec: Any) -> Any:
    return w.pool(requirements=[{"key": labels.ZONE, "operator": "In", "values": list(names)}], **spec)


# --- rule by rule -----------------------------------------------------------------------------------------------
def test_a_taint() -> None:
    world = w.pool(taints=DEDICATED), w.pod("p")
    pool = only_pool(*world)
    assert (pool.rule, pool.verdict) == ("taints", "did not tolerate taint dedicated=ml:NoSchedule")
    assert (pool.types, pool.offerings) == (6, 30)
    assert [(s.types, s.lost_types, s.lost_offerings) for s in pool.steps] == [(0, 6, 30)]
    assert fixes(*world) == [
        "tolerate the taint dedicated=ml:NoSchedule",
        "NodePool default: remove the taint dedicated=ml:NoSchedule",
    ]


def test_two_taints_are_no_single_edit() -> None:
    world = w.pool(taints=[*DEDICATED, *HARD]), w.pod("p")
    assert only_pool(*world).nearest == "it would have to tolerate dedicated=ml:NoSchedule and hard:NoExecute"
    found = account(*world)
    assert (found.fixes, found.tried) == ((), 4)


def test_a_label_that_the_pool_does_not_know() -> None:
    world = w.pool(), w.pod("p", nodeSelector={"team": "red"})
    pool = only_pool(*world)
    assert pool.verdict == 'incompatible requirements, label "team" does not have known values'
    assert pool.nearest == "without team, 6 instance types would do"
    assert fixes(*world) == [
        "remove team from its nodeSelector",
        "NodePool default: give its nodes the label team=red",
    ]


def test_a_label_of_which_the_pool_allows_other_values() -> None:
    affinity = w.node_affinity([(labels.ZONE, "In", ["z3"])])
    world = zones("z1", "z2"), w.pod("p", affinity=affinity)
    assert only_pool(*world).verdict.startswith(f"incompatible requirements, key {labels.ZONE}: ")
    assert fixes(*world) == [
        f"remove {labels.ZONE} from its required node affinity",
        f"NodePool default: allow z3 in the requirement {labels.ZONE}",
    ]


def test_a_value_that_the_pool_excludes() -> None:
    rows = [{"key": labels.ZONE, "operator": "NotIn", "values": ["z3"]}]
    world = w.pool(requirements=rows), w.pod("p", nodeSelector={labels.ZONE: "z3"})
    assert fixes(*world)[1] == f"NodePool default: allow z3 in the requirement {labels.ZONE}"


def test_labels_go_one_after_the_other() -> None:
    """Of six types one is arm, and none of that is sold in z9; what each label leaves is told."""
    world = w.pool(), w.pod("p", nodeSelector={labels.ARCH: "arm64", labels.ZONE: "z9"})
    pool = only_pool(*world)
    assert [(s.rule, s.about, s.types) for s in pool.steps] == [
        ("requirements", labels.ARCH, 1),
        ("requirements", labels.ZONE, 0),
    ]
    assert pool.nearest == f"without {labels.ZONE}, 1 instance type would do; its nodes have z1, z2, z3"
    assert fixes(*world) == [f"remove {labels.ZONE} from its nodeSelector"]


def test_the_labels_of_a_pod_contradict_each_other() -> None:
    affinity = w.node_affinity([(labels.ARCH, "In", ["arm64"])])
    world = w.pool(), w.pod("p", nodeSelector={labels.ARCH: "amd64"}, affinity=affinity)
    assert refusal(*world).code == "InvalidPod"
    assert fixes(*world) == [f"remove {labels.ARCH} from its nodeSelector"]


def test_what_is_out_of_stock() -> None:
    """Only z3 is wanted, and there only on-demand is sold, of which nothing is left."""
    gone = {(t.name, "z3", "on-demand"): w.NOW + timedelta(minutes=3) for t in w.CATALOGUE}
    world = w.pool(), w.pod("p", nodeSelector={labels.ZONE: "z3"})
    pool = only_pool(*world, out_of_stock=gone)
    assert (pool.rule, pool.verdict) == ("offerings", "no instance type has the required offering")
    assert pool.nearest == "6 offerings out of stock for now, such as arm on-demand in z3"
    assert [(s.rule, s.types, s.offerings) for s in pool.steps] == [("requirements", 6, 6), ("offerings", 0, 0)]
    assert account(*world, out_of_stock=gone).fixes[0].key == labels.ZONE  # type: ignore[union-attr]


def test_types_with_the_resources_are_out_of_stock() -> None:
    """The one type with so much CPU is sold out: what is short is capacity of EC2, and no request."""
    gone = {("arm", *market): w.NOW + timedelta(minutes=3) for market in w.MARKETS}
    pool = only_pool(w.pool(), w.pod("p", "5"), out_of_stock=gone)
    assert pool.rule == "resources"
    assert pool.nearest == "5 offerings out of stock for now, such as arm on-demand in z1; default lacks 1.1 of cpu"


def test_a_resource_of_which_no_type_has_enough() -> None:
    world = w.pool(), w.pod("p", "1", "200Gi")
    pool = only_pool(*world)
    assert pool.verdict.startswith("no instance type has enough resources for cpu 1, memory 200Gi, pods 1")
    assert pool.nearest == "arm lacks 72.1Gi of memory"
    assert fixes(*world) == ["lower its request for memory from 200Gi to 127Gi"]


def test_daemon_sets_take_their_share() -> None:
    world = w.pool(), w.daemon_set("agent", "1", "10Mi"), w.pod("p", "15")
    assert only_pool(*world).nearest == "arm lacks 100m of cpu"
    assert fixes(*world) == ["lower its request for cpu from 15 to 14900m"]


def test_two_resources_that_no_type_has_together() -> None:
    """Much CPU is on one type, the GPU on another: either request may be given up."""
    world = w.pool(), w.pod("p", "8", requests={"example.com/gpu-a": "1"})
    assert only_pool(*world).nearest == "gpu-a lacks 4.1 of cpu"
    assert fixes(*world) == ["lower its request for cpu from 8 to 3900m"]


def test_a_resource_that_nothing_has() -> None:
    world = w.pool(), w.pod("p", requests={w.GPU: "2"})
    assert only_pool(*world).verdict == f"no instance type has {w.GPU}"
    assert fixes(*world) == [f"remove its request for {w.GPU} (2)"]


def test_a_pool_that_leaves_out_what_is_large_enough() -> None:
    rows = [{"key": labels.ARCH, "operator": "In", "values": ["amd64"]}]
    assert fixes(w.pool(requirements=rows), w.pod("p", "10")) == [
        f"NodePool default: allow arm64 in the requirement {labels.ARCH}",
        "lower its request for cpu from 10 to 3900m",
    ]


def test_a_limit_for_the_pods_that_are_left() -> None:
    world = w.pool(limits={"cpu": "8", "memory": "1Ti"}), w.replicas(4, "p", "3500m")
    pool = only_pool(*world, name="p-2")
    assert pool.verdict == "all available instance types exceed limits for nodepool"
    assert pool.nearest == "default would need limits.cpu 12, now 8 with 8 in use or planned"
    assert fixes(*world, name="p-2") == ["NodePool default: raise limits.cpu from 8 to 16"]
    assert account(*world, name="p-2").pods == 2


def test_a_limit_of_nodes() -> None:
    world = w.pool(limits={"nodes": "1"}), w.replicas(2, "p", "3500m", nodeSelector={labels.ARCH: "amd64"})
    found = account(*world, name="p-1")
    assert found.pools[0].verdict == "node limits have been exhausted for nodepool"
    assert [str(fix) for fix in found.fixes] == ["NodePool default: raise limits.nodes from 1 to 2"]


def test_a_limit_under_which_a_smaller_pod_would_fit() -> None:
    world = w.pool(limits={"cpu": "2"}), w.pod("p", "3")
    assert fixes(*world) == [
        "lower its request for cpu from 3 to 1900m",
        "NodePool default: raise limits.cpu from 2 to 4",
    ]


def test_a_host_port_that_daemon_sets_hold() -> None:
    world = w.pool(), w.daemon_set("agent", ports=[{"hostPort": 80}]), w.pod("p", ports=[{"hostPort": 80}])
    pool = only_pool(*world)
    assert (pool.rule, pool.nearest) == ("host ports", "host port 80/TCP")
    assert fixes(*world) == ["remove its host port 80/TCP"]


def test_min_values() -> None:
    rows = [{"key": labels.INSTANCE_TYPE, "operator": "Exists", "minValues": 3}]
    world = w.pool(requirements=rows), w.pod("p", requests={"example.com/gpu-a": "1"})
    pool = only_pool(*world)
    assert pool.rule == "minValues"
    assert pool.verdict == f"minValues requirement is not met for label(s) (label(s)=[{labels.INSTANCE_TYPE}])"
    assert pool.nearest == f"{labels.INSTANCE_TYPE} has 1 of 3"
    found = fixes(*world)
    assert f"NodePool default: remove minValues in the requirement {labels.INSTANCE_TYPE}" in found


@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        ({"nodeAffinityPolicy": "Ignore"}, "(counts = z1: 1, z2: 1, minimum = z4: 0)"),
        ({"minDomains": 5}, "(counts = z1: 1, z2: 1, minDomains = 5, domains = 2)"),
    ],
)
def test_a_spread_names_what_holds_its_minimum_down(more: dict[str, Any], verdict: str) -> None:
    """The pods cannot run on the node in z4."""
    there = w.node("a", "z4", cpu="10m")
    spec = {"labels": {"app": "web"}, "nodeSelector": {labels.NODEPOOL: "default"}}
    pods = w.replicas(3, "p", **spec, topologySpreadConstraints=[w.spread(**more)])
    assert only_pool(zones("z1", "z2"), there, pods, name="p-2").verdict.endswith(verdict)


def test_a_spread_into_a_zone_that_the_pool_does_not_have() -> None:
    there = w.node("a", "z3", cpu="10m")
    pods = w.replicas(3, "p", labels={"app": "web"}, topologySpreadConstraints=[w.spread()])
    world = zones("z1", "z2"), there, pods
    pool = only_pool(*world, name="p-2")
    assert pool.verdict.startswith(f"unsatisfiable topology constraint for topology spread, key={labels.ZONE}")
    assert pool.nearest == "it may run in z3, where the nodepool makes no nodes"
    assert fixes(*world, name="p-2") == [
        f"remove its topology spread constraint over {labels.ZONE}",
        f"NodePool default: allow z3 in the requirement {labels.ZONE}",
    ]


@pytest.mark.parametrize(("kind", "words_"), [("podAffinity", "affinity"), ("podAntiAffinity", "anti-affinity")])
def test_other_pods(kind: str, words_: str) -> None:
    """Affinity to nobody that is there; anti-affinity to who is in every zone."""
    there = [w.node(f"n{z}", z, cpu="100m", pods=1) for z in w.ZONES]
    bound = [w.pod(f"b{z}", "10m", node=f"n{z}", labels={"app": "web"}) for z in w.ZONES]
    pod = w.pod("p", affinity=w.between(kind, labels.ZONE, "web" if kind == "podAntiAffinity" else "db"))
    found = account(w.pool(), there, bound, pod)
    assert found.pools[0].rule == "topology"
    assert [str(fix) for fix in found.fixes] == [f"remove its required pod {words_} over {labels.ZONE}"]


def test_a_node_that_is_full_of_volumes_is_told_of() -> None:
    disks = [claim(name, storage_class="s") for name in ("one", "two")]
    limit = decode(
        CSINode, {"metadata": {"name": "n"}, "spec": {"drivers": [{"name": EBS, "allocatable": {"count": 1}}]}}
    )
    found = account(w.node("n"), limit, waiting("s"), *disks, using("q", "one", node="n"), using("p", "two"))
    assert found.nodes.rows == ((f"cannot attach its volumes within the limit of {EBS}", 1),)


def test_the_volume_is_in_a_zone_that_the_pool_does_not_allow() -> None:
    made = {"metadata": {"name": "v"}, "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [_in("z3")]}}}}
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    claim = {"metadata": {"name": "c", "namespace": "default", "annotations": bound}, "spec": {"volumeName": "v"}}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]
    world = zones("z1"), _made("PersistentVolume", made), _made("PersistentVolumeClaim", claim)
    pod = w.pod("p", volumes=volumes)
    pool = only_pool(*world, pod)
    assert (pool.rule, pool.steps[-1].about) == ("volumes", labels.ZONE)
    assert pool.nearest == "its volumes ask for z3, the nodepool for z1"
    assert fixes(*world, pod) == [f"NodePool default: allow z3 in the requirement {labels.ZONE}"]


def _in(zone: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": labels.ZONE, "operator": "In", "values": [zone]}]}


def _made(kind: str, manifest: dict[str, Any]) -> Any:
    return decode(kinds.BY_NAME[kind].type, manifest)


# --- pools that are not asked, and none -------------------------------------------------------------------------
def test_pools_that_are_not_ready_are_told_of() -> None:
    static = w.pool("static", replicas=3)
    found = account(w.pool("later", ready="False"), static, w.pod("p"))
    assert {pool.pool: pool.verdict for pool in found.pools} == {
        "later": "is not ready yet",
        "static": "is static: it has a fixed number of nodes, independent of pending pods",
    }


def test_the_pool_that_came_farthest_comes_first() -> None:
    world = w.pool("a", taints=DEDICATED), w.pool("b"), w.pod("p", "200")
    assert [pool.pool for pool in account(*world).pools] == ["b", "a"]


# --- nodes that exist -------------------------------------------------------------------------------------------
def test_nodes_are_counted_by_the_first_rule_that_leaves_them_out() -> None:
    nodes = [
        w.node("tainted", taints=DEDICATED),
        w.node("elsewhere", "z2"),
        w.node("small", cpu="500m"),
        w.node("smaller", cpu="400m"),
        w.node("taken"),
    ]
    holder = w.pod("holder", "10m", node="taken", ports=[{"hostPort": 80}])
    pod = w.pod("p", "1", nodeSelector={labels.ZONE: "z1"}, ports=[{"hostPort": 80}])
    found = account(nodes, holder, pod).nodes
    assert found.looked_at == 5
    assert dict(found.rows) == {
        "has a taint that it does not tolerate": 1,
        f"does not have the label {labels.ZONE} In [z1]": 1,
        "lacks cpu": 2,
        "has its host ports in use": 1,
    }
    assert found.nearest == "small lacks 500m of cpu"


def test_a_smaller_pod_would_fit_on_a_node_that_exists() -> None:
    assert fixes(w.node("n", cpu="500m"), w.pod("p", "1")) == ["lower its request for cpu from 1 to 500m"]


def test_a_taint_of_a_node_that_exists() -> None:
    """What a node has for the moment is nothing to tolerate."""
    unready = [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    nodes = w.node("n", taints=DEDICATED), w.node("full", cpu="10m", taints=HARD), w.node("new", taints=unready)
    found = account(*nodes, w.pod("p", "1"))
    assert [str(edit) for edit in found.edits] == ["tolerate the taint dedicated=ml:NoSchedule"]
    assert found.fixes == found.edits


def test_what_cannot_help_is_not_tried() -> None:
    """Behind the taint no type is large enough either, and without its requirements the pool has none that is."""
    rows = [{"key": labels.ARCH, "operator": "In", "values": ["amd64"]}]
    found = account(w.pool("a", taints=DEDICATED), w.pool("b", requirements=rows), w.pod("p", "200"))
    assert (found.edits, found.fixes, found.tried) == ((), (), 0)


# --- bounds -----------------------------------------------------------------------------------------------------
def test_many_pools_and_long_names_are_cut() -> None:
    pools = [
        w.pool(f"{'x' * 60}-{i:02}", taints=[{"key": "k" * 60, "value": "v" * 60, "effect": "NoSchedule"}])
        for i in range(40)
    ]
    told = refusal(pools, w.pod("p", nodeSelector={f"label-{i}": "x" * 60 for i in range(40)}))
    assert told.account is not None
    assert len(told.account.pools) == words.MOST_POOLS
    assert told.account.more_pools == 20
    assert len(str(told)) <= words.WHOLE
    assert "more NodePools" in str(told)
    for pool in told.account.pools:
        assert len(pool.steps) <= words.MOST_STEPS
        assert len(pool.verdict) <= words.LINE


def test_what_helps_is_never_cut_off() -> None:
    pools = [w.pool(f"pool-{i:02}", taints=[{"key": "k" * 60, "effect": "NoSchedule"}]) for i in range(20)]
    told = str(refusal(pools, w.pod("p")))
    assert len(told) <= words.WHOLE
    assert f"it would fit with one edit: tolerate the taint {'k' * 60}:NoSchedule" in told


def test_only_the_first_classes_have_an_account_and_equal_pods_share_it() -> None:
    pods = [p for i in range(5) for p in w.replicas(3, f"p{i}", f"{20 + i}")]
    found = explained(w.world(w.pool(), pods), accounts=2).unplaced
    accounts = {id(r.account): r.account for r in found.values() if r.account is not None}
    assert len(accounts) == 2
    assert {a.pods for a in accounts.values() if a is not None} == {3}
    assert all("no instance type has enough resources" in str(refusal) for refusal in found.values())


def test_trials_end_when_what_may_be_spent_is_spent() -> None:
    pods = [w.pod(f"p{i}", f"{20 + i}") for i in range(10)]
    found = explained(w.world(w.pool(), pods), spend=45).unplaced
    tried = [r.account.tried for r in found.values() if r.account is not None and r.account.tried is not None]
    assert sum(tried) == 2


def test_another_class_comes_first_as_time_goes_by() -> None:
    """What may be spent is enough for one of three classes."""
    pods = [w.pod(f"p{i}", f"{20 + i}") for i in range(3)]
    helped = set()
    for turn in range(3):
        snapshot = w.world(w.pool(), pods, now=w.NOW + turn * timedelta(seconds=7))
        found = explained(snapshot, spend=22).unplaced
        helped |= {key for key, r in found.items() if r.account is not None and r.account.fixes}
    assert len(helped) == 3


def test_one_class_alone_may_be_asked_for() -> None:
    found = explained(w.world(w.pool(), w.pod("p", "20"), w.pod("q", "30")), only="default/p").unplaced
    tried = {key: refusal.account.tried for key, refusal in found.items() if refusal.account is not None}
    assert tried == {"default/p": 1, "default/q": None}


def test_more_classes_than_are_told_of_have_the_code_alone() -> None:
    pods = [w.pod(f"p{i}", f"{20 + i}") for i in range(MOST_CLASSES + 5)]
    found = explained(w.world(w.pool(), pods), accounts=1, spend=0).unplaced
    assert {refusal.code for refusal in found.values()} == {"Incompatible"}
    assert sum(bool(refusal.pools) for refusal in found.values()) == MOST_CLASSES


def test_accounts_are_counted_by_pool() -> None:
    pools = [w.pool(f"pool-{i:02}") for i in range(20)]
    pods = [w.pod(f"p{i}", f"{20 + i}") for i in range(30)]
    found = explained(w.world(pools, pods), spend=0).unplaced
    assert sum(refusal.account is not None for refusal in found.values()) == MOST_ACCOUNTS // 20


def test_words_that_fail_cost_no_pod_its_place() -> None:
    """What only the filters read makes no sense here; the solver goes on."""
    snapshot = w.world(w.pool(), w.pod("p", "20"), w.pod("q"))
    context = context_of(snapshot)
    for template, _ in context.pools:
        template.table.listed = template.table.listed[:0]
    solution = solve(snapshot, list(snapshot.pods.pending.values()), SolveOptions(accounts=5), context=context)
    (refusal,) = solution.unplaced.values()
    assert (refusal.code, dict(refusal.pools), refusal.account) == ("Incompatible", {}, None)
    assert [node.pods for node in solution.new_nodes] == [("default/q",)]
