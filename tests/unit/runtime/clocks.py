"""A clock that somebody sets."""

from __future__ import annotations

from datetime import timedelta

from kerf.sandbox.clock import VirtualClock


class SetBack(VirtualClock):
    """The Clock port; its time of day goes back when it is told to."""

    def back(self, minutes: float) -> None:
        self._now -= timedelta(minutes=minutes)
