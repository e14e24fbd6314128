"""Drills: what the controller stands on fails in the middle of its work. Nothing is lost, doubled or destroyed for it.

Scale-out and scale-in are those of the end-to-end tests; beside them a pod that must not be disrupted sits on a node
of its own, which no drill may touch. The controller is kept running as by a kubelet, and comes to the API server and
to AWS through a proxy, where its requests are counted. What happened is printed (`-s` shows it).
"""

from __future__ import annotations

import json
import random
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from .control_plane import ControlPlane
from .installation import Installation
from .proxy import AWS, KUBE, Answer, Decision, Lose, Request, pass_all

#: Ends of processes, their restarts and back-offs add up, most of all on a busy machine.
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

HERE = Path(__file__).parent
#: For how long a program stays down; to that comes the time that it takes to start.
DOWN_SECONDS = 6.0
SQUALL_SECONDS, STORM_SECONDS = 10.0, 30.0
#: Of ten requests in a storm so many fail.
FAILING = 6
#: More requests a second than this, over a whole storm, would be part of the storm.
KUBE_RATE, AWS_RATE = 25.0, 10.0
WITHOUT_PODS_SECONDS = 20.0
OUT_SECONDS, IN_SECONDS = 180.0, 180.0
#: What must not be asked for while nobody knows where the pods are.
TOUCHES = ("nodes", "nodeclaims", "pods/eviction", "TerminateInstances", "CreateFleet")


class Drilled(Installation):
    """An installation behind a proxy that counts; with what the drills look at."""

    def __init__(self, control_plane: ControlPlane, folder: Path) -> None:
        super().__init__(
            control_plane, folder, webhook=False, families=("c6a", "m6a", "r6a"), proxied=True, kept_running=True
        )
        self.asked: list[Request] = []
        self.rule: Callable[[Request], Decision] = pass_all

    def __enter__(self) -> Drilled:
        super().__enter__()
        self.proxy.rule = self._counted
        return self

    def _counted(self, request: Request) -> Decision:
        self.asked.append(request)
        return self.rule(request)

    def scale(self, replicas: int, deployment: str = "web") -> None:
        self.kubectl("scale", f"deployment/{deployment}", f"--replicas={replicas}")

    def running(self, app: str = "web") -> set[str]:
        """UIDs of the pods that run and stay."""
        pods = self.get("pods", "-l", f"app={app}")
        alive = [p for p in pods if p["status"].get("phase") == "Running" and "deletionTimestamp" not in p["metadata"]]
        return {p["metadata"]["uid"] for p in alive}

    def claims(self) -> dict[str, str]:
        """The instance of each claim, empty as long as it has none."""
        found = self.get("nodeclaims")
        return {c["metadata"]["name"]: c.get("status", {}).get("providerID", "").rpartition("/")[2] for c in found}

    def leaving(self) -> bool:
        return any("deletionTimestamp" in c["metadata"] for c in self.get("nodeclaims"))

    def terminations(self) -> int:
        """How often an end of an instance was asked for so far."""
        return len(self.aws.calls("TerminateInstances"))

    def pass_time(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        self.wait(lambda: time.monotonic() >= until, seconds + 5, "time passes")

    def metric(self, name: str) -> float:
        """The sum of a metric's series whose text begins so; 0 while nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=2) as answer:
                lines = answer.read().decode().splitlines()
        except OSError:
            return 0.0
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


@pytest.fixture(scope="module")
def kerf(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drilled]:
    """Kerf on a control plane of its own, with a pool of which only empty nodes are given back; one node must stay.

    Watches of pods go to etcd itself, past the API server's cache, so that history can be forgotten without a restart.
    """
    flags = {"kube-apiserver": ("--watch-cache-sizes=pods#0",)}
    with (
        ControlPlane(binaries=control_plane.binaries, extra_flags=flags) as own,
        Drilled(own, tmp_path_factory.mktemp("drills")) as kerf,
    ):
        kerf.kubectl("apply", "-f", str(HERE / "workloads.yaml"))
        kerf.kubectl("patch", "nodepool", "general", "--type=merge", "-p", json.dumps(_ONLY_EMPTY))
        kerf.kubectl("apply", "-f", "-", input_=json.dumps(_KEEPER))
        kerf.wait(lambda: len(kerf.running("keeper")) == 1, 60, "the pod that stays runs")
        yield kerf


@pytest.fixture
def drill(kerf: Drilled) -> Iterator[Drilled]:
    """The installation, at rest before and after; the node that must stay is the same, and so is its pod."""
    kerf.rule = pass_all
    kerf.scale(0)
    _all_given_back(kerf)  # an earlier drill may have failed
    kerf.ended.clear()
    kerf.asked.clear()
    kept, pod = kerf.claims(), kerf.running("keeper")
    assert len(kept) == len(pod) == 1
    yield kerf
    assert kerf.claims() == kept
    assert kerf.running("keeper") == pod
    assert [i["id"] for i in kerf.running_instances()] == list(kept.values())


# --- programs that die ------------------------------------------------------------------------------------------
def test_the_api_server_dies_in_scale_out_and_etcd_in_scale_in(drill: Drilled) -> None:
    _scale_out(drill, lambda: _down(drill, "kube-apiserver", DOWN_SECONDS))
    _scale_in(drill, lambda: _down(drill, "etcd", DOWN_SECONDS))


@pytest.mark.long
def test_etcd_dies_in_scale_out_and_the_api_server_in_scale_in(drill: Drilled) -> None:
    _scale_out(drill, lambda: _down(drill, "etcd", DOWN_SECONDS))
    _scale_in(drill, lambda: _down(drill, "kube-apiserver", DOWN_SECONDS))


@pytest.mark.long
@pytest.mark.parametrize("program", ["kube-apiserver", "etcd"])
def test_a_program_is_down_for_a_minute(drill: Drilled, program: str) -> None:
    _scale_out(drill, lambda: _down(drill, program, 60.0))
    _scale_in(drill, lambda: _down(drill, program, 60.0))


def _down(kerf: Drilled, program: str, seconds: float) -> str:
    begun = time.monotonic()
    with kerf.control_plane.down(program):
        kerf.pass_time(seconds)
    return f"{program} away for {time.monotonic() - begun:.1f} s"


# --- history that is forgotten ----------------------------------------------------------------------------------
def test_pods_that_went_while_nobody_watched_are_missed_though_history_is_forgotten(drill: Drilled) -> None:
    _scale_out(drill, lambda: _storm(drill, SQUALL_SECONDS, AWS), replicas=30)
    drill.rule = lambda request: Lose() if request.is_watch else pass_all(request)
    drill.proxy.break_watches()
    version = json.loads(drill.kubectl("get", "--raw", "/api/v1/pods?limit=1"))["metadata"]["resourceVersion"]
    drill.scale(0)
    drill.wait(lambda: not drill.get("pods", "-l", "app=web"), 30, "the pods are gone")
    drill.control_plane.forget_history()
    watch = f"/api/v1/pods?watch=true&resourceVersion={version}&timeoutSeconds=1"
    assert '"code":410' in drill.kubectl("get", "--raw", watch, check=False)
    lists, begun = _lists_of_pods(drill), time.monotonic()
    drill.rule = pass_all
    _all_given_back(drill)
    assert not drill.ended
    assert _lists_of_pods(drill) > lists
    print(f"\nhistory forgotten: all given back {time.monotonic() - begun:.1f} s after watches got through again")


def _lists_of_pods(kerf: Drilled) -> int:
    """How often the controller listed all pods."""
    return sum(r.operation == "GET pods" and not r.is_watch and "fieldSelector" not in r.query for r in kerf.asked)


# --- storms -----------------------------------------------------------------------------------------------------
@pytest.mark.long
def test_long_storms_of_refusals_only_cost_time(drill: Drilled) -> None:
    """Short ones are in the scale-out of other drills."""
    _scale_out(drill, lambda: _storm(drill, STORM_SECONDS, KUBE, AWS))
    _scale_in(drill, lambda: _storm(drill, STORM_SECONDS, KUBE, AWS))


def _storm(kerf: Drilled, seconds: float, *ports: str) -> str:
    begun, before = time.monotonic(), len(kerf.asked)
    kerf.rule = Storm(ports)
    if KUBE in ports:
        kerf.proxy.break_watches()
    kerf.pass_time(seconds)
    kerf.rule = pass_all
    took = time.monotonic() - begun
    asked = Counter(request.port for request in kerf.asked[before:])
    kube, aws = asked[KUBE] / took, asked[AWS] / took
    assert kube <= KUBE_RATE
    assert aws <= AWS_RATE
    most = ", ".join(f"{n} {what}" for what, n in Counter(r.operation for r in kerf.asked[before:]).most_common(5))
    rates = f"{kube:.1f} requests a second to Kubernetes, {aws:.1f} to AWS"
    return f"storm of {took:.0f} s at {' and '.join(ports)}, {rates}: {most}"


class Storm:
    """A rule by which six requests of ten fail, in the manners in which servers that have too much to do refuse."""

    def __init__(self, ports: Collection[str]) -> None:
        self._ports, self._dice = ports, random.Random(4)

    def __call__(self, request: Request) -> Decision:
        if request.port not in self._ports:
            return pass_all(request)
        roll = self._dice.randrange(10)
        if roll >= FAILING:
            return pass_all(request)
        if request.is_watch and roll == _TAKES_EFFECT:  # a watch has no effect, and no end
            return Lose()
        return _KUBE_REFUSALS[roll] if request.port == KUBE else _aws_refusal(request, roll)


def _status(code: int, reason: str) -> bytes:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return json.dumps(status | {"message": "the server has too much to do"}).encode()


_JSON = {"Content-Type": "application/json"}
_BUSY = Answer(429, _status(429, "TooManyRequests"), _JSON | {"Retry-After": "1"})
_KUBE_REFUSALS = (
    _BUSY,
    Answer(500, _status(500, "InternalError"), _JSON),
    _BUSY,
    Answer(503, _status(503, "ServiceUnavailable"), _JSON),
    Answer(504, _status(504, "Timeout"), _JSON, after=True),
    Lose(),
)
_TAKES_EFFECT = 4
_AWS_REFUSALS = (
    (503, "RequestLimitExceeded"),
    (500, "InternalError"),
    (400, "Throttling"),
    (503, "Unavailable"),
    (503, "RequestLimitExceeded"),
    (500, "InternalError"),
)


def _aws_refusal(request: Request, roll: int) -> Answer:
    """In the wire format of EC2, of IAM, or of the services that speak JSON."""
    status, code = _AWS_REFUSALS[roll]
    error = f"<Error><Code>{code}</Code><Message>too much to do</Message></Error>"
    if b"Version=2016-11-15" in request.body:
        body = f"<Response><Errors>{error}</Errors><RequestID>drill</RequestID></Response>"
    elif request.body.startswith(b"Action="):
        body = f"<ErrorResponse>{error}<RequestId>drill</RequestId></ErrorResponse>"
    else:
        body = json.dumps({"__type": code, "message": "too much to do"})
    return Answer(status, body.encode(), {"Content-Type": "text/xml" if body.startswith("<") else "application/json"})


# --- pods that may not be seen ----------------------------------------------------------------------------------
def test_without_leave_to_see_pods_no_node_is_touched(drill: Drilled) -> None:
    _scale_out(drill, lambda: _storm(drill, SQUALL_SECONDS, KUBE), replicas=10)
    with _pods_forbidden(drill):
        _nothing_is_touched(drill, WITHOUT_PODS_SECONDS)
        assert drill.metric('kerf_refusals{code="StaleSource"}') > 0
        restored = time.monotonic()
    _all_given_back(drill)
    print(f"\nleave to see pods given back: nodes given back {time.monotonic() - restored:.1f} s later")


@pytest.mark.long
def test_a_controller_that_starts_without_leave_to_see_pods_touches_nothing(drill: Drilled) -> None:
    _scale_out(drill, replicas=10)
    with _pods_forbidden(drill):
        drill.kill_controller()
        drill.start_controller()
        drill.wait(lambda: _unready(drill) == "not listed yet: Pod\n", 30, "it says what it waits for")
        _nothing_is_touched(drill, 120.0)
    _all_given_back(drill)


@contextmanager
def _pods_forbidden(kerf: Drilled) -> Iterator[None]:
    """Pods may not be read, the open watch on them is broken, and there is every reason to end the nodes: the pool has
    changed, so that they are drifted, and they are empty."""
    role = json.loads(kerf.kubectl("get", "clusterrole", "kerf", "-o", "json"))
    assert any("pods" in rule["resources"] for rule in role["rules"])
    _grant(kerf, [_without_pods(rule) for rule in role["rules"] if _without_pods(rule)["resources"]])
    kerf.proxy.break_watches()
    kerf.wait(lambda: kerf.metric('kerf_errors_total{where="watch/Pod"}') > 0, 30, "it says that it cannot see pods")
    yield
    _grant(kerf, role["rules"])


def _without_pods(rule: dict[str, Any]) -> dict[str, Any]:
    return {**rule, "resources": [r for r in rule.get("resources", ()) if r != "pods"]}


def _grant(kerf: Drilled, rules: list[dict[str, Any]]) -> None:
    kerf.kubectl("patch", "clusterrole", "kerf", "--type=merge", "-p", json.dumps({"rules": rules}))


def _nothing_is_touched(kerf: Drilled, seconds: float) -> None:
    """Give reasons to end nodes, and see that for so long nobody tries."""
    claims, before = kerf.claims(), len(kerf.asked)
    label = {"spec": {"template": {"metadata": {"labels": {"drill": f"{time.time():.0f}"}}}}}
    kerf.kubectl("patch", "nodepool", "general", "--type=merge", "-p", json.dumps(label))
    kerf.scale(0)
    kerf.pass_time(seconds)
    touched = [r.operation for r in kerf.asked[before:] if r.method != "GET" and _touches(r.operation)]
    assert not touched, touched
    assert kerf.claims() == claims
    assert not kerf.leaving()
    assert not any(t["key"] == "karpenter.sh/disrupted" for n in kerf.get("nodes") for t in n["spec"].get("taints", ()))


def _touches(operation: str) -> bool:
    """Not the status of a claim: what is observed may be written down."""
    return operation.rpartition(" ")[2] in TOUCHES


def _unready(kerf: Drilled) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{kerf.health_port}/readyz", timeout=2) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        return error.read().decode()
    except OSError:
        return ""


# --- scale-out and scale-in, with a disturbance in the middle -----------------------------------------------------
def _scale_out(kerf: Drilled, disturb: Callable[[], str] = lambda: "", replicas: int = 100) -> None:
    """All pods run, each claim has its instance, and nothing was asked to end."""
    kept, ends, begun = kerf.claims(), kerf.terminations(), time.monotonic()
    kerf.scale(replicas)
    kerf.wait(lambda: len(kerf.running_instances()) > len(kept), 60, "the first instance")
    what, disturbed = disturb(), time.monotonic()
    kerf.wait(lambda: len(kerf.running()) == replicas, OUT_SECONDS, "all pods run")
    _tell(kerf, f"scale-out to {replicas}", what, disturbed, begun)
    assert sorted(kerf.claims().values()) == sorted(i["id"] for i in kerf.running_instances())
    assert kerf.terminations() == ends


def _scale_in(kerf: Drilled, disturb: Callable[[], str]) -> None:
    """All nodes but the one that stays are given back, and none was launched meanwhile."""
    instances, begun = len(kerf.aws.instances()), time.monotonic()
    kerf.scale(0)
    kerf.wait(kerf.leaving, IN_SECONDS, "scale-in began")
    what, disturbed = disturb(), time.monotonic()
    _all_given_back(kerf)
    _tell(kerf, "scale-in", what, disturbed, begun)
    assert len(kerf.aws.instances()) == instances


def _all_given_back(kerf: Drilled) -> None:
    """But the node that stays. Of the others none is left."""
    kerf.wait(lambda: len(kerf.running_instances()) == len(kerf.get("nodeclaims")) == 1, IN_SECONDS, "all given back")
    assert len(kerf.get("nodes", "-l", "karpenter.sh/nodepool")) == 1


def _tell(kerf: Drilled, phase: str, what: str, disturbed: float, begun: float) -> None:
    now = time.monotonic()
    ended = f", the controller ended {len(kerf.ended)} times" if kerf.ended else ""
    after = f" ({what}; done {now - disturbed:.1f} s after it{ended})" if what else ""
    print(f"\n{phase}: {now - begun:.1f} s{after}")


_ONLY_EMPTY = {"spec": {"disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "1s"}}}
_KEEPER = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "keeper", "namespace": "default"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "keeper"}},
        "template": {
            "metadata": {"labels": {"app": "keeper"}, "annotations": {"karpenter.sh/do-not-disrupt": "true"}},
            "spec": {
                "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "main", "image": "main", "resources": {"requests": {"cpu": "250m"}}}],
            },
        },
    },
}
