"""What may be believed of what is known: from when on it is too old, and what puts it in doubt."""

from __future__ import annotations

from datetime import UTC, datetime

from reconciler.model.plan import Source
from reconciler.model.settings import Settings
from reconciler.runtime.state import State

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def state() -> State:
    return State(Settings(cluster_name="c"), build=lambda *_: (), interpret=lambda _: None)


class Vanishing(dict[Source, datetime]):
    """Another thread takes a source away as soon as somebody has looked whether it is there."""

    def __contains__(self, source: object) -> bool:
        return self.pop(source, None) is not None  # type: ignore[call-overload]


def test_a_source_that_goes_while_it_is_asked_for_is_no_error() -> None:
    """The loop's thread withholds what a thread that performs actions is asking for."""
    known = state()
    known.fresh_at = Vanishing({Source.PODS: NOW})
    assert known.fresh(frozenset({Source.PODS}), NOW)
    assert not known.fresh(frozenset({Source.NODES}), NOW)
