"""On real parts: wherever the controller is killed, its successor reaches the same end, and no instance is doubled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from .control_plane import ControlPlane
from .crash_killer import Point, mutating
from .crash_points import KINDS, every_point, summary
from .crash_runs import Outcome, Replacing, Runs, Scaling, Stage, stage
from .crash_world import World
from .proxy import AWS, KUBE, Request

SHARES = 2
OUT = [
    Point(1, False, "CreateInstanceProfile"),
    Point(2, True, "POST nodeclaims"),
    Point(1, False, "CreateFleet"),
    Point(2, True, "CreateFleet"),
]
IN = [
    Point(1, False, "DELETE nodeclaims"),
    Point(1, True, "POST pods/eviction"),
    Point(2, True, "TerminateInstances"),
    Point(1, False, "DeleteLaunchTemplate"),
]
#: A command before its replacement is asked for, when that is launched, and when it is ready; then the drain.
DRIFTED = [
    Point(1, False, "POST nodeclaims"),
    Point(1, True, "CreateFleet"),
    Point(1, False, "DELETE nodeclaims"),
    Point(1, True, "POST pods/eviction"),
]
SICK = [Point(1, True, "DELETE nodeclaims")]


class Played:
    """Runs of which only the last words are known, one after the other."""

    def __init__(self, *outcomes: Outcome) -> None:
        self._outcomes = list(outcomes)

    def run(self, first: Sequence[Point] = (), second: Sequence[Point] = ()) -> Outcome:
        return self._outcomes.pop(0)


@pytest.fixture(scope="module")
def on(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(control_plane, tmp_path_factory.mktemp("crash")) as ready:
        yield ready


@pytest.mark.parametrize(
    ("port", "method", "path", "operation", "expected"),
    [
        (KUBE, "POST", "/apis/karpenter.sh/v1/nodeclaims", "POST nodeclaims", True),
        (KUBE, "PATCH", "/api/v1/nodes/a", "PATCH nodes", True),
        (KUBE, "POST", "/api/v1/namespaces/default/pods/a/eviction", "POST pods/eviction", True),
        (KUBE, "GET", "/api/v1/nodes/a", "GET nodes", False),
        (KUBE, "POST", "/api/v1/namespaces/default/events", "POST events", False),
        (KUBE, "PUT", "/apis/coordination.k8s.io/v1/namespaces/kerf/leases/a", "PUT leases", False),
        (AWS, "POST", "/", "CreateFleet", True),
        (AWS, "POST", "/", "DeleteMessageBatch", True),
        (AWS, "POST", "/", "ReceiveMessage", False),
        (AWS, "POST", "/", "DescribeInstances", False),
        (AWS, "GET", "/clusters/a", "GET /clusters/a", False),
    ],
)
def test_what_counts_as_a_mutating_call(port: str, method: str, path: str, operation: str, expected: bool) -> None:
    assert mutating(Request(port, method, path, {}, b"", operation)) is expected


def test_a_dry_run_changes_nothing() -> None:
    assert not mutating(Request(AWS, "POST", "/", {}, b"Action=CreateFleet&DryRun=true", "CreateFleet"))


@pytest.mark.parametrize("problems", [(), ("claims: 1 instead of 2",)])
def test_the_search_ends_with_a_run_in_which_nobody_dies_and_tells_what_is_amiss_there(
    problems: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    green = Outcome((Point(1, False, struck="CreateFleet"),), (), 1.0)
    last = Outcome((), problems, 1.0)
    found = list(every_point(Played(green, last)))
    assert found == ([green, last] if problems else [green])
    assert ("all green" in summary(found)) is not bool(problems)
    assert all(problem in capsys.readouterr().out for problem in problems)


@pytest.mark.cluster
def test_a_controller_that_dies_eight_times_in_one_run_reaches_the_same_end(on: Stage) -> None:
    _dies(Scaling(on), OUT, IN)


@pytest.mark.cluster
def test_a_node_that_is_replaced_has_one_successor_though_the_controller_dies_at_each_of_its_steps(on: Stage) -> None:
    with Replacing(on) as runs:
        _dies(runs, DRIFTED, SICK)


def _dies(runs: Runs, first: Sequence[Point], second: Sequence[Point]) -> None:
    outcome = runs.run(first, second)
    print(f"\n{len(outcome.struck)} deaths in {outcome.seconds:.1f} s: {'; '.join(map(str, outcome.struck))}")
    assert [point.struck for point in outcome.struck] == [point.operation for point in (*first, *second)]
    assert not outcome.problems


@pytest.mark.cluster
def test_an_instance_that_nobody_owns_is_noticed(on: Stage) -> None:
    world = World(on.kerf, "nobody")
    assert world.amiss_when_empty() == world.amiss_at_end() == []
    ec2 = on.kerf.aws.client("ec2")
    image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    made = ec2.run_instances(ImageId=image, InstanceType="c6a.large", MinCount=1, MaxCount=1)["Instances"][0]
    assert world.amiss_when_empty() == [f"instance {made['InstanceId']} has no claim"]
    ec2.terminate_instances(InstanceIds=[made["InstanceId"]])
    assert world.amiss_when_empty() == []
    assert world.doubled() == ["instances ever: 1 instead of 2", f"claim (none) had {made['InstanceId']}"]


@pytest.mark.cluster
@pytest.mark.long
@pytest.mark.timeout(3 * 3600)
@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("kind", KINDS)
def test_every_call_of_a_run_may_be_the_last(on: Stage, kind: str, share: int) -> None:
    with KINDS[kind](on) as runs:
        outcomes = list(every_point(runs, share, SHARES))
    print(summary(outcomes))
    assert outcomes
    assert not [(outcome.struck, outcome.problems) for outcome in outcomes if outcome.problems]
