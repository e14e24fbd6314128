"""Where Kerf differs from the kube-scheduler's plugins on purpose. Each rule is named, counted, and in docs/testing.md.

No exception may be in more than one world of a hundred (`MOST`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.differential.draft import Json
from tests.oracle.difference import Difference

#: The share of worlds that one exception may be in.
MOST: Final = 0.01


@dataclass(frozen=True, slots=True)
class Case:
    """A difference in a world. `refused` are pods that the plugins refuse on the node that they are nominated to."""

    world: Json
    difference: Difference
    refused: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Rule:
    """`admits` says whether a difference is of this rule."""

    name: str
    why: str
    admits: Callable[[Case], bool]


def _nominated(case: Case) -> bool:
    return bool(case.refused)


#: Kerf's own rules, and Karpenter's.
EXCEPTIONS: tuple[Rule, ...] = (
    Rule(
        "nominated, but refused",
        "Kerf counts a nominated pod on its node, whether or not the plugins allow it there by now",
        _nominated,
    ),
)
