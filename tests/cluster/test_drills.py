"""Drills: what the controller stands on fails in the middle of its work. Nothing is lost, doubled or destroyed for it.

Scale-out and scale-in are those of the end-to-end tests; beside them a pod that must not be disrupted sits on a node
of its own, which no drill may touch. The controller is kept running as by a kubelet, and comes to the API server and
to AWS through a proxy, where its requests are counted. What happened is printed (`-s` shows it).
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from .control_plane import ControlPlane
from .installation import Installation
from .proxy import AWS, KUBE, Decision, Delay, Lose, Request, pass_all
from .storm import Storm

#: Ends of processes, their restarts and back-offs add up, most of all on a busy machine.
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

HERE = Path(__file__).parent
#: For how long a program stays down; to that comes the time that it takes to start.
DOWN_SECONDS = 6.0
SQUALL_SECONDS, STORM_SECONDS = 10.0, 30.0
#: More requests a second than this, over a whole storm, would be part of the storm.
KUBE_RATE, AWS_RATE = 25.0, 10.0
WITHOUT_PODS_SECONDS = 20.0
#: Pods that come while nobody hears of it.
COMING = 2
#: After so long a silence a watch is given up at the latest, with some time to spare; what it had told is stale after
#: the other. Requests that are not answered hang for so long, or until whoever asks has had enough.
SILENCE_SECONDS, STALE_SECONDS, HANGING_SECONDS = 85.0, 92.0, 600.0
EMPTY_NODES = 'karpenter_voluntary_disruption_eligible_nodes{reason="empty"}'
DISRUPTED = "karpenter.sh/disrupted"
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
    drill.wait(lambda: not drill.get("pods", selector="app=web"), 30, "the pods are gone")
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
    kerf.rule = storm = Storm(ports)
    if KUBE in ports:
        kerf.proxy.break_watches()
    kerf.pass_time(seconds)
    kerf.rule = pass_all
    took = time.monotonic() - begun
    asked = Counter(request.port for request in kerf.asked[before:])
    kube, aws = asked[KUBE] / took, asked[AWS] / took
    assert kube <= KUBE_RATE
    assert aws <= AWS_RATE
    assert all(storm.refused[port] for port in ports), f"no storm: {asked} asked, {storm.refused} refused"
    most = ", ".join(f"{n} {what}" for what, n in Counter(r.operation for r in kerf.asked[before:]).most_common(5))
    rates = f"{kube:.1f} requests a second to Kubernetes, {aws:.1f} to AWS, {storm.refused.total()} refused"
    return f"storm of {took:.0f} s at {' and '.join(ports)}, {rates}: {most}"


# --- watches that fall silent -----------------------------------------------------------------------------------
@pytest.mark.long
def test_a_watch_that_is_half_open_in_scale_in_is_given_up_and_costs_no_pod(drill: Drilled) -> None:
    """All nodes are seen empty and may not go yet; then pods come to some, and the news of them does not arrive."""
    _scale_out(drill)
    with _budget(drill, "0"):
        drill.scale(0)
        drill.wait(lambda: drill.metric(EMPTY_NODES) == len(drill.claims()) - 1, 60, "it sees that the nodes are empty")
        assert drill.proxy.silence_watches("GET pods") == 1
        silent = time.monotonic()
        drill.scale(COMING)
        drill.wait(lambda: len(drill.running()) == COMING, 30, "pods have come")
    pods, used = drill.running(), _nodes_of_pods(drill)
    drill.wait(
        lambda: drill.leaving() and bool(_tainted(drill) & used), 30, "it goes on, and takes these for empty too"
    )
    left = silent + SILENCE_SECONDS - time.monotonic()
    drill.wait(lambda: not _tainted(drill) & used, left, "the nodes of the pods are left alone")
    print(f"\nhalf open: all was well again after {time.monotonic() - silent:.1f} s")
    assert drill.running() == pods
    assert _nodes_of_pods(drill) == used
    assert not drill.ended
    drill.scale(0)
    _all_given_back(drill)


@pytest.mark.long
def test_when_neither_watch_nor_list_of_pods_is_answered_no_node_is_touched(drill: Drilled) -> None:
    _scale_out(drill, replicas=10)
    drill.rule = lambda request: (
        Delay(HANGING_SECONDS, Lose()) if request.operation == "GET pods" else pass_all(request)
    )
    assert drill.proxy.silence_watches("GET pods") == 1
    drill.pass_time(STALE_SECONDS)
    _nothing_is_touched(drill, WITHOUT_PODS_SECONDS)
    assert drill.metric('kerf_refusals{code="StaleSource"}') > 0
    drill.rule = pass_all
    _all_given_back(drill)


@contextmanager
def _budget(kerf: Drilled, nodes: str) -> Iterator[None]:
    """Only so many nodes may go at the same time; after the block, all."""
    _set_budget(kerf, nodes)
    try:
        yield
    finally:
        _set_budget(kerf, "100%")


def _set_budget(kerf: Drilled, nodes: str) -> None:
    patch = {"spec": {"disruption": {"budgets": [{"nodes": nodes}]}}}
    kerf.kubectl("patch", "nodepool", "general", "--type=merge", "-p", json.dumps(patch))


def _nodes_of_pods(kerf: Drilled) -> set[str]:
    return {pod["spec"].get("nodeName", "") for pod in kerf.get("pods", selector="app=web")}


def _tainted(kerf: Drilled) -> set[str]:
    """Nodes that a command is about."""
    found = kerf.get("nodes", selector="karpenter.sh/nodepool")
    return {n["metadata"]["name"] for n in found if any(t["key"] == DISRUPTED for t in n["spec"].get("taints", ()))}


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
        drill.wait(lambda: drill.readiness()[1] == "not listed yet: Pod\n", 30, "it says what it waits for")
        _nothing_is_touched(drill, 120.0)
    _all_given_back(drill)


@contextmanager
def _pods_forbidden(kerf: Drilled) -> Iterator[None]:
    """Pods may not be read, the open watch on them is broken, and there is every reason to end the nodes: the pool has
    changed, so that they are drifted, and they are empty."""
    rules = kerf.rules()
    assert any("pods" in rule["resources"] for rule in rules)
    errors = 'kerf_errors_total{where="watch/Pod"}'
    kerf.wait(lambda: _at_rest(kerf), 60, "a replica leads, and all that it launched is initialized")
    with kerf.allowed_only([_without_pods(rule) for rule in rules if _without_pods(rule)["resources"]]):
        before = kerf.metric(errors)
        kerf.proxy.break_watches()
        kerf.wait(lambda: kerf.metric(errors) > before, 30, "it says that it cannot see pods")
        yield


def _at_rest(kerf: Drilled) -> bool:
    """Whether somebody leads who has seen everything (it may have ended in a storm), and no node is on its way in."""
    claims = [c.get("status", {}).get("conditions", []) for c in kerf.get("nodeclaims")]
    initialized = all(any(c["type"] == "Initialized" and c["status"] == "True" for c in found) for found in claims)
    return initialized and kerf.readiness()[0] == 200 and kerf.metric("leader_election_master_status") == 1


def _without_pods(rule: dict[str, Any]) -> dict[str, Any]:
    return {**rule, "resources": [r for r in rule.get("resources", ()) if r != "pods"]}


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
    assert not _tainted(kerf)


def _touches(operation: str) -> bool:
    """Not the status of a claim: what is observed may be written down."""
    return operation.rpartition(" ")[2] in TOUCHES


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
    assert len(kerf.get("nodes", selector="karpenter.sh/nodepool")) == 1


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
