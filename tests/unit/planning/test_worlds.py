"""A world of a snapshot is the cluster that the snapshot is of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from kerf.ec2.errors import OUT_OF_STOCK
from kerf.ec2.quotas import STANDARD, closed_by_quota, group_of
from kerf.model.aws.cloud import FleetError, FleetRequest, FleetResult
from kerf.model.changes.indexes import InstanceIndex
from kerf.model.kubernetes import workloads
from kerf.model.kubernetes.objects import Node, Pod
from kerf.model.snapshot import LaunchFailure, Snapshot
from kerf.planning import owners, waits
from kerf.planning.lives import Life
from kerf.planning.worlds import Unplannable, restored
from kerf.runtime.controller import Controller
from kerf.runtime.parts import Parts
from kerf.sandbox.aws.machines import Machine
from kerf.sandbox.weather import Weather
from kerf.snapshots.reading import read
from kerf.snapshots.writing import lines
from kerf_api.v1.meta import decode, encode
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.snapshots.test_sanitizing import life
from tests.unit.snapshots.worlds import busy
from tests.worlds import deployment


def _seen() -> Snapshot:
    """What a controller sees at its first look."""
    found = restored(busy())
    loop = Controller(found.ports, Parts(keys=found.keys), settings=busy().snapshot.settings, inline=True)
    loop.tick()
    return loop.state.snapshot(found.world.clock.now())


@pytest.mark.parametrize("table", ["node_claims", "nodes", "node_pools", "node_classes", "daemon_sets", "pdbs"])
def test_the_objects_are_the_same(table: str) -> None:
    before, after = getattr(busy().snapshot, table), getattr(_seen(), table)
    assert {key: one.metadata.uid for key, one in after.items()} == {k: one.metadata.uid for k, one in before.items()}
    assert {key: one.spec for key, one in after.items()} == {key: one.spec for key, one in before.items()}


def test_pods_are_where_they_were() -> None:
    before, after = busy().snapshot.pods, restored(busy()).world.objects("Pod")
    assert {one["metadata"]["uid"]: one["spec"].get("nodeName", "") for one in after} == {
        one.metadata.uid: one.spec.node_name for one in before.values()
    }


def test_instances_and_prices_are_the_same() -> None:
    before, after = busy().snapshot, restored(busy()).world.ec2
    assert {id_: (one.instance_type, one.zone) for id_, one in after.instances.items()} == {
        id_: (one.instance_type, one.zone) for id_, one in before.instances.items()
    }
    assert after.region == busy().region


def test_missing_instances_are_those_of_node_claims() -> None:
    """A live cluster is read without them, and manifests have none."""
    listed, claims = restored(busy()).world.ec2.instances, busy().snapshot.node_claims.values()
    without = replace(busy().snapshot, instances=InstanceIndex.of({}))
    unlisted = restored(replace(busy(), snapshot=without)).world.ec2.instances
    known = {one.instance_id for one in claims if one.is_true("Launched")}
    assert known
    assert unlisted.keys() == known

    def facts(id_: str, found: Mapping[str, Machine]) -> tuple[object, ...]:
        one = found[id_]
        placed = one.instance_type, one.zone, one.zone_id, one.capacity_type, one.price, one.image_id
        return (*placed, one.subnet_id, one.security_group_ids, one.profile)

    assert {id_: facts(id_, unlisted) for id_ in known} == {id_: facts(id_, listed) for id_ in known}


def test_the_first_look_finds_nodes_with_their_claims() -> None:
    before, after = busy().snapshot.state_nodes, _seen().state_nodes
    assert {key for key, one in after.items() if one.claim and one.node} == {
        key for key, one in before.items() if one.claim and one.node
    }


def test_a_launch_under_way_ends_as_the_one_that_it_is() -> None:
    """Its request is known to be Kerf's own; the instance comes, and no second one."""
    found = life().launching
    assert not found.snapshot.instances
    outcome = Life(read(lines(found, b"key"))).run(timedelta(hours=1))
    assert not outcome.departures
    assert not outcome.waiting
    assert not outcome.passing


def test_a_new_node_has_no_name_of_another() -> None:
    """Nodes of a cluster may have the names that the sandbox gives."""
    found = read(lines(life().launching, b"key"))
    nodes = {
        name: decode(Node, {"metadata": {"name": name, "uid": name}, "spec": {"unschedulable": True}})
        for name in (f"ip-10-0-0-{number}.us-west-2.compute.internal" for number in range(1, 9))
    }
    outcome = Life(replace(found, snapshot=replace(found.snapshot, nodes=nodes))).run(timedelta(hours=1))
    assert not outcome.departures
    assert not outcome.waiting
    assert not outcome.passing


def test_a_deployment_is_there_and_starts_no_roll_out() -> None:
    """CapacityBuffers read its template; its own controller would replace all of its pods."""
    manifest = deployment("web", {"replicas": 2})
    manifest["metadata"]["uid"] = "c1b2"
    known = {"default/web": decode(workloads.Deployment, manifest)}
    found = restored(replace(busy(), snapshot=replace(busy().snapshot, deployments=known)))
    before = [one["metadata"]["name"] for one in found.world.objects("ReplicaSet")]
    found.world.step()
    assert [one["metadata"]["name"] for one in found.world.objects("ReplicaSet")] == before
    (restored_one,) = found.world.objects("Deployment")
    assert restored_one["spec"]["paused"] is True
    assert restored_one["spec"]["replicas"] == 2


def test_a_snapshot_without_instance_types_has_no_plan() -> None:
    with pytest.raises(Unplannable, match="the snapshot has no instance types"):
        restored(replace(busy(), region=None))


# --- workloads --------------------------------------------------------------------------------------------------
def test_pods_whose_controller_is_not_known_get_one() -> None:
    made = {
        manifest["metadata"]["name"]: (kind.name, manifest)
        for kind, manifest in owners.missing(busy().snapshot.pods.values(), [])
    }
    web = next(manifest for name, (kind, manifest) in made.items() if name.startswith("web-") and kind == "ReplicaSet")
    pods = [pod for pod in busy().snapshot.pods.values() if pod.metadata.labels.get("app") == "web"]
    assert web["spec"]["replicas"] == len(pods)
    assert "nodeName" not in web["spec"]["template"]["spec"]
    assert not [kind for kind, _ in made.values() if kind == "DaemonSet"], "they are watched"


def test_pods_whose_controller_is_known_get_none() -> None:
    pods = busy().snapshot.pods.values()
    known = {one.uid for pod in pods for one in pod.metadata.owner_references}
    assert not list(owners.missing(pods, known))


# --- times ------------------------------------------------------------------------------------------------------
def _claim(**seconds: int) -> NodeClaim:
    conditions = [
        {"type": type_, "status": "True", "lastTransitionTime": f"2026-01-01T00:{at // 60:02}:{at % 60:02}Z"}
        for type_, at in seconds.items()
    ]
    ref = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    return decode(
        NodeClaim, {"metadata": {"name": "a"}, "spec": {"nodeClassRef": ref}, "status": {"conditions": conditions}}
    )


def test_starts_take_as_long_as_the_cluster_has_shown() -> None:
    claims = [_claim(Launched=0, Registered=boot, Initialized=boot + 12) for boot in (40, 50, 55)]
    found = waits.observed(claims)
    assert found.launch_seconds + found.boot_seconds == 50
    assert found.ready_seconds == 12


@pytest.mark.parametrize(
    "claims",
    [
        [],
        [_claim(Launched=0)],
        [_claim(Launched=0, Registered=3599, Initialized=3599)],
        [_claim(Launched=90, Registered=10)],
    ],
)
def test_what_shows_nothing_changes_nothing(claims: list[NodeClaim]) -> None:
    assert waits.observed(claims).boot_seconds == Weather().boot_seconds


def _pod(owner: str = "ReplicaSet", **seconds: int) -> Pod:
    rows = [
        {"type": type_, "status": "True", "lastTransitionTime": f"2026-01-01T00:{at // 60:02}:{at % 60:02}Z"}
        for type_, at in seconds.items()
    ]
    owners_ = [{"apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": "u", "controller": True}]
    return decode(Pod, {"metadata": {"name": "p", "ownerReferences": owners_}, "status": {"conditions": rows}})


def test_pods_start_as_fast_as_the_cluster_has_shown() -> None:
    pods = [_pod(PodScheduled=10, Ready=10 + start) for start in (20, 30, 31)]
    others = [_pod("DaemonSet", PodScheduled=0, Ready=1), _pod(PodScheduled=0), _pod(PodScheduled=0, Ready=3000)]
    assert waits.observed([], [*pods, *others]).pod_start_seconds == 30
    assert waits.observed([], others).pod_start_seconds == Weather().pod_start_seconds
    assert 0 < waits.observed([], [_pod(PodScheduled=10, Ready=10)]).pod_start_seconds < 1


def test_objects_survive_the_way() -> None:
    claim = next(iter(busy().snapshot.node_claims.values()))
    assert decode(NodeClaim, encode(claim)) == claim


# --- quotas -----------------------------------------------------------------------------------------------------
def _used_up(name: str, missing: int = 1) -> Snapshot:
    """The snapshot after a launch of a type that a quota has refused, a minute ago."""
    found = busy()
    assert found.region is not None
    at = found.snapshot.now - timedelta(minutes=1)
    error = FleetError("VcpuLimitExceeded", "no", name, "us-west-2a", capacity=True)
    members = tuple(f"c-{number}" for number in range(missing))
    call = FleetRequest(group="g", capacity_type="on-demand", members=members, templates=(), overrides=())
    closed = {*closed_by_quota(call, FleetResult((), (error,)), found.region), (name, "us-west-2a", "on-demand")}
    failures = {"g": LaunchFailure((error,), at, missing=missing)}
    out = dict.fromkeys(closed, at + OUT_OF_STOCK)
    return replace(found.snapshot, out_of_stock=out, launch_failures=failures)


def _too_large(snapshot: Snapshot) -> set[int]:
    """The sizes of standard types that the quota of a plan excludes an hour later, in vCPUs."""
    found = restored(replace(busy(), snapshot=snapshot))
    ec2 = found.world.ec2
    found.world.clock.jump(snapshot.now + timedelta(hours=1))
    types = {name: info.vcpus for name, info in ec2.region.types.items() if group_of(name) == STANDARD}
    over = {n for n in types if ec2.stocks.over_quota(ec2.instances.values(), ec2.region.types, n, "on-demand")}
    return {types[name] for name in over}


def test_a_quota_that_is_used_up_is_so_for_the_whole_plan() -> None:
    assert min(_too_large(_used_up("m5.xlarge"))) == 4
    assert not _too_large(busy().snapshot)
    assert min(_too_large(_used_up("m5.large", missing=4))) == 8


def test_a_type_that_a_quota_has_refused_by_name_is_out_of_stock_for_a_while() -> None:
    found = restored(replace(busy(), snapshot=_used_up("m5.large", missing=4)))
    assert found.world.ec2.out_of_stock("m5.large", "us-west-2a", "on-demand")
    assert not found.world.ec2.out_of_stock("m5.4xlarge", "us-west-2a", "on-demand")
