"""The decisions of a record, made again in this process, and the differences from the recorded ones.

The inputs of a decision are all in its snapshot. The solver of linear programs (HiGHS, called in
`scheduling/packing/linear.py` alone) gets no time limit and runs in one thread, and the search for a cheaper plan
counts its work in steps, not in seconds. So both give the same answer for the same input with the same versions, and
no answer of theirs is recorded. Another version of numpy or highspy, and another CPU, for which numpy may sum in
another order, can give another answer: the header names them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest

import msgspec

from kerf.decide import decide
from kerf.model.memory import Memory
from kerf.model.plan import Plan
from kerf.model.snapshot import Snapshot
from kerf.records import plans
from kerf.records.lines import Act, Decision
from kerf.records.reading import Step
from kerf.snapshots.sanitizing import Sanitizer

#: The versions in the header on which a decision may depend.
_DECISIVE = ("kerf", "numpy", "highspy", "python", "machine", "cpu")


@dataclass(frozen=True, slots=True)
class Outcome:
    """A decision, made again.

    Attributes:
        recorded: as in the record.
        replayed: as in this process.
        plan: the plan of this process.
    """

    recorded: Decision
    replayed: Decision
    plan: Plan
    _sanitizer: Sanitizer

    @property
    def same(self) -> bool:
        """Whether the plans are the same but for the time of the next reconcile."""
        return self.recorded.digest == self.replayed.digest

    def difference(self) -> Iterator[str]:
        """Lines for a person: the first action that differs, on both sides, or the part of the plan that does."""
        forms = plans.forms(self.plan.actions, self._sanitizer)
        pairs = zip_longest(self.recorded.actions, self.replayed.actions)
        for (place, (before, now)), form in zip_longest(enumerate(pairs), forms):
            if before != now:
                yield f"action {place + 1}"
                yield f"  recorded: {_words(before)}"
                yield f"  replayed: {_words(now)}"
                if before is not None and now is not None and (before.key, before.reason) == (now.key, now.reason):
                    yield f"  content replayed: {msgspec.json.encode(form).decode()}"
                return
        if self.recorded.refused != self.replayed.refused:
            counts = f"{self.recorded.refused} refusals recorded, {self.replayed.refused} replayed"
            yield f"the actions are the same; {counts}"
        else:
            yield "the actions are the same; refusals, events, nominations or figures differ"


def _words(act: Act | None) -> str:
    return "none" if act is None else f"{act.key} ({act.reason}) {act.digest}"


@dataclass(slots=True)
class Replay:
    """Makes the decisions of one part again; its memory saves time and changes no result."""

    _memory: Memory = field(default_factory=Memory)

    def again(self, step: Step) -> Outcome:
        """The decision of a step, made of its snapshot."""
        snapshot = step.captured().snapshot
        outcome = _outcome(step, snapshot, self._memory)
        return outcome if outcome.same else _outcome(step, snapshot, Memory())


def _outcome(step: Step, snapshot: Snapshot, memory: Memory) -> Outcome:
    sanitizer, recorded = Sanitizer(b"", snapshot), step.decision
    plan = decide(snapshot, memory)
    replayed = plans.decision(plan, sanitizer, at=snapshot.now, missed=recorded.missed)
    return Outcome(recorded, replayed, plan, sanitizer)


def other_versions(recorded: Mapping[str, str], own: Mapping[str, str]) -> list[str]:
    """The versions that differ from those of this process, in words."""
    rows = ((name, recorded.get(name, ""), own.get(name, "")) for name in _DECISIVE)
    return [f"{name} {then or 'unknown'} (here {now or 'unknown'})" for name, then, now in rows if then != now]
