"""Placeholders in texts: what another tool, or a reader of a guide, is to replace before a cluster sees the text.

A value with one is not yet what will be applied. Advice on how to correct it would break the file, so all that is
reported of it is whose placeholder it is and how to replace it first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from kerf_api.lint.problem import Problem, shown

#: A longer text is a script or a document, in which such signs have a meaning of their own.
_LONGEST: Final = 512
_FORMS: Final = re.compile(
    r"""(?P<expression>\$\{\{[^\n]{0,80}?\}\})
    |(?P<braces>\{\{[^\n]{0,80}?\}\}|\{\{)
    |(?P<statement>\{%[^\n]{0,80}?%\}|\{\#[^\n]{0,80}?\#\}|<%[^\n]{0,80}?%>)
    |(?P<directive>%\{[^}\n]{0,80}\}?)
    |(?P<dollar>\$\{(?:\$\{[^}\n]{0,80}\}|[^}\n]){0,80}\}?)
    |(?P<round>\$\([A-Za-z_][^)\n]{0,80}\))
    |(?P<bare>\$[A-Z_][A-Z0-9_]{2,80}|\$[a-z_][a-z0-9_]{2,80})
    |(?P<reference>ref\+[a-z0-9]{2,20}://[^\n]{0,80})
    |(?P<angle><{1,2}[A-Za-z_][^<>\n]{0,80}>{1,2})
    |(?P<marked>@@?[A-Z_][A-Z0-9_]{1,80}@@?|__[A-Z][A-Z0-9_]{0,80}__|%[A-Z_][A-Z0-9_]{1,80}%|\#\{[^}\n]{1,80}\})
    |(?P<brace>\{[A-Za-z_][\w-]{0,80}\})
    |(?P<words>\b(?i:change|replace|fill)[_-]?(?i:me)\b|\bYOUR[_-][A-Z][A-Z0-9_-]{0,80}\b)""",
    re.VERBOSE | re.ASCII,
)
#: One of these is in every placeholder; to look for them first takes a tenth of the time.
_SIGNS: Final = re.compile(r"[$<{%@#+]|__|(?i:change|replace|fill)|YOUR")
_ENVSUBST: Final = "substitute it first: envsubst < FILE | kerf validate -"
_FLUX: Final = "substitute it first: flux envsubst < FILE | kerf validate -"
_TERRAFORM: Final = "let Terraform render it first, and check what templatefile() returns"
_HELM: Final = "render it first: helm template … | kerf validate -"
_OTHER: Final = "let that tool replace it first, and check its output"
_BY_HAND: Final = "a placeholder to be filled in by hand"
#: By form, whose it is and how it is replaced.
_SYSTEMS: Final = {
    "expression": ("an expression of GitHub Actions or its kind", _OTHER),
    "statement": ("a template of Jinja, ERB or their kind", _OTHER),
    "reference": ("a reference of vals", "replace it first: vals eval -f FILE | kerf validate -"),
    "marked": ("a placeholder of sed, CMake or their kind", _OTHER),
    "braces": ("a template of Helm or its kind", _HELM),
    "directive": ("a directive of Terraform's templates", _TERRAFORM),
    "dollar": ("a placeholder of Flux, envsubst or Terraform", _FLUX),
    "round": ("a placeholder of kustomize vars or make", _OTHER),
    "bare": ("a placeholder of envsubst", _ENVSUBST),
    "angle": (_BY_HAND, "replace the placeholder by the value"),
    "brace": ("a placeholder of a script", _OTHER),
    "words": (_BY_HAND, "replace the placeholder by the value"),
}
#: Expressions, which Flux and envsubst do not have; and defaults, which Terraform does not have.
_EXPRESSION: Final = re.compile(r"\$\{(?:[a-z_]+[.(\[]|[^}?]{1,80} \? )")
#: Names with colons are pseudo parameters.
_CLOUD: Final = re.compile(r"\$\{(?:AWS::|Token\[)")
_DEFAULT: Final = re.compile(r"\$\{\w+:?[-=+?]")


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A placeholder as it is written, `${ZONE}`; its `kind` in words, with the system; and how to replace it first."""

    text: str
    kind: str
    remedy: str

    @property
    def by_hand(self) -> bool:
        """Whether no tool replaces it."""
        return self.kind == _BY_HAND


def of(problem: Problem) -> Placeholder | None:
    """Return the placeholder in what a problem is about: a value, or the key where it stands."""
    key = problem.steps[-1] if problem.steps else ""
    texts = (text for text in (problem.value, key) if isinstance(text, str))
    return next(filter(None, map(find, texts)), None)


def explained(problem: Problem) -> Problem:
    """Return the problem with the advice to replace a placeholder first, where it is about one."""
    found = of(problem)
    return problem if found is None else replace(problem, hint=f"{shown(found.text)} is {found.kind}; {found.remedy}")


def find(text: str) -> Placeholder | None:
    """Return the first placeholder of a text; of one that is long or has several lines only the braces of Helm."""
    if len(text) <= _LONGEST and "\n" not in text:
        return search(text) if _SIGNS.search(text) else None
    return search("{{") if "{{" in text else None


def search(line: str) -> Placeholder | None:
    """Return the first placeholder of a line, however long it is."""
    found = _FORMS.search(line)
    if found is None:
        return None
    kind, remedy = _SYSTEMS[str(found.lastgroup)]
    if _CLOUD.match(found[0]):
        kind, remedy = "a placeholder of CloudFormation or the CDK", _OTHER
    elif _EXPRESSION.match(found[0]):
        kind, remedy = "an expression of Terraform", _TERRAFORM
    elif _DEFAULT.match(found[0]):
        kind, remedy = "a placeholder of Flux or envsubst", _FLUX
    return Placeholder(found[0], kind, remedy)
