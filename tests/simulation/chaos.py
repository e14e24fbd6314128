"""Deterministic simulation: the whole controller in the sandbox under a seed's deeds and faults, watched by invariants.

    python -m tests.simulation.chaos --seeds 50          # seeds 0 … 49
    python -m tests.simulation.chaos --seed 17 -v        # one seed, replayed exactly, with its story

A seed that fails is made shorter: deeds and faults are left out one after the other for as long as it still fails, and
what remains is printed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from kerf.decide import decide
from kerf.model import kinds
from kerf.model.kinds import Ref
from kerf.model.kubernetes.pods import of_daemon_set
from kerf.model.memory import Memory
from kerf.model.plan import INTERNAL_ERROR, Plan
from kerf.model.settings import Settings
from kerf.model.snapshot import Snapshot
from kerf.provisioning.progress import AWAITS_NODE
from kerf.runtime.controller import Controller
from kerf.runtime.inbox import Inbox, Proposed
from kerf.runtime.parts import Parts
from kerf.runtime.proposer import InlineProposer
from kerf.sandbox.world import Unsettled, World
from tests.aws_calls import LEDGER, sandbox
from tests.simulation import memories, memory
from tests.simulation.hands import Hands, Staff
from tests.simulation.invariants import Invariants, Violation
from tests.simulation.rest import unrest
from tests.simulation.said import things
from tests.simulation.scripts import STORM_SECONDS, TYPES, Deed, Fault, Script, differing, script
from tests.simulation.trouble import Killed, Trouble

SETTINGS = Settings(
    cluster_name="sandbox",
    disruption_period=timedelta(seconds=30),
    registration_timeout=timedelta(minutes=6),
    improve=timedelta(milliseconds=10),  # a few tries for every batch; what it finds is not what is tested here
)
#: After the storm: the time in which everything has to come to rest, more where nodes expire.
REST, REST_WITH_EXPIRY, LOOK = timedelta(minutes=30), timedelta(minutes=45), timedelta(minutes=3)
EXPIRY = timedelta(minutes=14)
#: Then nothing may happen: one seed in so many is watched for a whole hour, the others for a short while.
IDLE, SHORT_IDLE, ONE_IN = timedelta(minutes=60), timedelta(minutes=6), 10
DOWNTIME = timedelta(seconds=7)
#: The slow half thinks again after this long though nothing has changed: what was out of stock may be had again. It is
#: shorter than a look, or a world would seem to rest that does not.
PONDER = timedelta(minutes=2)
#: In one seed in so many, every plan is made a second time without memory.
THOROUGH_ONE_IN = 20
#: In one seed in so many, pods are told which node was made for them.
TOLD_ONE_IN = 4
#: How often a failing script is played to make it shorter.
_REPLAYS = 60


@dataclass(slots=True)
class Outcome:
    """How a script ended; `violation` is empty when all was well."""

    script: Script
    violation: str = ""
    at: float = 0.0
    launched: int = 0
    crashes: int = 0
    #: How often each invariant had something to look at, and how often it did.
    asked: Counter[str] = field(default_factory=Counter)
    looked: Counter[str] = field(default_factory=Counter)
    #: How often plans said each thing: actions, refusals and events with their reasons.
    said: Counter[str] = field(default_factory=Counter)
    story: list[str] = field(default_factory=list)


#: Errors that the loop carries on after, and that only a bug can bring about.
BUGS = ("decide", "take_in", "telemetry", "types", "propose")


def bugs(controller: Controller) -> list[str]:
    """Where the controller has met bugs of its own, as its metric tells."""
    counter = controller.telemetry.metrics.errors
    return [where for where in BUGS if counter.labels(where)._value.get()]


class Crew(Staff):
    """The controllers: usually one, for a moment none or two. Drives the invariants after every look."""

    def __init__(self, world: World, trouble: Trouble, invariants: Invariants, settings: Settings) -> None:
        self._world, self._trouble, self._invariants, self._settings = world, trouble, invariants, settings
        self._at_work = [self._hire()]
        self._back_at: datetime | None = None
        self.crashes = 0
        #: Whether each plan is compared with one that was made without memory.
        self.thorough = False
        #: What the latest plans wanted done, and why; the pods that have no place, with the reason's code, by key.
        self.plans: deque[str] = deque(maxlen=40)
        self.refused: dict[str, str] = {}
        self.said: Counter[str] = Counter()

    def _hire(self) -> Controller:
        world, proposer = self._world, Proposals()
        made = Controller(
            world.ports,
            Parts(decide=self._decide, proposer=proposer),
            settings=self._settings,
            inline=True,
            may_act=lambda: self.leads,
        )
        proposer.inbox = made.inbox
        return made

    def _decide(self, snapshot: Snapshot, memory: Memory) -> Plan:
        try:
            plan = decide(snapshot, memory)
            if self.thorough:
                self._invariants.broken(memories.difference(plan, decide(snapshot)))
        except Exception as error:  # the loop would carry on, with nothing decided
            self._invariants.broken([f"bug: {type(error).__name__}: {error}"])
            raise
        self._invariants.broken(f"bug: {r}" for r in plan.refusals if r.reason.code == INTERNAL_ERROR)
        if plan.provisioned:
            pods = ((r.subject.removeprefix("pod/"), r.reason.code) for r in plan.refusals)
            self.refused = {key: code for key, code in pods if key.count("/") == 1 and code != AWAITS_NODE}
        self.said.update(things(plan))
        for action in plan.actions:
            self.plans.append(f"{self._trouble.elapsed:8.2f} s  {action.key}  ({action.reason})")
        return plan

    # --- as the world's loop wants it -----------------------------------------------------------------------------
    @property
    def next_due(self) -> datetime | None:
        dues = [controller.next_due for controller in self._at_work]
        dues += [self._back_at, self._trouble.wakes_at]
        return min((due for due in dues if due is not None), default=None)

    def tick(self) -> None:
        now = self._world.clock.now()
        if self._back_at is not None and self._back_at <= now:
            self._back_at = None
            self._at_work.append(self._hire())
        if len(self._at_work) > 1:  # where they disagree, they do so at the speed of requests
            self._world.clock.sleep(0.1)
        for controller in list(self._at_work):
            self._one(controller)
        self._invariants.several = len(self._at_work) > 1
        self._invariants.check()

    def _one(self, controller: Controller) -> None:
        self._invariants.acting = len(self._at_work)
        try:
            controller.tick()
            self._invariants.broken(f"bug: an error in {where}" for where in bugs(controller))
        except Killed:
            self.crashes += 1
            self._at_work.remove(controller)
            if self._at_work:
                self._invariants.alone_since = self._world.clock.now()
            else:
                self._back_at = self._world.clock.now() + DOWNTIME
        finally:
            self._invariants.acting = 0

    # --- deeds ----------------------------------------------------------------------------------------------------
    def lead(self) -> None:
        self.leads = True
        self._invariants.led_since = self._world.clock.now()

    def double(self) -> None:
        self._at_work.append(self._hire())

    def single(self) -> None:
        """The older one is gone."""
        del self._at_work[:-1]
        self._invariants.alone_since = self._world.clock.now()

    # --- afterwards -----------------------------------------------------------------------------------------------
    @property
    def one(self) -> Controller:
        """The one at work."""
        return self._at_work[-1]

    def replaced(self) -> Controller:
        """The one at work, which another one follows that remembers nothing."""
        old, self._at_work = self.one, [self._hire()]
        return old


class Proposals:
    """The slow half, inline; what has nothing new to think about says again what it said last, and thinks again after
    a while (`ponder`)."""

    inbox: Inbox

    def __init__(self, ponder: timedelta = PONDER) -> None:
        self._ponder = ponder
        self._said: Proposed | None = None
        self._since: datetime | None = None

    def start(self, snapshot: Snapshot, changes: Mapping[Ref, Any | None]) -> bool:
        rested = self._since is not None and snapshot.now - self._since < self._ponder
        if changes or not rested or self._said is None or self._said.proposals:
            InlineProposer(self.inbox).start(snapshot, changes)
            self._since = snapshot.now
            self._said = next((n for n in self._peek() if isinstance(n, Proposed)), None)
        else:
            self.inbox.put(Proposed((), snapshot.now))
        return True

    def _peek(self) -> list[Any]:
        news = self.inbox.drain()
        for item in news:
            self.inbox.put(item)
        return list(news)

    def forget(self) -> None:
        """What has changed was not kept: what was said before counts no more."""
        self._said = None

    def rest(self) -> None:
        """It uses nothing between questions."""

    def close(self) -> None:
        """Nothing is open."""


# --- playing ------------------------------------------------------------------------------------------------------
def play(what: Script) -> Outcome:
    """Live through a script: the storm, the rest, and an hour in which nothing may happen."""
    trouble = Trouble(what.faults)
    world = World(seed=what.seed, types=TYPES, weather=what.weather, faults=trouble)
    trouble.begin(world.clock.now)
    invariants = Invariants(world, trouble, SETTINGS)
    queue, told = "sandbox" if what.queue else "", what.seed % TOLD_ONE_IN == TOLD_ONE_IN - 1
    settings = replace(SETTINGS, interruption_queue=queue, nominate_pods=told)
    crew = Crew(world, trouble, invariants, settings)
    crew.thorough = not what.seed % THOROUGH_ONE_IN
    hands = Hands(world, what, crew)
    invariants.leads, trouble.depose = lambda: crew.leads, hands.not_leading
    outcome = Outcome(what)
    try:
        _live(what, world, crew, hands)
        trouble.end()
        hands.calm()
        _rest(what, world, crew, trouble, hands)
        hands.tidy()
        world.run(crew, LOOK)
        _idle(what, world, crew, trouble)
        _succeed(what, world, crew, trouble)
    except (Violation, Unsettled) as error:
        outcome.violation, outcome.at = str(error), trouble.elapsed
    outcome.story = [*_lines("last plans", crew.plans), *_lines("last writes", trouble.log)]
    outcome.launched, outcome.crashes = len(world.ec2.instances), crew.crashes
    outcome.asked, outcome.looked, outcome.said = invariants.asked, invariants.looked, crew.said
    return outcome


def _live(what: Script, world: World, crew: Crew, hands: Hands) -> None:
    started = world.clock.now()
    hands.begin()
    for deed in what.deeds:
        world.run(crew, started + timedelta(seconds=deed.at))
        getattr(hands, deed.verb)(*deed.arguments)
    world.run(crew, started + timedelta(seconds=STORM_SECONDS))


def _rest(what: Script, world: World, crew: Crew, trouble: Trouble, hands: Hands) -> None:
    """Everything comes to rest in time. Raises Violation."""
    end = world.clock.now() + (REST_WITH_EXPIRY if what.expires else REST)
    if what.expires:
        world.run(crew, EXPIRY)
    while True:
        trouble.writes = 0
        hands.allow_garbage()
        world.run(crew, LOOK)
        moving = unrest(world, may_wait(what, world, crew))
        if not moving and not trouble.writes:
            return
        hands.lift_budgets(may_wait(what, world, crew))
        if world.clock.now() >= end:
            raise Violation(f"no rest: {'; '.join(moving) or f'{trouble.writes} writes in {LOOK}'}")


def may_wait(what: Script, world: World, crew: Crew) -> set[str]:
    """The pods that may stay without a node where nodes differ from their plan: those that the controller has told
    why, and those of DaemonSets, which come to nodes that are too small for them."""
    if not what.differing:
        return set()
    pods = [record.value for record in world.server.records(kinds.POD)]
    return {*crew.refused, *(pod.key for pod in pods if of_daemon_set(pod) and not pod.spec.node_name)}


def _idle(what: Script, world: World, crew: Crew, trouble: Trouble) -> None:
    """An idle world stays untouched; pods that wait are told so now and then. Raises Violation."""
    trouble.writes = trouble.events = trouble.events_on_pods = 0
    pause = SHORT_IDLE if what.seed % ONE_IN else IDLE
    world.run(crew, pause)
    events = trouble.events - (trouble.events_on_pods if may_wait(what, world, crew) else 0)
    if trouble.writes or events:
        raise Violation(f"no peace: {trouble.writes} writes, {events} events in {pause} of an idle world")


def _succeed(what: Script, world: World, crew: Crew, trouble: Trouble) -> None:
    """A controller that is started in an idle world leaves it as it is, and the old one remembered no more than it
    does. Raises Violation."""
    old, trouble.writes = crew.replaced(), 0
    world.run(crew, LOOK)
    if trouble.writes:
        raise Violation(f"no peace: {trouble.writes} writes after a restart in an idle world")
    if not what.seed % ONE_IN and (found := memory.grown(old, crew.one)):
        raise Violation("; ".join(found))


def _lines(title: str, rows: deque[str]) -> list[str]:
    return [f"{title}:", *(f"  {row}" for row in rows)]


# --- making it shorter --------------------------------------------------------------------------------------------
def minimised(failed: Outcome) -> Outcome:
    """The shortest failing script that leaving out rows has found, within a bounded number of replays."""
    best, replays, size = failed, 0, max(1, len(failed.script.rows) // 2)
    while replays < _REPLAYS:
        rows, start, shorter = best.script.rows, 0, False
        while start < len(best.script.rows) and replays < _REPLAYS:
            rows = best.script.rows
            tried = play(best.script.only(rows[:start] + rows[start + size :]))
            replays += 1
            if _same(tried, failed):
                best, shorter = tried, True
            else:
                start += size
        if size == 1 and not shorter:
            break
        size = max(1, size // 2)
    return best


def _same(tried: Outcome, failed: Outcome) -> bool:
    """Whether the same invariant is broken."""
    return bool(tried.violation) and tried.violation.split(":")[0] == failed.violation.split(":")[0]


def told(outcome: Outcome) -> str:
    """The story of a failure."""
    rows: tuple[Deed | Fault, ...] = outcome.script.rows
    option = " --differing" if outcome.script.differing else ""
    lines = [
        f"seed {outcome.script.seed}, at {outcome.at:.1f} s: {outcome.violation}",
        f"weather: {outcome.script.weather}",
        f"{len(rows)} deeds and faults:",
        *(f"  {row}" for row in sorted(rows, key=lambda row: row.at)),
        *outcome.story,
        f"replay: python -m tests.simulation.chaos --seed {outcome.script.seed}{option} -v",
    ]
    return "\n".join(lines)


# --- the command --------------------------------------------------------------------------------------------------
def main() -> int:
    """Play one seed or many; 1 when an invariant was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, help="play this seed only")
    parser.add_argument("--seeds", type=int, default=50, help="how many seeds to play (default 50)")
    parser.add_argument("--start", type=int, default=0, help="the first of them")
    parser.add_argument("-v", "--verbose", action="store_true", help="tell every seed's script, not only failing ones")
    parser.add_argument("--whole", action="store_true", help="do not make failing scripts shorter")
    parser.add_argument("--differing", action="store_true", help="let nodes differ from their plan")
    given = parser.parse_args()
    chosen = [given.seed] if given.seed is not None else range(given.start, given.start + given.seeds)
    sandbox.install()
    began, failed = time.monotonic(), []
    asked, looked = Counter[str](), Counter[str]()
    for seed in chosen:
        outcome = play(differing(script(seed)) if given.differing else script(seed))
        asked, looked = asked + outcome.asked, looked + outcome.looked
        if outcome.violation:
            failed.append(seed)
            print(told(outcome if given.whole else minimised(outcome)), end="\n\n", flush=True)
        elif given.verbose:
            print(told(outcome))
        for refusal in LEDGER.take_refusals():
            failed.append(seed)
            print(f"seed {seed}: AWS refuses {refusal}", flush=True)
    print(f"looked: {', '.join(f'{name} {looked[name]} of {asked[name]}' for name in sorted(asked))}")
    seconds = time.monotonic() - began
    print(f"{len(chosen)} seeds in {seconds:.0f} s, {len(failed)} failed{': ' if failed else ''}{failed or ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
