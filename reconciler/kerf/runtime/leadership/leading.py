"""Whether this process may act, and since when Kerf does: by its own lease, and by those of other controllers."""

from __future__ import annotations

from datetime import datetime

from kerf.ports import Clock
from kerf.runtime.leadership.karpenter import KarpenterLeases
from kerf.runtime.leadership.leader import Leader


class Leading:
    """`leader` is None without leader election. Any thread may ask."""

    def __init__(self, leader: Leader | None, karpenter: KarpenterLeases, clock: Clock) -> None:
        self._leader, self._karpenter, self._clock = leader, karpenter, clock
        self._began = clock.now()

    def has_lease(self) -> bool:
        """Whether no other replica may act."""
        return self._leader is None or self._leader.may_act()

    def may_act(self) -> bool:
        """Whether neither another replica nor another controller may act."""
        return self.has_lease() and self._karpenter.may_act()

    def since(self) -> datetime | None:
        """Since when Kerf leads with no other controller in between; None while another one does, or nothing is known.

        A replica that waits says the same as the leader: what its memory rests on stays when it takes over. Without
        leader election nothing is stored, and it is when this process began.
        """
        now = self._clock.now()
        self._began = min(self._began, now)  # the clock may have been set back
        since = self._began if self._leader is None else self._leader.since
        if since is None or not self._karpenter.may_act():
            return None
        return min(max(since, self._karpenter.last_led()), now)
