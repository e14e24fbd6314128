"""Prometheus' own judges of rules and queries, built from its Go module: `promtool`, and `ask`, which is ours.

`prometheus_tools/go.mod` pins it; a module of its own, so that the control plane is not built anew with it. `ask` puts
expressions to Prometheus' engine over scrapes that were kept (`prometheus_tools/ask`). Both are kept in
`.cache/prometheus/<hash of what was asked for>/`: built once, in two or three minutes, or seconds when it is cached.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.go_build import LINKER_FLAGS, GoBuildFailed, NoToolchain, build_programs, filled, fingerprint

from .binaries import COMPILER_FLAGS, ControlPlaneUnavailable

TOOLS: Final = Path(__file__).resolve().parent / "prometheus_tools"
CACHE: Final = Path(__file__).resolve().parents[2] / ".cache" / "prometheus"
PROMTOOL, ASK = "promtool", "ask"

_PACKAGES: Final = {PROMTOOL: "github.com/prometheus/prometheus/cmd/promtool", ASK: "./ask"}
#: Without the clients of all clouds that Prometheus finds targets in: a quarter less to build.
_TAGS: Final = "remove_all_sd"
_ANNOUNCED: Final = "building promtool (two or three minutes when nothing is cached)"


class PrometheusUnavailable(ControlPlaneUnavailable):
    """There is no promtool on this machine; the message is one line that says why."""


def find_prometheus(
    announce: Callable[[str], None] = print, environment: Mapping[str, str] = os.environ, cache: Path = CACHE
) -> Path:
    """Return the folder with `PROMTOOL` and `ASK`, building them first if need be. Raises PrometheusUnavailable."""
    sources = (TOOLS / "go.mod", TOOLS / "go.sum", *sorted(TOOLS.glob("ask/*.go")))
    folder = cache / fingerprint(sources, COMPILER_FLAGS, LINKER_FLAGS, _TAGS)
    try:
        return filled(folder, _fill, lambda: announce(_ANNOUNCED), environment)
    except NoToolchain:
        raise PrometheusUnavailable("no Go toolchain to build promtool with") from None


def _fill(go: str, staging: Path) -> None:
    try:
        build_programs(go, _PACKAGES, TOOLS, staging, COMPILER_FLAGS, tags=_TAGS)
    except GoBuildFailed as failure:
        raise PrometheusUnavailable(str(failure)) from None


# --- asking -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Scrape:
    """What a target said at a time (in milliseconds); Prometheus adds the labels."""

    file: Path
    millis: int
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """What Prometheus makes of an expression: `error` is empty when it can be evaluated.

    `series` are those of the result that have at least one number, by their labels; the number is the last one.
    `metrics` are the names that the expression selects.
    """

    error: str
    metrics: tuple[str, ...]
    series: tuple[tuple[Mapping[str, str], float], ...]


def ask(
    folder: Path, scrapes: Sequence[Scrape], expressions: Sequence[str], *, step_millis: int = 1000
) -> tuple[frozenset[str], list[Answer]]:
    """The names of all metrics in the scrapes, those included that are declared and have no series; and the answers."""
    question = {
        "scrapes": [{"file": str(s.file), "millis": s.millis, "labels": dict(s.labels)} for s in scrapes],
        "step_millis": step_millis,
        "expressions": list(expressions),
    }
    done = subprocess.run(
        [str(folder / ASK)], input=json.dumps(question), capture_output=True, text=True, check=False, timeout=240
    )
    if done.returncode != 0:
        raise ValueError(done.stderr.strip())
    told = json.loads(done.stdout)
    return frozenset(told["metrics"]), [_answer(one) for one in told["answers"]]


def _answer(told: Mapping[str, Any]) -> Answer:
    series = tuple((one["labels"], float(one["last"])) for one in told["series"] or () if one["points"])
    return Answer(told["error"], tuple(told["metrics"] or ()), series)
