"""The NodeClaim of a planned node: complete, named by content, unique."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.model.aws.cloud import Instance
from kerf.model.changes.indexes import InstanceIndex
from kerf.scheduling.answers.nodeclaims import member_name, pod_mark, to_claim
from kerf.scheduling.solve import Solution, solve
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.scheduling import worlds as w

SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"


def planned(*objects: Any, **facts: Any) -> tuple[Any, Solution]:
    snapshot = w.world(*objects, **facts)
    return snapshot, solve(snapshot, list(snapshot.pods.pending.values()))


def test_a_claim_is_complete() -> None:
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    pool = w.pool(
        labels={"team": "red"},
        annotations={"note": "x"},
        taints=[taint],
        startupTaints=[{"key": "boot", "effect": "NoExecute"}],
        expireAfter="24h",
        requirements=[
            {"key": "tier", "operator": "Gt", "values": ["2"]},
            {"key": "lane", "operator": "NotIn", "values": ["0"]},
            {"key": "gone", "operator": "DoesNotExist"},
            {"key": labels.CAPACITY_TYPE, "operator": "In", "values": ["spot", "on-demand"]},
        ],
    )
    pod = w.pod("p", tolerations=[{"operator": "Exists"}], nodeSelector={labels.ZONE: "z3"})
    snapshot, solution = planned(pool, pod)
    claim = to_claim(snapshot, solution.new_nodes[0], salt="s", annotations={"why": "test"})
    meta, spec = claim.metadata, claim.spec
    assert meta.labels["team"] == "red"
    assert meta.labels["tier"] == "3"
    assert meta.labels["lane"] == "1"
    assert "gone" not in meta.labels
    assert meta.labels[labels.NODEPOOL] == "default"
    assert meta.labels[labels.NODECLASS] == "default"
    assert meta.annotations["note"] == "x"
    assert meta.annotations["why"] == "test"
    assert meta.annotations[labels.NODEPOOL_HASH_VERSION] == "v3"
    assert meta.annotations[labels.NODEPOOL_HASH]
    assert meta.annotations[labels.MIN_VALUES_RELAXED] == "false"
    assert meta.annotations[labels.PLANNED_PODS] == pod_mark(pod.metadata.uid)
    assert meta.finalizers == (labels.TERMINATION_FINALIZER,)
    owner = meta.owner_references[0]
    assert (owner.kind, owner.name, owner.uid, owner.block_owner_deletion) == (
        "NodePool",
        "default",
        "uid-default",
        True,
    )
    assert spec.taints[0].key == "k"
    assert spec.startup_taints[0].key == "boot"
    assert spec.expire_after == "24h"
    rows = {e.key: (e.operator, e.values) for e in spec.requirements}
    assert rows[labels.CAPACITY_TYPE] == ("In", ("on-demand",))
    assert rows["tier"] == ("Gt", ("2",))
    assert rows[labels.ZONE] == ("In", ("z3",))
    assert set(rows[labels.INSTANCE_TYPE][1]) == set(solution.new_nodes[0].instance_types)
    assert labels.HOSTNAME not in rows
    assert spec.resources.requests == {"cpu": "100m", "memory": "10Mi", "pods": "1"}


def test_a_pods_negative_demand_on_an_undefined_key_makes_no_label() -> None:
    pod = w.pod("p", affinity=w.node_affinity([("absent", "NotIn", ["v"])]))
    snapshot, solution = planned(w.pool(), pod)
    assert "absent" not in to_claim(snapshot, solution.new_nodes[0], salt="s").metadata.labels


def test_the_same_decision_has_the_same_names_and_another_salt_others() -> None:
    pods = w.replicas(7, "p", "900m", "900Mi")
    snapshot, solution = planned(w.pool(), pods)
    again, second = planned(w.pool(), list(reversed(pods)))
    names = [to_claim(snapshot, n, salt="s").name for n in solution.new_nodes]
    assert names == [to_claim(again, n, salt="s").name for n in second.new_nodes]
    assert len(set(names)) == len(names)
    assert all(name.startswith("default-") and len(name) >= len("default-12345") for name in names)
    assert not set(names) & {to_claim(snapshot, n, salt="t").name for n in solution.new_nodes}


def test_the_name_of_an_instance_that_still_runs_is_not_given_again() -> None:
    """A user took the finalizer of a NodeClaim by hand: its instance bears its name until it is collected."""
    pods = w.replicas(2, "p", "900m", "900Mi")
    snapshot, solution = planned(w.pool(), pods)
    (node,) = solution.new_nodes
    first = to_claim(snapshot, node, salt="s").name

    def beside(state: str) -> str:
        tags = {labels.TAG_NODECLAIM: first}
        left = Instance("i-1", "m5.large", "us-west-2a", state, "spot", snapshot.now, tags=tags)
        return to_claim(dataclasses.replace(snapshot, instances=InstanceIndex.of({"i-1": left})), node, salt="s").name

    assert beside("running") != first
    assert beside("terminated") == first


@pytest.mark.parametrize("pool", ["default", "a" * 63, "a" * 53 + "." + "b" * 9, "a" * 50 + "----" + "b" * 9])
def test_names_for_the_same_pods_never_run_out_and_fit_a_label(pool: str) -> None:
    snapshot, solution = planned(w.pool(pool), w.pod("p"))
    claims: list[NodeClaim] = []
    for _ in range(200):
        later = w.world(w.pool(pool), w.pod("p"), claims)
        claim = to_claim(later, solution.new_nodes[0], salt="s")
        assert claim.name == to_claim(later, solution.new_nodes[0], salt="s").name
        claims.append(claim)
    names = {claim.name for claim in claims}
    assert len(names) == 200
    assert all(len(name) <= 63 and re.fullmatch(SUBDOMAIN, name) for name in names)
    gone = w.world(w.pool(pool), w.pod("p"), claims[1:])
    assert to_claim(gone, solution.new_nodes[0], salt="s").name == claims[0].name
    assert member_name(snapshot.node_pools[pool], 0) not in names
    assert re.fullmatch(SUBDOMAIN, member_name(snapshot.node_pools[pool], 0))


def test_claims_with_the_longer_hashes_of_earlier_versions_are_followed() -> None:
    """Up to 64 digits; the pods of such a claim go there, and the next claim for the same pods has a short name."""
    snapshot, solution = planned(w.pool(), w.pod("p"))
    short = to_claim(snapshot, solution.new_nodes[0], salt="provisioned")
    (pod,) = snapshot.pods.values()
    digest = hashlib.sha256(f"provisioned\ndefault\n{pod.metadata.uid}".encode()).hexdigest()
    assert short.name == f"default-{digest[:8]}"
    old = [replace(short, metadata=replace(short.metadata, name=f"default-{digest[:n]}")) for n in range(8, 64)]
    again = w.world(w.pool(), w.pod("p"), old)
    assert solve(again, list(again.pods.pending.values())).placed == {"default/p": short.name}
    assert len(to_claim(again, solution.new_nodes[0], salt="provisioned").name) == len(short.name)


GEN = "example.com/gen"


def gen(*rows: tuple[str, str], preferred: bool = False) -> dict[str, Any]:
    """A node affinity about the custom label: operators with one value each."""
    term = {"matchExpressions": [{"key": GEN, "operator": operator, "values": [value]} for operator, value in rows]}
    node: dict[str, Any] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    if preferred:
        node = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]}
    return {"affinity": {"nodeAffinity": node}}


OPEN = {"key": GEN, "operator": "Exists"}


def given(snapshot: Any, solution: Solution) -> list[str | None]:
    return [to_claim(snapshot, node, salt="s").metadata.labels.get(GEN) for node in solution.new_nodes]


@pytest.mark.parametrize(
    ("asked", "value"),
    [
        (gen(("Gt", "-3")), "0"),
        (gen(("Gt", "-3"), ("NotIn", "0")), "1"),
        (gen(("Lt", "1")), "0"),
        (gen(("In", "x y"), preferred=True), "0"),
    ],
)
def test_a_made_up_label_value_is_a_valid_one(asked: dict[str, Any], value: str) -> None:
    assert given(*planned(w.pool(requirements=[OPEN]), w.pod("p", **asked))) == [value]


@pytest.mark.parametrize(
    "asked",
    [gen(("Lt", "0")), gen(("Gt", "3"), ("Lt", "5"), ("NotIn", "4")), gen(("In", "-1"))],
)
def test_a_pod_without_a_valid_label_value_is_refused_alone(asked: dict[str, Any]) -> None:
    _, solution = planned(w.pool(requirements=[OPEN]), w.pod("p", **asked), w.pod("q"))
    assert [node.pods for node in solution.new_nodes] == [("default/q",)]
    assert "no valid label value satisfies example.com/gen" in str(solution.unplaced["default/p"])


def test_pods_without_a_common_label_value_get_a_node_each() -> None:
    pods = w.pod("p", **gen(("Gt", "3"), ("NotIn", "4"))), w.pod("q", **gen(("Lt", "5")))
    assert sorted(map(str, given(*planned(w.pool(requirements=[OPEN]), *pods)))) == ["0", "5"]


def test_a_bound_needs_the_label_beside_excluded_values() -> None:
    _, solution = planned(w.pool(), w.node("n"), w.pod("p", **gen(("Gt", "3"), ("NotIn", "5"))))
    assert list(solution.unplaced) == ["default/p"]
