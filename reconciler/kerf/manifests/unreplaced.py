"""Placeholders in values that any text satisfies, such as a role: no rule finds them, and the cluster takes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kerf.manifests import file_rules
from kerf.manifests.nodes import Node, Steps
from kerf_api.lint.problem import Problem, path_text
from kerf_api.lint.reading import placeholders

#: Texts for people, a program of its own, and what the cluster writes.
_LEFT_OUT: Final = (
    ("metadata", "annotations"),
    ("spec", "template", "metadata", "annotations"),
    ("spec", "userData"),
    ("status",),
)


def placeholders_of(node: Node) -> Iterator[Problem]:
    """The first value that a person was to fill in, as information. Those of a tool are replaced later. The time is
    linear in the size."""
    for steps, text in _texts(node):
        found = placeholders.find(text)
        if found is not None and found.by_hand:
            yield Problem(file_rules.TEMPLATE, "info", path_text(steps), "", steps=steps, value=text)
            return


def _texts(node: Node) -> Iterator[tuple[Steps, str]]:
    waiting: list[tuple[Steps, Any]] = [((), node.value)]
    while waiting:
        steps, value = waiting.pop()
        if steps in _LEFT_OUT:
            continue
        if isinstance(value, str):
            yield steps, value
        elif isinstance(value, (dict, list)):
            rows = value.items() if isinstance(value, dict) else enumerate(value)
            waiting += reversed([((*steps, step), below) for step, below in rows])
