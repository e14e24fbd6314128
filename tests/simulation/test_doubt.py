"""A bug in taking in the news of one kind: what is known of that kind is in doubt until the controller starts anew.

Half of the indexes have the news and half have not, and no list mends that: a node looks empty that is not. So nothing
is destroyed that rests on it, while launches go on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.model import kinds
from kerf.model.kubernetes.objects import Pod
from kerf.ports import Change, Expired, Ports
from kerf.runtime.controller import Controller
from tests.simulation.poison import POISON
from tests.simulation.stage import EAGER, SETTINGS, Stage, of
from tests.simulation.test_poison import Story

DESTROYS = ("evict", "delete", "terminate")


class Unlucky(str):
    """A name that fails the first time that something is filed under it."""

    filed = False

    def __hash__(self) -> int:
        if not self.filed:
            self.filed = True
            raise ZeroDivisionError
        return super().__hash__()

    __eq__ = str.__eq__


class OddKube:
    """The Kube port of a world. The pod `odd` cannot be filed under its node the first time that a watch shows it."""

    def __init__(self, kube: Any) -> None:
        self._kube = kube

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kube, name)

    def watch(self, kind: kinds.Kind, resource_version: str) -> Any:
        watch = self._kube.watch(kind, resource_version)
        return OddWatch(watch) if kind is kinds.POD else watch


class OddWatch:
    """Its watch."""

    def __init__(self, watch: Any) -> None:
        self._watch = watch

    def read(self, timeout_seconds: float) -> Sequence[Change]:
        return [_odd(change) for change in self._watch.read(timeout_seconds)]

    def close(self) -> None:
        self._watch.close()


def _odd(change: Change) -> Change:
    pod: Pod | None = change.value
    if pod is None or pod.metadata.name != "odd" or change.type != "ADDED":
        return change
    return Change(change.type, replace(pod, spec=replace(pod.spec, node_name=Unlucky(pod.spec.node_name))), "")


class OddStage(Stage):
    """One whose controller reads through such a port."""

    def hire(self, may_act: Callable[[], bool] = lambda: True) -> Controller:
        kube: Any = OddKube(self.world.kube)
        world = self.world
        return Controller(
            Ports(kube=kube, cloud=world.cloud, clock=world.clock), settings=SETTINGS, inline=True, may_act=may_act
        )


def errors(controller: Controller, where: str = "take_in") -> float | None:
    return controller.telemetry.metrics.registry.get_sample_value("kerf_errors_total", {"where": where})


@pytest.mark.parametrize("relisted", [False, True], ids=["watched", "listed again"])
def test_nothing_is_destroyed_and_launches_go_on(relisted: bool) -> None:
    stage = OddStage(replicas=2, disruption=EAGER)
    stage.settle()
    kept, _ = stage.claims
    stage.create_pod("odd", node_name=kept.status.node_name)
    stage.run(5)
    assert errors(stage.controller) == 1
    stage.scale(0)
    if relisted:
        stage.seam.fails["kube", "read"] = of("pods", Expired("too old"))
        stage.run(2)
        stage.seam.fails.clear()
    stage.run(300)
    assert not stage.seam.writes(*DESTROYS)
    stage.scale(3)
    stage.run(300, until=stage.all_run)
    assert len(stage.claims) == 3
    stage.scale(0)
    stage.restart()
    stage.run(300, until=lambda: stage.claims == [stage.world.kube.get(kinds.ref(kept))])


@pytest.mark.parametrize("kind", kinds.WATCHED, ids=lambda kind: kind.name)
def test_an_object_that_makes_no_sense_is_no_reason_for_doubt(kind: kinds.Kind) -> None:
    """It comes, is filed and told of as any other; the loop would carry on if it were not."""
    story = Story({kind: POISON[kind]})
    story.world.run(story, timedelta(minutes=1))
    assert story.controller.synced
    assert [errors(story.controller, where) for where in ("take_in", "telemetry", "types")] == [None, None, None]
