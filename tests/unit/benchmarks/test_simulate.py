"""The table of simulated time: a line for each scenario, and equal results in one process and in two."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from benchmarks.simulate import FOLDER, HEAD, Measured, lines, measure, scenarios
from kerf.cli.verbs.simulation import repeating


def test_a_line_has_the_cost_of_a_run_of_a_day_and_of_many_runs() -> None:
    head, line = lines([Measured("spot-loss", timedelta(hours=2), 0.6)])
    assert tuple(head) == HEAD
    assert tuple(line) == ("spot-loss", "2 h", "0.60", "7.2", "5.0")


def test_every_example_is_measured() -> None:
    found = {path.stem for path in scenarios()}
    assert {"spot-loss", "zone-loss", "black-friday"} <= found
    assert "nodeclass" not in found


@pytest.mark.parametrize("scenario", ["gpu-scarcity", "zone-loss"])
def test_seeds_of_an_example_have_the_same_results_in_two_processes_and_in_one(scenario: str) -> None:
    found = measure(FOLDER / f"{scenario}.yaml", 2)
    assert found.scenario == scenario
    assert found.cpu_seconds > 0


def test_a_seed_with_another_result_in_one_process_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    real = repeating.run

    def run(cases: Any, jobs: Any, processes: int) -> Iterator[object]:
        for number, one in enumerate(real(cases, jobs, 1)):
            yield one if processes > 1 or number else None

    monkeypatch.setattr(repeating, "run", run)
    with pytest.raises(ValueError, match="seed 0 has another result"):
        measure(FOLDER / "gpu-scarcity.yaml", 2)
