"""The race of two controllers: waiting, orders and dollars of a run, runs that are kept, and what is to be reached."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from benchmarks.document import rewrite
from benchmarks.growth import DOCUMENT
from benchmarks.race import figures
from benchmarks.race.__main__ import _parsed, collected, keys, publishable
from benchmarks.race.days import DAY_SECONDS, NIGHT_OWLS, replicas
from benchmarks.race.loads import LOADS
from benchmarks.race.pods import Seen
from benchmarks.race.prices import for_sale
from benchmarks.race.records import Key, Life, Machine, Order, Run
from benchmarks.race.report import USE, WAITING, calls, minutes, table, targets
from benchmarks.race.sizes import Size
from benchmarks.race.stage import Stage
from benchmarks.race.store import KARPENTER, KERF, Store, code
from benchmarks.scale_down.load import Measure, node_pool
from benchmarks.usage import proportional_bytes, usage
from kerf.model.kubernetes.objects import Pod
from kerf_api import labels
from kerf_api.v1.meta import decode

KEY = Key("a", KERF, 1, 1, 1000, 120.0, "short", "abc")
LIVES = (
    Life("before", -5.0, ready=-1.0),
    Life("seated", 0.0, None, "old", 1.0),
    Life("waited", 0.0, 0.5, "new", 6.0),
    Life("moved", 3.0, 4.0, "new", 8.0, 20.0),
    Life("too soon gone", 1.0, gone=2.0),
)
MACHINES = (
    Machine("i-0", "old", "m5.large", "z", "on-demand", 1_000_000, -60.0),
    Machine("i-1", "new", "m5.large", "z", "on-demand", 2_000_000, 2.0, 62.0),
    Machine("i-2", "new", "m5.large", "z", "on-demand", 2_000_000, 90.0),
)
ORDERS = (
    Order(-61.0, -60.0, ("i-0",)),
    Order(1.5, 2.5, ("i-1",)),
    Order(80.0, 80.1, (), ("x",)),
    Order(89, 90, ("i-2",)),
)
RUN = Run(
    key=KEY,
    lives=LIVES,
    machines=MACHINES,
    orders=ORDERS,
    calls={"CreateFleet": 3, "DescribeInstances": 9},
    evictions=1,
    bounds=(1_000_000.0, 500_000.0),
    cpu_seconds=4.0,
    peak_bytes=300 * 2**20,
    rest_bytes=200 * 2**20,
)


# --- waiting --------------------------------------------------------------------------------------------------------
def test_waits_are_those_of_pods_of_the_load_that_became_ready() -> None:
    assert figures.waits(RUN) == [1.0, 6.0, 5.0]
    assert figures.share(figures.waits(RUN), 0.5) == 5.0
    assert figures.share([], 0.5) is None
    assert figures.never_ready(RUN) == 0


def test_a_pod_that_is_there_and_never_ready_has_waited_until_the_end() -> None:
    run = msgspec.structs.replace(RUN, lives=(*LIVES, Life("stuck", 20.0, 21.0)))
    assert max(figures.waits(run)) == 100.0
    assert figures.never_ready(run) == 1


def test_the_own_part_is_from_unschedulable_to_the_answer_that_made_the_node() -> None:
    # The second pod was refused when its node had been ordered, and the first pod never.
    assert figures.own_waits(RUN) == [2.0]


def test_a_name_that_comes_again_is_the_machine_that_was_there() -> None:
    assert figures.machine_of(LIVES[2], MACHINES) == MACHINES[1]
    assert figures.machine_of(Life("late", 80.0, 81.0, "new", 95.0), MACHINES) == MACHINES[2]
    assert figures.machine_of(Life("lost", 0.0, 1.0, "other", 2.0), MACHINES) is None


def test_orders_count_from_the_beginning_when_they_made_instances() -> None:
    assert figures.first_and_last_order(RUN) == (1.5, 89)
    assert figures.first_and_last_order(msgspec.structs.replace(RUN, orders=ORDERS[:1])) is None
    assert [figures.nodes_at(RUN, second) for second in (0.0, 30.0, 70.0, 120.0)] == [1, 2, 1, 2]


# --- dollars --------------------------------------------------------------------------------------------------------
def test_each_instance_costs_for_the_time_that_it_was_there() -> None:
    assert figures.dollars(RUN) == pytest.approx((120 * 1 + 60 * 2 + 30 * 2) / 3600)
    first, second = figures.dollars_by_minute(RUN)
    assert first == pytest.approx((60 * 1 + 58 * 2) / 3600)
    assert first + second == pytest.approx(figures.dollars(RUN))


@pytest.mark.parametrize(("seconds", "least"), [(120.0, 90.0), (90.0, 75.0)])
def test_the_bound_of_each_minute_counts_for_its_seconds(seconds: float, least: float) -> None:
    run = msgspec.structs.replace(RUN, key=msgspec.structs.replace(KEY, seconds=seconds))
    assert figures.bound_dollars(run) == pytest.approx(least / 3600)
    assert len(figures.dollars_by_minute(run)) == len(run.bounds)


def test_the_bound_of_a_minute_is_the_mean_of_instants_within_it() -> None:
    assert figures.bounds_by_minute(90.0, lambda second: second) == [pytest.approx(30.0), pytest.approx(75.0)]
    assert figures.bounds_by_minute(60.0, lambda second: float(second > 30)) == [pytest.approx(0.5)]


def test_spot_makes_the_bound_cheaper() -> None:
    containers = [{"name": "main", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]
    pods = [decode(Pod, {"metadata": {"name": "a"}, "spec": {"containers": containers}})]
    dear, cheap = (Measure(for_sale(m)).bound(pods) for m in ([labels.ON_DEMAND], [labels.ON_DEMAND, labels.SPOT]))
    assert 0 < cheap < dear / 2


def test_the_memory_of_a_process_is_its_part_of_the_pages_that_it_uses() -> None:
    assert 2**20 < proportional_bytes(os.getpid()) <= sum(usage(os.getpid()).peak_bytes.values())
    assert proportional_bytes(2**22 + 1) == 0


# --- pods -----------------------------------------------------------------------------------------------------------
def pod(*conditions: tuple[str, str, str], **metadata: str) -> Pod:
    rows = [{"type": type_, "status": status, "reason": reason} for type_, status, reason in conditions]
    meta = {"name": "p", "labels": {"app": "web"}, **metadata}
    return decode(Pod, {"metadata": meta, "spec": {"nodeName": "n"}, "status": {"conditions": rows}})


def test_a_pod_is_refused_ready_and_gone_once() -> None:
    refused, ready = ("PodScheduled", "False", "Unschedulable"), ("Ready", "True", "")
    seen = Seen(pod(), 100.0)
    for now, version in enumerate((pod(), pod(refused), pod(refused), pod(ready), pod(ready)), 101):
        seen.note(version, now)
    seen.note(pod(ready, deletionTimestamp="2026-01-01T00:00:00Z"), 110)
    seen.leave(112)
    assert seen.life(100.0) == Life("web", 0.0, 2.0, "n", 4.0, 10.0)


# --- loads ----------------------------------------------------------------------------------------------------------
def test_other_sizes_are_in_proportion() -> None:
    assert [Size()(50), Size(100)(50), Size(100)(1)] == [50, 5, 1]


@pytest.mark.parametrize("name", LOADS)
def test_the_steps_of_a_load_are_within_its_time_and_of_its_seed(name: str) -> None:
    load = LOADS[name]
    times = [at for at, _act in load.steps(Size(), Random(1))]
    assert times
    assert all(0 <= at < load.seconds for at in times)


def test_the_node_pool_buys_in_the_markets_of_its_load() -> None:
    for load in LOADS.values():
        rows = node_pool({}, [], load.markets)["spec"]["template"]["spec"]["requirements"]
        assert {"key": labels.CAPACITY_TYPE, "operator": "In", "values": [*load.markets]} in rows


def test_most_services_have_their_height_at_noon_and_some_at_night() -> None:
    noon = [replicas(number, DAY_SECONDS / 2) for number in range(NIGHT_OWLS)]
    night = [replicas(number, 0.0) for number in range(NIGHT_OWLS)]
    assert noon == [5, 40, 40, 40]
    assert night == [40, 5, 5, 5]


# --- runs that are kept -----------------------------------------------------------------------------------------------
def test_a_finished_run_is_kept_under_all_that_it_depends_on(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.read(KEY) is None
    store.write(RUN)
    assert store.read(KEY) == RUN
    changes = ({"load": "b"}, {"side": KARPENTER}, {"seed": 2}, {"number": 2}, {"pods": 100}, {"seconds": 60.0})
    for change in (*changes, {"boots": "long"}, {"code": "other"}):
        assert store.read(msgspec.structs.replace(KEY, **change)) is None
    store.forget(KEY)
    assert store.read(KEY) is None


def test_sides_alternate_and_only_finished_runs_count(tmp_path: Path) -> None:
    wanted = list(keys(_parsed(["--loads", "b,a", "--runs", "2"])))
    assert [(one.number, one.load, one.side) for one in wanted] == [
        (1, "b", KERF),
        (1, "b", KARPENTER),
        (1, "a", KERF),
        (1, "a", KARPENTER),
        (2, "b", KARPENTER),
        (2, "b", KERF),
        (2, "a", KARPENTER),
        (2, "a", KERF),
    ]
    store = Store(tmp_path)
    for key in (wanted[3], wanted[5]):
        store.write(msgspec.structs.replace(RUN, key=key))
    found = collected(store, wanted)
    assert {load: list(by_side) for load, by_side in found.items()} == {"a": [KARPENTER], "b": [KERF]}


def test_only_whole_runs_of_both_sides_are_published(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for key in keys(_parsed(["--loads", "a,b", "--runs", "1"])):
        if (key.load, key.side) != ("b", KERF):
            store.write(msgspec.structs.replace(RUN, key=key))
    assert list(publishable(store, _parsed(["--loads", "c", "--runs", "1"]))) == ["a"]
    for flags in (["--pods", "100"], ["--seconds", "60"], ["--boots", "long"], ["--side", KERF]):
        assert publishable(store, _parsed(["--runs", "1", *flags])) == {}


def test_a_change_of_one_side_leaves_the_runs_of_the_other(tmp_path: Path) -> None:
    product, peer = tmp_path / "reconciler" / "kerf" / "decide.py", tmp_path / "benchmarks/peers/karpenter_aws/go.mod"
    for path in (product, peer):
        path.parent.mkdir(parents=True)
        path.write_text("before")
    before = {side: code(side, tmp_path) for side in (KERF, KARPENTER)}
    product.write_text("after")
    assert code(KERF, tmp_path) != before[KERF]
    assert code(KARPENTER, tmp_path) == before[KARPENTER]
    load = tmp_path / "benchmarks" / "race" / "stage.py"
    load.parent.mkdir()
    load.write_text("a load of both")
    assert code(KARPENTER, tmp_path) != before[KARPENTER]


def test_an_unknown_load_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        _parsed(["--loads", "a,z"])
    assert "no load z; there are a, b" in capsys.readouterr().err


# --- what is told -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Changed:
    wait: float = 0.0
    price: float = 1.0
    stuck: bool = False

    def run(self, side: str) -> Run:
        lives = [msgspec.structs.replace(one, ready=one.ready and one.ready + self.wait) for one in LIVES]
        lives += [Life("stuck", 118.0)] if self.stuck else []
        machines = [msgspec.structs.replace(one, price=round(self.price * one.price)) for one in MACHINES]
        key = msgspec.structs.replace(KEY, side=side)
        return msgspec.structs.replace(RUN, key=key, lives=tuple(lives), machines=tuple(machines))


@pytest.mark.parametrize(
    ("ours", "missed"),
    [
        (Changed(), []),
        (Changed(wait=2.0), ["waiting p95"]),
        (Changed(stuck=True), ["waiting p95"]),
        (Changed(price=1.1), ["dollars"]),
        (Changed(price=0.9), []),
    ],
)
def test_what_is_to_be_reached(ours: Changed, missed: list[str]) -> None:
    found = {"a": {KERF: [ours.run(KERF)], KARPENTER: [Changed(wait=1.0).run(KARPENTER)]}}
    assert [row.what.rpartition(", ")[2] for row in targets(found) if not row.met] == missed


def test_dollars_near_the_bound_will_do_whatever_the_other_side_costs() -> None:
    near = figures.bound_dollars(RUN) / figures.dollars(RUN)
    found = {"a": {KERF: [Changed(price=near).run(KERF)], KARPENTER: [Changed(wait=1.0, price=0.1).run(KARPENTER)]}}
    assert all(row.met for row in targets(found))


def lines(head: Sequence[str], line: Sequence[str]) -> dict[str, str]:
    return dict(zip(head, line, strict=True))


def test_medians_with_their_ranges_go_into_the_document(tmp_path: Path) -> None:
    runs = [Changed(wait=wait).run(KERF) for wait in (0.0, 3.0, 1.0)]
    found = {"a": {KERF: runs, KARPENTER: [Changed().run(KARPENTER)]}}
    head, ours, theirs = table(found, WAITING)
    assert lines(head, ours)["p95, s"] == "7.0 (6.0 to 9.0)"
    assert lines(head, theirs)["p95, s"] == "6.0"
    assert lines(head, ours)["ratio"] == "3.333"
    head, ours, _theirs = table(found, USE)
    assert [lines(head, ours)[name] for name in ("runs", "nodes", "launched", "AWS calls")] == ["3", "2", "2", "12"]
    assert calls(found) == [
        ("action", "a Kerf", "a Karpenter"),
        ("CreateFleet", "3", "3"),
        ("DescribeInstances", "9", "9"),
    ]
    assert [line[3] for line in minutes(RUN)] == ["ratio", "2.933", "4.133"]
    page = tmp_path / "performance.md"
    page.write_text(DOCUMENT.read_text())
    rewrite(page, dict.fromkeys(("race", "race-use", "race-calls"), "measured"))
    assert page.read_text().count("-->\nmeasured\n<!--") == 3


# --- what EC2 does --------------------------------------------------------------------------------------------------
class Aws:
    """Instances as MotoAws lists them, and what is asked of it."""

    def __init__(self, *types: tuple[str, str]) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self._rows = [
            {"id": f"i-{number}", "instance_type": type_, "capacity_type": market}
            for number, (type_, market) in enumerate(types)
        ]

    def instances(self, *states: str) -> list[dict[str, Any]]:
        assert states == ("pending", "running")
        return self._rows

    def interrupt(self, id_: str, kind: str, *, terminate_after: float) -> None:
        self.asked.append((id_, kind, terminate_after))

    def stock_out(self, *what: str) -> None:
        self.asked.append(what)


def stage(aws: Aws) -> Stage:
    nothing: Any = None
    some: Any = aws
    return Stage(nothing, nothing, some, Random(1))


def test_a_share_of_the_spot_instances_is_taken_back_rounded_up() -> None:
    aws = Aws(*[("m5.large", "spot")] * 11, ("m5.large", "on-demand"))
    stage(aws).reclaim(0.1)
    assert len({one[0] for one in aws.asked}) == 2
    assert "i-11" not in {one[0] for one in aws.asked}
    assert {one[1:] for one in aws.asked} == {("spot", 120.0)}


def test_the_type_that_most_spot_instances_have_sells_out() -> None:
    aws = Aws(("c5.large", "spot"), ("m5.large", "spot"), ("m5.large", "spot"), *[("r5.large", "on-demand")] * 5)
    stage(aws).sell_out()
    stage(Aws(("r5.large", "on-demand"))).reclaim(0.1)
    assert aws.asked == [("m5.large", "*", "spot")]
