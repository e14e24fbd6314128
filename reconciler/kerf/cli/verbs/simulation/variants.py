"""The variants of a comparison: a set of NodePools and an autoscaler each, with their results."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kerf.cli.arguments import Mistake
from kerf.simulating.autoscalers.models import MODELS, Model
from kerf.simulating.results import Result
from kerf_api.lint import nearest

OURS = "Kerf"


@dataclass(frozen=True, slots=True)
class Variant:
    """A column of a comparison.

    Attributes:
        name: the name in tables, unique among the variants.
        node_pools: the files of its NodePools; empty for those of the scenario.
        autoscaler: the name of a model; empty for Kerf.
    """

    name: str = OURS
    node_pools: str = ""
    autoscaler: str = ""

    @property
    def model(self) -> Model | None:
        """The model that consolidates instead of Kerf."""
        return MODELS[self.autoscaler] if self.autoscaler else None


@dataclass(frozen=True, slots=True)
class Side:
    """The results of a variant, in the order of their seeds."""

    variant: Variant
    results: list[Result] = field(default_factory=list)


def chosen(node_pools: Sequence[str], against: str) -> list[Variant]:
    """The variants of a command line: each set of NodePools with Kerf and with each model. Raises Mistake."""
    _require_different(node_pools)
    autoscalers = ["", *_models(against)]
    return [
        Variant(_name(folder, model, models=len(autoscalers) > 1), folder, model)
        for folder in node_pools or [""]
        for model in autoscalers
    ]


def _name(folder: str, model: str, *, models: bool) -> str:
    autoscaler = f"{model} (model)" if model else OURS
    if not folder:
        return autoscaler
    return f"{folder}, {autoscaler}" if models else folder


def _models(against: str) -> Iterator[str]:
    """The names of `--against`. Raises Mistake."""
    names = [name for one in against.split(",") if (name := one.strip())]
    for number, name in enumerate(names):
        if name not in MODELS:
            have = ", ".join(MODELS)
            raise Mistake(f"--against {name}: unknown model; give one of {have}{nearest.meant(name, MODELS)}")
        if name in names[:number]:
            raise Mistake(f"--against {against}: {name} is listed twice; list each model once")
        yield name


def _require_different(node_pools: Sequence[str]) -> None:
    """Raises Mistake for two paths of the same file or folder."""
    seen: dict[str, str] = {}
    for path in node_pools:
        real = os.path.realpath(path)
        if real in seen:
            raise Mistake(f"--nodepools {path}: the same files as {seen[real]}; list each set once")
        seen[real] = path
