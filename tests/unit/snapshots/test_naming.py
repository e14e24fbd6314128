"""Pseudonyms: no name is left, and what is decided is the same up to names."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from kerf.decide import decide
from kerf.model import kinds
from kerf.model.aws.cloud import ClusterFacts, FleetError
from kerf.model.cluster import build
from kerf.model.failures import Failure
from kerf.model.plan import Plan
from kerf.model.snapshot import LaunchFailure
from kerf.snapshots import naming
from kerf.snapshots.captured import Captured
from kerf.snapshots.reading import Unreadable, read
from kerf.snapshots.writing import lines
from kerf_api import labels
from kerf_api.v1.meta import decode

from .test_sanitizing import life
from .worlds import SETTINGS, busy

NOW = busy().snapshot.now


def _renamed(found: Captured) -> Captured:
    return read(naming.renamed(lines(found, b"key")))


def _form(plan: Plan) -> tuple[object, ...]:
    """A plan without names."""
    found = [(type(one).__name__, getattr(one, "verb", ""), one.reason.code) for one in plan.actions]
    refused = Counter((one.subject.partition("/")[0], one.reason.code) for one in plan.refusals)
    return found, refused, Counter(one.reason for one in plan.events), plan.next_due, plan.purchase


@pytest.mark.parametrize("moment", ["launching", "at_rest", "edited"])
def test_the_plan_is_the_same_up_to_names(moment: str) -> None:
    found: Captured = getattr(life(), moment)
    assert _form(decide(_renamed(found).snapshot)) == _form(decide(found.snapshot))


def test_so_it_is_for_a_cluster_at_work() -> None:
    assert _form(decide(_renamed(busy()).snapshot)) == _form(decide(busy().snapshot))


def test_no_name_of_the_cluster_is_left() -> None:
    text = b"".join(naming.renamed(lines(busy(), b"key"))).decode()
    snapshot = busy().snapshot
    names = {*snapshot.node_claims, *snapshot.nodes, *snapshot.node_pools}
    for pod in snapshot.pods.values():
        names |= {pod.metadata.name, *(text for key, text in pod.metadata.labels.items() if not key.endswith("-hash"))}
    left = {name for name in names if f'"{name}"' in text or f"/{name}" in text}
    assert len(names) > 50
    assert left <= {"spot"}, "a word of the API stays, though a NodePool is called so"


def test_the_order_of_names_stays() -> None:
    before, after = busy().snapshot, _renamed(busy()).snapshot
    assert [pod.metadata.uid for _, pod in sorted(before.pods.items())] == [
        pod.metadata.uid for _, pod in sorted(after.pods.items())
    ]
    assert [claim.metadata.uid for _, claim in sorted(before.node_claims.items())] == [
        claim.metadata.uid for _, claim in sorted(after.node_claims.items())
    ]


@pytest.mark.parametrize(
    ("kind", "manifest", "kept", "gone"),
    [
        ("Pod", {"metadata": {"labels": {"team.example.com/unit": "Payments"}}}, [], ["team", "Payments", "example"]),
        ("Pod", {"metadata": {"labels": {"version": "v2", "tier": "17"}}}, ["17"], ['"version":"', "v2", "tier"]),
        ("Pod", {"metadata": {"labels": {"phase": "Running"}}, "status": {"phase": "Running"}}, ['"Running"'], []),
        ("Pod", {"spec": {"nodeSelector": {"karpenter.sh/capacity-type": "spot"}}}, ['"spot"'], []),
        ("Pod", {"spec": {"nodeSelector": {"disk": "fast"}}}, [], ["disk", "fast"]),
        ("Pod", {"spec": {"tolerations": [{"key": "gpu", "operator": "Exists"}]}}, ['"Exists"'], ["gpu"]),
        (
            "Pod",
            {"spec": {"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "aurora"}}]}},
            [],
            ["aurora"],
        ),
        (
            "Node",
            {"spec": {"taints": [{"key": "team/gpu", "value": "red", "effect": "NoSchedule"}]}},
            ["NoSchedule"],
            ["gpu", "red"],
        ),
        ("Node", {"metadata": {"labels": {"topology.kubernetes.io/zone": "us-west-2a"}}}, ["us-west-2a"], []),
        ("Namespace", {"metadata": {"labels": {"owner": "bob"}}}, [], ["owner", "bob"]),
    ],
)
def test_what_is_a_name_and_what_is_a_word_of_the_api(
    kind: str, manifest: dict[str, Any], kept: list[str], gone: list[str]
) -> None:
    of = kinds.BY_NAME[kind]
    meta = {"name": "zeppelin", "namespace": "" if of.cluster_scoped else "moscow", **manifest.get("metadata", {})}
    value = decode(of.type, {**manifest, "metadata": meta})
    found = Captured(build([value], now=busy().snapshot.now, settings=SETTINGS))
    text = b"".join(line for line in naming.renamed(lines(found, b"key")) if b'"objects"' in line).decode()
    assert [one for one in kept if one not in text] == []
    assert [one for one in [*gone, "zeppelin", "moscow"] if one in text] == []


OWN: dict[str, tuple[dict[str, Any], list[str]]] = {
    "labels of a chart": (
        {"metadata": {"labels": {"app.kubernetes.io/name": "zeppelin", "app.kubernetes.io/part-of": "merger"}}},
        ["merger"],
    ),
    "owner without an object": (
        {"metadata": {"ownerReferences": [{"kind": "Job", "name": "audit", "uid": "1"}]}},
        ["audit"],
    ),
    "finalizer": ({"metadata": {"finalizers": ["acme.example/audit"]}}, ["acme", "audit"]),
    "scheduler": ({"spec": {"schedulerName": "nightly"}}, ["nightly"]),
    "resource": ({"spec": {"containers": [{"resources": {"requests": {"acme.example/chip": "1"}}}]}}, ["acme", "chip"]),
    "namespaces of an affinity": (
        {
            "spec": {
                "affinity": {
                    "podAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {"topologyKey": "kubernetes.io/hostname", "namespaces": ["elsewhere"]}
                        ]
                    }
                }
            }
        },
        ["elsewhere"],
    ),
    "role of nodes": ({"metadata": {"labels": {"node-role.kubernetes.io/merger": ""}}}, ["merger"]),
    "message": ({"status": {"conditions": [{"type": "PodScheduled", "message": "no claim hush"}]}}, ["hush"]),
}


@pytest.mark.parametrize("place", OWN)
def test_no_text_of_a_user_stays(place: str) -> None:
    manifest, gone = OWN[place]
    meta = {"name": "zeppelin", "namespace": "moscow", **manifest.get("metadata", {})}
    space = {"name": "moscow", "labels": {"kubernetes.io/metadata.name": "moscow"}}
    text = _objects(("Pod", {**manifest, "metadata": meta}), ("Namespace", {"metadata": space}))
    assert [one for one in [*gone, "zeppelin", "moscow"] if one in text] == []


def _objects(*manifests: tuple[str, dict[str, Any]]) -> str:
    """The lines of these objects with pseudonyms."""
    values = [decode(kinds.BY_NAME[kind].type, manifest) for kind, manifest in manifests]
    found = Captured(build(values, now=busy().snapshot.now, settings=SETTINGS))
    return b"".join(line for line in naming.renamed(lines(found, b"key")) if b'"objects"' in line).decode()


def test_no_text_of_a_user_in_a_node_class_stays() -> None:
    spec = {
        "role": "Role-prod",
        "tags": {"owner": "alice@example.com"},
        "subnetSelectorTerms": [{"tags": {"Name": "prod-private*"}}],
        "amiSelectorTerms": [{"name": "golden-*"}],
    }
    request = '{"group":"g","tags":{"owner":"alice@example.com"}}'
    text = _objects(
        ("EC2NodeClass", {"metadata": {"name": "prod"}, "spec": spec, "status": {"instanceProfile": "prod_77"}}),
        (
            "NodeClaim",
            {
                "metadata": {"name": "a", "annotations": {labels.LAUNCH_REQUEST: request}},
                "spec": {"nodeClassRef": {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "prod"}},
            },
        ),
    )
    assert [one for one in ("prod", "alice", "owner", "golden", "Role") if one in text] == []


@pytest.mark.parametrize(
    "word", ["name", "key", "status", "spec", "metadata", "labels", "items", "line", "zone", "gpu"]
)
def test_names_that_are_fields_or_parts_of_keys_change_no_field(word: str) -> None:
    """A label `name` or a Deployment `zone`: fields and keys of the API stay, so the objects are the same ones."""
    pod = {
        "metadata": {"name": word, "namespace": "moscow", "labels": {word: "web", "nvidia.com/gpu.present": "yes"}},
        "spec": {
            "nodeName": "one",
            "nodeSelector": {"topology.kubernetes.io/zone": "us-west-2a"},
            "containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": "1"}}}],
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        },
        "status": {"phase": "Running"},
    }
    found = Captured(build([decode(kinds.POD.type, pod)], now=busy().snapshot.now, settings=SETTINGS))
    (after,), (before,) = _renamed(found).snapshot.pods.values(), found.snapshot.pods.values()
    assert after.spec.node_selector == before.spec.node_selector
    assert after.spec.containers[0].resources == before.spec.containers[0].resources
    assert after.spec.tolerations == before.spec.tolerations
    assert after.status.phase == "Running"
    assert after.spec.node_name.startswith("n")
    assert after.metadata.name not in (word, "")


def test_the_pods_of_a_daemon_set_select_their_node_by_the_same_field() -> None:
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["ip-10-0-0-1"]}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    text = _objects(("Pod", {"metadata": {"name": "a", "namespace": "b"}, "spec": {"affinity": affinity}}))
    assert '"key":"metadata.name"' in text
    assert "ip-10-0-0-1" not in text


def test_facts_have_no_names() -> None:
    cluster = ClusterFacts("prod", "https://ABC.gr7.us-west-2.eks.amazonaws.com")
    failure = Failure("EvictPod", "pod/shop/web", "failed", "the webhook of team-x refuses", NOW, NOW)
    settings = replace(SETTINGS, interruption_queue="prod-queue")
    facts = replace(busy().snapshot, cluster=cluster, failures={"pod/shop/web": failure}, settings=settings)
    text = b"".join(naming.renamed(lines(replace(busy(), snapshot=facts), b"key"))).decode()
    own = [*busy().snapshot.node_claims, "ABC.gr7", "team-x", "prod-queue", "sandbox_"]
    assert [one for one in own if one in text] == []


def test_a_refused_launch_of_a_deleted_node_claim_has_no_name() -> None:
    """Neither the NodeClaim nor its NodePool need be among the objects."""
    failure = LaunchFailure((FleetError("VcpuLimitExceeded", "no"),), busy().snapshot.now, pool="secret")
    seen = replace(busy().snapshot, launch_failures={"nodeclaim/secret-1a2b": failure})
    found = b"".join(naming.renamed(lines(replace(busy(), snapshot=seen), b"key")))
    assert b'"launch_failures","value":{"nodeclaim/n' in found
    assert b"secret" not in found


def test_the_account_is_left_out() -> None:
    own = ClusterFacts("prod", "https://x", arn="arn:aws:eks:us-west-2:123456789012:cluster/prod")
    facts = replace(busy().snapshot, cluster=own)
    text = b"".join(naming.renamed(lines(replace(busy(), snapshot=facts), b"key")))
    assert b"123456789012" not in text
    assert b"arn:aws:eks:us-west-2:000000000000:" in text


@pytest.mark.parametrize(
    "line",
    [
        b"nothing",
        b"[1]",
        b'{"line":"region","region":7}',
        b'{"line":"objects","kind":"Pod","items":[{"metadata":{"ownerReferences":["x"]}}]}',
        b'{"line":"objects","kind":"Pod","items":[{"metadata":{"$pairs":[7]}}]}',
    ],
)
def test_what_is_no_line_is_unreadable(line: bytes) -> None:
    with pytest.raises(Unreadable, match="line 1: "):
        list(naming.renamed([line]))


def test_the_header_says_so() -> None:
    assert json.loads(next(iter(naming.renamed(lines(busy(), b"key")))))["names"] == "pseudonyms"
    assert _renamed(busy()).names == "pseudonyms"
