"""Evidence that a node is other than planned: when a waiting pod is a verdict, and when it is none."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.model.kubernetes.objects import ContainerStatus, Pod, PodStatus
from kerf.model.memory import Memory
from kerf.model.plan import Nomination
from kerf.scheduling.mismatch.evidence import Verdict, displaced, kept_until, verdicts
from kerf.scheduling.mismatch.watching import watched
from kerf_api import labels
from tests.unit.scheduling import worlds as w
from tests.unit.scheduling.progress_world import FOREIGN, claim, ready


def judged(*objects: Any, **facts: Any) -> list[Verdict]:
    turn = Memory().turn(w.world(w.pool(), *objects, **facts))
    return list(verdicts(turn, watched(turn)[0]))


WEB = w.pod("web", "1500m")


def test_a_pod_that_waits_after_a_minute_is_evidence() -> None:
    (found,) = judged(claim("n1", WEB), ready("n1"), WEB)
    assert (found.pod.key, found.undecided) == (WEB.key, False)


def test_before_that_nothing_is_decided() -> None:
    for minutes, initialized in ((0.5, True), (2, False)):
        (found,) = judged(claim("n1", WEB, minutes=minutes, initialized=initialized), ready("n1"), WEB)
        assert found.undecided


def test_a_taint_that_the_pool_does_not_declare_has_five_minutes() -> None:
    (found,) = judged(claim("n1", WEB, minutes=4), ready("n1", taints=[FOREIGN]), WEB)
    assert found.undecided
    (found,) = judged(claim("n1", WEB, minutes=5), ready("n1", taints=[FOREIGN]), WEB)
    assert not found.undecided


@pytest.mark.parametrize(("changed", "undecided"), [(1.9, False), (3.5, True)])
def test_a_taint_that_goes_gives_pods_another_minute(changed: float, undecided: bool) -> None:
    """The node is initialized for four minutes; its taint went so many minutes after that."""
    at = {"n1": w.NOW - timedelta(minutes=4 - changed)}
    (found,) = judged(claim("n1", WEB, minutes=4), ready("n1"), WEB, node_changed_at=at)
    assert found.undecided == undecided


def test_a_node_that_changes_for_ever_is_evidence_in_the_end() -> None:
    (found,) = judged(claim("n1", WEB, minutes=6), ready("n1"), WEB, node_changed_at={"n1": w.NOW})
    assert not found.undecided


@pytest.mark.parametrize(
    ("why", "node", "others"),
    [
        ("it is cordoned", {"unschedulable": True}, ()),
        ("it is not ready", {"ready": "False"}, ()),
        ("it is being disrupted", {"taints": [{"key": labels.DISRUPTED_TAINT, "effect": "NoSchedule"}]}, ()),
        ("other pods use its capacity", {}, (w.pod("other", "3", node="n1"),)),
        (
            "other pods use its capacity",
            {},
            (w.pod("other", node="n1", ports=[{"containerPort": 1, "hostPort": 80}]),),
        ),
    ],
    ids=["cordoned", "not ready", "disrupted", "taken", "port taken"],
)
def test_no_evidence_but_unused(why: str, node: dict[str, Any], others: tuple[Pod, ...]) -> None:
    pod = w.pod("web", "1500m", ports=[{"containerPort": 1, "hostPort": 80}]) if others else WEB
    (found,) = judged(claim("n1", pod, minutes=0.1), ready("n1", **node), pod, *others)
    assert (found.unused, found.undecided) == (why, False)


def test_no_evidence_where_a_pod_of_the_shape_runs() -> None:
    assert judged(claim("n1", WEB), ready("n1"), WEB, w.pod("web-2", "1500m", node="n1")) == []


def test_a_pod_that_the_kubelet_rejected_is_evidence_for_the_next_one_of_its_shape() -> None:
    there = w.pod("web", "1500m", node="n1")
    rejected = replace(there, status=PodStatus(phase="Failed"))
    found = judged(claim("n1", WEB), ready("n1"), rejected, w.pod("web-2", "1500m"))
    assert [(one.pod.key, one.unused, one.undecided) for one in found] == [("default/web-2", "", False)]
    ran = replace(rejected, status=PodStatus(phase="Failed", container_statuses=(ContainerStatus(),)))
    assert judged(claim("n1", WEB), ready("n1"), ran, w.pod("web-2", "1500m")) == []


def test_a_rejected_pod_of_others_says_nothing_of_the_node() -> None:
    there = replace(w.pod("other", "1500m", node="n1"), status=PodStatus(phase="Failed"))
    assert judged(claim("n1", WEB), ready("n1"), there, *w.replicas(3, "other", "1500m")) == []


def test_one_rejected_pod_holds_one_that_follows() -> None:
    rejected = replace(w.pod("web", "1500m", node="n1"), status=PodStatus(phase="Failed"))
    found = judged(claim("n1", WEB), ready("n1"), rejected, *w.replicas(3, "web", "1500m"))
    assert [one.pod.key for one in found] == ["default/web-0"]


def test_small_pods_of_others_do_not_take_the_capacity() -> None:
    assert judged(claim("n1", WEB), ready("n1"), WEB, w.pod("other", node="n1"))


def test_a_pod_that_is_bound_or_gone_is_no_evidence() -> None:
    assert judged(claim("n1", WEB), ready("n1")) == []
    assert judged(claim("n1", WEB), ready("n1"), w.pod("web", "1500m", node="n1")) == []


def test_a_further_attempt_is_for_any_pod_of_the_shape() -> None:
    (shape,) = {found.shape for found in judged(claim("n1", WEB), ready("n1"), WEB)}
    probe = claim("n2", WEB, annotations={labels.PROBES: shape})
    (found,) = judged(probe, ready("n2"), w.pod("web-of-a-new-replica-set", "1500m"))
    assert found.shape == shape


def test_a_pod_in_place_of_a_deleted_one_takes_over_its_verdict() -> None:
    (shape,) = {found.shape for found in judged(claim("n1", WEB), ready("n1"), WEB)}
    gone = claim("n1", WEB, annotations={labels.PLANNED_SHAPES: shape})
    more, bad = w.replicas(3, "web", "1500m"), ready("n1", taints=[FOREIGN])
    found = judged(gone, bad, *more)
    assert [(one.pod.key, one.shape) for one in found] == [("default/web-0", shape)]
    assert judged(claim("n1", WEB), bad, *more) == []
    assert [one.pod.key for one in judged(gone, bad, WEB, *more)] == ["default/web"]
    starting = claim("n1", WEB, annotations={labels.PLANNED_SHAPES: shape}, initialized=False)
    assert judged(starting, bad, *more) == []


def test_amounts_that_are_not_readable_are_no_difference() -> None:
    gone = claim("n1", WEB, annotations={labels.PLANNED_SHAPES: "s"})
    node = ready("n1")
    odd = replace(node, status=replace(node.status, allocatable={"cpu": "nonsense"}))
    turn = Memory().turn(w.world(w.pool(), gone, odd))
    assert [one.shapes for one in watched(turn)[0].values()] == [frozenset()]
    assert not turn.refusals


def test_later_pods_do_not_wait_for_a_node_as_planned() -> None:
    """Its pods may have been bound elsewhere, and these may be kept from it by a rule about other pods."""
    (shape,) = {found.shape for found in judged(claim("n1", WEB), ready("n1"), WEB)}
    gone = claim("n1", WEB, annotations={labels.PLANNED_SHAPES: shape})
    assert judged(gone, ready("n1"), *w.replicas(3, "web", "1500m")) == []


def test_a_node_is_kept_until_its_verdict_while_a_pod_waits() -> None:
    def until(*objects: Any) -> Any:
        return kept_until(Memory().turn(w.world(w.pool(), *objects)), "n1")

    fresh = claim("n1", WEB, minutes=0.5)
    assert until(fresh, ready("n1"), WEB) == w.NOW + timedelta(seconds=40)
    assert until(fresh, ready("n1")) is None
    assert until(claim("n1", WEB, minutes=2), ready("n1"), WEB) is None


def lost(*objects: Any, expected: str = "", since: float = 10, **facts: Any) -> bool:
    """Whether the pod lost its capacity; `expected` is where the latest plan expects it, `since` minutes ago."""
    promises = (Nomination(WEB.metadata.uid, expected, w.NOW + timedelta(seconds=20)),) if expected else ()
    turn = Memory().turn(w.world(w.pool(), *objects, nominations=promises, **facts))
    return displaced(turn, w.NOW - timedelta(minutes=since))


OTHER = w.pod("other", "3", node="n1")


@pytest.mark.parametrize("expected", ["", "n1"])
def test_a_pod_whose_capacity_others_took_is_displaced(expected: str) -> None:
    assert lost(claim("n1", WEB), ready("n1"), WEB, OTHER, expected=expected)


@pytest.mark.parametrize(
    ("why", "objects"),
    [
        ("not taken", (claim("n1", WEB), ready("n1"), WEB)),
        ("not initialized", (claim("n1", WEB, initialized=False), ready("n1"), WEB, OTHER)),
        ("bound", (claim("n1", WEB), ready("n1"), w.pod("web", "1500m", node="n1"), OTHER)),
        ("made for others", (claim("n1"), ready("n1"), WEB, OTHER)),
        ("a newer node", (claim("n1", WEB), ready("n1"), claim("n2", WEB), ready("n2"), WEB, OTHER)),
    ],
)
def test_no_pod_is_displaced(why: str, objects: tuple[Any, ...]) -> None:
    assert not lost(*objects), why


def test_a_pod_is_displaced_once_for_each_node_that_is_initialized() -> None:
    """One that is refused for ever (its NodePool is at its limits, say) closes no batch of others again."""
    there = (claim("n1", WEB, minutes=3), ready("n1"), WEB, OTHER)
    assert lost(*there, since=3)
    assert not lost(*there, since=2.9)
    unrelated = (claim("n2", w.pod("late"), minutes=1), ready("n2"))
    assert not lost(*there, *unrelated, since=2)
    again = (claim("n3", WEB, minutes=1), ready("n3"), w.pod("more", "3", node="n3"))
    assert lost(*there, *again, since=2)


def test_a_pod_that_has_a_place_on_an_open_node_is_not_displaced() -> None:
    there = (claim("n1", WEB), ready("n1"), WEB, OTHER)
    assert not lost(*there, claim("n2", w.pod("late")), ready("n2"), w.pod("late"), expected="n2")


def test_rules_of_others_take_the_capacity_too() -> None:
    port = w.pod("other", node="n1", ports=[{"containerPort": 1, "hostPort": 80}])
    web = w.pod("web", "1500m", ports=[{"containerPort": 1, "hostPort": 80}])
    assert lost(claim("n1", web), ready("n1"), web, port)
    assert not lost(claim("n1", WEB), ready("n1"), WEB, port)


def test_a_pod_that_is_expected_on_another_node_is_not_displaced() -> None:
    there = (claim("n1", WEB), ready("n1"), WEB, OTHER)
    assert not lost(*there, claim("n2", WEB, initialized=False), expected="n2")
    assert lost(*there, expected="n2"), "that node is gone"
