"""The whole way on real parts: YAML applied to a real API server becomes instances in moto and running pods, and back.

Each test leaves the cluster empty. Times, nodes and cost are printed (`-s` shows them).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kerf.runtime.preflight.cluster import WRITES
from tests.sources import ROOT

from .control_plane import ControlPlane
from .installation import CLUSTER_NAME, NAMESPACE, Installation

pytestmark = pytest.mark.cluster

EXAMPLES = sorted((ROOT / "manifests/examples").glob("*.yaml"))
#: All but those that no API server hands to a webhook (an object without a name, say).
WRONG = [f for f in sorted((ROOT / "tests/wrong_manifests").glob("*.yaml")) if "# only: offline" not in f.read_text()]
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def kerf(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Kerf, installed by Helm, with a node class, a pool and a DaemonSet."""
    with Installation(control_plane, tmp_path_factory.mktemp("kerf")) as installation:
        installation.kubectl("apply", "-f", str(HERE / "workloads.yaml"))
        installation.wait(lambda: _is_true(installation.one("nodepool", "general"), "Ready"), 60, "the pool is Ready")
        yield installation


# --- a: installed by Helm, RBAC enforced ------------------------------------------------------------------------
def test_helm_shows_both_releases_and_processes_run_with_their_own_accounts(kerf: Installation) -> None:
    releases = {r["name"]: r["status"] for r in json.loads(kerf.helm("list", "-n", NAMESPACE, "-o", "json"))}
    assert releases == {"kerf": "deployed", "kerf-crd": "deployed"}
    may = kerf.kubectl("auth", "can-i", "--list", f"--as=system:serviceaccount:{NAMESPACE}:kerf")
    assert "pods/eviction" in may
    assert not re.search(r"^\*\.\*|\bsecrets\b.*\blist\b", may, re.MULTILINE)
    no = kerf.kubectl(
        "auth", "can-i", "delete", "deployments", f"--as=system:serviceaccount:{NAMESPACE}:kerf", check=False
    )
    assert no.startswith("no")


# --- b: good YAML is accepted, wrong YAML refused ---------------------------------------------------------------
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_every_example_is_accepted(kerf: Installation, example: Path) -> None:
    answer = kerf.kubectl("apply", "--dry-run=server", "-f", str(example))
    assert "created (server dry run)" in answer


def test_there_are_at_least_twenty_wrong_manifests() -> None:
    assert len(WRONG) >= 20


@pytest.mark.parametrize("wrong", WRONG, ids=lambda p: p.stem)
def test_every_wrong_manifest_is_refused_with_path_and_fix(kerf: Installation, wrong: Path) -> None:
    expected = dict(re.findall(r"^# (path|says): (.+)$", wrong.read_text(), re.MULTILINE))
    answer = kerf.kubectl("apply", "--dry-run=server", "--validate=ignore", "-f", str(wrong), check=False)
    assert "webhook.kerf.sh" in answer, answer
    assert expected["path"] in answer, answer
    assert expected["says"] in answer, answer


# --- c, d: scale out, scale in ----------------------------------------------------------------------------------
def test_a_hundred_pods_get_nodes_and_scale_to_zero_gives_all_back(kerf: Installation) -> None:
    _scale(kerf, 100)
    seconds = kerf.wait(lambda: len(kerf.running()) == 100, 120, "100 pods run")
    _print_cost(kerf, f"100 pods running after {seconds:.1f} s")
    _check_instances(kerf)
    table = kerf.kubectl("get", "nodeclaims")
    assert table.splitlines()[0].split() == ["NAME", "TYPE", "CAPACITY", "ZONE", "NODE", "READY", "AGE"]
    for name in kerf.get("nodeclaims"):
        row = next(line for line in table.splitlines() if line.startswith(name["metadata"]["name"]))
        assert len(row.split()) == 7, table
    _empty(kerf)


def _check_instances(kerf: Installation) -> None:
    """Nodes, claims and instances agree, one to one to one."""
    claims, instances = kerf.get("nodeclaims"), {i["id"]: i for i in kerf.running_instances()}
    assert sorted(c["status"]["providerID"].rsplit("/", 1)[-1] for c in claims) == sorted(instances)
    for claim in claims:
        instance = instances[claim["status"]["providerID"].rsplit("/", 1)[-1]]
        labels, tags = claim["metadata"]["labels"], instance["tags"]
        assert labels["node.kubernetes.io/instance-type"] == instance["instance_type"]
        assert labels["topology.kubernetes.io/zone"] == instance["zone"]
        assert labels["karpenter.sh/capacity-type"] == instance["capacity_type"]
        assert tags["karpenter.sh/nodepool"] == "general"
        assert tags["eks:eks-cluster-name"] == CLUSTER_NAME
        assert tags[f"kubernetes.io/cluster/{CLUSTER_NAME}"] == "owned"
        assert tags["karpenter.k8s.aws/ec2nodeclass"] == "default"


# --- e: expiration (other ends: test_ends.py) --------------------------------------------------------------------
def test_an_expired_node_is_replaced(kerf: Installation) -> None:
    kerf.kubectl("apply", "-f", str(HERE / "expiring.yaml"))
    kerf.wait(lambda: _ready_nodes(kerf, "expiring") >= 1 and len(kerf.running("expiring")) == 1, 90, "the first node")
    first = {c["metadata"]["name"] for c in _claims(kerf, "expiring")}
    begun = time.monotonic()
    kerf.wait(
        lambda: (
            not first & {c["metadata"]["name"] for c in _claims(kerf, "expiring")}
            and len(kerf.running("expiring")) == 1
        ),
        180,
        "the expired node is replaced",
    )
    print(f"\nexpired node replaced after {time.monotonic() - begun:.0f} s")
    kerf.kubectl("delete", "-f", str(HERE / "expiring.yaml"))
    _empty(kerf)


# --- f: kill -9 in the middle -----------------------------------------------------------------------------------
def test_kill_9_in_the_middle_of_scale_out_and_of_scale_in_changes_nothing(kerf: Installation) -> None:
    _scale(kerf, 100)
    kerf.wait(lambda: len(kerf.running_instances()) >= 1, 60, "the first instance")
    kerf.kill_controller()
    time.sleep(2)
    kerf.start_controller()
    kerf.wait(lambda: len(kerf.running()) == 100, 150, "100 pods run after a kill -9")
    _check_instances(kerf)
    _scale(kerf, 0)
    kerf.wait(lambda: any(c["metadata"].get("deletionTimestamp") for c in kerf.get("nodeclaims")), 90, "scale-in began")
    kerf.kill_controller()
    time.sleep(2)
    kerf.start_controller()
    _empty(kerf)
    by_claim: dict[str, list[str]] = {}
    for instance in kerf.aws.instances():
        if claim := instance["tags"].get("karpenter.sh/nodeclaim"):
            by_claim.setdefault(claim, []).append(instance["id"])
    assert all(len(ids) == 1 for ids in by_claim.values()), by_claim


# --- the webhook is down, and nothing may pass unchecked ---------------------------------------------------------
def test_while_the_webhook_is_down_only_new_specs_have_to_wait(kerf: Installation) -> None:
    """failurePolicy is Fail here: pods, nodes, status, new claims, finalizers, metadata and deletions go on."""
    kerf.kubectl("apply", "-f", "-", input_=_SPARE)
    kerf.kill_webhook()
    try:
        _scale(kerf, 4)
        kerf.wait(lambda: len(kerf.running()) == 4, 90, "4 pods run")
        _check_instances(kerf)
        # A pod may run as soon as its node has lost the taint, and the condition is written then.
        kerf.wait(lambda: all(_is_true(c, "Initialized") for c in kerf.get("nodeclaims")), 90, "all are initialized")
        _empty(kerf)
        refused = kerf.kubectl(
            "patch", "nodepool", "spare", "--type=merge", "-p", '{"spec": {"weight": 2}}', check=False
        )
        assert "failed calling webhook" in refused, refused
        kerf.kubectl("annotate", "nodepool", "spare", "example.com/note=seen")
        kerf.kubectl("delete", "nodepool", "spare", "--timeout=30s")
    finally:
        kerf.start_webhook()
    assert "created" in kerf.kubectl("apply", "--dry-run=server", "-f", "-", input_=_SPARE)


# --- before anything else ---------------------------------------------------------------------------------------
def test_a_preflight_finds_nothing_wrong_and_names_the_right_that_is_taken_away(kerf: Installation) -> None:
    account = str(kerf.account())
    told = kerf.kerf("preflight", "--kubeconfig", account)
    print(f"\n{told}")
    assert re.search(r"^\d+ right, 0 wrong, 7 not checked, 0 doubtful$", told, re.MULTILINE)
    assert re.search(r"^  ok    EC2NodeClass default: \d+ subnets in us-west-2a, ", told, re.MULTILINE)
    with kerf.allowed_only([rule for rule in kerf.rules() if "pods/eviction" not in rule["resources"]]):
        told = kerf.kerf("preflight", "--kubeconfig", account, code=1)
    assert "  WRONG create pods/eviction: ServiceAccount kerf/kerf has no permission\n" in told


def test_a_preflight_asks_for_every_right_to_write_that_the_chart_gives(kerf: Installation) -> None:
    given = {
        (group, resource, verb)
        for rule in kerf.rules()
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if verb in ("create", "patch", "delete") and not resource.endswith("webhookconfigurations")
    }
    assert given == {*WRITES}


# --- why a pod waits, why a node stays ------------------------------------------------------------------------
def test_why_needs_no_right_to_write_and_says_what_the_event_says(kerf: Installation, tmp_path: Path) -> None:
    kerf.kubectl("apply", "-f", "-", input_=_READER)
    kerf.kubectl("apply", "-f", "-", input_=_GIANT)
    words = "no instance type has enough resources for cpu 400"
    kerf.wait(lambda: any(words in m for m in kerf.events("FailedScheduling")), 60, "the pod is refused")
    (event,) = [message for message in kerf.events("FailedScheduling") if words in message]
    reader = kerf.control_plane.service_account_kubeconfig("default", "reader", tmp_path / "reader")
    told = kerf.kerf("why", "pod", "giant", "--kubeconfig", str(reader))
    print(f"\n{event}\n\n{told}")
    assert told.startswith("pod default/giant has no place: ")
    assert f"NodePool general: {words}" in told
    fix = re.search(r"; it would fit with one edit: (lower its request for cpu from 400 to \w+)", event)
    assert fix is not None
    assert f"  - the pod: {fix[1]}\n" in told
    kinds = "nodepools,ec2nodeclasses,nodeclaims,nodes,namespaces,pods,daemonsets,csinodes,pv,pvc,sc"
    (tmp_path / "dump.yaml").write_text(kerf.kubectl("get", kinds, "-A", "-o", "yaml"))
    offline = kerf.kerf("why", "pod", "giant", "--file", str(tmp_path / "dump.yaml"))
    assert f"NodePool general: {words}" in offline
    kerf.kubectl("delete", "pod", "giant", "--wait=false")


def test_why_says_of_a_node_what_the_event_says_and_when_it_goes(kerf: Installation, tmp_path: Path) -> None:
    kerf.kubectl("apply", "-f", "-", input_=_READER)
    reader = kerf.control_plane.service_account_kubeconfig("default", "reader", tmp_path / "reader")
    _scale(kerf, 3)
    kerf.wait(lambda: len(kerf.running()) == 3, 90, "3 pods run")
    name = _busiest(kerf)["metadata"]["name"]
    kerf.kubectl("annotate", "node", name, "karpenter.sh/do-not-disrupt=true")
    _scale(kerf, 0)
    words = "the node is annotated karpenter.sh/do-not-disrupt"
    kerf.wait(lambda: any(words in m for m in kerf.events("DisruptionBlocked")), 90, "the empty node is held")
    told = kerf.kerf("why", "node", name, "--kubeconfig", str(reader))
    print(f"\n{told}")
    assert told.startswith(f"node {name} stays: {words}")
    assert re.search(r"^  Empty +no reschedulable pods: blocked by ", told, re.MULTILINE)
    assert re.search(r"^  Expired +expireAfter is .*: at 20\d\d-", told, re.MULTILINE)
    assert "\nBudgets of NodePool general: " in told
    (claim,) = [c["metadata"]["name"] for c in kerf.get("nodeclaims") if c["status"].get("nodeName") == name]
    assert kerf.kerf("why", "node", claim, "--kubeconfig", str(reader)).splitlines()[1] == told.splitlines()[1]
    assert "waiting for the first look" not in told
    kerf.kubectl("annotate", "node", name, "karpenter.sh/do-not-disrupt-")
    _empty(kerf)
    assert any("Disrupting the node: Empty (no reschedulable pods" in m for m in kerf.events("DisruptionTerminating"))


# --- aids -------------------------------------------------------------------------------------------------------
def _scale(kerf: Installation, replicas: int) -> None:
    kerf.kubectl("scale", "deployment/web", f"--replicas={replicas}")


def _empty(kerf: Installation) -> None:
    """Scale to zero; then no pod, node, claim or instance is left."""
    _scale(kerf, 0)
    begun = time.monotonic()
    kerf.wait(lambda: not kerf.get("nodeclaims") and not kerf.running_instances(), 180, "all nodes are given back")
    assert not kerf.get("nodes", selector="karpenter.sh/nodepool")
    print(f"\nempty again after {time.monotonic() - begun:.1f} s")


def _claims(kerf: Installation, pool: str) -> list[dict[str, Any]]:
    return kerf.get("nodeclaims", selector=f"karpenter.sh/nodepool={pool}")


def _ready_nodes(kerf: Installation, pool: str) -> int:
    return sum(_is_true(c, "Ready") for c in _claims(kerf, pool))


def _is_true(thing: dict[str, Any], type_: str) -> bool:
    conditions = thing.get("status", {}).get("conditions", [])
    return any(c["type"] == type_ and c["status"] == "True" for c in conditions)


def _busiest(kerf: Installation) -> dict[str, Any]:
    names = [p["spec"].get("nodeName", "") for p in kerf.get("pods", selector="app=web")]
    return kerf.one("node", max(sorted(set(names)), key=names.count))


def _print_cost(kerf: Installation, what: str) -> None:
    instances = kerf.running_instances()
    types = sorted(f"{i['instance_type']}/{i['capacity_type']}" for i in instances)
    print(f"\n{what}: {len(instances)} nodes ({', '.join(types)}), ${kerf.cost_usd_per_hour():.3f} an hour")


_SPARE = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: spare}
spec:
  weight: 1
  limits: {cpu: "0"}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: []
"""
_GIANT = """
apiVersion: v1
kind: Pod
metadata: {name: giant, namespace: default}
spec:
  containers: [{name: giant, image: giant, resources: {requests: {cpu: "400"}}}]
"""
_READER = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules:
  - {apiGroups: [""], verbs: [list], resources: [nodes, pods, namespaces, persistentvolumes, persistentvolumeclaims]}
  - {apiGroups: [karpenter.sh], verbs: [list], resources: [nodepools, nodeclaims]}
  - {apiGroups: [karpenter.k8s.aws], verbs: [list], resources: [ec2nodeclasses]}
  - {apiGroups: [storage.k8s.io], verbs: [list], resources: [csinodes, storageclasses, volumeattachments]}
  - {apiGroups: [apps], verbs: [list], resources: [daemonsets]}
  - {apiGroups: [policy], verbs: [list], resources: [poddisruptionbudgets]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: default}]
"""
