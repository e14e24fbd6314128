"""Evictions and the budgets that limit them, on the sandbox and on a real control plane alike."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.model import kinds
from kerf.model.kinds import Ref
from kerf.ports import AlreadyGone, Conflict, EvictionBlocked

from .kube_clusters import Cluster
from .kube_objects import ANOTHER_UID, budget, budget_ref, deployment, gone, node, pod, pod_ref, running, start_pod


def allowed(cluster: Cluster, name: str, count: int) -> None:
    """Wait until a budget allows so many disruptions."""
    cluster.eventually(lambda: cluster.kube.get(budget_ref(name)).status.disruptions_allowed == count)


def counted(cluster: Cluster, name: str) -> None:
    """Wait until the disruption controller has looked at a budget."""
    cluster.eventually(lambda: cluster.kube.get(budget_ref(name)).status.observed_generation == 1)


def cordon(cluster: Cluster, name: str, unschedulable: bool = True) -> None:
    cluster.kube.patch(Ref("Node", "", name), {"spec": {"unschedulable": unschedulable}})


def not_ready(cluster: Cluster, ref: Ref) -> None:
    """The pod's readiness probe fails."""
    conditions = [{"type": "Ready", "status": "False"}]
    cluster.kube.patch(ref, {"status": {"conditions": conditions}}, subresource="status")


def test_evicting_what_is_not_there_is_already_gone(cluster: Cluster) -> None:
    with pytest.raises(AlreadyGone):
        cluster.kube.evict(pod_ref("never-there"))


def test_eviction_of_another_uid_conflicts(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE, node(name))
    ref = start_pod(cluster, name, name)
    with pytest.raises(Conflict):
        cluster.kube.evict(ref, uid=ANOTHER_UID)
    assert not cluster.kube.get(ref).metadata.deleting


def test_evicted_pod_gets_its_own_grace(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE, node(name))
    ref = start_pod(cluster, name, name, terminationGracePeriodSeconds=20)
    cluster.kube.evict(ref, uid=cluster.kube.get(ref).metadata.uid)
    assert cluster.kube.get(ref).metadata.deletion_grace_period_seconds == 20
    cluster.eventually(lambda: gone(cluster.kube, ref))


# --- one budget -------------------------------------------------------------------------------------------------
def test_eviction_spends_the_budget(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE, node(name))
    refs = [start_pod(cluster, f"{name}-{number}", name) for number in range(2)]
    cluster.kube.create(kinds.PDB, budget(name, name, minAvailable=1))
    allowed(cluster, name, 1)
    cluster.kube.evict(refs[0])
    with pytest.raises(EvictionBlocked):
        cluster.kube.evict(refs[1])
    cluster.eventually(lambda: gone(cluster.kube, refs[0]))
    assert cluster.kube.get(refs[1]).status.phase == "Running"


def test_budget_in_percent_counts_what_the_owner_asks_for_and_frees_itself(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE, node(name))
    cluster.give(deployment(name, 4))
    cluster.kube.create(kinds.PDB, budget(name, name, maxUnavailable="50%"))
    allowed(cluster, name, 2)
    first, second, third, _ = cluster.kube.list(kinds.POD, label_selector=f"test={name}").items
    cordon(cluster, name)  # else others may run in their place before the third is tried
    for one in (first, second):
        cluster.kube.evict(Ref.of(kinds.POD, one))
    with pytest.raises(EvictionBlocked):
        cluster.kube.evict(Ref.of(kinds.POD, third))
    cordon(cluster, name, False)
    allowed(cluster, name, 2)
    cluster.kube.evict(Ref.of(kinds.POD, third))
    cluster.eventually(lambda: gone(cluster.kube, Ref.of(kinds.POD, third)))


def test_eviction_of_a_pod_that_leaves_already_costs_nothing(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE, node(name))
    refs = [start_pod(cluster, f"{name}-{number}", name, terminationGracePeriodSeconds=20) for number in range(2)]
    cluster.kube.create(kinds.PDB, budget(name, name, minAvailable=1))
    allowed(cluster, name, 1)
    cluster.kube.evict(refs[0])
    end = cluster.kube.get(refs[0]).metadata.deletion_timestamp
    cluster.kube.evict(refs[0])
    assert cluster.kube.get(refs[0]).metadata.deletion_timestamp == end
    assert not cluster.kube.get(refs[1]).metadata.deleting


def test_pod_without_a_controller_has_no_share_of_a_relative_budget(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE, node(name))
    ref = start_pod(cluster, name, name)
    cluster.kube.create(kinds.PDB, budget(name, name, maxUnavailable=1))
    counted(cluster, name)
    assert cluster.kube.get(budget_ref(name)).status.disruptions_allowed == 0
    with pytest.raises(EvictionBlocked):
        cluster.kube.evict(ref)


def test_budget_of_other_labels_is_not_asked(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE, node(name))
    ref = start_pod(cluster, name, name)
    cluster.kube.create(kinds.PDB, budget(name, f"{name}-other", maxUnavailable=0))
    counted(cluster, name)
    cluster.kube.evict(ref)
    cluster.eventually(lambda: gone(cluster.kube, ref))


@pytest.mark.parametrize(("selector", "blocked"), [({}, True), (None, False)], ids=["empty", "none"])
def test_empty_selector_covers_the_namespace_and_none_covers_nothing(
    cluster: Cluster, name: str, selector: dict[str, Any] | None, blocked: bool
) -> None:
    own = f"{name[:40]}-{'all' if blocked else 'none'}"
    cluster.give({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": own}})
    cluster.give({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "of-test", "namespace": own}})
    cluster.kube.create(kinds.NODE, node(own))
    ref = pod_ref(own, own)
    cluster.kube.create(kinds.POD, pod(own, own, namespace=own, serviceAccountName="of-test"))
    cluster.eventually(lambda: running(cluster.kube, ref))
    limit = budget(own, own, maxUnavailable=0)
    limit["metadata"]["namespace"], limit["spec"]["selector"] = own, selector
    cluster.kube.create(kinds.PDB, limit)
    cluster.eventually(lambda: cluster.kube.get(Ref("PodDisruptionBudget", own, own)).status.observed_generation == 1)
    if blocked:
        with pytest.raises(EvictionBlocked):
            cluster.kube.evict(ref)
    else:
        cluster.kube.evict(ref)
        cluster.eventually(lambda: gone(cluster.kube, ref))


# --- pods that need no budget -----------------------------------------------------------------------------------
def test_pod_that_has_not_started_is_evicted_without_asking_a_budget(cluster: Cluster, name: str) -> None:
    ref = pod_ref(name)
    cluster.kube.create(kinds.POD, pod(name, name))
    cluster.kube.create(kinds.PDB, budget(name, name, maxUnavailable=0))
    cluster.kube.evict(ref)
    assert gone(cluster.kube, ref)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_finished_pod_is_evicted_without_asking_a_budget(cluster: Cluster, name: str, phase: str) -> None:
    own = f"{name[:40]}-{phase.lower()}"
    cluster.kube.create(kinds.NODE, node(own))
    ref = start_pod(cluster, own, own)
    cluster.kube.create(kinds.PDB, budget(own, own, maxUnavailable=0))
    cluster.kube.patch(ref, {"status": {"phase": phase}}, subresource="status")
    cluster.kube.evict(ref)
    assert gone(cluster.kube, ref)


def test_sick_pod_goes_while_enough_others_are_healthy(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE, node(name))
    healthy, sick = (start_pod(cluster, f"{name}-{number}", name) for number in range(2))
    not_ready(cluster, sick)
    cluster.kube.create(kinds.PDB, budget(name, name, minAvailable=1))
    cluster.eventually(lambda: cluster.kube.get(budget_ref(name)).status.current_healthy == 1)
    with pytest.raises(EvictionBlocked):
        cluster.kube.evict(healthy)
    cluster.kube.evict(sick)
    cluster.eventually(lambda: gone(cluster.kube, sick))


def test_sick_pod_stays_when_too_few_are_healthy_unless_the_budget_lets_it_go(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE, node(name))
    ref = start_pod(cluster, name, name)
    not_ready(cluster, ref)
    cluster.kube.create(kinds.PDB, budget(name, name, minAvailable=1))
    counted(cluster, name)
    with pytest.raises(EvictionBlocked):
        cluster.kube.evict(ref)
    cluster.kube.patch(budget_ref(name), {"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}})
    cluster.eventually(lambda: cluster.kube.get(budget_ref(name)).status.observed_generation == 2)
    cluster.kube.evict(ref)
    cluster.eventually(lambda: gone(cluster.kube, ref))


# --- two budgets ------------------------------------------------------------------------------------------------
def test_two_budgets_stop_an_eviction(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE, node(name))
    ref = start_pod(cluster, name, name)
    for number in range(2):
        cluster.kube.create(kinds.PDB, budget(f"{name}-{number}", name, maxUnavailable=1))
    with pytest.raises(EvictionBlocked, match="more than one PodDisruptionBudget"):
        cluster.kube.evict(ref)
    assert not cluster.kube.get(ref).metadata.deleting
