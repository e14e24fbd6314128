"""What `kerf why node` says in the course of a node's life, from its NodeClaim to its end, beside what then happens."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from kerf.judgement.judge import why
from kerf.judgement.values import Judgement
from kerf.model import kinds
from kerf.runtime.observe.looking import look
from kerf.sandbox.weather import Weather
from kerf_api import labels
from tests.simulation.stage import EAGER, SETTINGS, STILL, Stage
from tests.worlds import deployment, node_pool


def asked(stage: Stage, name: str) -> Judgement:
    """From one look, as the command does it: without what only the controller remembers."""
    return why(look(stage.world.kube, stage.world.cloud, SETTINGS, stage.world.clock), name)


def stood(stage: Stage, name: str, seconds: float = 900) -> list[str]:
    """The stages that the answer goes through until the node is gone, each once."""
    seen = [_code(asked(stage, name))]
    end = stage.world.clock.now() + timedelta(seconds=seconds)

    def another() -> bool:
        return _code(asked(stage, name)) != seen[-1]

    while seen[-1] != "NotFound" and stage.world.clock.now() < end:
        stage.run(seconds, until=another)
        seen.append(_code(asked(stage, name)))
    return seen


def _code(found: Judgement) -> str:
    return found.stage.code if found.stage is not None else found.code


def test_a_node_comes_is_held_drifts_is_replaced_drained_and_gone() -> None:
    stage = Stage(weather=Weather(ready_seconds=20, pod_stop_seconds=5))
    stage.run(60, until=lambda: bool(stage.claims))
    (name,) = [claim.name for claim in stage.claims]
    coming: list[str] = []
    while not coming or coming[-1] != "InUse":
        code = _code(asked(stage, name))
        if not coming or code != coming[-1]:
            coming.append(code)
        stage.run(1)
    assert coming == ["Launching", "Registering", "Initializing", "InUse"]

    stage.settle()
    stage.protect()
    stage.world.apply(node_pool("general", {"disruption": STILL, "labels": {"tier": "new"}}))
    stage.run(60)
    held = asked(stage, name)
    (drift,) = [end for end in held.ends if end.code == "Drifted"]
    assert (held.code, drift.text) == ("Stays", "NodePoolDrifted: label tier was not there, now 'new'")
    assert [hold.code for hold in drift.holds] == ["PodDisruptionBudget"]
    assert not stage.seam.writes("delete")

    stage.world.delete("PodDisruptionBudget", "web", "default")
    assert stood(stage, name) == ["InUse", "Disrupting", "Draining", "Terminating", "NotFound"]
    assert stage.all_run()


def test_the_instant_at_which_an_empty_node_may_go_is_when_it_goes() -> None:
    stage = Stage(disruption={**EAGER, "consolidateAfter": "5m"})
    stage.settle()
    (name,) = [claim.name for claim in stage.claims]
    stage.scale(0)
    stage.run(30)
    found = asked(stage, name)
    assert found.code == "Due"
    assert found.at is not None
    gone_at: list[datetime] = []

    def gone() -> bool:
        if any(labels.COMMAND in claim.metadata.annotations for claim in stage.claims):
            gone_at.append(stage.world.clock.now())
        return bool(gone_at)

    stage.run(600, until=gone)
    assert timedelta(0) <= gone_at[0] - found.at <= timedelta(seconds=30)


def test_a_node_that_somebody_protects_is_refused_by_the_controller_for_what_is_told() -> None:
    stage = Stage(disruption=EAGER)
    stage.settle()
    (node,) = stage.nodes
    stage.annotate(kinds.NODE, node.name, labels.DO_NOT_DISRUPT, "true")
    stage.scale(0)
    stage.run(300)
    assert not stage.seam.writes("delete")
    found = asked(stage, node.name)
    assert found.text == f"stays: the node is annotated {labels.DO_NOT_DISRUPT}"
    words = found.text.removeprefix("stays: ")
    assert sorted(e["involvedObject"]["kind"] for e in _blocked(stage) if words in e["message"]) == [
        "Node",
        "NodeClaim",
    ]


def test_an_answer_that_does_not_change_is_told_once_an_hour_and_another_at_once() -> None:
    stage = Stage(disruption={**EAGER, "consolidationPolicy": "WhenEmptyOrUnderutilized"})
    stage.settle()
    stage.protect()
    stage.run(3000)
    assert told(stage, "PodDisruptionBudget default/web") == 1
    stage.annotate(kinds.NODE, stage.nodes[0].name, labels.DO_NOT_DISRUPT, "true")
    stage.run(60)
    assert told(stage, labels.DO_NOT_DISRUPT) == 1
    stage.run(7000)
    assert (told(stage, "PodDisruptionBudget default/web"), told(stage, labels.DO_NOT_DISRUPT)) == (1, 2)


def told(stage: Stage, words: str) -> int:
    """How often it was told of the Node that it is blocked for this."""
    return len([e for e in _blocked(stage) if e["involvedObject"]["kind"] == "Node" and words in e["message"]])


def test_pods_that_wait_hold_no_node_because_a_look_has_only_begun() -> None:
    """The command has just begun whenever it is asked; the controller has not."""
    stage = Stage()
    stage.settle()
    stage.world.apply(deployment("giant", {"cpu": 500}))
    stage.run(30)
    (node,) = stage.nodes
    assert "PodsPending" not in [hold.code for hold in asked(stage, node.name).holds]


def _blocked(stage: Stage) -> list[Any]:
    return [e for e in stage.world.objects("Event") if e["reason"] == "DisruptionBlocked"]
