"""From a question to an answer: which objects are looked at, what refuses them, and in what words.

Mutating webhooks run before the API server's own schema and CEL checks, validating ones after. So `mutate` refuses as
well, or the user would meet the API server's words instead of ours. On an update a fault that the old object had
already is only a warning: an old fault must not block the fix of another one. Deletions are
judged in `deletions.py`, annotations in which Kerf keeps its own state in `own_annotations.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from kerf_api import crds
from kerf_api.defaulting import patch
from kerf_api.lint import LintSettings, Problem, validate
from kerf_api.lint.rules import rules_nodepool

from . import deletions, own_annotations
from .review import Review, allowed, denied, forbidden

_WRITES: Final = ("CREATE", "UPDATE")
#: Defaulting refuses only; what is merely unwise is reported by the door that comes last.
_NO_ADVICE: Final = LintSettings(advice=False)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer, and for the metrics whether the object was looked at and refused."""

    answer: dict[str, Any]
    outcome: str


@cache
def resources() -> Mapping[str, str]:
    """The resources that are looked at, each with its kind: `nodepools.karpenter.sh` → `NodePool`."""
    return {crds.load(kind)["metadata"]["name"]: kind for kind in crds.kinds()}


def is_ours(review: Review) -> bool:
    """Whether the write changes the spec of one of our kinds. Status and scale are not, nor others' objects."""
    if review.resource not in resources() or review.operation not in _WRITES or review.subresource:
        return False
    return not review.foreign


def mutate(review: Review, most: int) -> Verdict:
    """Fill in defaults, or refuse. The words of at most `most` problems are given."""
    if not is_ours(review):
        return Verdict(allowed(review.uid), "skipped")
    errors, _ = _judged(review, _NO_ADVICE)
    if errors:
        return Verdict(denied(review.uid, _message(review, errors, most)), "denied")
    return Verdict(allowed(review.uid, patch=patch(review.new or {})), "allowed")


def check(review: Review, most: int) -> Verdict:
    """Allow or refuse, with warnings either way. The words of at most `most` problems of each sort are given."""
    if deletions.is_ours(review):
        objection = deletions.objection(review)
        return (
            Verdict(forbidden(review.uid, objection), "denied")
            if objection
            else Verdict(allowed(review.uid), "allowed")
        )
    if not is_ours(review):
        return Verdict(allowed(review.uid, _misspelt(review)), "skipped")
    errors, rest = _judged(review, LintSettings())
    warnings = [str(problem) for problem in rest[:most]]
    if errors:
        return Verdict(denied(review.uid, _message(review, errors, most), warnings), "denied")
    return Verdict(allowed(review.uid, warnings), "allowed")


def _misspelt(review: Review) -> list[str]:
    """The warnings about a node class of another controller that may be a misspelt EC2NodeClass."""
    if not review.foreign or resources().get(review.resource) != "NodePool" or review.operation not in _WRITES:
        return []
    return [str(problem) for problem in rules_nodepool.node_class(review.new or {})]


def check_annotations(review: Review, _most: int) -> Verdict:
    """Refuse a change of an annotation that only Kerf may make, and nothing else."""
    if not own_annotations.is_ours(review):
        return Verdict(allowed(review.uid), "skipped")
    objection = own_annotations.objection(review)
    if objection:
        return Verdict(forbidden(review.uid, objection), "denied")
    return Verdict(allowed(review.uid), "allowed")


def _judged(review: Review, settings: LintSettings) -> tuple[list[Problem], list[Problem]]:
    """Errors, and what is less than an error."""
    new = review.new or {}
    problems = validate(new, review.old if review.operation == "UPDATE" else None, settings=settings)
    errors = [problem for problem in problems if problem.severity == "error"]
    return errors, [problem for problem in problems if problem.severity == "warning"]


def _message(review: Review, errors: Sequence[Problem], most: int) -> str:
    place = f"{review.namespace}/" if review.namespace else ""
    subject = f"{resources()[review.resource]} {place}{review.name}".strip()
    if len(errors) == 1:
        return f"{subject}: {errors[0]}"
    lines = [f"{subject} has {len(errors)} problems:", *(f"- {problem}" for problem in errors[:most])]
    if len(errors) > most:
        lines.append(f"- and {len(errors) - most} more; `kerf validate` shows all of them")
    return "\n".join(lines)
