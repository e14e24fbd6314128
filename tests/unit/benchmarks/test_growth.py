"""The page of measured figures: parts are replaced between their markers, and the plot shows what was measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import growth
from benchmarks.comparison import OURS, PEER
from benchmarks.document import NoSuchPart, rewrite
from benchmarks.sides import Figures
from benchmarks.table import Row, markdown

ONE = Figures(0.25, 0.2, 1200, 0, 1234.5, 61.4)
PODS = {1000: {OURS: ONE, PEER: replace(ONE, seconds=3.0)}, 2000: {OURS: replace(ONE, seconds=0.5)}}


def test_a_part_is_replaced_and_all_else_stays(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- measured: x -->\nold\n\\1\n<!-- end of x -->\nb\n<!-- measured: y -->\n<!-- end of y -->")
    rewrite(page, {"x": "new \\g<0>\nlines", "y": "c"})
    first = "<!-- measured: x -->\nnew \\g<0>\nlines\n<!-- end of x -->"
    assert page.read_text() == f"a\n{first}\nb\n<!-- measured: y -->\nc\n<!-- end of y -->"
    before = page.read_text()
    with pytest.raises(NoSuchPart, match=r"page\.md has 0 parts between <!-- measured: z --> and <!-- end of z -->"):
        rewrite(page, {"x": "newer", "z": ""})
    assert page.read_text() == before


def test_the_page_has_every_part_that_is_measured_and_shows_the_plot(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text(growth.DOCUMENT.read_text())
    growth.write_growth(page, tmp_path / growth.PLOT.name, PODS, PODS)
    growth.write_sides(page, {"plain-100": PODS[1000]}, [Row("so fast", "1 s", "≤ 2 s")])
    text = page.read_text()
    for line in (
        growth.table(PODS, "pods"),
        growth.table(PODS, "types"),
        ", beside Karpenter v",
        "| plain-100 | Kerf | 0.250 |",
        "so fast  1 s       ≤ 2 s",
    ):
        assert line in text
    assert f"]({growth.PLOT.name})" in text


def test_growth_is_a_line_for_each_number_with_the_peer_where_it_was_asked() -> None:
    head, _, first, second = growth.table(PODS, "pods").splitlines()
    assert head.startswith("| pods | seconds | CPU s | nodes | unplaced | $/h | peak MiB | Karpenter: seconds |")
    assert first.startswith("| 1,000 | 0.25 | 0.20 | 1,200 | 0 | 1,234.50 | 61 | 3.00 |")
    assert second == "| 2,000 | 0.50 | 0.20 | 1,200 | 0 | 1,234.50 | 61 | - | - | - | - | - | - |"
    assert "Karpenter" not in growth.table({100: {OURS: ONE}}, "types")


def test_words_stand_left_and_figures_right() -> None:
    assert markdown([["a", "b"], ["x", "1"]]) == "| a | b |\n| --- | ---: |\n| x | 1 |"


def test_the_plot_has_both_sides_and_the_same_figures_make_the_same_file(tmp_path: Path) -> None:
    made = []
    for name in ("one.svg", "two.svg"):
        growth.plot(PODS, {100: {OURS: ONE}, 1200: {OURS: replace(ONE, seconds=0.4)}}, tmp_path / name)
        made.append((tmp_path / name).read_text())
    assert made[0] == made[1]
    for words in ("Kerf", "Karpenter", "Peak memory of the process", "types (10,000 pods)"):
        assert words in made[0]


def test_growth_is_measured_with_as_many_pods_and_types_as_were_asked_for(tmp_path: Path) -> None:
    pods = growth.by_pods(tmp_path, (10, 20), most_of_peer=0)
    types = growth.by_types(tmp_path, (5,), 10)
    assert [both[OURS].unplaced for both in (*pods.values(), *types.values())] == [0, 0, 0]
    assert (list(pods), list(types)) == ([10, 20], [5])
    assert pods[20][OURS].nodes > pods[10][OURS].nodes
