"""The dashboards as Grafana takes them: panels say what they show, in which unit, of which job, and where they lie."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest

from .monitoring import DASHBOARDS, dashboard, panels, queries

_DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
#: What each dashboard is about has to be in it.
_SHOWN = {
    "capacity": ("kerf_nodes", "karpenter_nodepools_limit", "karpenter_nodepools_cost_total", "disrupted_total"),
    "performance": (
        "pods_startup_duration",
        "termination_duration",
        "kerf_tick",
        "cloudprovider_duration",
        "throttled",
    ),
    "why": (
        "kerf_refusals",
        "cost_ratio",
        "promised",
        "realised",
        "kerf_deletion_held",
        "kerf_garbage_collection_held",
    ),
}


@pytest.fixture(params=DASHBOARDS, ids=lambda path: path.stem)
def board(request: pytest.FixtureRequest) -> Any:
    return dashboard(request.param)


def test_they_are_three_that_differ_in_name_and_address() -> None:
    assert {path.stem for path in DASHBOARDS} == set(_SHOWN)
    boards = [dashboard(path) for path in DASHBOARDS]
    assert len({one["uid"] for one in boards}) == len({one["title"] for one in boards}) == len(boards)
    assert all(re.fullmatch(r"kerf-[a-z]+", one["uid"]) for one in boards)


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_each_shows_what_it_is_about(path: Path) -> None:
    text = " ".join(query.expr for query in queries() if query.dashboard == path.stem)
    assert [name for name in _SHOWN[path.stem] if name not in text] == []


def test_one_chooses_the_data_source_the_job_and_node_pools(board: Any) -> None:
    variables = {one["name"]: one for one in board["templating"]["list"]}
    assert list(variables) == ["datasource", "job", "nodepool"]
    assert all(variables[name]["datasource"] == _DATASOURCE for name in ("job", "nodepool"))
    assert variables["nodepool"]["allValue"] == ".*"
    assert 'job=~"$job"' in variables["nodepool"]["query"]["query"]


def test_panels_are_told_apart(board: Any) -> None:
    ids = [panel["id"] for panel in board["panels"]]
    titles = [panel["title"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)
    assert len(set(titles)) == len(titles)


def test_panels_lie_side_by_side(board: Any) -> None:
    places = [panel["gridPos"] for panel in board["panels"]]
    assert all(place["x"] >= 0 and place["x"] + place["w"] <= 24 for place in places)
    overlapping = [(a, b) for a, b in itertools.combinations(places, 2) if _overlap(a, b)]
    assert overlapping == []


def _overlap(a: dict[str, int], b: dict[str, int]) -> bool:
    beside = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
    below = a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]
    return not (beside or below)


def test_each_panel_says_what_it_shows_and_in_which_unit(board: Any) -> None:
    for panel in panels(board):
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["datasource"] == _DATASOURCE, panel["title"]


def test_each_query_goes_to_the_chosen_data_source_and_has_a_legend(board: Any) -> None:
    for panel in panels(board):
        references = [target["refId"] for target in panel["targets"]]
        assert references == sorted(set(references)) != [], panel["title"]
        for target in panel["targets"]:
            assert target["datasource"] == _DATASOURCE, panel["title"]
            assert target["legendFormat"], panel["title"]


def test_each_query_is_about_the_chosen_job(board: Any) -> None:
    """But for what the API server tells, which is another's job."""
    for panel in panels(board):
        for target in panel["targets"]:
            selected = re.findall(r"\{([^{}]*)\}", target["expr"])
            assert selected, panel["title"]
            of_others = "apiserver_" in target["expr"]
            assert all(re.search(r'job=~"(\$job|\(\$job\)-webhook)"', one) for one in selected) or of_others, panel[
                "title"
            ]


def test_no_variable_is_left_when_all_are_replaced() -> None:
    assert [query for query in queries() if "$" in query.expr] == []


def test_money_is_money_and_time_is_time() -> None:
    """By the last part of a metric's name; what is divided has no unit any more."""
    units = {"_usd_per_hour": "currencyUSD", "_usd_per_hour_total": "currencyUSD", "_memory_bytes": "bytes"}
    for path in DASHBOARDS:
        for panel in panels(dashboard(path)):
            for target in panel["targets"]:
                for ending, unit in units.items():
                    if re.search(rf"{ending}\{{", target["expr"]) and "/" not in target["expr"]:
                        assert panel["fieldConfig"]["defaults"]["unit"] == unit, panel["title"]
                if "_seconds_bucket" in target["expr"]:
                    assert panel["fieldConfig"]["defaults"]["unit"] == "s", panel["title"]
