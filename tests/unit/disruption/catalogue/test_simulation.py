"""Where the pods of a node would go (21 to 24 and 28, 29 of the disruption catalogue), asked of the real scheduler."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.disruption.asking import Manner, Scheduler
from kerf.disruption.candidates.candidates import unblocked
from kerf.disruption.command import Command
from kerf.disruption.disrupt import disrupt
from kerf.disruption.propose import propose
from kerf.disruption.simulation import Outcome, simulate
from kerf.disruption.view import view
from kerf.model.annotations import text_of
from kerf.model.kubernetes.storage import PersistentVolume, PersistentVolumeClaim
from kerf.model.memory import Memory
from kerf.model.plan import Plan
from kerf.scheduling.answers.solution import Solution
from kerf_api import labels
from kerf_api.v1.meta import decode
from tests.unit.disruption import worlds as w

COMMAND = text_of(Command(id="c", reason="Drifted", started=w.NOW, created=True))
LARGE: dict[str, Any] = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1500m"}}}]}
WAITS = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]


def simulated(*objects: Any, solutions: list[Solution] | None = None) -> Outcome:
    """Of the node of claim a; with what the scheduler answered."""
    seen = view(w.snapshot([w.pool(), *objects]))
    one, real = w.judged(w.pool(), *objects), Scheduler(seen.snapshot, seen.turn)

    def ask(*asked: Any) -> Solution:
        answer = real(*asked)
        if solutions is not None:
            solutions.append(answer)
        return answer

    return simulate(seen, [one], ask, Manner.FREELY)  # type: ignore[list-item]


def raw(name: str) -> list[Any]:
    """A node that has registered and is not initialised."""
    one = w.claim(name)
    node = w.node(one)
    own = {key: value for key, value in node.metadata.labels.items() if key != labels.INITIALIZED}
    return [one, replace(node, metadata=replace(node.metadata, labels=own))]


def drifting(*objects: Any, **facts: Any) -> Plan:
    return disrupt(w.snapshot([w.rolling(), *w.drifted("a"), w.pod("web", "a"), *objects], **facts))


def on(spot: str) -> dict[str, Any]:
    """A pod that may be on one node only."""
    return {"nodeSelector": {"spot": spot}}


def spotted(pair: list[Any], spot: str) -> list[Any]:
    one, node = pair
    return [one, replace(node, metadata=replace(node.metadata, labels={**node.metadata.labels, "spot": spot}))]


def test_021_pods_of_a_candidate_have_no_place_on_a_node_that_is_not_initialised() -> None:
    """Those of a node that goes already may have one there."""
    going = w.claim("z")
    going = replace(going, metadata=replace(going.metadata, deletion_timestamp=w.NOW))
    young, old = spotted(raw("young"), "x"), w.pod("old", "z", **on("x"))
    found = simulated(*w.pairs("a"), w.pod("web", "a", **on("x")), *young)
    assert found.blocker is not None
    assert found.blocker.code == "PodsWouldNotSchedule"
    assert "shop/web: would move to node-young, which is not initialized" in found.blocker.text
    answers: list[Solution] = []
    leaving = simulated(*w.pairs("a"), going, w.node(going), old, *young, solutions=answers)
    assert leaving.blocker is None
    assert answers[0].placed["shop/old"] == "young"


def test_022_an_initialised_node_comes_before_one_that_is_not() -> None:
    answers: list[Solution] = []
    found = simulated(*w.pairs("a"), w.pod("web", "a"), *raw("b"), *w.pairs("c"), solutions=answers)
    assert (found.blocker, answers[0].placed) == (None, {"shop/web": "c"})


def test_a_place_that_another_node_s_pod_goes_to_already_is_paid_for() -> None:
    """It is the same to the scheduler which of two equal pods has the place: one of them needs a new node."""
    under_way = w.claim("z", annotations={labels.COMMAND: COMMAND})
    going = [under_way, w.node(under_way), w.pod("old", "z", **LARGE), *w.pairs("free")]
    found = simulated(*w.pairs("a"), w.pod("new", "a", **LARGE), *going)
    assert (found.blocker, len(found.new_nodes)) == (None, 1)
    other = simulated(*w.pairs("a"), w.pod("web", "a", **LARGE), *going, *w.pairs("more"))
    assert (other.blocker, other.new_nodes) == (None, ())


@pytest.mark.parametrize(("minutes", "code"), [(0, "PlaceOfOthers"), (5, None)])
def test_a_node_that_takes_the_pods_of_another_stays_until_they_have_moved(minutes: int, code: str | None) -> None:
    """But not for long: one that is still there is stuck, by its PodDisruptionBudget, say."""
    command = Command(id="c", reason="Drifted", started=w.NOW - minutes * w.MINUTE, created=True)
    under_way = w.claim("z", annotations={labels.COMMAND: text_of(command)})
    old = w.pod("old", "z", **LARGE)
    found = simulated(*w.pairs("a"), w.pod("web", "a"), under_way, w.node(under_way), old)
    assert (found.failed.code if found.failed is not None else None) == code
    roomy = simulated(*w.pairs("a"), w.pod("web", "a"), under_way, w.node(under_way), old, *w.pairs("b"))
    assert roomy.failed is None


def evicted(number: int, *, minutes: int = 0, replacements: tuple[str, ...] = ()) -> list[Any]:
    """A node whose removal began so long ago, with so many pods; it waits for the replacements, if there are some."""
    command = Command(
        id="c", reason="Drifted", started=w.NOW - minutes * w.MINUTE, created=True, replacements=replacements
    )
    one = w.claim("z", annotations={labels.COMMAND: text_of(command)})
    return [one, w.node(one), *(w.pod(f"old{i}", "z", **LARGE) for i in range(number))]


@pytest.mark.parametrize(
    ("going", "code"),
    [
        (evicted(1), "PlaceOfOthers"),
        (evicted(1, minutes=5), None),
        (evicted(1, replacements=("young",)), None),
    ],
)
def test_pods_that_are_evicted_now_need_not_wait_for_a_node_that_has_not_joined(
    going: list[Any], code: str | None
) -> None:
    """Without the candidate they would have their place there only."""
    found = simulated(
        *w.pairs("a"), w.pod("web", "a", **on("x")), *going, *raw("young"), *spotted(w.pairs("x"), "x"), full()
    )
    assert (found.failed.code if found.failed is not None else None) == code


def test_it_does_not_matter_which_of_the_evicted_pods_would_wait() -> None:
    pods, young = [w.pod("web", "a", **on("x")), full()], raw("young")
    world = [*w.pairs("a", "b"), *evicted(2), *spotted(w.pairs("x"), "x"), *pods]
    found = simulated(*world, *young)
    assert found.failed is not None
    assert found.failed.code == "PlaceOfOthers"
    assert simulated(*world, *young, *w.pairs("c")).failed is None


def full() -> Any:
    """A pod that leaves no place for a large one on the node x."""
    return w.pod("full", "x", containers=[{"name": "c", "resources": {"requests": {"cpu": "900m"}}}])


def young_or_new(*pods: Any) -> tuple[Outcome, list[Solution]]:
    """Of a node whose pods and those of one that goes already fit on a successor that has not joined and a new node."""
    command = Command(id="c", reason="Drifted", started=w.NOW, created=True, replacements=("young",))
    under_way, answers = w.claim("z", annotations={labels.COMMAND: text_of(command)}), list[Solution]()
    going = [under_way, w.node(under_way), *raw("young")]
    return simulated(*w.pairs("a"), *pods, *going, solutions=answers), answers


@pytest.mark.parametrize("names", [("new", "old"), ("old", "new")])
def test_the_pods_of_a_candidate_leave_a_successor_that_has_not_joined_to_others(names: tuple[str, str]) -> None:
    """Whichever pod the scheduler sends there: the candidate's pod gets the new node, and need not wait."""
    moving, leaving = names
    found, answers = young_or_new(w.pod(moving, "a", **LARGE), w.pod(leaving, "z", **LARGE))
    assert found.blocker is None
    assert [new.pods for new in found.new_nodes] == [(f"shop/{moving}",)]
    young = {key for key, place in answers[0].placed.items() if place == "young"}
    assert (len(answers) > 1) == (young == {f"shop/{moving}"})


def test_the_pods_of_a_candidate_wait_where_a_node_of_their_own_costs_more() -> None:
    """Both fit on the successor: a new node beside it would be paid for nothing."""
    found, answers = young_or_new(w.pod("new", "a"), w.pod("old", "z"))
    assert found.blocker is not None
    assert "would move to node-young, which is not initialized" in found.blocker.text
    assert len(answers) == 3


def test_the_pods_of_a_candidate_wait_where_limits_are_for_all_new_nodes_together() -> None:
    bare = w.pool()
    limited = replace(bare, spec=replace(bare.spec, limits={"cpu": "1000"}))
    found, _ = young_or_new(limited, w.pod("new", "a", **LARGE), w.pod("old", "z", **LARGE))
    assert found.blocker is not None
    assert "would move to node-young, which is not initialized" in found.blocker.text


@pytest.mark.parametrize("whose", ["a", "z"])
@pytest.mark.parametrize("constraint", ["spread", "apart"])
def test_the_pods_of_a_candidate_wait_where_places_depend_on_other_pods(whose: str, constraint: str) -> None:
    """Two answers, one for each pod, are none for both together: the zones of one are not known to the other."""
    term = {"labelSelector": {"matchLabels": {"app": "none"}}, "topologyKey": labels.ZONE}
    rows: dict[str, Any] = {
        "spread": {"topologySpreadConstraints": [{**term, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]},
        "apart": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}},
    }
    own = {node: {**LARGE, **(rows[constraint] if node == whose else {})} for node in ("a", "z")}
    found, answers = young_or_new(w.pod("new", "a", **own["a"]), w.pod("old", "z", **own["z"]))
    if answers[0].placed.get("shop/old") == "young":  # the one answer for both is good as it is
        assert (whose, constraint, found.blocker) == ("z", "spread", None)
        return
    assert found.blocker is not None
    assert "would move to node-young, which is not initialized" in found.blocker.text


def test_what_had_no_place_before_is_nobody_s_debt() -> None:
    huge = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1900m"}}}], **on("nowhere")}
    under_way = w.claim("z", annotations={labels.COMMAND: COMMAND})
    found = simulated(
        *w.pairs("a"), w.pod("web", "a"), under_way, w.node(under_way), w.pod("old", "z", **huge), *w.pairs("b")
    )
    assert (found.blocker, found.new_nodes) == (None, ())


def test_023_an_unmanaged_node_may_take_pods() -> None:
    answers: list[Solution] = []
    other = w.node(w.claim("other"))
    found = simulated(*w.pairs("a"), w.pod("web", "a"), other, solutions=answers)
    assert (found.blocker, found.new_nodes) == (None, ())
    assert answers[0].placed == {"shop/web": "node/node-other"}


def test_024_a_volume_that_is_on_the_disk_of_its_node_does_not_keep_that_node() -> None:
    meta = {"name": "data", "namespace": "shop", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    terms = [{"matchExpressions": [{"key": labels.HOSTNAME, "operator": "In", "values": ["node-a"]}]}]
    volume = {"local": {"path": "/x"}, "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
    claim = decode(PersistentVolumeClaim, {"metadata": meta, "spec": {"volumeName": "v"}})
    disk = decode(PersistentVolume, {"metadata": {"name": "v"}, "spec": volume})
    mounts = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    pod = w.pod("db", "a", owner="StatefulSet", volumes=mounts)
    found = simulated(*w.pairs("a"), pod, claim, disk)
    assert found.blocker is None
    assert [new.pods for new in found.new_nodes] == [("shop/db",)]


def test_028_a_pod_that_nothing_can_hold_stops_no_consolidation() -> None:
    """It stays where it is: pending."""
    stuck = w.pod("stuck", phase="Pending", pod_conditions=WAITS, nodeSelector={"no": "where"})
    world = [w.pool(), *w.pairs("a"), *w.pairs("b", consolidatable=False), w.pod("web", "a"), stuck]
    found = propose(w.snapshot(world))
    assert [p.candidates for p in found] == [("a",)]
    later = disrupt(w.snapshot(world, now=w.NOW + w.MINUTE, proposals=found))
    assert w.started(later) == ["a"]
    assert w.started(drifting(*w.pairs("z"), stuck)) == ["a"]


@pytest.mark.parametrize("full", [False, True])
def test_029_a_node_whose_pods_have_no_other_place_stays(full: bool) -> None:
    """Here its only type is sold out, and the other node is full."""
    huge = [{"name": "c", "resources": {"requests": {"cpu": "1900m"}}}]
    sold_out = {offer.key: w.NOW + w.HOUR for type_ in w.CATALOGUE for offer in type_.offerings}
    others = [*w.pairs("z", consolidatable=False), *([w.pod("big", "z", containers=huge)] if full else [])]
    plan = drifting(*others, out_of_stock=sold_out)
    assert w.started(plan) == ([] if full else ["a"])
    assert w.refusals(plan) == ({"node/node-a": "PodsWouldNotSchedule"} if full else {})
    graceful = [w.pool(), *w.pairs("a"), w.pod("web", "a"), *others]
    assert bool(propose(w.snapshot(graceful, out_of_stock=sold_out))) is not full


def test_a_pod_is_reckoned_with_from_when_it_may_leave() -> None:
    """Also where nothing but the time has changed since somebody asked."""
    held = w.pod("web", "a", annotations={labels.DO_NOT_DISRUPT: "2m"}, started=w.NOW)
    world, memory = w.snapshot([w.pool(), *w.pairs("a"), held]), Memory()
    for now, stranded in ((w.NOW, []), (w.NOW + timedelta(minutes=2), [held.key])):
        then = dataclasses.replace(world, now=now)
        seen = view(then, memory.turn(then))
        outcome = simulate(seen, [unblocked(seen, "a")], w.nowhere, Manner.FREELY)
        assert list(outcome.stranded) == stranded
