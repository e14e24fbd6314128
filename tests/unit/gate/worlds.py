"""A cluster with two teams' namespaces, and an API server that answers reviews. Names of the hidden one are SECRET."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from kerf.cli.answering import cluster_files
from kerf.cli.gate.options import Options
from kerf.cli.gate.readings import Readings, Watch
from kerf.cli.gate.reviews import Reviews
from kerf.cli.gate.serving import page
from kerf.disruption.candidates.canary import Canary
from kerf.model.annotations import text_of
from kerf.model.kinds import Kind
from kerf.model.settings import Settings
from kerf.ports import Listing, Unavailable
from kerf.sandbox.clock import VirtualClock

#: A part of every name in the namespace that the reader of `shop` may not see.
SECRET: Final = "zebra"
NOW: Final = datetime(2026, 3, 2, 10, tzinfo=UTC)
HOST: Final = "localhost:8445"
#: By token: user and groups.
USERS: Final = {
    "admin-token": ("ann", ("admins",)),
    "shop-token": ("sam", ("shop",)),
    "none-token": ("nina", ("viewers",)),
    "stranger-token": ("stu", ()),
    "anonymous-token": ("system:anonymous", ("system:unauthenticated",)),
}
#: The namespaces whose pods a user may list; "" for all. Users without a row may not even list nodes.
PODS: Final = {"ann": {""}, "sam": {"shop"}, "nina": set[str]()}


#: A failed canary, as the controller notes it: it names pods.
_CANARY: Final = text_of(
    Canary(
        plan="0" * 20,
        node="claim-a",
        command="c",
        started=NOW,
        since=NOW,
        failed=f"pod {SECRET}/{SECRET}-1 of Deployment {SECRET} fails",
    )
)


def _meta(name: str, namespace: str = "", **more: Any) -> dict[str, Any]:
    space = {"namespace": namespace} if namespace else {}
    return {
        "name": name,
        "uid": f"uid-{namespace}-{name}",
        "creationTimestamp": "2026-03-01T00:00:00Z",
        **space,
        **more,
    }


def pod(name: str, namespace: str, of: str, *, node: str = "", cpu: str = "300m", **meta: Any) -> dict[str, Any]:
    """A pod of a ReplicaSet; without a node the kube-scheduler has refused it."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{of}-5d9c7", "uid": of, "controller": True}
    labels = {"app": of, "team": f"team-{of}", "pod-template-hash": "5d9c7"}
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True", "message": f"of {of}"}]}
    resources = {"requests": {"cpu": cpu, "memory": "256Mi"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _meta(name, namespace, labels=labels, ownerReferences=[owner], **meta),
        "spec": {
            "nodeName": node,
            "containers": [{"name": f"c-{of}", "resources": resources}],
            "tolerations": [{"key": f"only-{of}", "operator": "Exists"}],
            "nodeSelector": {} if node else {"disk": f"disk-{of}"},
            "volumes": [{"name": f"v-{of}", "persistentVolumeClaim": {"claimName": f"claim-{of}"}}],
        },
        **({"status": status} if node else {}),
    }


def _node(name: str) -> list[dict[str, Any]]:
    labels = {
        "karpenter.sh/nodepool": "default",
        "karpenter.sh/registered": "true",
        "karpenter.sh/initialized": "true",
        "karpenter.sh/capacity-type": "on-demand",
        "node.kubernetes.io/instance-type": "m6a.large",
        "topology.kubernetes.io/zone": "us-west-2a",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "kubernetes.io/hostname": name,
    }
    sizes = {"cpu": "1930m", "memory": "7000Mi", "pods": "29"}
    provider, reference = (
        f"aws:///us-west-2a/i-{name}",
        {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
    )
    drained = {
        "type": "Drained",
        "status": "Unknown",
        "reason": "Draining",
        "message": f"waits for pod {SECRET}/{SECRET}-1",
    }
    done = [
        {"type": one, "status": "True", "reason": one} for one in ("Launched", "Registered", "Initialized", "Ready")
    ]
    status = {"capacity": sizes, "allocatable": sizes}
    return [
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": _meta(f"claim-{name}", labels=labels, finalizers=["karpenter.sh/termination"]),
            "spec": {"nodeClassRef": reference, "requirements": []},
            "status": {**status, "providerID": provider, "nodeName": name, "conditions": [*done, drained]},
        },
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": _meta(name, labels=labels),
            "spec": {"providerID": provider},
            "status": {**status, "conditions": [{"type": "Ready", "status": "True"}]},
        },
    ]


def _of(space: str) -> list[dict[str, Any]]:
    """Objects of one namespace; each name has the name of the namespace in it."""
    budget = {"selector": {"matchLabels": {"app": f"{space}-web"}}, "minAvailable": f"73% of {space}"}
    template = {"metadata": {"labels": {"app": f"{space}-agent"}}, "spec": {"containers": [{"name": f"{space}-agent"}]}}
    volume = {"csi": {"driver": "ebs.csi.aws.com"}}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": _meta(space, labels={"owner": f"{space}-owner"})},
        pod(f"{space}-1", space, f"{space}-web", node="node-a"),
        pod(f"{space}-2", space, f"{space}-job", node="node-b", annotations={"karpenter.sh/do-not-disrupt": "true"}),
        pod(f"{space}-3", space, f"{space}-huge", cpu="900"),
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": _meta(f"{space}-budget", space),
            "spec": budget,
            "status": {"disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 2},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": _meta(f"{space}-agent", space),
            "spec": {"selector": {}, "template": template},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": _meta(f"claim-{space}-web", space),
            "spec": {"volumeName": f"pv-{space}"},
            "status": {"phase": "Bound"},
        },
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": _meta(f"pv-{space}"), "spec": volume},
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "VolumeAttachment",
            "metadata": _meta(f"csi-{space}"),
            "spec": {"nodeName": "node-a", "source": {"persistentVolumeName": f"pv-{space}"}},
        },
    ]


def objects() -> dict[str, tuple[Any, ...]]:
    """The objects by kind."""
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    requirements = [{"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["m6a"]}]
    rows: list[dict[str, Any]] = [
        {
            "apiVersion": "karpenter.k8s.aws/v1",
            "kind": "EC2NodeClass",
            "metadata": _meta("default"),
            "spec": {
                "role": "nodes",
                "amiSelectorTerms": [{"alias": "al2023@latest"}],
                "subnetSelectorTerms": [{"tags": {"a": "b"}}],
                "securityGroupSelectorTerms": [{"tags": {"a": "b"}}],
            },
        },
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": _meta("default", annotations={"kerf.sh/canary": _CANARY}),
            "spec": {"template": {"spec": {"nodeClassRef": reference, "requirements": requirements}}},
        },
        *(*_node("node-a"), *_node("node-b")),
        *(*_of("shop"), *_of(SECRET)),
    ]
    return {name: tuple(some) for name, some in cluster_files.of(("a test", row) for row in rows).objects.items()}


class Cluster:
    """An API server: its objects by kind, reviews, and an error in place of every answer."""

    def __init__(self) -> None:
        self.objects, self.down = objects(), False
        self.asked: list[dict[str, Any]] = []

    def list(self, kind: Kind) -> Listing:
        if self.down:
            raise Unavailable(f"cannot list {SECRET}")
        return Listing(self.objects.get(kind.name, ()), "")

    def request(self, method: str, path: str, body: Any) -> Any:
        """A TokenReview or a SubjectAccessReview."""
        self.asked.append(body)
        if self.down:
            raise Unavailable("no answer")
        assert method == "POST"
        spec = body["spec"]
        if path.endswith("/tokenreviews"):
            return {"status": _token_status(spec)}
        assert path == "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return {"status": {"allowed": _allowed(spec["user"], spec["resourceAttributes"])}}


def _token_status(spec: dict[str, Any]) -> dict[str, Any]:
    token, _, audience = spec["token"].partition(".for.")
    audience = audience or "kerf-ui"
    if token not in USERS or audience not in spec["audiences"]:
        return {"authenticated": False, "error": "token is not valid"}
    user, groups = USERS[token]
    return {"authenticated": True, "audiences": [audience], "user": {"username": user, "groups": [*groups]}}


def _allowed(user: str, attributes: dict[str, Any]) -> bool:
    assert attributes["verb"] == "list"
    if attributes["resource"] == "pods":
        return bool(PODS.get(user, set()) & {"", attributes["namespace"]})
    return user in PODS and attributes["resource"] in ("nodes", "nodepools", "nodeclaims", "ec2nodeclasses")


class Tried:
    """The page of a cluster that was read once, and a browser at its address."""

    def __init__(self, cluster: Cluster, proxies: Iterable[str] = (), read: bool = True, **times: Any) -> None:
        from pathlib import Path

        self.reported, self.failures, self.answered = list[str](), list[str](), list[int]()
        settings, clock = Settings("test"), VirtualClock(NOW)
        self.readings = Readings(cluster, settings, clock.now, Watch(self.reported.append, self.failures.append))
        self.reviews = Reviews(cluster.request, ("kerf-ui",), **times)
        if read:
            self.readings.read()
        proxy = (Path("ca.crt"), frozenset(proxies)) if proxies else None
        options = Options(("127.0.0.1", 8445), proxy=proxy, hosts=frozenset({HOST}))
        self.app = page(self.readings, self.reviews, options, settings, clock, self.answered.append)

    def get(
        self,
        path: str = "/",
        token: str = "",
        peer: Any = None,
        method: str = "GET",
        address: str = "127.0.0.1",
        **headers: str | Sequence[str],
    ) -> Any:
        """The answer to a request, perhaps with a token, or with a client certificate. Several values repeat a header;
        the environment has them joined, as WSGI has."""
        given: dict[str, str | Sequence[str]] = {"Host": HOST}
        given |= {"Authorization": f"Bearer {token}"} if token else {}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        rows = [(name, one) for name, some in given.items() for one in ([some] if isinstance(some, str) else some)]
        joined = {name: ",".join(one for other, one in rows if other == name) for name, _ in rows}
        raw = Outbox(peer, [(name.upper(), one) for name, one in rows])
        environment = {"gunicorn.socket": raw, "REMOTE_ADDR": address}
        return self.app.test_client().open(path, method=method, headers=joined, environ_overrides=environment)


class Outbox:
    """Of the worker's what the gate reads."""

    def __init__(self, peer: Any, headers: list[tuple[str, str]]) -> None:
        self.peer, self.headers = peer, headers
