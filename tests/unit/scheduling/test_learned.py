"""Facts that Kerf learns of nodes: what they are of, how they are used, and when they end."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec

from kerf.lifecycle.nodeclaim import mismatches as stage
from kerf.lifecycle.view import View
from kerf.model import mismatches
from kerf.model.aws.cloud import ClassFacts, Image
from kerf.model.memory import Memory
from kerf.model.mismatches import Mismatches
from kerf.provisioning.avoiding import Avoided
from kerf.provisioning.why import why
from kerf.scheduling.offerings.learned import differences
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import decode
from kerf_api.v1.nodepool import NodePool
from tests.unit.scheduling import worlds as w
from tests.unit.scheduling.progress_world import FOREIGN, claim, ready

WEB = w.pod("web", "1500m")
LABEL = "example.com/rack"
FULL = {"cpu": "3900m", "memory": "4Gi", "pods": "110"}


def noting(found: Mismatches, pool: NodePool | None = None) -> NodePool:
    own = pool or w.pool()
    notes = {labels.MISMATCHES: mismatches.annotation(found), labels.NODEPOOL_HASH: "7"}
    return msgspec.structs.replace(own, metadata=msgspec.structs.replace(own.metadata, annotations=notes))


def learned(*objects: Any, before: Mismatches = mismatches.EMPTY) -> Mismatches:
    pool = noting(before)
    turn = Memory().turn(w.world(pool, *objects))
    return stage.recorded(View(turn.snapshot), pool, stage.find(turn))


def node_class() -> EC2NodeClass:
    own = {"name": "default", "annotations": {labels.NODECLASS_HASH: "9"}}
    return decode(EC2NodeClass, {"metadata": own, "spec": {}})


def made(name: str = "n1", **notes: str) -> Any:
    return claim(
        name,
        WEB,
        minutes=5,
        allocatable=FULL,
        annotations={labels.NODECLASS_HASH: "9", labels.NODEPOOL_HASH: "7", **notes},
    )


def test_less_allocatable_is_a_fact_of_the_type() -> None:
    found = learned(made(), ready("n1", cpu="1400m"), WEB)
    (size,) = found.sizes
    assert (size.instance_type, size.image, size.hash, size.amounts) == ("default", "ami-1", "9", {"cpu": 1400})
    facts: dict[str, Any] = {"class_facts": {"default": ClassFacts(generation=1, images=(Image(id="ami-1"),))}}
    pods = [w.pod("big", "1500m", nodeSelector={labels.INSTANCE_TYPE: "default"})]
    known = w.solved(noting(Mismatches(sizes=found.sizes)), node_class(), *pods, **facts)
    assert not known.new_nodes
    assert "enough resources" in str(known.unplaced["default/big"])
    assert w.solved(noting(mismatches.EMPTY), node_class(), *pods, **facts).new_nodes
    snapshot = w.world(noting(found), node_class(), **facts)
    assert "small" in Avoided(snapshot).by_shortfall(w.pod("p", "1"))


def test_a_taint_is_a_fact_once_two_nodes_have_shown_it() -> None:
    one = learned(made(), ready("n1", taints=[FOREIGN]), WEB)
    assert [trait.is_proven for trait in one.traits] == [False]
    assert w.solved(noting(one), WEB).new_nodes
    two = learned(made("n2"), ready("n2", taints=[FOREIGN]), WEB, before=one)
    assert [trait.is_proven for trait in two.traits] == [True]
    assert not w.solved(noting(two), WEB).new_nodes
    tolerating = w.pod("web", "1500m", tolerations=[{"operator": "Exists"}])
    assert w.solved(noting(two), tolerating).new_nodes
    assert w.solved(noting(two), WEB, now=w.NOW + timedelta(hours=24)).new_nodes
    assert learned(ready("n2"), before=two).traits == ()


def test_a_label_that_never_comes_is_a_fact_too() -> None:
    rack = w.pod("web", "1500m", nodeSelector={LABEL: "r1"})
    pool = w.pool(labels={LABEL: "r1"})
    one = claim("n1", rack, minutes=5, annotations={labels.NODEPOOL_HASH: "7"})
    own = msgspec.structs.replace(
        one, metadata=msgspec.structs.replace(one.metadata, labels={**one.metadata.labels, LABEL: "r1"})
    )
    assert [str(one) for one in differences(own, ready("n1"))] == [f"label {LABEL} is missing, expected r1"]
    trait = mismatches.Trait(kind=mismatches.LABEL, text=LABEL, hash="7", nodes=("n1", "n2"), at=w.NOW)
    assert w.solved(noting(mismatches.EMPTY, pool), rack).new_nodes
    assert not w.solved(noting(Mismatches(traits=(trait,)), pool), rack).new_nodes


def test_why_has_the_message_of_the_scheduler_and_each_difference() -> None:
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes: cpu"}
    pod = msgspec.structs.replace(WEB, status=decode(type(WEB.status), {"phase": "Pending", "conditions": [refused]}))
    answer = why(w.world(w.pool(), made(), ready("n1", cpu="1400m"), pod), pod.key)
    assert answer.details[-2:] == (
        "the kube-scheduler reports: 0/1 nodes: cpu",
        "node n1 was launched for it: allocatable cpu is 1400m, expected 3900m",
    )
