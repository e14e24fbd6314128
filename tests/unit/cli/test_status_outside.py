"""`kerf status` without a controller: what it makes of the objects in the API server, and of permissions it lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kerf.cli.operating import outside, status_page
from kerf.cli.operating.outside import Outside
from kerf.model.instants import rfc3339
from kerf.model.kinds import NODE_CLASS, POD, Kind
from kerf.ports import AlreadyGone, Forbidden, Lease, Listing, Unavailable
from kerf_api.v1.meta import decode

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LABELS = {"app.kubernetes.io/component": "controller"}


def ago(minutes: float) -> str:
    return rfc3339(NOW - timedelta(minutes=minutes))


def deployment(replicas: int = 2, **status: Any) -> dict[str, Any]:
    env = [
        {"name": "LEADER_ELECTION_NAME", "value": "own-lease"},
        {"name": "LAUNCH_KEY_SECRET", "value": "kerf-launch-key"},
    ]
    containers = [{"name": "proxy"}, {"name": "controller", "args": ["run"], "env": env}]
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app.kubernetes.io/name": "kerf"}},
        "template": {"spec": {"containers": containers}},
    }
    return {"metadata": {"name": "kerf", "namespace": "kerf", "labels": LABELS}, "spec": spec, "status": status}


def pod(*containers: Mapping[str, Any], **status: Any) -> dict[str, Any]:
    meta = {"name": "kerf-1", "namespace": "kerf", "creationTimestamp": ago(30)}
    return {"metadata": meta, "status": {"phase": "Running", "containerStatuses": list(containers), **status}}


CRASHING = {
    "name": "controller",
    "restartCount": 7,
    "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}},
    "lastState": {"terminated": {"exitCode": 2, "reason": "Error", "message": "CLUSTER_NAME", "finishedAt": ago(1)}},
}
LED = Lease(holder="kerf-1_x", renewed=NOW)


class Server:
    """An API server: what it lists by the end of a path, and paths that it forbids."""

    def __init__(self, **lists: Sequence[Any]) -> None:
        self.lease: Lease | None = LED
        self.lists, self.forbidden, self.asked = lists, list[str](), list[str]()
        self.absent, self.created = set[str](), ago(60)

    def leased(self, lease: Lease | None) -> Server:
        self.lease = lease
        return self

    def request(self, method: str, path: str, body: Any = None) -> Any:
        if "/pods/" in path:
            if path in self.absent:
                raise AlreadyGone(path)
            return {"metadata": {"creationTimestamp": self.created}}
        if path.endswith("/selfsubjectreviews"):
            return {"metadata": {"creationTimestamp": self.created}, "kind": body["kind"]}
        if path.startswith("/api/v1/pods?"):
            assert "fieldSelector=spec.nodeName%3D%2Cstatus.phase%3DPending" in path
            rows = self._rows("/waiting")
            begin = int(path.partition("&continue=")[2] or 0)
            more = {"continue": str(begin + 1)} if begin + 1 < len(rows) else {}
            return {"items": rows[begin : begin + 1], "metadata": more}
        return {"items": self._rows(path)}

    def list(self, kind: Kind) -> Listing:
        """As the client lists: of pods without the messages of their conditions."""
        assert kind is not POD
        return Listing(tuple(decode(kind.type, row) for row in self._rows(kind.path())), "")

    def get_lease(self, namespace: str, name: str) -> Lease | None:
        self._rows(f"/{namespace}/leases/{name}")
        return self.lease

    def _rows(self, path: str) -> Sequence[Any]:
        self.asked.append(path)
        if any(text in path for text in self.forbidden):
            raise Forbidden(path)
        return self.lists.get(path.partition("?")[0].rpartition("/")[2], [])


def look(server: Server, namespace: str = "kerf") -> Outside:
    return outside.look(server, namespace, NOW)


def page(found: Outside) -> str:
    return status_page.page_of_outside(outside.as_json(found, "nobody answers"), rfc3339(NOW))


RUNNING = deployment(readyReplicas=2)


def test_a_controller_that_runs_has_no_problem_and_the_page_is_short() -> None:
    found = look(Server(deployments=[RUNNING], pods=[pod({"name": "controller", "state": {"running": {}}})]))
    assert found.problems == []
    assert page(found).splitlines() == [
        "no problem found in the API server",
        "",
        "source    the API server: nobody answers",
        "leader    kerf-1_x",
        "          for back-offs and refusals: kubectl exec -n kerf deploy/kerf -- kerf status",
    ]


def test_where_it_is_not_installed_that_is_all_that_is_said_of_it() -> None:
    (found,) = look(Server(), "elsewhere").problems
    assert str(found).startswith("deployment/elsewhere: there is no Deployment of Kerf's controller; helm install")


def test_without_a_namespace_it_is_looked_for_in_all_of_them() -> None:
    server = Server(deployments=[RUNNING])
    assert look(server, "").namespace == "kerf"
    assert server.asked[1].startswith(
        "/apis/apps/v1/deployments?labelSelector=app.kubernetes.io/component%3Dcontroller"
    )


def test_it_is_known_by_its_container_whatever_it_is_called() -> None:
    foreign = {"name": "controller", "args": ["run"]}
    named = [deployment(readyReplicas=1), deployment(), deployment()]
    named[0]["metadata"] = {"name": "autoscaler", "namespace": "platform"}
    named[1]["metadata"] = {"name": "kerf", "namespace": "other"}
    named[1]["spec"]["template"]["spec"]["containers"] = [foreign]
    named[2]["spec"]["template"]["spec"]["containers"] = [{"name": "controller"}]
    server = Server(deployments=named)
    found = look(server, "")
    assert (found.namespace, found.problems) == ("platform", [])
    assert any(path.endswith("/platform/leases/own-lease") for path in server.asked)


def test_a_crash_loop_is_told_with_the_last_end_and_the_command_for_its_log() -> None:
    broken = deployment(conditions=[{"type": "Available", "status": "False", "reason": "Min", "message": "few"}])
    text = page(look(Server(deployments=[broken], pods=[pod(CRASHING)]).leased(None)))
    assert "! deployment/kerf/kerf: 0 of 2 replicas are ready: Min: few" in text
    assert (
        "! pod/kerf/kerf-1: container controller is waiting: CrashLoopBackOff: back-off 5m0s; last ended with exit "
        "code 2 (Error) at 2026-01-01T11:59:00Z: CLUSTER_NAME; 7 restarts [since 2026-01-01T11:59:00Z (1m0s)]\n"
        "    fix: kubectl logs -n kerf kerf-1 -c controller --previous"
    ) in text
    assert "! lease/kerf/own-lease: no replica has it: nothing is decided" in text


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (deployment(0), "deployment/kerf/kerf: is scaled to 0 replicas"),
        (
            pod({"name": "c", "state": {"waiting": {"reason": "ImagePullBackOff"}}}),
            "container c is waiting: ImagePullBackOff; 0",
        ),
        (
            pod({"name": "c", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}),
            "exit code 137 (OOMKilled)",
        ),
        (
            pod({**CRASHING, "state": {"running": {}}}),
            "container controller has restarted; last ended with exit code 2",
        ),
        (
            pod(conditions=[{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3"}]),
            "pod/kerf/kerf-1: has no node: Unschedulable: 0/3",
        ),
        (pod(phase="Pending"), "pod/kerf/kerf-1: is Pending: FailedMount: no volume"),
    ],
)
def test_what_keeps_a_pod_from_running(shown: dict[str, Any], words: str) -> None:
    event = {"involvedObject": {"name": "kerf-1"}, "reason": "FailedMount", "message": "no volume"}
    lists = {"deployments": [shown]} if "spec" in shown else {"deployments": [RUNNING], "pods": [shown]}
    (found,) = look(Server(events=[event], **lists)).problems
    assert words in str(found)


@pytest.mark.parametrize(
    "container",
    [
        {
            "name": "c",
            "state": {"running": {}},
            "restartCount": 1,
            "lastState": {"terminated": {"finishedAt": ago(60)}},
        },
        {"name": "c", "state": {"running": {}}},
    ],
)
def test_a_restart_of_long_ago_is_no_problem(container: dict[str, Any]) -> None:
    assert look(Server(deployments=[RUNNING], pods=[pod(container)])).problems == []


def test_a_lease_that_nobody_renews_is_told() -> None:
    old = Lease(holder="kerf-0_x", renewed=NOW - timedelta(minutes=3))
    (found,) = look(Server(deployments=[RUNNING]).leased(old)).problems
    assert "kerf-0_x has not renewed it since 2026-01-01T11:57:00Z" in found.text


def test_conditions_events_and_pods_are_read_too() -> None:
    broken = {"type": "SubnetsReady", "status": "False", "reason": "SubnetsNotFound", "lastTransitionTime": ago(9)}
    node_class = {"metadata": {"name": "c", "uid": "u"}, "spec": {}, "status": {"conditions": [broken]}}
    failed = {
        "involvedObject": {"kind": "Pod", "namespace": "d", "name": "a"},
        "reason": "FailedEvictPod",
        "message": 'EvictPod failed: pods "a" is forbidden: no',
        "firstTimestamp": ago(5),
        "lastTimestamp": ago(5),
    }
    old = {**failed, "involvedObject": {"kind": "Pod", "name": "b"}, "lastTimestamp": ago(30)}
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    waiting = {
        "metadata": {"name": "w", "namespace": "d", "uid": "w", "creationTimestamp": ago(9)},
        "status": {"phase": "Pending", "conditions": [unscheduled]},
    }
    found = look(
        Server(deployments=[RUNNING], events=[failed, old], waiting=[waiting], **{NODE_CLASS.plural: [node_class]})
    )
    first, second, third = found.problems
    assert (first.object, first.text) == ("pod/d/a", 'EvictPod is forbidden: pods "a" is forbidden: no')
    assert second.text == "is not Ready: SubnetsReady is False: SubnetsNotFound"
    assert third.text == "has no place: the kube-scheduler reports: 0/3 nodes"


def test_all_pages_of_pods_are_read_and_those_that_cannot_be_read_are_left_out() -> None:
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    rows = [
        {
            "metadata": {"name": f"w{number}", "namespace": "d", "uid": "w", "creationTimestamp": ago(9)},
            "status": {"phase": "Pending", "conditions": [unscheduled]},
        }
        for number in range(3)
    ]
    (one,) = look(Server(deployments=[RUNNING], waiting=[rows[0], {"metadata": 5}, *rows[1:]])).problems
    assert (one.object, one.times) == ("pod/d/w0", 3)
    assert one.text == "has no place (and 2 more: d/w1, d/w2): the kube-scheduler reports: 0/3 nodes"


def failed_eviction(kind: str = "Pod", namespace: str = "d") -> dict[str, Any]:
    return {
        "involvedObject": {"kind": kind, "namespace": namespace, "name": "a"},
        "reason": "FailedEvictPod",
        "message": "EvictPod failed: it is forbidden: no",
        "firstTimestamp": ago(5),
        "lastTimestamp": ago(5),
    }


@pytest.mark.parametrize(("kind", "namespace"), [("Pod", "d"), ("NodeClaim", "")])
def test_an_event_about_an_object_that_is_gone_is_no_problem(kind: str, namespace: str) -> None:
    server = Server(deployments=[RUNNING], events=[failed_eviction(kind, namespace)])
    server.absent = {"/api/v1/namespaces/d/pods/a"}
    assert look(server).problems == []


def test_nor_one_about_an_earlier_pod_of_the_same_name() -> None:
    server = Server(deployments=[RUNNING], events=[failed_eviction()])
    assert len(look(server).problems) == 1
    server.created = ago(1)
    assert look(server).problems == []


def test_an_event_without_a_namespace_is_kept() -> None:
    server = Server(deployments=[RUNNING], events=[failed_eviction(namespace="")])
    assert len(look(server).problems) == 1


def test_objects_that_may_not_be_listed_count_as_existing() -> None:
    server = Server(deployments=[RUNNING], events=[failed_eviction("NodeClaim", "")])
    server.forbidden = ["nodeclaims"]
    assert [one.object for one in look(server).problems] == ["nodeclaim/a"]


def test_the_time_is_that_of_the_api_server() -> None:
    server = Server()
    server.created = ago(20)
    assert outside.time(server, NOW) == NOW - timedelta(minutes=20)
    server.created = ""
    assert outside.time(server, NOW) == NOW


def test_a_caller_who_may_read_nothing_is_told_no_calm() -> None:
    server = Server(deployments=[RUNNING])
    server.forbidden = ["/api", "/waiting", "/leases/"]
    found = look(server)
    assert found.checked == 0
    assert page(found).startswith("nothing was checked: no read of the API server succeeded\n")
    assert "not checked: EC2NodeClasses: needs permission to list ec2nodeclasses" in page(found)
    server.forbidden = ["nodeclaims"]
    assert page(look(server)).startswith("no problem found in the API server, as far as it was checked\n")


def test_a_permission_that_is_missing_is_named_and_costs_no_more_than_its_part() -> None:
    server = Server(deployments=[RUNNING])
    server.forbidden = ["/namespaces/kerf/pods", "/leases/", "/api/v1/events", "/waiting", "nodeclaims"]
    found = look(server)
    assert found.problems == []
    assert found.not_checked == [
        "Kerf's pods: needs permission to list pods in namespace kerf",
        "the lease: needs permission to get leases in namespace kerf",
        "actions that fail: needs permission to list events in all namespaces",
        "NodeClaims: needs permission to list nodeclaims.karpenter.sh",
        "pods without a node: needs permission to list pods in all namespaces",
    ]
    assert "not checked: NodeClaims: needs permission to list nodeclaims.karpenter.sh" in page(found)


def test_an_error_that_is_no_permission_is_told_as_it_is() -> None:
    class Broken(Server):
        def get_lease(self, namespace: str, name: str) -> Lease | None:
            raise Unavailable("etcd is away")

    assert look(Broken(deployments=[RUNNING])).not_checked == ["the lease: etcd is away"]


def test_launches_that_ec2_refuses_are_a_problem_while_a_pod_waits() -> None:
    message = "The account's vCPU quota is used up: VcpuLimitExceeded: your limit is 32"
    refused = {
        "involvedObject": {"kind": "NodeClaim", "name": "general-1a2b"},
        "reason": "InsufficientCapacityError",
        "message": message,
        "firstTimestamp": ago(1),
        "lastTimestamp": ago(1),
    }
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    waiting = {
        "metadata": {"name": "w", "namespace": "d", "uid": "w", "creationTimestamp": ago(9)},
        "status": {"phase": "Pending", "conditions": [unscheduled]},
    }
    first, second = look(Server(deployments=[RUNNING], events=[refused], waiting=[waiting])).problems
    assert (first.code, first.text) == ("LaunchRefused", f"refuses launches: {message}")
    assert second.code == "PodsUnschedulable"
    assert look(Server(deployments=[RUNNING], events=[refused])).problems == []
