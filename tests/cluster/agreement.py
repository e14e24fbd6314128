"""What three judges said to each case of the corpus, and the report on where they agree.

`validate` is the measure. The webhook must give its verdict in its words. So must the API server without the webhook,
but for the rules that no definition states: there `tests/unit/api/table/explained.py` says why it cannot. What is
accepted must also be filled in alike by all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from kerf_api import crds
from kerf_api.defaulting import default
from kerf_api.foreign import is_foreign
from kerf_api.lint import Problem
from tests.unit.api.corpus import Case
from tests.unit.api.table.explained import EXPLAINED
from tests.unit.webhook.doors import Reply, differs, patched

from .api_server import Answer

LAYERS: Final = {"shape": "shape", "CEL": "rules in CEL", "run time": "run time"}
VERDICTS: Final = ("accepted", "refused")


def layer(rule: str) -> str:
    """Where a rule is stated: in a definition's schema, in a definition's CEL, or only in the controllers."""
    number = re.fullmatch(r"KERF-[A-Z0-9]+-(\d+)", rule)
    if number is None:
        return "shape"
    return "CEL" if int(number[1]) < 100 else "run time"


@dataclass(frozen=True)
class Outcome:
    """What each of the three said to a case.

    `errors` are `validate`'s, `replies` the webhook's by door, `answer` the API server's, and `completed` its answer to
    the manifest with the webhook's patch, where both had accepted it.
    """

    case: Case
    errors: tuple[Problem, ...]
    replies: Mapping[str, Reply]
    answer: Answer
    completed: Answer | None = None

    @property
    def verdict(self) -> str:
        """The verdict of `validate`."""
        return VERDICTS[bool(self.errors)]

    @property
    def layer(self) -> str:
        """The first layer that refuses it; empty when none does."""
        found = {layer(problem.rule) for problem in self.errors}
        return next((name for name in LAYERS if name in found), "")

    @cached_property
    def webhook_differs(self) -> list[str]:
        """In what each door of the webhook differs from `validate`."""
        return [f"webhook {door} {said}" for door, r in self.replies.items() if (said := differs(self.errors, r))]

    @property
    def server_differs(self) -> bool:
        """Whether the API server's verdict is another than `validate`'s."""
        return self.answer.accepted is bool(self.errors)

    @cached_property
    def table_differs(self) -> list[str]:
        """In what `validate` is not as the table says."""
        found = []
        if self.case.rule == "" and self.errors:
            found.append("the table accepts it")
        if self.case.rule and (self.case.rule, self.case.blamed) not in {(p.rule, p.path) for p in self.errors}:
            found.append(f"the table refuses it by {self.case.rule} at {self.case.blamed}")
        if not all(problem.path for problem in self.errors):
            found.append("a refusal names no field")
        return found

    @cached_property
    def filled_in(self) -> Mapping[str, Any]:
        """The spec with its defaults, by each that accepts it; `kerf default` comes first.

        The webhook leaves an object of another controller as it is.
        """
        found = {"kerf default": default(self.case.manifest).get("spec")}
        if self.replies["/mutate"]["allowed"] and not is_foreign(self.case.manifest):
            found["webhook"] = patched(self.case, self.replies["/mutate"]).manifest.get("spec")
        for name, answer in (("API server", self.answer), ("API server after the webhook", self.completed)):
            if answer is not None and answer.accepted:
                found[name] = answer.body.get("spec")
        return found


class Report:
    """What the outcomes come to; all is well when there are no `problems`.

    `why` explains the rules that the bare API server cannot know.
    """

    def __init__(self, outcomes: Sequence[Outcome], why: Mapping[str, str] = EXPLAINED) -> None:
        self._outcomes: Final = outcomes
        self._why: Final = why

    @cached_property
    def explained(self) -> Mapping[str, Sequence[Outcome]]:
        """By rule, the cases that the API server accepts because it cannot know the rule."""
        found: dict[str, list[Outcome]] = {}
        for outcome in self._outcomes:
            if outcome.server_differs and self._unknowable(outcome):
                found.setdefault(outcome.errors[0].rule, []).append(outcome)
        return dict(sorted(found.items()))

    @cached_property
    def problems(self) -> list[str]:
        """Disagreements that nothing explains, and explanations that nothing needs."""
        return [*self._unexplained(), *self._needless(), *self._filled_in_differently()]

    def text(self, *, cases: bool = True) -> str:
        """The whole report, for people; without the single cases that are explained, when `cases` is False."""
        made = sum(outcome.case.old is None for outcome in self._outcomes)
        head = (
            f"{len(self._outcomes)} cases: {made} creations and {len(self._outcomes) - made} changes.\n"
            "How many of them validate accepts and refuses, and how many of those the others likewise;\n"
            "explained: the API server without the webhook cannot know."
        )
        parts = [head, self._kinds(), self._layers(), self._defaults(), self._explanations(cases), self._end()]
        return "\n\n".join(parts)

    # --- what is amiss ---
    def _unknowable(self, outcome: Outcome) -> bool:
        return bool(outcome.errors) and all(problem.rule in self._why for problem in outcome.errors)

    def _unexplained(self) -> Iterator[str]:
        for outcome in self._outcomes:
            found = [*outcome.table_differs, *outcome.webhook_differs]
            if outcome.server_differs and not self._unknowable(outcome):
                found.append(f"API server {outcome.answer.status} {outcome.answer.message}".rstrip())
            if found:
                said = "; ".join(map(str, outcome.errors)) or "accepts it"
                yield f"{outcome.case.label}: validate {said}; but {'; '.join(found)}"

    def _needless(self) -> Iterator[str]:
        needed = {problem.rule for outcomes in self.explained.values() for o in outcomes for problem in o.errors}
        for rule in sorted(self._why.keys() - needed):
            yield f"{rule} is explained, but no case needs it"
        for outcome in self._outcomes:
            if not outcome.server_differs and self._unknowable(outcome):
                yield f"{outcome.case.label}: {outcome.errors[0].rule} is explained, but the API server refuses it too"

    def _filled_in_differently(self) -> Iterator[str]:
        for outcome in self._outcomes:
            (measure, wanted), *others = outcome.filled_in.items()
            if differing := [f"{name} {spec}" for name, spec in others if spec != wanted]:
                yield f"{outcome.case.label}: {measure} fills in {wanted}; but {'; '.join(differing)}"

    # --- in print ---
    def _kinds(self) -> str:
        rows = [
            (kind, verdict, [o for o in self._outcomes if (o.case.kind, o.verdict) == (kind, verdict)])
            for kind in crds.kinds()
            for verdict in VERDICTS
        ]
        return self._table("kind", rows)

    def _layers(self) -> str:
        return self._table(
            "layer",
            [(words, "refused", [o for o in self._outcomes if o.layer == name]) for name, words in LAYERS.items()],
        )

    def _table(self, name: str, rows: Sequence[tuple[str, str, Sequence[Outcome]]]) -> str:
        """How many cases `validate` judges so in each row, and how many of them the others judge likewise."""
        lines = [f"{name:<16}{'verdict':<10}{'validate':>10}{'webhook':>10}{'API server':>12}{'explained':>12}"]
        for heading, verdict, outcomes in [*rows, ("all", "", [o for *_, found in rows for o in found])]:
            webhook = sum(not o.webhook_differs for o in outcomes)
            server = sum(not o.server_differs for o in outcomes)
            explained = sum(o.server_differs and self._unknowable(o) for o in outcomes)
            lines.append(f"{heading:<16}{verdict:<10}{len(outcomes):>10}{webhook:>10}{server:>12}{explained:>12}")
        return "\n".join(lines)

    def _defaults(self) -> str:
        seen = Counter(name for outcome in self._outcomes for name in outcome.filled_in if len(outcome.filled_in) > 1)
        differing = len([*self._filled_in_differently()])
        by = "".join(f"\n  by {name:<26}{count:>5}" for name, count in seen.items())
        return f"Specs that were filled in, {differing} of them differently:{by}"

    def _explanations(self, cases: bool) -> str:
        count = sum(map(len, self.explained.values()))
        lines = [f"Disagreements that are explained ({count}): validate and the webhook refuse, the API server accepts"]
        for rule, outcomes in self.explained.items():
            lines.append(f"  {rule:<13}{len(outcomes):>3}  {self._why[rule]}")
            if cases:
                lines += [f"      {outcome.case.label}" for outcome in outcomes]
        return "\n".join(lines)

    def _end(self) -> str:
        heading = f"Disagreements that nothing explains, and explanations that nothing needs ({len(self.problems)})"
        return "\n  ".join([heading, *self.problems])
