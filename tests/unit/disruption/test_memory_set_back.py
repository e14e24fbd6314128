"""A memory of a later time, after the clock was set back."""

from __future__ import annotations

from dataclasses import replace

from kerf.disruption.candidates.candidates import known_candidate
from kerf.disruption.view import view
from kerf.model.memory import Memory
from kerf.model.snapshot import Snapshot
from kerf_api import labels
from tests.unit.disruption.worlds import MINUTE, NOW, pairs, pod, pool, snapshot


def blocker(one: Snapshot, memory: Memory) -> str:
    found = known_candidate(view(one, memory.turn(one)), "a")
    return getattr(found, "code", "")


def test_a_pod_is_protected_again() -> None:
    protected = pod("p", "a", started=NOW - 4 * MINUTE, annotations={labels.DO_NOT_DISRUPT: "10m"})
    now = snapshot([pool(), *pairs("a"), protected])
    memory = Memory()
    seen = [blocker(one, memory) for one in (now, replace(now, now=NOW + 20 * MINUTE), now)]
    assert seen == ["PodDoNotDisrupt", "", "PodDoNotDisrupt"]
