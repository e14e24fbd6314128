"""The demo reaches everything it promises, and its summary is one JSON object."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from kerf.cli.app import app


def test_the_summary_says_that_all_was_reached() -> None:
    result = CliRunner().invoke(app, ["demo", "--json"])
    assert result.exit_code == 0, result.output
    summary = json.loads(result.output)
    assert summary["unmet"] == []
    assert summary["pods_running"] == 16
    assert summary["spot_reclaims_survived"] == 1
    assert summary["most_drifting_at_once"] == 1
    assert summary["drifted_nodes_replaced"] >= 1
    assert summary["cost_after_usd_per_hour"] < summary["cost_before_usd_per_hour"] * 2 / 3
    (refused,) = summary["manifests_refused"]
    assert len(refused["problems"]) == 4
    (pod,) = summary["pods_refused"]
    assert "nvidia.com/gpu" in pod["why"]
