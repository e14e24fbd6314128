"""Three hundred claims of twelve pod shapes and three NodeClasses in one tick: how many calls of AWS that takes, and
that nothing is launched twice; also when AWS refuses three of ten calls, two of ten offerings are out of stock, and the
controller dies at its calls of AWS.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pytest

from .control_plane import ControlPlane
from .crash_killer import DRY_RUN, Killer, Point
from .crash_points import summary
from .crash_runs import Outcome, outlived
from .fleet import is_true
from .installation import Installation
from .moto_aws.settings import ZONES
from .one_tick import (
    FAMILIES,
    FULL,
    MANIFEST,
    POOLS,
    SHAPES,
    SOLD_OUT,
    Throttling,
    Tick,
    call_of_aws,
    deployments,
    sell_out,
    sold_out,
    write_to_aws,
)
from .proxy import AWS, PASS, Decision, Request, pass_all

#: Claims of each shape.
NODES: Final = 25
#: Calls whose names begin so, from the creation of the first claim until the last one is launched.
AT_MOST: Final = {"CreateFleet": 40, "Describe": 10}
#: Describe calls go by the clock, however many claims there are: on a machine that takes longer than this for the
#: writes to Kubernetes there are so many more.
QUICK_SECONDS, POLLS_A_MINUTE = 45.0, 25
FLAGS: Final = ("--disable-leader-election",)
PASSES: Final = "karpenter_scheduler_scheduling_duration_seconds_count"
#: What is launched although all is as it should be would come within this time.
LATE_SECONDS: Final = 2.0
#: How long an AWS that ails may hold up the last pod, from the latest start of a controller.
AILING_SECONDS: Final = 400.0
#: Where the controller dies in one run, one after the other.
POINTS: Final = (
    Point(1, False, "DescribeSubnets"),
    Point(4, True, "CreateLaunchTemplate"),
    Point(1, False, "CreateFleet"),
    Point(3, True, "CreateFleet"),
    Point(8, True, "CreateFleet"),
    Point(5, True, "CreateTags"),
)
#: Of the short runs: claims of each shape, and the deaths of one of them.
FEW: Final = 2
FEW_POINTS: Final = (
    Point(4, True, "CreateLaunchTemplate"),
    Point(1, False, "CreateFleet"),
    Point(5, True, "CreateFleet"),
)
#: Of the search: deaths in a run at different kinds of calls; calls from one death to the next, which are more than a
#: start makes; and more calls than a run makes.
DEATHS, STRIDE, MANY = 5, 20, 1000


class Asked:
    """A rule of the proxy that only remembers what was asked, and when (seconds since the epoch)."""

    def __init__(self) -> None:
        self.requests: list[tuple[float, str, str]] = []

    def __call__(self, request: Request) -> Decision:
        tried = " (only tried)" if request.port == AWS and DRY_RUN in request.body else ""
        self.requests.append((time.time(), request.port, request.operation + tried))
        return PASS

    def count(self, operation: str) -> int:
        return sum(what == operation for _, _, what in self.requests)


@pytest.fixture(scope="module")
def kerf(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("tick")
    with Installation(control_plane, folder, webhook=False, families=FAMILIES, proxied=True) as installation:
        installation.kubectl("apply", "-f", str(MANIFEST))
        yield installation
        installation.kubectl("delete", "-f", str(MANIFEST), "--wait=false")
        installation.wait(lambda: not _ours(installation), 60, "no node class is left")


def _ours(kerf: Installation) -> list[dict[str, Any]]:
    return [one for one in kerf.get("nodepools,ec2nodeclasses") if one["metadata"]["name"] in POOLS]


@contextmanager
def pending(kerf: Installation, nodes: int) -> Iterator[Tick]:
    """Pods of all shapes that need so many nodes of each wait, and no controller runs; in the end all is given back."""
    kerf.wait(lambda: all(is_true(one, "Ready") for one in _ours(kerf)), 120, "all NodePools and classes are Ready")
    kerf.stop_controller()
    tick, work = Tick(kerf, nodes), json.dumps({"apiVersion": "v1", "kind": "List", "items": deployments(nodes)})
    kerf.kubectl("create", "-f", "-", input_=work)
    try:
        kerf.wait(tick.all_wait, 60, "all pods wait")
        yield tick
    finally:
        _give_back(kerf, tick, work)


def _give_back(kerf: Installation, tick: Tick, work: str) -> None:
    """With a controller that knows nothing of what was out of stock."""
    kerf.kill_controller()
    kerf.proxy.rule = pass_all
    kerf.aws.restock()
    kerf.kubectl("delete", "--wait=false", "-f", "-", input_=work)
    kerf.kubectl("delete", "nodeclaims", "--all", "--wait=false")
    kerf.start_controller(*FLAGS)
    kerf.wait(lambda: not tick.amiss_at_end(), 180, "all nodes are given back")
    kerf.kubectl("annotate", "nodepools", "--all", "kerf.sh/back-off-")


# --- a healthy AWS ------------------------------------------------------------------------------------------------
@pytest.mark.cluster
@pytest.mark.long
@pytest.mark.timeout(420)
def test_three_hundred_claims_in_one_tick(kerf: Installation) -> None:
    with pending(kerf, NODES) as tick:
        asked = kerf.proxy.rule = Asked()
        kerf.start_controller(*FLAGS)
        kerf.wait(lambda: asked.count("POST nodeclaims") >= tick.claims, 120, "all claims are asked for")
        passes = kerf.metric(PASSES)
        kerf.wait(tick.launched, 120, "all claims are launched")
        launched = time.time()
        kerf.wait(lambda: not tick.amiss(), 120, "all pods run")
        found = _show(asked.requests, launched)
        print(f"all pods run {time.time() - launched:.1f} s later; passes {passes}")
        time.sleep(LATE_SECONDS)
        assert tick.amiss() == []
        slow = max(launched - min(at for at, _, what in asked.requests if what == "POST nodeclaims") - QUICK_SECONDS, 0)
        assert found["CreateFleet"] <= AT_MOST["CreateFleet"]
        assert found["Describe"] <= AT_MOST["Describe"] + slow * POLLS_A_MINUTE / 60
        assert len(tick.ever()) == tick.claims
        assert passes == 1
        tokens = [call.digest for call in kerf.aws.calls("CreateFleet")]
        assert len(set(tokens)) == len(tokens)


def _show(requests: Sequence[tuple[float, str, str]], launched: float) -> Counter[str]:
    """A table of calls; those from the first claim's creation until all were launched, the Describe ones together."""
    posts = [at for at, _, operation in requests if operation == "POST nodeclaims"]
    first, asked = min(posts), [(at, what) for at, port, what in requests if port == AWS and what != "ReceiveMessage"]
    before = Counter(what for at, what in asked if at < first)
    until = Counter(what for at, what in asked if first <= at <= launched)
    fleets = " ".join(f"{at - first:.1f}" for at, what in asked if what == "CreateFleet" and first <= at)
    print(f"\n{len(posts)} claims in {max(posts) - first:.1f} s, all launched after {launched - first:.1f} s")
    print(f"{'CreateFleet, s after the first claim':40}{fleets}")
    print(f"{'':40}{'from the start':>16}{'from the first claim':>22}")
    for name in sorted(before | until):
        print(f"{name:40}{before[name]:>16}{until[name]:>22}")
    return Counter({name: sum(many for what, many in until.items() if what.startswith(name)) for name in AT_MOST})


# --- one that ails ------------------------------------------------------------------------------------------------
def test_what_is_sold_out_leaves_a_machine_for_every_pod() -> None:
    gone = {row[:3] for row in sold_out()}
    assert len(gone) == round(SOLD_OUT * len(FULL) * len(ZONES) * len(FAMILIES) * 2)
    for shape in (one for one in SHAPES if one.spread):
        for zone in ZONES:
            offered = {(f"{family}.{shape.size}", f"us-west-2{zone}", "on-demand") for family in FAMILIES}
            assert offered - gone, f"{shape.name} has nothing in {zone}"


@pytest.mark.cluster
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("nodes", "points"),
    [pytest.param(FEW, FEW_POINTS, id="a few"), pytest.param(NODES, POINTS, marks=pytest.mark.long, id="300 claims")],
)
def test_all_pods_are_served_while_aws_ails_and_the_controller_dies(
    kerf: Installation, nodes: int, points: Sequence[Point]
) -> None:
    outcome = ailing(kerf, nodes, points)
    assert [point.struck for point in outcome.struck] == [point.operation for point in points]
    assert outcome.problems == ()


@pytest.mark.cluster
@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_wherever_the_controller_dies(kerf: Installation, after: bool) -> None:
    """At each kind of call of AWS, and at every call that writes, some of them in one run."""
    calls = list[str]()
    assert ailing(kerf, FEW, (), calls=calls).problems == ()
    kinds = list(dict.fromkeys(calls))
    runs = [
        ([Point(1, after, kind) for kind in some], call_of_aws)
        for some in (kinds[n : n + DEATHS] for n in range(0, len(kinds), DEATHS))
    ]
    runs += [([Point(n, after) for n in range(first, MANY, STRIDE)], write_to_aws) for first in range(1, STRIDE + 1)]
    outcomes = [ailing(kerf, FEW, points, counted) for points, counted in runs]
    print(summary(outcomes))
    assert [problem for outcome in outcomes for problem in outcome.problems] == []


def ailing(
    kerf: Installation,
    nodes: int,
    points: Sequence[Point],
    counted: Callable[[Request], bool] = call_of_aws,
    *,
    calls: list[str] | None = None,
) -> Outcome:
    """A tick with so many claims of each shape while AWS ails and the controller dies at these points.

    `calls` are told what was asked.
    """
    begun, killer = time.monotonic(), Killer(kerf.kill_controller, counted)
    with pending(kerf, nodes) as tick:
        sell_out(kerf.aws, sold_out())
        killer.aim(points)
        throttling = kerf.proxy.rule = Throttling(killer)
        kerf.start_controller(*FLAGS)
        started = time.monotonic()
        problems = outlived(kerf, tick.amiss, killer, FLAGS, AILING_SECONDS)
        took = time.monotonic() - started
        time.sleep(LATE_SECONDS)
        problems = problems or tick.amiss()
        more = len(tick.ever()) - tick.claims
        problems += [f"{more} instances more than claims have been launched"] if more else []
    if calls is not None:
        calls += killer.calls
    refused, asked = throttling.refused.total(), throttling.asked.total()
    print(f"\n{tick.claims} claims, all pods run after {took:.1f} s; {refused} of {asked} calls refused:")
    print({name: f"{throttling.refused[name]}/{many}" for name, many in throttling.asked.most_common()})
    print(f"died {'; '.join(map(str, killer.struck)) or 'nowhere'}: {'; '.join(problems) or 'green'}", flush=True)
    return Outcome(tuple(killer.struck), tuple(problems), time.monotonic() - begun)
