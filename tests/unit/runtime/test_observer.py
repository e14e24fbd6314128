"""What AWS is asked, and when."""

from __future__ import annotations

from kerf.model.settings import Settings
from kerf.ports import Unavailable
from kerf.runtime.inbox import Inbox
from kerf.runtime.observe.observer import INSTANCES_IDLE, Observer
from kerf.runtime.state.state import State
from kerf.sandbox.faults import Call, Faults
from kerf.sandbox.world import World
from tests.unit.runtime.clocks import SetBack


class Asking(Faults):
    """Counts how often EC2's instances were asked for; asking fails while `down`."""

    def __init__(self) -> None:
        self.asked, self.down = 0, False
        self.clock = SetBack()
        state = State(Settings(cluster_name="sandbox"), build=lambda *_: (), interpret=lambda _: None)
        self.observer = Observer(World(faults=self).cloud, self.clock, Inbox(), state)

    def before(self, call: Call) -> None:
        if call.verb == "instances":
            self.asked += 1
            if self.down:
                raise Unavailable("not now")

    def ask(self) -> None:
        self.observer.run_due(self.clock.now())


def test_instances_are_asked_for_once_in_a_while() -> None:
    asking = Asking()
    asking.ask()
    asking.ask()
    assert asking.asked == 1
    asking.clock.sleep(INSTANCES_IDLE.total_seconds())
    asking.ask()
    assert asking.asked == 2


def test_what_was_asked_before_the_clock_was_set_back_is_asked_again() -> None:
    asking = Asking()
    asking.ask()
    asking.clock.back(60)
    due = asking.observer.next_due()
    assert due is not None
    assert due <= asking.clock.now()
    asking.ask()
    asking.ask()
    assert asking.asked == 2


def test_a_question_that_failed_before_the_clock_was_set_back_is_asked_again() -> None:
    asking = Asking()
    asking.down = True
    asking.ask()
    asking.clock.back(60)
    asking.down = False
    asking.ask()
    assert asking.asked == 2
