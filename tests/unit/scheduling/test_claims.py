"""The NodeClaim of a planned node: complete, named by content, unique."""

from __future__ import annotations

from typing import Any

from api import labels
from reconciler.scheduling.claims import pod_mark, to_claim
from reconciler.scheduling.solve import Solution, solve
from tests.unit.scheduling import worlds as w


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
    assert rows["tier"] == ("Gte", ("3",))
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


def test_a_living_claims_name_is_not_taken_again() -> None:
    snapshot, solution = planned(w.pool(), w.pod("p"))
    first = to_claim(snapshot, solution.new_nodes[0], salt="s")
    later = w.world(w.pool(), w.pod("p"), first)
    assert to_claim(later, solution.new_nodes[0], salt="s").name not in later.node_claims
