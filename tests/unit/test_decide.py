"""The conductor: a bug in one room does not keep the others from their work."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from kerf.decide import decide
from kerf.model.cluster import build
from kerf.model.plan import INTERNAL_ERROR
from kerf.model.snapshot import Batch
from tests.unit.disruption.worlds import NOW, claim, node, pool, snapshot


def test_a_bug_in_one_room_does_not_keep_the_others_from_their_work() -> None:
    nonsense: Any = "no instant at all"
    world = snapshot([pool(), claim("a"), node(claim("a"))], batch=Batch(nonsense, nonsense))
    plan = decide(world)
    assert [(r.subject, r.reason.code) for r in plan.refusals if r.reason.code == INTERNAL_ERROR] == [
        ("provisioning", INTERNAL_ERROR)
    ]
    assert plan.actions
    assert plan.next_due is not None
    assert plan.next_due <= NOW + timedelta(seconds=10)


def test_nothing_to_decide_is_an_empty_plan() -> None:
    empty = build([], now=NOW, settings=snapshot([]).settings)
    assert decide(empty).actions == ()
