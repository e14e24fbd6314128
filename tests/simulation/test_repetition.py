"""A question that the slow half is spared would have been answered as the one before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest

from kerf.disruption.propose import consider
from kerf.model.kinds import Ref
from kerf.model.snapshot import Snapshot
from kerf.runtime import controller
from kerf.runtime.proposer import InlineProposer
from kerf.runtime.repetition import Repetition
from kerf.runtime.state.changes import Changes
from tests.simulation import chaos
from tests.simulation.scripts import script

_WRONG: list[str] = []
_SPARED: list[int] = []


class Judged(Repetition):
    """Thinks after all, and compares."""

    def same(self, snapshot: Snapshot, changes: Changes) -> bool:
        told = super().same(snapshot, changes)
        if told:
            found = consider(snapshot)
            _SPARED.append(len(snapshot.state_nodes))
            if found.proposals or found.kept != snapshot.kept:
                _WRONG.append(f"{snapshot.now}: {found} where {snapshot.kept} was the last answer")
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
    monkeypatch.setattr(controller, "Repetition", Judged)
    monkeypatch.setattr(chaos, "Proposals", _Always)
    for seed in seeds:
        assert not chaos.play(script(seed)).violation
    assert not _WRONG, _WRONG[0]
    assert sum(1 for nodes in _SPARED if nodes) > len(seeds)
