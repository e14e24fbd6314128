"""How many nodes pods get when their earlier nodes did not help."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from kerf.model import mismatches
from kerf.model.kubernetes.objects import Pod
from kerf.model.kubernetes.workloads import StoredTemplate
from kerf.model.memory import Memory
from kerf.model.mismatches import Mismatches, Record
from kerf.model.plan import CreateNodeClaim, Plan
from kerf.model.settings import FeatureGates
from kerf.model.snapshot import Batch, Snapshot
from kerf.pods.buffer_pods import virtual_pods
from kerf.pods.requirements import required_terms
from kerf.provisioning import boundary
from kerf.provisioning.avoiding import avoiding
from kerf.provisioning.provision import provision
from kerf.scheduling.mismatch.inputs import inputs_of
from kerf.scheduling.placing.pod_shapes import PodShapes
from kerf.scheduling.solve import Solution
from kerf_api import labels
from kerf_api.v1.capacitybuffer import CapacityBuffer
from kerf_api.v1.meta import decode
from kerf_api.v1.nodepool import NodePool
from tests.unit.scheduling import worlds as w
from tests.unit.scheduling.progress_world import FOREIGN, claim, ready

HOUR = timedelta(hours=1)
BATCH = Batch(w.NOW - timedelta(seconds=2), w.NOW - timedelta(seconds=2))
PODS = w.replicas(3, "web", "1500m")


def recorded(nodes: int, hours: float, *, inputs: str | None = None, pods: Sequence[Pod] = PODS) -> NodePool:
    """The NodePool of which so many nodes did not help pods like these, the latest so many hours ago."""
    world = w.world(w.pool(), *pods)
    at = w.NOW - hours * HOUR
    record = Record(
        shape=PodShapes(world).of(pods[0]),
        since=at,
        at=at,
        nodes=nodes,
        inputs=inputs_of(world) if inputs is None else inputs,
        claim="uid-n1",
        node="n1",
    )
    text = mismatches.annotation(Mismatches(records=(record,)))
    pool = w.pool()
    return msgspec.structs.replace(
        pool, metadata=msgspec.structs.replace(pool.metadata, annotations={labels.MISMATCHES: text})
    )


def planned(*objects: Any) -> Plan:
    return provision(w.world(*objects, batch=BATCH))


def made(plan: Plan) -> list[CreateNodeClaim]:
    return [action for action in plan.actions if isinstance(action, CreateNodeClaim)]


def codes(plan: Plan) -> list[str]:
    return [refusal.reason.code for refusal in plan.refusals if refusal.subject.startswith("pod/")]


@pytest.mark.parametrize(
    ("nodes", "hours", "inputs", "attempt"),
    [(1, 0, None, True), (2, 23, None, False), (2, 24, None, True), (9, 1, None, False), (2, 1, "others", True)],
)
def test_one_more_node_then_one_a_day_or_when_something_changes(
    nodes: int, hours: float, inputs: str | None, attempt: bool
) -> None:
    pool = recorded(nodes, hours, inputs=inputs)
    plan = planned(pool, *PODS)
    assert len(made(plan)) == attempt
    assert codes(plan) == (["AwaitingNode"] * 2 if attempt else ["NodeMismatch"] * 3)
    if attempt:
        (record,) = mismatches.remembered(pool).records
        assert made(plan)[0].claim.metadata.annotations[labels.PROBES] == record.shape
    else:
        assert {event.reason for event in plan.events} == {"FailedScheduling"}


def test_other_pods_get_their_nodes() -> None:
    plan = planned(recorded(2, 1), *PODS, *w.replicas(3, "other", "1200m"))
    assert sum(len(action.claim.metadata.annotations[labels.PLANNED_PODS].split(",")) for action in made(plan)) == 3
    assert codes(plan) == ["NodeMismatch"] * 3


def test_pods_still_go_to_nodes_that_exist() -> None:
    plan = planned(recorded(2, 1), *PODS, w.node("free"))
    assert not made(plan)
    assert len(plan.nominations) == 2
    assert codes(plan) == ["NodeMismatch"]


@pytest.mark.parametrize(("minutes", "initialized"), [(0.5, True), (3, False)])
def test_while_an_attempt_awaits_its_verdict_there_is_no_other(minutes: float, initialized: bool) -> None:
    pool = recorded(2, 30)
    (record,) = mismatches.remembered(pool).records
    attempt = claim("n2", PODS[0], minutes=minutes, initialized=initialized, annotations={labels.PROBES: record.shape})
    plan = planned(pool, attempt, ready("n2", taints=[FOREIGN]), *PODS)
    assert not made(plan)
    assert codes(plan) == ["AwaitingNode"] * 3


def test_a_pod_whose_node_has_just_come_up_gets_no_other() -> None:
    plan = planned(w.pool(), claim("n1", PODS[0], minutes=0.5), ready("n1", taints=[FOREIGN]), *PODS)
    assert codes(plan) == ["AwaitingNode"]
    assert len(made(plan)) == 1
    assert labels.PROBES not in made(plan)[0].claim.metadata.annotations


def test_the_next_attempt_is_for_a_pod_and_not_for_a_virtual_one() -> None:
    """A buffer of the same template has a pod of the same shape, without a creation time."""
    meta, web = {"name": "web", "namespace": "default", "uid": "buffer"}, PODS[0]
    template = {"metadata": meta, "template": {"spec": {"containers": msgspec.to_builtins(web.spec.containers)}}}
    virtual = [
        decode(CapacityBuffer, {"metadata": meta, "spec": {"podTemplateRef": {"name": "web"}, "replicas": 1}}),
        decode(StoredTemplate, template),
    ]
    since = msgspec.structs.replace(web.metadata, creation_timestamp=w.NOW - HOUR)
    facts: dict[str, Any] = {"batch": BATCH, "gates": FeatureGates(capacity_buffer=True)}
    world = w.world(recorded(2, 30), msgspec.structs.replace(web, metadata=since), *virtual, **facts)
    shapes = PodShapes(world)
    assert {shapes.of(pod) for pod in virtual_pods(Memory().turn(world))} == {shapes.of(web)}
    assert [one.pod_uid for one in provision(world).nominations] == [web.metadata.uid]


def test_pods_that_are_held_get_no_node_however_many_they_are() -> None:
    """The search for a cheaper plan moves some of many to another zone, whatever a plain solve has found."""
    facts: dict[str, Any] = {"labels": {"app": "web"}, "topologySpreadConstraints": [w.spread()]}
    pods, big = w.replicas(243, "web", "10m", "1Mi", **facts), w.node("big", cpu="64", memory="64Gi", pods=500)
    assert made(planned(recorded(2, 1, pods=pods), big, *pods)) == []


def test_pods_that_are_held_cost_no_further_search_for_a_cheaper_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are found by plain solves; the plan of the others is searched for once."""
    searches, whole = list[int](), boundary.solve_apart

    def counted(snapshot: Snapshot, pods: Sequence[Pod], *args: Any, **kwargs: Any) -> Solution:
        searches.append(len(pods))
        return whole(snapshot, pods, *args, **kwargs)

    monkeypatch.setattr("kerf.provisioning.provision.solve_apart", counted)
    plan = planned(recorded(2, 1), *PODS, *w.replicas(4, "other", "1200m"))
    assert searches == [4]
    assert codes(plan) == ["NodeMismatch"] * 3
    assert made(plan)


def _after_one_in(zone: str, *objects: Any, pod: Pod) -> list[str]:
    """The zones of the node that follows one that did not help, by what its NodeClaim requires."""
    where = {labels.NODEPOOL: "default", labels.ZONE: zone, labels.ARCH: "arm64", labels.INSTANCE_TYPE: "m7g.large"}
    record = Record(shape=PodShapes(w.world(w.pool(), pod)).of(pod), since=w.NOW - HOUR, at=w.NOW - HOUR, where=where)
    text = mismatches.annotation(Mismatches(records=(record,)))
    own = msgspec.structs.replace(w.pool().metadata, annotations={labels.MISMATCHES: text})
    (creation,) = made(planned(msgspec.structs.replace(w.pool(), metadata=own), *objects, pod))
    rows = [entry for entry in creation.claim.spec.requirements if entry.key == labels.ZONE]
    return sorted(f"{entry.operator} {', '.join(sorted(entry.values))}" for entry in rows)


def test_a_second_node_is_in_another_zone_as_far_as_there_is_a_place() -> None:
    assert _after_one_in("z1", pod=w.pod("web", "1500m")) == ["NotIn z1"]
    assert _after_one_in("z1", pod=w.pod("web", "1500m", nodeSelector={labels.ZONE: "z1"})) == ["In z1"]


def test_a_second_node_keeps_to_the_spread_of_the_pod() -> None:
    """With a pod in each of the other zones the kube-scheduler accepts no node but one in the first zone."""

    def web(name: str, **more: Any) -> Pod:
        return w.pod(name, "500m", labels={"app": "web"}, topologySpreadConstraints=[w.spread()], **more)

    full = [
        part
        for n in (2, 3)
        for part in (w.node(f"n{n}", f"z{n}"), web(f"r{n}", node=f"n{n}"), w.pod(f"f{n}", "3400m", node=f"n{n}"))
    ]
    assert _after_one_in("z1", *full, pod=web("new")) == ["In z1"]


@pytest.mark.parametrize("terms", [[], [{}], [{}, {"matchFields": []}]])
def test_a_term_that_selects_no_node_does_not_begin_to(terms: list[dict[str, Any]]) -> None:
    required = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    pod = w.pod("web", affinity=required)
    assert required_terms(avoiding(pod, frozenset({"m5.large"}))) == required_terms(pod)
    (term,) = required_terms(avoiding(w.pod("web"), frozenset({"m5.large"})))
    assert term.match_expressions[0].values == ("m5.large",)
