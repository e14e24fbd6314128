"""Why one pod waits: what a pod is left out for, what it waits for on its way, and that the rest is the solver's."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from kerf.model.failures import Failure, key
from kerf.model.kubernetes.objects import Node, Pod
from kerf.model.snapshot import Batch, Snapshot
from kerf.provisioning.provision import provision
from kerf.provisioning.why import Answer, why
from kerf.scheduling.solve import solve
from kerf_api import labels
from kerf_api.v1.meta import Condition, decode
from tests.unit.judgement.yards import worker
from tests.unit.scheduling import worlds as w

DAEMON = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "u"}
MIRROR = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}


def changed(pod: Pod, part: str, **fields: Any) -> Pod:
    """The pod with fields of its metadata, spec or status as a manifest writes them."""
    manifest = msgspec.to_builtins(pod)
    return decode(Pod, {**manifest, part: {**manifest.get(part, {}), **fields}})


def asked(pod: Pod, *rest: Any, **facts: Any) -> Answer:
    return why(w.world(w.pool(), w.node("n2", cpu="0"), pod, *rest, **facts), pod.key)


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        (changed(w.pod("p"), "metadata", deletionTimestamp="2026-01-01T11:59:00Z"), "is being deleted"),
        (changed(w.pod("p"), "status", phase="Succeeded"), "has terminated (Succeeded)"),
        (w.pod("p", node="n1"), "is already on node n1"),
        (w.pod("p", owner=DAEMON), "belongs to a DaemonSet"),
        (w.pod("p", owner=MIRROR), "is a static pod of its node's kubelet"),
        (w.pod("p", schedulingGates=[{"name": "a.io/x"}, {"name": "b.io/y"}]), "is gated (a.io/x, b.io/y)"),
        (
            changed(w.pod("p"), "status", nominatedNodeName="n2"),
            "is expected on node n2, where resources are reserved for it",
        ),
        (changed(w.pod("p"), "status", conditions=[]), "its scheduler (default-scheduler) has not reported"),
        (
            changed(w.pod("p", schedulerName="volcano"), "status", conditions=[]),
            "its scheduler (volcano) has not reported that it is Unschedulable",
        ),
        (w.pod("p", affinity=w.node_affinity([(labels.NODEPOOL, "DoesNotExist", [])])), "has opted out"),
    ],
)
def test_what_a_pod_is_left_out_for(pod: Pod, words: str) -> None:
    found = asked(pod)
    assert found.code == "LeftOut"
    assert words in found.text
    assert found.refusal is None


def test_what_is_left_out_is_not_what_provisioning_is_about() -> None:
    """A pod of which nothing speaks against a node gets one; so the list above leaves out none too many."""
    assert asked(w.pod("p")).code == "Planned"
    assert asked(w.pod("p", schedulerName="volcano")).code == "Planned"


def test_a_pod_that_makes_no_sense() -> None:
    found = asked(w.pod("p", nodeSelector={"karpenter.sh/custom": "x"}))
    assert (found.code, found.text) == ("Refused", "label karpenter.sh/custom is restricted")


@pytest.mark.parametrize(
    ("key", "value", "action", "text"),
    [
        ("karpenter.sh/capacity-type", "Spot", "Edit", "the pod: write karpenter.sh/capacity-type=spot, not Spot"),
        ("karpenter.sh/capacity-type", "cheap", "Correct", 'correct spec.nodeSelector["karpenter.sh/capacity-type"]'),
        ("kubernetes.io/hostname", "n1", "Correct", 'correct spec.nodeSelector["kubernetes.io/hostname"]'),
    ],
)
def test_a_label_that_no_node_can_have_is_a_field_to_correct(key: str, value: str, action: str, text: str) -> None:
    found = asked(w.pod("p", nodeSelector={key: value}))
    assert found.cause is not None
    assert [one.path for one in found.cause.fields] == [f'spec.nodeSelector["{key}"]']
    (patch,) = found.patches
    assert (patch.action, patch.kind, patch.name) == (action, "Pod", "default/p")
    assert patch.text.endswith(text)


def test_a_nodepool_with_a_misspelled_name() -> None:
    first, second = asked(w.pod("p", nodeSelector={labels.NODEPOOL: "defalt"})).patches
    assert first.text == "the pod: write karpenter.sh/nodepool=default, not defalt"
    assert second.text.endswith("(did you mean default?)")


def test_the_field_of_a_request_is_where_it_is_written() -> None:
    disk = asked(w.pod("p", requests={"ephemeral-storage": "900Ti"})).cause
    assert disk is not None
    named = [(one.kind, one.name, one.path) for one in disk.fields[:2]]
    assert named == [("EC2NodeClass", "default", "spec.blockDeviceMappings"), ("Pod", "default/p", "spec.containers")]
    memory = [{"name": "i", "resources": {"requests": {"memory": "900Ti"}}}]
    first = asked(w.pod("p", initContainers=memory)).patches[0]
    assert (first.kind, first.fields[0].path) == ("Pod", "spec.initContainers")
    assert asked(w.pod("p", memory="900Ti")).patches[0].fields[0].path == "spec.containers"


def test_no_such_pod() -> None:
    snapshot = w.world(w.pool(), w.pod("web-abc"), w.pod("web-xyz", namespace="other"))
    assert why(snapshot, "default/web-xyz").details == ("did you mean default/web-abc, other/web-xyz?",)
    assert why(snapshot, "default/nothing").details == ()
    assert why(snapshot, "default/nothing").code == "NotFound"


@pytest.mark.parametrize(
    ("asked_for", "meant"),
    [
        ("shop/pymnet-7d9c5-x2x4z", "shop/payment-5d9c7-aaaaa"),
        ("shop/paymnet", "shop/payment-5d9c7-aaaaa"),
        ("shop/ledgre-0", "shop/ledger-0"),
        ("elsewhere/paymnet", "shop/payment-5d9c7-aaaaa"),
        ("shop/frontend", ""),
    ],
)
def test_a_misspelled_pod(asked_for: str, meant: str) -> None:
    """One pod of each workload with almost that name."""
    some = [worker(name, "", "1", of="payment") for name in ("payment-5d9c7-bbbbb", "payment-5d9c7-aaaaa")]
    ledger = worker("ledger-0", "", "1", of="ledger", kind="StatefulSet")
    details = why(w.world(w.pool(), *some, ledger), asked_for).details
    assert details == ((f"did you mean {meant}?",) if meant else ())


def test_a_misspelled_pod_among_very_many_is_compared_with_few(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []

    def counting(word: str, names: list[str], *rest: Any) -> list[str]:
        compared.append(len(names))
        return []

    monkeypatch.setattr("kerf.provisioning.why.get_close_matches", counting)
    snapshot = w.world(*(w.pod(f"service-{number:04}") for number in range(3000)), w.pool())
    assert why(snapshot, "default/srevice-0007").details == ()
    assert max(compared) == 2000


def test_a_node_that_is_to_be_made() -> None:
    found = asked(w.pod("p", "3"))
    assert (found.code, found.text) == ("Planned", "gets a new node of NodePool default")
    assert found.details[0] == "instance types: default, gpu-a, gpu-b, single-pod, arm"
    assert "zones: z1, z2, z3" in found.details[1]
    assert found.details[2] == "from $0.8000 an hour, for it alone"


# --- on its way -------------------------------------------------------------------------------------------------
def story() -> tuple[Snapshot, Pod, Any]:
    """A world, its only pod, and the claim that was made for it."""
    pod = w.pod("p", "3")
    before = w.world(w.pool(), pod)
    (claim,) = w.claims(before, solve(before, [pod]))
    return before, pod, claim


def node_of(claim: Any, *marks: str) -> Any:
    manifest = {
        "metadata": {"name": "ip-1", "uid": "n", "labels": {**claim.metadata.labels, **dict.fromkeys(marks, "true")}},
        "spec": {"providerID": claim.status.provider_id},
        "status": {"capacity": claim.status.capacity, "allocatable": claim.status.allocatable},
    }
    return decode(Node, manifest)


def test_a_pod_whose_batch_is_open_waits_for_others() -> None:
    batch = Batch(w.NOW - timedelta(seconds=1), w.NOW)
    words = "its batch is open: its node is launched when the batch closes, at 12:00:01 UTC"
    assert why(w.world(w.pool(), w.pod("p"), batch=batch), "default/p").details[0] == words
    closed = Batch(w.NOW - timedelta(seconds=20), w.NOW)
    assert "waits" not in why(w.world(w.pool(), w.pod("p"), batch=closed), "default/p").details[0]
    for seconds, early in ((9, True), (11, False)):
        pod = w.pod("p")
        created = msgspec.structs.replace(pod.metadata, creation_timestamp=w.NOW - timedelta(seconds=seconds))
        found = why(w.world(w.pool(), msgspec.structs.replace(pod, metadata=created)), "default/p")
        assert (found.details[0] == f"{words} at the latest") is early


def test_what_it_waits_for_step_by_step() -> None:
    before, pod, claim = story()
    launched = w.launched(claim, before)
    registered = node_of(launched, labels.REGISTERED)
    ready = node_of(launched, labels.REGISTERED, labels.INITIALIZED)
    steps = {
        "to be launched": (claim,),
        "to join the cluster": (launched,),
        "to be registered": (launched, node_of(launched)),
        "to be initialized": (launched, registered),
        "for its scheduler to bind it there": (launched, ready),
    }
    for words, objects in steps.items():
        found = asked(pod, *objects)
        assert found.code == "Placed"
        assert f"NodeClaim {claim.name} of NodePool default" in found.text
        assert words in found.details[0]


def test_a_node_that_nobody_of_us_made() -> None:
    found = asked(w.pod("p"), w.node("n1"))
    assert found.text == "has a place on node n1"


# --- refused ----------------------------------------------------------------------------------------------------
def test_it_says_what_the_controller_says() -> None:
    """The event of the pass over the same world has the same verdict and the same edit."""
    taints = [{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}]
    snapshot = w.world(w.pool(taints=taints), w.pod("p"), w.pod("q", "300"))
    found = why(snapshot, "default/p")
    assert found.refusal is not None
    assert found.refusal.account is not None
    closed = Batch(w.NOW, w.NOW)
    late = w.world(w.pool(taints=taints), w.pod("p"), w.pod("q", "300"), batch=closed, batch_idle=w.NOW - w.NOW)
    (event,) = [e for e in provision(late).events if e.ref.name == "p"]
    assert event.message == f"Failed to schedule pod, {found.refusal}"


# --- actions that fail ------------------------------------------------------------------------------------------
def test_a_pod_on_a_node_is_told_with_its_eviction_that_fails() -> None:
    failed = Failure("EvictPod", "pod/default/p", "forbidden", "no permission", w.NOW, w.NOW, 2)
    found = asked(w.pod("p", node="n1"), failures={key("EvictPod", failed.object): failed})
    assert found.details == (failed.standing(w.NOW),)


def test_a_pool_that_is_not_ready_is_told_with_the_words_of_its_class() -> None:
    """Pool and class agree, so this is no matter of seconds."""
    words = "InstanceProfileReady=False: RoleNotFound: iam:GetRole: NoSuchEntity"
    pool = w.pool(ready="False")
    broken = Condition(type="NodeClassReady", status="False", reason="UnhealthyDependents", message=words)
    pool = msgspec.structs.replace(
        pool, status=msgspec.structs.replace(pool.status, conditions=(*pool.status.conditions, broken))
    )
    found = why(w.world(pool, w.pod("p")), "default/p")
    assert found.refusal is not None
    assert words in str(found.refusal) + str(found.refusal.pools)
    assert str(found.refusal).count("NodeClassReady") == 1


def test_a_planned_node_whose_nodeclaim_cannot_be_created_is_said_with_the_error() -> None:
    failed = Failure("CreateNodeClaim", "nodepool/default", "forbidden", "no permission", w.NOW, w.NOW, 2)
    found = asked(w.pod("p"), failures={key(failed.verb, failed.object): failed})
    assert found.code == "Planned"
    assert found.text == (
        "gets a new node of NodePool default, but the NodePool gets no nodes now: "
        "CreateNodeClaim is forbidden: no permission; give Kerf's account the rules of the chart's ClusterRole; "
        "kerf preflight lists the missing ones"
    )
    assert "CreateNodeClaim is forbidden: no permission (2 attempts" in found.details[0]


def test_without_a_nodepool_the_edit_is_to_create_one_whatever_the_pod_selects() -> None:
    found = why(w.world(w.pod("p")), "default/p")
    assert found.cause is not None
    assert (found.cause.text, found.cause.fields) == ("there is no NodePool that Kerf manages", ())
    (patch,) = found.patches
    assert (patch.action, patch.kind) == ("Create", "NodePool")
    assert patch.text.startswith("create a NodePool whose nodeClassRef names an EC2NodeClass; ")
    named = why(w.world(w.pod("p", nodeSelector={labels.NODEPOOL: "gpu"})), "default/p")
    assert named.cause is not None
    assert named.cause.text == "NodePool gpu does not exist: Pod default/p names it"
    assert [one.name for one in named.patches] == ["gpu"]


def test_no_edit_removes_the_operating_system_of_a_pod() -> None:
    found = why(w.world(w.pool(), w.pod("p", nodeSelector={"beta.kubernetes.io/os": "windows"})), "default/p")
    assert found.refusal is not None
    assert found.refusal.account is not None
    assert found.refusal.account.fixes == ()
    (patch,) = found.patches
    assert (patch.action, patch.kind) == ("Create", "NodePool")
    assert patch.text == (
        "create a NodePool with an EC2NodeClass for Windows (spec.amiSelectorTerms with alias windows2022@latest); "
        "NodePool default has nodes of another operating system"
    )
    odd = why(w.world(w.pool(), w.pod("p", nodeSelector={labels.OS: "plan9"})), "default/p")
    assert [one.action for one in odd.patches] == ["Correct"]
    intel = w.pool(requirements=[{"key": labels.ARCH, "operator": "In", "values": ["amd64"]}])
    arm = why(w.world(intel, w.pod("p", nodeSelector={labels.ARCH: "arm64"})), "default/p")
    assert [one.action for one in arm.patches][:1] == ["Edit"]
