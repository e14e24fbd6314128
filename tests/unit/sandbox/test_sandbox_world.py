"""The loop: what happens when, in which order, and always the same."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from kerf.model import kinds
from kerf.model.kinds import Ref
from kerf.ports import Throttled
from kerf.sandbox.api.admission import Refused
from kerf.sandbox.clock import START
from kerf.sandbox.faults import Call, Faults
from kerf.sandbox.weather import Weather
from kerf.sandbox.world import Unsettled, World

from .sandbox_world import deployment, launch, node, pod, pods, wait


class Recorder:
    """A controller that notes when it is asked, and wants to be asked again after some seconds."""

    def __init__(self, world: World, every: float | None = None) -> None:
        self._world, self._every = world, every
        self.ticks: list[float] = []

    @property
    def next_due(self) -> datetime | None:
        if self._every is None or not self.ticks:
            return None
        return START + timedelta(seconds=self.ticks[-1] + self._every)

    def tick(self) -> object:
        self.ticks.append((self._world.clock.now() - START).total_seconds())
        return None


def test_clock_jumps_to_the_end_when_nothing_is_due() -> None:
    world = World()
    world.run(None, timedelta(days=30))
    assert world.clock.now() == START + timedelta(days=30)


def test_controller_looks_first_and_then_only_when_something_changed() -> None:
    world = World(weather=Weather(ready_seconds=5, pod_start_seconds=2))
    recorder = Recorder(world)
    world.apply(node("one"))
    world.run(recorder, timedelta(minutes=5))
    assert recorder.ticks[0] == 0
    assert set(recorder.ticks) == {0, 5}


def test_controller_looks_when_its_time_has_come() -> None:
    world = World()
    recorder = Recorder(world, every=10)
    world.run(recorder, timedelta(seconds=35))
    assert recorder.ticks == [0, 10, 20, 30]
    assert world.clock.now() == START + timedelta(seconds=35)


def test_run_stops_when_asked() -> None:
    world = World()
    world.apply(node("one"))
    world.run(None, timedelta(hours=1), stop_when=lambda: any(n.ready for n in world.kube.list(kinds.NODE).items))
    assert world.clock.now() == START + timedelta(seconds=5)


def test_controller_that_never_rests_is_an_error() -> None:
    world = World()
    world.apply(node("one"))

    class Restless:
        next_due = None
        count = 0

        def tick(self) -> object:
            self.count += 1
            return world.kube.patch(Ref("Node", "", "one"), {"metadata": {"labels": {"count": str(self.count)}}})

    with pytest.raises(Unsettled):
        world.run(Restless(), timedelta(minutes=1))


def test_events_and_leases_do_not_wake_the_controller() -> None:
    world = World()
    recorder = Recorder(world)
    world.run(recorder, timedelta(seconds=1))
    world.kube.emit(Ref("Node", "", "one"), "", "Normal", "Tested", "nothing happened")
    before = len(recorder.ticks)
    world.run(Recorder(world), timedelta(seconds=1))
    assert len(recorder.ticks) == before
    assert [event["reason"] for event in world.objects("Event")] == ["Tested"]


def test_same_seed_lives_the_same_life() -> None:
    def life(seed: int) -> tuple[list[dict[str, object]], list[object]]:
        weather = Weather(stock_out_rate=0.3, spot_reclaim_per_hour=5.0, boot_failure_rate=0.2)
        world = World(seed=seed, weather=weather)
        world.apply(deployment("web", 6))
        for number in range(6):
            request = launch(
                world, "a", group=f"g{number}", types=("m6i.large", "c6i.large", "r6i.large"), capacity_type="spot"
            )
            world.cloud.create_fleet(request)
        wait(world, 3600)
        return world.objects("Pod") + world.objects("Node"), [m.shown() for m in world.ec2.instances.values()]

    assert life(3) == life(3)
    assert life(3) != life(4)


def test_user_meets_the_words_of_the_lint() -> None:
    manifest = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "bad"}, "spec": {}}
    with pytest.raises(Refused, match="template"):
        World().apply(manifest)


def test_apply_again_changes_and_removes_what_is_left_out() -> None:
    world = World()
    world.apply({**deployment("web", 2), "metadata": {"name": "web", "labels": {"a": "1"}}})
    manifest = deployment("web", 3)
    del manifest["spec"]["template"]["spec"]["containers"][0]["resources"]
    world.apply(manifest)
    wait(world, 1)
    assert len(pods(world)) == 3
    spec = world.objects("Deployment")[0]["spec"]
    assert "resources" not in spec["template"]["spec"]["containers"][0]


def test_objects_are_copies() -> None:
    world = World()
    world.apply(pod("one"))
    world.objects("Pod")[0]["metadata"]["labels"]["app"] = "changed"
    assert world.objects("Pod")[0]["metadata"]["labels"]["app"] == "one"


def test_any_kind_can_be_kept() -> None:
    world = World()
    world.apply({"apiVersion": "example.test/v1", "kind": "Thing", "metadata": {"name": "one"}, "spec": {"a": 1}})
    assert world.objects("Thing")[0]["spec"] == {"a": 1}
    world.delete("Thing", "one")
    assert world.objects("Thing") == []


def test_a_pod_has_the_priority_of_its_class() -> None:
    world = World()
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    world.apply({**kind, "metadata": {"name": "urgent"}, "value": 1000})
    world.apply({**kind, "metadata": {"name": "usual"}, "value": 10, "globalDefault": True})
    names = {"urgent": 1000, "": 10, "system-node-critical": 2_000_001_000}
    for number, name in enumerate(names):
        given = pod(f"pod-{number}")
        given["spec"] = {**given["spec"], **({"priorityClassName": name} if name else {})}
        world.apply(given)
    found = [record.manifest["spec"]["priority"] for record in world.server.records(kinds.POD)]
    assert found == list(names.values())


def test_object_in_a_missing_namespace_is_refused() -> None:
    manifest = pod("one")
    manifest["metadata"]["namespace"] = "nowhere"
    with pytest.raises(Refused, match="nowhere"):
        World().apply(manifest)


class Breaking(Faults):
    """Refuses creations before, and loses the answers of deletions after they took effect."""

    def before(self, call: Call) -> None:
        if call.verb == "create":
            raise Throttled("slow down")

    def after(self, call: Call) -> None:
        if call.verb == "delete":
            raise Throttled("lost")


def test_faults_strike_before_and_after() -> None:
    world = World(faults=Breaking())
    world.apply(node("one"))
    with pytest.raises(Throttled):
        world.kube.create(kinds.NODE, node("two"))
    with pytest.raises(Throttled):
        world.kube.delete(Ref("Node", "", "one"))
    assert world.objects("Node") == []
