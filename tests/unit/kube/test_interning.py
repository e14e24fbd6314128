"""Equal parts of pods are kept once, and nothing that a decision reads is lost."""

from __future__ import annotations

import msgspec

from kerf.kube.interning import Interner
from kerf.model.kubernetes.objects import ClaimSource, Container, Pod, PodCondition, PodSpec, PodStatus, Volume
from kerf_api.v1.meta import ObjectMeta


def pod(name: str, node: str = "n") -> Pod:
    raw = f"""{{"metadata": {{"name": "{name}", "namespace": "d", "labels": {{"app": "web"}}}},
    "spec": {{"nodeName": "{node}", "containers": [{{"name": "c", "resources": {{"requests": {{"cpu": "1"}}}}}}],
    "tolerations": [{{"key": "x", "operator": "Exists"}}],
    "volumes": [{{"name": "token-{name}"}}, {{"name": "data", "persistentVolumeClaim": {{"claimName": "p"}}}}]}},
    "status": {{"phase": "Running", "conditions": [{{"type": "Ready", "status": "True"}}, {{"type": "Odd"}}]}}}}"""
    return msgspec.json.decode(raw, type=Pod)


def test_parts_that_are_equal_are_the_same() -> None:
    interner = Interner()
    one, two = interner.pod(pod("a", "m")), interner.pod(pod("b", "n"))
    assert one.metadata.labels is two.metadata.labels
    assert one.spec.containers is two.spec.containers
    assert one.spec.tolerations is two.spec.tolerations
    assert one.spec.volumes is two.spec.volumes
    assert (one.metadata.name, two.metadata.name) == ("a", "b")
    assert (one.spec.node_name, two.spec.node_name) == ("m", "n")


def test_only_what_nobody_reads_is_left_out() -> None:
    seen = Interner().pod(pod("a"))
    assert seen.spec.volumes == (Volume(name="data", persistent_volume_claim=ClaimSource(claim_name="p")),)
    assert seen.status.conditions == (PodCondition(type="Ready", status="True"),)
    assert seen.spec.containers == pod("a").spec.containers


def test_parts_of_different_kinds_are_never_mixed_up() -> None:
    interner = Interner()
    plain = Pod(
        metadata=ObjectMeta(name="a", finalizers=("x",)),
        spec=PodSpec(containers=(Container(name="x"),), init_containers=(Container(name="x"),)),
        status=PodStatus(),
    )
    same = interner.pod(plain)
    assert same == plain
    assert isinstance(same.spec.init_containers[0], Container)
