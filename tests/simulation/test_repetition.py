"""A question that the slow half is spared would have been answered as the one before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest

from kerf.cli.verbs.simulation.loading import File
from kerf.disruption.propose import consider
from kerf.model.kinds import Ref
from kerf.model.snapshot import Snapshot
from kerf.runtime import controller
from kerf.runtime.proposer import InlineProposer
from kerf.runtime.repetition import Repetition
from kerf.runtime.state.changes import Changes
from kerf.simulating.playing import Play
from tests.simulation import chaos
from tests.simulation.scripts import script
from tests.sources import ROOT

_WRONG: list[str] = []
_SPARED: list[int] = []
_MOVES: list[int] = []


class Judged(Repetition):
    """Thinks after all, and compares."""

    def same(self, snapshot: Snapshot, changes: Changes) -> bool:
        told = super().same(snapshot, changes)
        if told:
            found = consider(snapshot)
            _SPARED.append(len(snapshot.state_nodes))
            _MOVES.append(len(found.proposals))
            if found.proposals != snapshot.proposals or found.kept != snapshot.kept:
                was = snapshot.proposals, snapshot.kept
                _WRONG.append(f"{snapshot.now}: {found} where {was} was the last answer")
        return told


class _Always(chaos.Proposals):
    """Thinks whenever it is asked."""

    def start(self, snapshot: Snapshot, changes: Mapping[Ref, Any | None]) -> bool:
        InlineProposer(self.inbox).start(snapshot, changes)
        return True


SEEDS: Final = (3, 6, 32, 57, 143, 226)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seeds", [SEEDS, pytest.param(range(300, 400), marks=pytest.mark.long)], ids=["few", "many"])
def test_what_is_spared_would_have_been_the_same(seeds: Sequence[int], monkeypatch: pytest.MonkeyPatch) -> None:
    _WRONG.clear()
    _SPARED.clear()
    _MOVES.clear()
    monkeypatch.setattr(controller, "Repetition", Judged)
    monkeypatch.setattr(chaos, "Proposals", _Always)
    for seed in seeds:
        assert not chaos.play(script(seed)).violation
    assert not _WRONG, _WRONG[0]
    assert sum(1 for nodes in _SPARED if nodes) > len(seeds)


def test_proposals_that_stand_would_have_been_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spot nodes that are out of stock for an hour come back as cheaper ones, by proposals that stand for a while."""
    _WRONG.clear()
    _MOVES.clear()
    monkeypatch.setattr(controller, "Repetition", Judged)
    Play(File(str(ROOT / "manifests" / "simulate" / "spot-loss.yaml")).case(), 1).run()
    assert not _WRONG, _WRONG[0]
    assert any(_MOVES)
