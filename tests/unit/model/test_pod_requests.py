"""What pods take of their nodes, resizes included: PodRequests of component-helpers, row by row."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kerf.kube.interning import Interner
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.scheduling.solve import SolveOptions, solve
from kerf.telemetry.series.usage import Usage
from kerf_api.resources import Resources
from kerf_api.v1.meta import decode
from tests.referee import needs
from tests.unit.scheduling import worlds as w

Json = dict[str, Any]
INFEASIBLE = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
DEFERRED = [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]


def container(cpu: str, name: str = "main", **more: Any) -> Json:
    return {"name": name, "resources": {"requests": {"cpu": cpu}}, **more}


def status(actual: str | None, allocated: str = "", name: str = "main") -> Json:
    resources = {"resources": {"requests": {"cpu": actual}}} if actual is not None else {}
    return {"name": name, **resources, **({"allocatedResources": {"cpu": allocated}} if allocated else {})}


def pod(*containers: Json, node: str = "n", name: str = "p", init: tuple[Json, ...] = (), **more: Any) -> Pod:
    spec: Json = {"nodeName": node, "containers": list(containers), "initContainers": list(init)}
    spec |= {key: more.pop(key) for key in ("resources", "overhead") if key in more}
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return decode(Pod, {"metadata": meta, "spec": spec, "status": {"phase": "Running", **more}})


MESH = {"restartPolicy": "Always"}
ROWS: dict[str, tuple[int, Pod]] = {
    "no status": (200, pod(container("200m"))),
    "not bound: the spec": (200, pod(container("200m"), node="", containerStatuses=[status("1500m", "1500m")])),
    "a decrease that is under way": (1500, pod(container("200m"), containerStatuses=[status("1500m", "1500m")])),
    "allocated, and not applied yet": (1500, pod(container("700m"), containerStatuses=[status("1500m", "700m")])),
    "applied": (700, pod(container("700m"), containerStatuses=[status("700m", "700m")])),
    "an increase": (1500, pod(container("1500m"), containerStatuses=[status("200m", "200m")])),
    "an increase that was admitted": (1500, pod(container("1"), containerStatuses=[status("200m", "1500m")])),
    "an increase that waits": (
        1500,
        pod(container("1500m"), containerStatuses=[status("200m", "200m")], conditions=DEFERRED),
    ),
    "an increase that can never be": (
        200,
        pod(container("64"), containerStatuses=[status("200m", "200m")], conditions=INFEASIBLE),
    ),
    "the more of what there is of one that can never be": (
        300,
        pod(container("64"), containerStatuses=[status("200m", "300m")], conditions=INFEASIBLE),
    ),
    "a status without resources says nothing": (200, pod(container("200m"), containerStatuses=[status(None, "1")])),
    "a status of no container": (200, pod(container("200m"), containerStatuses=[status("1", "1", "other")])),
    "two containers": (
        1600,
        pod(
            container("200m"),
            container("100m", "side"),
            containerStatuses=[status("1500m", "1500m"), status("100m", "100m", "side")],
        ),
    ),
    "a sidecar": (
        1200,
        pod(
            container("200m"),
            init=(container("100m", "mesh", **MESH),),
            initContainerStatuses=[status("1", "1", "mesh")],
        ),
    ),
    "a plain init container has no resizes": (
        200,
        pod(container("200m"), init=(container("100m", "mesh"),), initContainerStatuses=[status("1", "1", "mesh")]),
    ),
    "a resource that the spec no longer asks for": (
        500,
        pod({"name": "main"}, containerStatuses=[status("500m", "500m")]),
    ),
    "overhead comes on top": (
        1600,
        pod(container("200m"), containerStatuses=[status("1500m")], overhead={"cpu": "100m"}),
    ),
}


def whole(spec: str, actual: str, allocated: str, **more: Any) -> Pod:
    """A pod with requests of its own."""
    one = pod(container("200m"), resources={"requests": {"cpu": spec}}, **more)
    told = {"resources": {"requests": {"cpu": actual}}, "allocatedResources": {"cpu": allocated}}
    manifest = msgspec.to_builtins(one)
    return decode(Pod, {**manifest, "status": {**manifest["status"], **told}})


ROWS |= {
    "of the pod as a whole": (1500, whole("1", "1500m", "1200m")),
    "of the pod as a whole, allocated": (1500, whole("1", "1200m", "1500m")),
    "of the pod as a whole, an increase": (2000, whole("2", "1", "1")),
    "of the pod as a whole, one that can never be": (1000, whole("2", "1", "1", conditions=INFEASIBLE)),
    "of the pod as a whole, not bound": (1000, whole("1", "1500m", "1500m", node="")),
    "only a limit of the pod as a whole": (3000, pod({"name": "main"}, resources={"limits": {"cpu": "3"}})),
    "such a limit beside requests": (200, pod(container("200m"), resources={"limits": {"cpu": "3"}})),
}


@pytest.mark.parametrize("row", sorted(ROWS))
def test_what_a_pod_takes(row: str) -> None:
    cpu, one = ROWS[row]
    assert pods.requests(one) == Resources({"cpu": cpu, "pods": 1})
    assert needs.requests(one) == pods.requests(one)
    assert pods.requests(Interner().pod(one)) == pods.requests(one)


def test_statuses_that_say_nothing_new_are_not_kept() -> None:
    still = pod(container("200m"), containerStatuses=[status("200m", "200m")])
    under_way = pod(container("200m"), containerStatuses=[status("1", "200m")])
    interner = Interner()
    assert interner.pod(still).status.container_statuses == ()
    one, two = (interner.pod(msgspec.json.decode(msgspec.json.encode(under_way), type=Pod)) for _ in "ab")
    assert one.status.container_statuses == under_way.status.container_statuses
    assert one.status.container_statuses is two.status.container_statuses


# --- where that counts ------------------------------------------------------------------------------------------
RESIZED = pod(container("200m"), containerStatuses=[status("1500m", "1500m")], name="old")


def test_room_that_a_resize_has_not_freed_yet_is_taken() -> None:
    done = w.solved(w.pool(), w.node("n", cpu="2"), RESIZED, w.pod("p", "1"))
    assert (done.placed, len(done.new_nodes)) == ({}, 1)
    freed = pod(container("200m"), containerStatuses=[status("200m", "200m")], name="old")
    assert w.solved(w.pool(), w.node("n", cpu="2"), freed, w.pod("p", "1")).placed == {"default/p": "node/n"}


def test_pods_that_differ_in_their_resize_only_are_told_apart() -> None:
    same = pod(container("200m"), name="same")
    snapshot = w.world(w.node("n", cpu="2"), w.node("m", cpu="1"), w.node("o", cpu="2"), RESIZED, same)
    found = solve(snapshot, [RESIZED, same], SolveOptions(exclude=frozenset({"node/n"}))).placed
    assert found["default/old"] == "node/o"


def test_too_much_of_one_resource_keeps_away_only_pods_that_ask_for_it() -> None:
    grown = pod(container("3"), containerStatuses=[status("1", "1")], name="old")
    done = w.solved(w.node("n", cpu="2"), grown, w.pod("none", "0"), w.pod("some", "1m"))
    assert (done.placed, list(done.unplaced)) == ({"default/none": "node/n"}, ["default/some"])


def test_usage_follows_a_resize() -> None:
    usage = Usage(single_nodes=True)
    still = pod(container("200m"), name="old")
    usage.see_pod(None, still)
    usage.see_pod(still, RESIZED)
    usage.see_node(None, w.node("n", cpu="2"))
    text = usage.text(w.NOW, lambda: None).decode()
    assert 'karpenter_cluster_utilization_percent{resource_type="cpu"} 75' in text
