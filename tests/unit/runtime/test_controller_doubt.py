"""News that the loop cannot take in: its kind is in doubt, and all else goes on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kerf.model import kinds
from kerf.model.aws.interruptions import Message
from kerf.model.kinds import Ref
from kerf.model.kubernetes.objects import Node, Pod, PodSpec
from kerf.model.plan import EvictPod, PatchObject, Plan, Source
from kerf.model.settings import Settings
from kerf.ports import Listing, Ports
from kerf.runtime.act.results import subject
from kerf.runtime.controller import Controller
from kerf.runtime.inbox import Changed, Done, Listed, News, Received
from kerf.runtime.parts import Parts
from kerf.sandbox.clock import START
from kerf.sandbox.world import World
from kerf.telemetry.telemetry import Telemetry
from kerf_api.v1.meta import ObjectMeta
from tests.unit.runtime.loops import WHY, Decider, controller, errors, node
from tests.worlds import node_class

#: What no decoder makes: indexing it fails after it has been filed.
ODD = Pod(metadata=ObjectMeta(name="odd", namespace="default", uid="odd"), spec=PodSpec(node_name=["a"]))  # type: ignore[arg-type]
PODS = frozenset({Source.PODS})


@pytest.mark.parametrize(
    "news",
    [Changed(kinds.POD, ODD), Listed(kinds.POD, (ODD,), "999", START)],
    ids=["changed", "listed"],
)
def test_what_cannot_be_taken_in_puts_its_kind_in_doubt_and_the_rest_is_taken_in(news: News) -> None:
    world, decide = World(), Decider()
    loop = controller(world, decide)
    loop.tick()
    assert loop.state.fresh(PODS, world.clock.now())
    loop.inbox.put(news)
    loop.inbox.put(Changed(kinds.NODE, Node(metadata=ObjectMeta(name="later", uid="later"))))
    loop.tick()
    assert "later" in decide.seen[-1].nodes
    assert not loop.state.fresh(PODS, world.clock.now())
    assert loop.state.fresh(frozenset({Source.NODES}), world.clock.now())
    assert errors(loop, "take_in") == 1


class OddKube:
    """The Kube of a world with one odd pod in its list."""

    def __init__(self, kube: Any) -> None:
        self._kube = kube

    def list(self, kind: kinds.Kind, **selectors: str) -> Listing:
        found: Listing = self._kube.list(kind, **selectors)
        return replace(found, items=(*found.items, ODD)) if kind is kinds.POD else found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kube, name)


def test_before_a_first_list_was_taken_in_nothing_is_decided() -> None:
    world, decide = World(), Decider()
    kube: Any = OddKube(world.kube)
    settings = Settings(cluster_name="sandbox")
    loop = Controller(
        Ports(kube=kube, cloud=world.cloud, clock=world.clock), Parts(decide=decide), settings=settings, inline=True
    )
    loop.tick()
    assert loop.missing() == ["Pod"]
    assert decide.seen == []


def test_an_action_whose_outcome_cannot_be_taken_in_is_left_alone_and_so_is_what_it_changed() -> None:
    """Asked again at once it would fail again at once."""
    world = World()
    evict = EvictPod(ref=Ref("Pod", "default", "odd"), uid="odd", reason=WHY)
    loop = controller(world, Decider())
    loop.tick()
    loop.inbox.put(Done(evict, "conflict", world.clock.now(), ODD))
    loop.tick()
    assert not loop.state.fresh(PODS, world.clock.now())
    assert loop.state.held_until(evict.key, evict.uid, (subject(evict),), world.clock.now()) is not None


def test_a_message_that_cannot_be_taken_in_costs_no_other() -> None:
    world, decide = World(), Decider()
    loop = controller(world, decide)
    messages = [Message(str(number), "", None if number == 1 else "{}") for number in range(3)]  # type: ignore[arg-type]
    loop.inbox.put(Received(messages, world.clock.now()))
    loop.tick()
    assert [one.message.id for one in decide.seen[-1].interruptions] == ["0", "1", "2"]
    assert errors(loop, "take_in") == 1


@pytest.mark.parametrize("leads", [True, False])
def test_types_that_cannot_be_worked_out_are_told_of_though_deciding_fails(leads: bool) -> None:
    def fails(*_: object) -> Any:
        raise ZeroDivisionError

    world = World()
    world.kube.create(kinds.NODE_CLASS, node_class())
    loop = controller(world, fails, rehearse=fails, build=fails, may_act=lambda: leads)
    loop.tick()
    assert errors(loop, "decide")
    assert errors(loop, "types") == 1


class Speechless(Telemetry):
    """Telling fails, of whatever."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.object_changed = self.fail  # type: ignore[assignment]

    def fail(self, *_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    done = planned = fail


def test_who_cannot_tell_what_happened_goes_on_and_doubts_nothing() -> None:
    world = World()
    node(world, "a")
    patch = PatchObject(verb="V", ref=Ref("Node", "", "a"), patch={"metadata": {"labels": {"x": "1"}}}, reason=WHY)
    decide = Decider(Plan((patch,)))
    loop = controller(world, decide, telemetry=Speechless.quiet(world.kube, world.clock))
    loop.tick()
    loop.tick()
    assert decide.seen[1].nodes["a"].metadata.labels["x"] == "1"
    assert len(decide.seen[1].fresh_at) == 7
    assert errors(loop, "take_in") is None
    told = errors(loop, "telemetry")
    assert told is not None
    assert told > 3
