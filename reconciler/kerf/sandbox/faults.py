"""The one seam at which a test makes the ports fail: before a request takes effect, or after it did."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Call:
    """One request of the controller. `port` is kube or cloud, `verb` the port's method, `subject` what it is about."""

    port: str
    verb: str
    subject: str


class Faults:
    """Nothing fails. A test overrides what it wants to break and raises one of the ports' errors there."""

    def before(self, call: Call) -> None:
        """Raise to refuse the request; it has no effect then."""

    def after(self, call: Call) -> None:
        """Raise to lose the answer of a request that took effect."""

    def silent(self, call: Call) -> bool:
        """Whether a watch says nothing now although there are events: late, or open at our end only."""
        return False

    def reordered(self, call: Call) -> bool:
        """Whether a watch sends the events of different objects in another order than they happened."""
        return False
