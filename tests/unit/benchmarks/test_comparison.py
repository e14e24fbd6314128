"""What the comparison with Karpenter's scheduler calls a miss, what its table says, and what runs by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from benchmarks import comparison, searching, sides, workloads
from benchmarks.comparison import CASES, OURS, PEER, SEARCHED, Found
from benchmarks.sides import HEAD, Figures
from benchmarks.table import missed

GOOD = Figures(0.2, 0.2, 100, 0, 80.0, 60.0, bound_usd_per_hour=79.0, violations=0)
SLOW = Figures(10.0, 15.0, 100, 0, 100.0, 90.0)


def found(**changed: Mapping[str, Figures]) -> dict[str, Found]:
    """All cases, each target met; changes by the case's name, with _ for -."""
    good = {case.name: {OURS: GOOD, SEARCHED: GOOD, **({PEER: SLOW} if case.peer else {})} for case in CASES}
    return {name: {**both, **changed.get(name.replace("-", "_"), {})} for name, both in good.items()}


def without_peer(cases: Mapping[str, Found]) -> dict[str, Found]:
    return {name: {by: one for by, one in both.items() if by != PEER} for name, both in cases.items()}


def test_what_is_good_enough_misses_nothing() -> None:
    rows = comparison.targets(found())
    assert missed(rows) == []
    assert [row.measured for row in rows if "faster than" in row.what] == ["50 times"]


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"mixed_10000": {OURS: replace(GOOD, seconds=0.71), PEER: replace(SLOW, seconds=60)}}, "10,000 mixed"),
        ({"mixed_10000": {PEER: replace(SLOW, seconds=9.9)}}, "faster than Karpenter"),
        ({"mixed_10000": {OURS: replace(GOOD, nodes=101)}}, "nodes"),
        ({"mixed_1000": {OURS: replace(GOOD, seconds=0.21)}}, "1,000 mixed"),
        ({"diverse_50000": {OURS: replace(GOOD, seconds=0.51)}}, "50,000 plain"),
        ({"plain_2000": {SEARCHED: replace(GOOD, cost_usd_per_hour=82.0)}}, "2,000 plain"),
        ({"plain_100": {SEARCHED: replace(GOOD, cost_usd_per_hour=84.0)}}, "100 plain"),
        ({"plain_100": {SEARCHED: replace(GOOD, bound_usd_per_hour=None)}}, "100 plain"),
        ({"services_5000": {SEARCHED: replace(GOOD, cost_usd_per_hour=80.1)}}, "cheaper than by Karpenter"),
        ({"plain_100": {OURS: replace(GOOD, unplaced=1)}}, "without a place"),
        ({"plain_100": {SEARCHED: replace(GOOD, violations=1)}}, "rules broken"),
    ],
)
def test_every_target_can_be_missed(changed: dict[str, Mapping[str, Figures]], what: str) -> None:
    (line,) = missed(comparison.targets(found(**changed)))
    assert what in line


def test_without_a_peer_nothing_is_said_of_it() -> None:
    rows = comparison.targets(without_peer(found()))
    assert not [row for row in rows if "Karpenter" in row.what]
    assert missed(rows) == []


def test_the_suite_prints_all_figures_and_returns_the_targets(capsys: pytest.CaptureFixture[str]) -> None:
    rows = comparison.rows(found)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split() == " ".join(HEAD).split()
    assert len(printed) == 1 + 3 * len(CASES) - 1 + 1, "the head, a line for each side of each case, one empty"
    assert rows == comparison.targets(found())


def test_a_line_says_what_is_known_and_no_more() -> None:
    assert GOOD.cells("plain-100", OURS) == (
        *("plain-100", "Kerf", "0.200", "0.200", "100", "0"),
        *("80.00", "79.00", "1.013", "0", "60"),
    )
    assert SLOW.cells("w", PEER)[-4:] == ("-", "-", "-", "90")


def test_the_bound_is_the_peers_too_only_when_all_pods_are_placed() -> None:
    assert sides.beside([GOOD], SLOW).bound_usd_per_hour == 79.0
    assert sides.beside([GOOD], replace(SLOW, unplaced=1)).bound_usd_per_hour is None
    assert sides.beside([GOOD, replace(GOOD, unplaced=1)], SLOW).bound_usd_per_hour is None


def test_inputs_are_written_once_and_can_be_read(tmp_path: Path) -> None:
    inputs = sides.write(tmp_path, "mixed", 20, 15, "spot")
    assert (inputs.name, inputs.capacity_type) == ("mixed-20", "spot")
    assert len(msgspec.json.decode(inputs.catalogue.read_bytes())) == 15
    before = inputs.workload.stat().st_mtime_ns
    assert sides.write(tmp_path, "mixed", 20, 15, "spot") == inputs
    assert inputs.workload.stat().st_mtime_ns == before


def test_our_side_runs_in_processes_of_its_own_and_is_judged_once(tmp_path: Path) -> None:
    one = sides.ours(sides.write(tmp_path, "services", 40, 15, None), runs=2)
    assert (one.unplaced, one.violations) == (0, 0)
    assert one.nodes > 0
    assert 1 <= (one.ratio or 0) < 3
    assert 10 < one.peak_mib < 1000
    assert min(one.seconds, one.cpu_seconds) > 0


def test_the_search_is_shown_by_setting(tmp_path: Path) -> None:
    head, without, searched = searching.lines([comparison.Case("plain", 60, "families")], [0.1], tmp_path)
    assert (len(head), without[:3], searched[:2]) == (7, ("plain-60", "0", "-"), ("plain-60", "0.1"))
    assert float(searched[6]) <= float(without[6])


def test_no_two_of_the_diverse_ask_for_the_same() -> None:
    rows = workloads.workload("diverse", 50_000)["pods"]
    asked = {str(row["template"]["spec"]["containers"][0]["resources"]["requests"]) for row in rows}
    assert len(rows) == len(asked) == 200
