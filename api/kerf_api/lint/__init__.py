"""Finds everything that is wrong with a manifest, before anything acts on it.

One function, `validate`, serves Git hooks, the admission webhook and the command line, so that the same mistake always
meets the same words. It looks in four layers: the shape (shape/), the rules that the CustomResourceDefinitions state
in CEL (expressions/), what controllers refuse at run time (rules/), and what is legal but unwise (advice/). What only
shows when several objects are read side by side is found by `together` (across/), and what a change of them means for
nodes by `changes` (differences/). Every rule has a page in the rule book (rulebook/). Pure: nothing here reads a clock
or a file other than the definitions and tables of this package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from itertools import chain, islice
from typing import Any, Final

from kerf_api import crds, old_names
from kerf_api.defaulting import default
from kerf_api.foreign import is_foreign
from kerf_api.lint import nearest
from kerf_api.lint.across.together import together
from kerf_api.lint.advice import advice_budgets, advice_buffers, advice_lifetimes, advice_overlays, advice_requirements
from kerf_api.lint.advice.requirement_advice import Known
from kerf_api.lint.expressions import cel, hints
from kerf_api.lint.problem import Problem, Severity, Steps, at, ordered, path_text, ratcheted, shown
from kerf_api.lint.reading import placeholders
from kerf_api.lint.reading.plain import plain
from kerf_api.lint.rules import (
    rules_capacitybuffer,
    rules_ec2nodeclass,
    rules_metadata,
    rules_nodeclaim,
    rules_nodeoverlay,
    rules_nodepool,
    written_annotations,
)
from kerf_api.lint.rules.old_names import old_kind
from kerf_api.lint.settings import STANDARD, LintSettings
from kerf_api.lint.shape import schema

__all__ = ["LintSettings", "Problem", "Severity", "Steps", "ordered", "path_text", "prepare", "together", "validate"]

Advice = Callable[[Known], Iterator[Problem]]

_RUNTIME: Final[Mapping[str, tuple[Callable[[Mapping[str, Any]], Iterator[Problem]], ...]]] = {
    # The controller takes the rules of a NodePool for its readiness, and ignores such annotations of the template.
    "NodePool": (rules_nodepool.check, written_annotations.of_template),
    "NodeClaim": (rules_nodeclaim.check,),
    "EC2NodeClass": (rules_ec2nodeclass.check,),
    "NodeOverlay": (rules_nodeoverlay.check,),
    "CapacityBuffer": (rules_capacitybuffer.check,),
}
#: So many problems of one layer are reported. A manifest with more of them was made by a machine, perhaps in order to
#: keep us busy, and each costs a search for what may have been meant.
_MOST: Final = 100
#: Longer than any list that has a bound may be.
_LONGEST_LIST: Final = 150
#: All that is given to one kind's is read once.
_ADVICE: Final[Mapping[str, tuple[Advice, ...]]] = {
    "NodePool": (advice_requirements.check, advice_budgets.check, advice_lifetimes.check),
    "NodeOverlay": (advice_overlays.check,),
    "CapacityBuffer": (advice_buffers.check,),
}


def validate(
    manifest: Mapping[str, Any], old: Mapping[str, Any] | None = None, *, settings: LintSettings = STANDARD
) -> list[Problem]:
    """Every problem of a manifest, the most important first; an empty list when there is none.

    With `old`, the object as it was before, the rules about changes are checked too, and an error that `old` already
    had is a warning: an old fault must not block the fix of another one. Of hundreds of
    problems only the first hundred are reported. Never raises for anything that a YAML or JSON reader can make.
    """
    problems = _found(manifest, old, settings)
    if old is None or not any(problem.severity == "error" for problem in problems):
        return problems
    return ratcheted(problems, _found(old, None, settings))


def _found(manifest: Mapping[str, Any], old: Mapping[str, Any] | None, settings: LintSettings) -> list[Problem]:
    clean, problems = plain(manifest)
    if not clean:
        return ordered(problems or [at((), "KERF-SCHEMA-TYPE", "error", "the manifest is empty")])
    kind, header = _kind(clean)
    problems += header
    if kind is not None:
        before = default(plain(old)[0]) if old is not None else None
        problems += _layers(kind, clean, default(clean), before, settings)
    return ordered(map(placeholders.explained, problems))


def prepare() -> None:
    """Read the definitions and compile every rule now, instead of at the first manifest of each kind."""
    for name in ("rules", "doubts"):  # the readers of user data, which the first class that has some would wait for
        import_module(f"kerf_api.userdata.{name}")
    for kind in crds.kinds():
        cel.prepare(kind)
        validate({"apiVersion": crds.api_version(kind), "kind": kind, "spec": {}})


def _layers(
    kind: str, given: dict[str, Any], manifest: dict[str, Any], old: dict[str, Any] | None, settings: LintSettings
) -> Iterator[Problem]:
    """Shape, rules, run time, advice. Of several complaints about one place only the first layer's are kept.

    Of objects of other controllers only the first two, and a node class that may be misspelt.
    """
    shape = [*islice(schema.check(kind, manifest), _MOST)]
    yield from shape
    if len(shape) == _MOST:
        return
    for problem in shape:
        if problem.rule == "KERF-SCHEMA-SIZE" and isinstance(problem.value, list):
            del problem.value[_LONGEST_LIST:]  # a part of our own copy, which the other layers need not read to its end
    faulty = frozenset(problem.steps for problem in shape if problem.rule != "KERF-SCHEMA-UNKNOWN")
    stated = [_advised(problem) for problem in islice(cel.check(kind, manifest, old, faulty), _MOST)]
    yield from stated
    places = faulty | {problem.steps for problem in stated}
    if is_foreign(manifest):  # the API server checks its shape; the rest is its controller's business
        yield from rules_nodepool.node_class(manifest) if kind == "NodePool" else ()
        return
    refused = chain(rules_metadata.check(kind, manifest), *(check(manifest) for check in _RUNTIME[kind]))
    runtime = [*islice((problem for problem in refused if problem.steps not in places), _MOST)]
    yield from runtime
    if settings.advice:
        wrong = places | {problem.steps for problem in runtime if problem.severity == "error"}
        advice = (problem for problem in _advice(kind, given, manifest, settings) if not _touches(problem.steps, wrong))
        yield from islice(advice, _MOST)


def _advice(
    kind: str, given: Mapping[str, Any], manifest: Mapping[str, Any], settings: LintSettings
) -> Iterator[Problem]:
    if kind in _ADVICE:
        known = Known.of(kind, given, manifest, settings)
        yield from chain.from_iterable(advise(known) for advise in _ADVICE[kind])


def _touches(steps: Steps, wrong: frozenset[Steps]) -> bool:
    """Whether a place lies at, above or below something that is wrong: advice on that would only confuse."""
    return any(steps[: len(place)] == place or place[: len(steps)] == steps for place in wrong)


def _advised(problem: Problem) -> Problem:
    found = f"; found {shown(problem.value)}" if problem.value is not None else ""
    hint = hints.advice(problem.rule, problem.value)
    return at(problem.steps, problem.rule, problem.severity, problem.message + found, hint, problem.value)


def _kind(manifest: Mapping[str, Any]) -> tuple[str | None, list[Problem]]:
    """The kind, when it is one of ours in a version of ours, or else what is wrong with it."""
    kind, version = manifest.get("kind"), manifest.get("apiVersion")
    if isinstance(kind, str) and kind in old_names.KINDS:
        return None, [old_kind(kind)]
    if not isinstance(kind, str) or kind not in crds.kinds():
        close = nearest.name(kind, crds.kinds()) if isinstance(kind, str) else None
        message = f"{shown(kind)} is no kind that is known here; known are {', '.join(crds.kinds())}"
        hint = f"did you mean {close}?" if close else ""
        return None, [at(("kind",), "KERF-SCHEMA-KIND", "error", message, hint, kind)]
    if version != crds.api_version(kind):
        message = f"{shown(version)} is not the version of {kind}"
        hint = f"write {crds.api_version(kind)}; older manifests are rewritten by kerf convert"
        return None, [at(("apiVersion",), "KERF-SCHEMA-VERSION", "error", message, hint, version)]
    return kind, []
