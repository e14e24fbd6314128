"""Lanes, last looks and own writes, on the sandbox's API server and cloud."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kerf.model import kinds
from kerf.model.kinds import Ref
from kerf.model.plan import (
    Action,
    DeleteObject,
    EvictPod,
    LaunchInstances,
    PatchObject,
    Reason,
    Source,
    TerminateInstance,
)
from kerf.ports import AlreadyGone, Conflict, Listing, Ports
from kerf.runtime.act.executor import Executor
from kerf.runtime.inbox import Done, Inbox
from kerf.sandbox.world import World
from tests.unit.sandbox.sandbox_world import launch

WHY = Reason("Test")


class Setting:
    """A world, an inbox and an executor whose freshness and leadership a test decides."""

    def __init__(self, pool: ThreadPoolExecutor | None = None, kube: Any = None) -> None:
        self.world, self.inbox, self.leading = World(), Inbox(), True
        self.fresh: object = True
        self.kube = kube or self.world.kube
        self.executor = Executor(
            Ports(self.kube, self.world.cloud, self.world.clock),
            self.inbox,
            fresh=lambda sources: bool(self.fresh) or not sources,
            may_act=lambda: self.leading,
            pool=pool,
        )

    def do(self, *actions: Action) -> list[Done]:
        self.executor.submit(actions)
        return [news for news in self.inbox.drain() if isinstance(news, Done)]

    def node(self, name: str) -> Any:
        return self.world.kube.create(kinds.NODE, {"metadata": {"name": name}, "spec": {}})

    def pod(self, name: str, node: str) -> Any:
        spec = {"nodeName": node, "containers": [{"name": "c"}]}
        return self.world.kube.create(kinds.POD, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})


def label(name: str, value: str, version: str = "") -> PatchObject:
    patch = {"metadata": {"labels": {"x": value}}}
    return PatchObject(verb="Label", ref=Ref("Node", "", name), patch=patch, resource_version=version, reason=WHY)


def delete(node: Any, expected: frozenset[str] | None = None) -> DeleteObject:
    ref = Ref.of(kinds.NODE, node)
    return DeleteObject(
        ref=ref,
        uid=node.metadata.uid,
        node_name=node.name,
        expected_pods=expected,
        sources=frozenset({Source.PODS}),
        reason=WHY,
    )


def test_a_write_comes_back_as_the_server_has_it() -> None:
    setting = Setting()
    setting.node("a")
    (done,) = setting.do(label("a", "1"))
    assert done.outcome == "ok"
    assert done.value.metadata.labels == {"x": "1"}


def test_a_conflict_brings_the_object_as_it_is_now() -> None:
    setting = Setting()
    stale = setting.node("a").metadata.resource_version
    setting.do(label("a", "1"))
    (done,) = setting.do(label("a", "2", stale))
    assert done.outcome == "conflict"
    assert done.value.metadata.labels == {"x": "1"}


def test_a_lane_stops_at_the_first_action_that_does_not_come_off() -> None:
    setting = Setting()
    stale = setting.node("a").metadata.resource_version
    setting.node("b")
    setting.do(label("a", "1"))
    done = setting.do(label("a", "2", stale), label("b", "2"), delete(setting.world.kube.get(Ref("Node", "", "a"))))
    assert [(d.action.lane, d.outcome) for d in done] == [("node/a", "conflict"), ("node/b", "ok")]


def test_what_is_gone_already_is_fine_and_the_lane_goes_on() -> None:
    setting = Setting()
    ghost = TerminateInstance(instance_id="i-00000123", reason=WHY)
    assert [d.outcome for d in setting.do(ghost, ghost)] == ["gone", "gone"]


@pytest.mark.parametrize(("fresh", "leading", "outcome"), [(False, True, "stale_source"), (True, False, "not_leading")])
def test_nothing_is_destroyed_on_old_news_or_without_the_lease(fresh: bool, leading: bool, outcome: str) -> None:
    setting = Setting()
    node = setting.node("a")
    setting.fresh, setting.leading = fresh, leading
    (done,) = setting.do(delete(node))
    assert done.outcome == outcome
    assert setting.world.kube.get(Ref("Node", "", "a")).name == "a"


class Deposed:
    """A Kube in which the lease is lost while the first patch is under way."""

    def __init__(self) -> None:
        self.patched, self.setting = list[str](), Setting(kube=self)

    def patch(self, ref: Ref, patch: Mapping[str, Any], **options: str) -> None:
        self.patched.append(patch["metadata"]["labels"]["x"])
        self.setting.leading = False


def test_the_lease_is_looked_at_before_every_action_of_a_lane() -> None:
    kube = Deposed()
    done = kube.setting.do(label("a", "first"), label("a", "second"))
    assert [one.outcome for one in done] == ["ok", "not_leading"]
    assert kube.patched == ["first"]


class Long:
    """A Kube whose last look takes so long that the lease is lost over it."""

    def __init__(self) -> None:
        self.deleted, self.setting = list[Ref](), Setting(kube=self)

    def list(self, kind: kinds.Kind, **selectors: str) -> Listing:
        self.setting.leading = False
        return Listing((), "1")

    def delete(self, ref: Ref, **options: object) -> None:
        self.deleted.append(ref)


def test_the_lease_is_looked_at_again_after_a_last_look() -> None:
    kube = Long()
    node = kube.setting.world.kube.create(kinds.NODE, {"metadata": {"name": "a"}, "spec": {}})
    (done,) = kube.setting.do(delete(node, frozenset()))
    assert (done.outcome, kube.deleted) == ("not_leading", [])
    kube.setting.leading = True
    (done,) = kube.setting.do(delete(node))
    assert (done.outcome, len(kube.deleted)) == ("ok", 1)


def test_the_lease_is_looked_at_again_before_a_fleet_is_asked_for() -> None:
    setting = Setting()
    answers = iter([True, False])  # before the action, and once the templates are there
    executor = Executor(
        Ports(setting.kube, setting.world.cloud, setting.world.clock),
        setting.inbox,
        fresh=lambda sources: True,
        may_act=lambda: next(answers),
    )
    executor.submit([LaunchInstances(reason=WHY, request=launch(setting.world, "a"), claims=("a",))])
    (done,) = [news for news in setting.inbox.drain() if isinstance(news, Done)]
    assert done.outcome == "not_leading"
    assert setting.world.cloud.instances() == []


def test_a_pod_that_came_meanwhile_stops_a_deletion() -> None:
    setting = Setting()
    node = setting.node("a")
    known, new = setting.pod("known", "a"), setting.pod("new", "a")
    (done,) = setting.do(delete(node, frozenset({known.metadata.uid})))
    assert done.outcome == "world_changed"
    (done,) = setting.do(delete(node, frozenset({known.metadata.uid, new.metadata.uid})))
    assert done.outcome == "ok"
    with pytest.raises(AlreadyGone):
        setting.world.kube.get(Ref("Node", "", "a"))


class SlowKube:
    """Holds every patch until it is let go."""

    def __init__(self) -> None:
        self.patched, self.let_go, self.entered = list[str](), threading.Event(), threading.Semaphore(0)

    def patch(self, ref: Ref, patch: Mapping[str, Any], **options: str) -> None:
        self.entered.release()
        assert self.let_go.wait(5)
        self.patched.append(patch["metadata"]["labels"]["x"])


def test_lanes_run_side_by_side_and_one_under_way_takes_nothing_new() -> None:
    kube = SlowKube()
    with ThreadPoolExecutor(4) as pool:
        setting = Setting(pool, kube)
        assert setting.executor.submit([label("a", "1"), label("a", "2"), label("b", "3")]) == 3
        assert kube.entered.acquire(timeout=5)
        assert kube.entered.acquire(timeout=5)
        assert setting.executor.under_way == (label("a", "1"), label("a", "2"), label("b", "3"))
        assert setting.executor.submit([label("a", "4"), label("b", "5")]) == 0
        assert not setting.executor.finish(0.01)
        kube.let_go.set()
        assert setting.executor.finish(5)
        assert not setting.executor.under_way
    assert sorted(kube.patched) == ["1", "2", "3"]
    assert kube.patched.index("1") < kube.patched.index("2")


def test_what_ends_while_somebody_decides_is_not_done_again_before_its_outcome_is_known() -> None:
    kube = SlowKube()
    with ThreadPoolExecutor(4) as pool:
        setting = Setting(pool, kube)
        setting.executor.submit([label("a", "1")])
        setting.executor.news_drained()
        kube.let_go.set()
        assert setting.executor.finish(5)
        assert setting.executor.submit([label("a", "1"), label("b", "2")]) == 1
        assert setting.executor.finish(5)
        setting.executor.news_drained()
        assert setting.executor.submit([label("a", "3")]) == 1
        assert setting.executor.finish(5)
    assert kube.patched == ["1", "2", "3"]


class BrokenKube:
    def evict(self, ref: Ref, **options: str) -> None:
        raise ZeroDivisionError

    def patch(self, ref: Ref, patch: Mapping[str, Any], **options: str) -> None:
        raise Conflict("409")

    def get(self, ref: Ref) -> None:
        raise ZeroDivisionError


def test_a_bug_in_an_adapter_is_an_outcome() -> None:
    setting = Setting(kube=BrokenKube())
    pod = Ref("Pod", "default", "a")
    (done,) = setting.do(EvictPod(ref=pod, uid="u", reason=WHY))
    assert done.outcome == "failed"
    assert isinstance(done.error, ZeroDivisionError)
    assert setting.executor.finish(0)


def test_a_bug_in_reading_again_is_an_outcome() -> None:
    (done,) = Setting(kube=BrokenKube()).do(label("a", "1"))
    assert done.outcome == "failed"
    assert isinstance(done.error, ZeroDivisionError)


class Odd:
    """Nobody can say whether it is so."""

    def __bool__(self) -> bool:
        raise ZeroDivisionError


def test_a_bug_in_asking_whether_an_action_may_go_is_an_outcome() -> None:
    """Else nobody would ever hear of the action, and its thread's error of nobody."""
    with ThreadPoolExecutor(1) as pool:
        setting = Setting(pool)
        setting.fresh = Odd()
        setting.executor.submit([delete(setting.node("a"))])
        assert setting.executor.finish(5)
    (done,) = [news for news in setting.inbox.drain() if isinstance(news, Done)]
    assert done.outcome == "failed"
