"""Charts: the values that a reader sees, names as text, the same bytes again, no script."""

from __future__ import annotations

from datetime import timedelta
from typing import Final
from xml.etree import ElementTree

import pytest

from kerf.cli import charts
from kerf.cli.charts import Curve

HOUR: Final = timedelta(hours=1)
HOSTILE: Final = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "]]>&amp;",
    "a\x1b[31mb\x00c",
    "x" * 10_000,
)


def _nodes() -> list[Curve]:
    return [
        Curve("general", [(0 * HOUR, 3), (0.5 * HOUR, 9), (1.2 * HOUR, 5)]),
        Curve("spot", [(0 * HOUR, 1), (1 * HOUR, 4)]),
    ]


def _texts(chart: str) -> list[str]:
    return [one.text or "" for one in ElementTree.fromstring(chart).iter("{http://www.w3.org/2000/svg}text")]


def test_levels_stay_until_the_next_point_and_the_end() -> None:
    root = ElementTree.fromstring(charts.over_time("Nodes", _nodes(), 2 * HOUR))
    lines = [one.get("d", "") for one in root.iter() if "line reactive" in one.get("class", "")]
    numbers = [[float(text) for text in line.replace("M", "").replace("L", "").split()] for line in lines]
    across, down = numbers[0][::2], numbers[0][1::2]
    # Pixels: three levels, each with both ends; the second begins after a quarter of the time.
    assert down[0] == down[1] != down[2] == down[3] != down[4] == down[5]
    assert down[2] < down[4] < down[0]
    assert (across[1] - across[0]) / (across[5] - across[0]) == pytest.approx(0.25, abs=0.001)
    assert across[5] == numbers[1][-2]


def test_axes_and_legend_name_times_values_and_curves() -> None:
    texts = _texts(charts.over_time("Price", _nodes(), 2 * HOUR, "${:.2f}".format))
    assert {"Price", "0:00", "1:00", "2:00", "$0.00", "general", "spot"} <= {*texts}
    assert {"0:00", "0:00:30", "0:01"} <= {*_texts(charts.over_time("Short", _nodes()[:1], timedelta(minutes=1)))}


def test_bars_show_their_values() -> None:
    texts = _texts(charts.bars("Cost", ["current", "proposed"], [("cost", [1.234, 0.8])], "${:.2f}".format))
    assert {"Cost", "current", "proposed", "$1.23", "$0.80"} <= {*texts}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text(name: str) -> None:
    line = charts.over_time(name, [Curve(name, [(0 * HOUR, 1)]), Curve("b", [(0 * HOUR, 1)])], HOUR)
    for chart in (line, charts.bars(name, [name], [(name, [1.0]), ("b", [2.0])])):
        tags = {one.tag.rpartition("}")[2] for one in ElementTree.fromstring(chart).iter()}
        assert not tags & {"script", "img", "image", "a", "foreignObject"}
        assert "onerror=alert" not in chart.replace("&gt;&lt;img src=x onerror=alert", "")
        assert "http" not in chart.replace("http://www.w3.org/", "")


def test_the_same_values_give_the_same_bytes() -> None:
    first, again = (charts.over_time("Nodes", _nodes(), 2 * HOUR) for _ in range(2))
    assert first == again
    assert "id=" not in first


@pytest.mark.parametrize("curves", [[], [Curve("none", [])], [Curve("zero", [(0 * HOUR, 0)])]])
def test_nothing_to_draw_is_a_chart_too(curves: list[Curve]) -> None:
    assert "Nodes" in _texts(charts.over_time("Nodes", curves, 0 * HOUR))
