"""Errors of scenario files name their place and the fix."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import yaml

from kerf.simulating import checking, reading
from kerf.simulating.reading import BadScenario
from tests.sources import ROOT

#: The end of a scenario.
HOURS = timedelta(hours=2)
WORLD: dict[str, Any] = {"manifests": ["pools.yaml"]}
GOOD: dict[str, Any] = {"name": "a", "duration": "2h", "world": WORLD, "assertions": [{"evictions": {}}]}


def test_a_scenario_has_its_defaults() -> None:
    found = reading.read(GOOD)
    assert (found.duration.value, found.warmed, found.seed) == (timedelta(hours=2), timedelta(0), 0)
    assert found.assertions[0].evictions is not None
    assert found.assertions[0].evictions.at_most == 0


@pytest.mark.parametrize(
    ("change", "path", "words"),
    [
        ({"duration": 7}, ("duration",), "7 is not a duration; write a text such as 30s, 1h30m"),
        ({"duration": "2x"}, ("duration",), "'2x' is not a duration"),
        ({"duration": "800h"}, ("duration",), "at most 744h"),
        ({"warmUp": "2h"}, ("duration",), "must be longer than warmUp (2h)"),
        ({"assertions": []}, ("assertions",), "the length must be at least 1"),
        ({"assertions": [{}]}, ("assertions", 0), "exactly one assertion is required, found none"),
        (
            {"assertions": [{"evictions": {}, "cost": {"atMost": 1}}]},
            ("assertions", 0),
            "exactly one assertion is required, found cost, evictions; write one entry for each",
        ),
        (
            {"assertions": [{"cost": {"atMost": -1}}]},
            ("assertions", 0, "cost", "atMost"),
            "the value must be at least 0; write",
        ),
        (
            {"workload": []},
            ("workload",),
            "there is no field workload; did you mean workloads?; the fields here are assertions",
        ),
        (
            {"weather": [{"at": "5m", "zoneLoss": {"zone": "a", "for": "1h", "count": 1}}]},
            ("weather", 0, "zoneLoss", "count"),
            "there is no field count; the fields here are for, zone",
        ),
        (
            {"weather": [{"at": "3h", "nodes": {"boot": "1m"}}]},
            ("weather", 0, "at"),
            "not before the end",
        ),
        ({"weather": [{"at": "1h"}]}, ("weather", 0), "exactly one event is required, found none"),
        ({"timeline": [{"at": "1h"}]}, ("timeline", 0), "add apply, objects, delete or scale"),
        (
            {"workloads": [{"name": "a"}, {"name": "a"}]},
            ("workloads", 1, "name"),
            "two entries have the name default/a",
        ),
        ({"world": {"snapshot": "a", "zones": ["us-west-2a"]}}, ("world", "snapshot"), "are those of the snapshot"),
    ],
    ids=lambda value: None if isinstance(value, str) else str(value),
)
def test_a_wrong_value_is_named_with_its_path(change: dict[str, Any], path: tuple[str | int, ...], words: str) -> None:
    with pytest.raises(BadScenario) as caught:
        checking.check(reading.read({**GOOD, **change}))
    assert words in str(caught.value)
    assert caught.value.path == path


def test_replicas_of_a_csv_file() -> None:
    rows = reading.replicas("time,replicas\n30m, 4\n\n1h,10\n", HOURS)
    assert [(row.at.value, row.replicas) for row in rows] == [(timedelta(minutes=30), 4), (timedelta(hours=1), 10)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1: not the names of the columns; write time,replicas"),
        ("replicas,time\n", "line 1: not the names of the columns"),
        ("time,replicas\n30,4\n", "line 2: '30' is not a duration"),
        ("time,replicas\n30m,4\n40m,many\n", "line 3: 'many' is no number of replicas"),
        ("time,replicas\n30m\n", "line 2: not enough values"),
    ],
)
def test_a_wrong_row_of_a_csv_file_is_named_with_its_line(text: str, words: str) -> None:
    with pytest.raises(ValueError, match="line") as caught:
        reading.replicas(text, HOURS)
    assert words in str(caught.value)


def test_the_schema_describes_durations_and_refuses_unknown_fields() -> None:
    found = reading.schema()
    scenario = found["$defs"]["Scenario"]
    assert scenario["additionalProperties"] is False
    assert scenario["properties"]["duration"]["pattern"] == "^([0-9]+[hms])+$"


def test_the_scenario_of_the_guide_is_read() -> None:
    guide = (ROOT / "docs" / "simulate.md").read_text(encoding="utf-8")
    found = reading.read(yaml.safe_load(guide.partition("```yaml\n")[2].partition("```")[0]))
    assert [one.at.value for one in found.weather] == [timedelta(minutes=30)] * 2
