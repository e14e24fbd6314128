"""What `kerf preflight` finds in a cluster: versions, kinds, rights, and NodePools that could not launch anything."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from kerf.model import kinds
from kerf.model.kinds import Kind
from kerf.model.settings import FeatureGates, Settings
from kerf.ports import AlreadyGone, Forbidden, Listing, Unavailable
from kerf.runtime.preflight.cluster import look
from kerf.runtime.preflight.findings import DOUBTFUL, GOOD, WRONG, Finding
from kerf.runtime.process.connecting import version_of
from kerf_api.v1.meta import decode
from kerf_api.v1.nodepool import NodePool

SETTINGS = Settings("demo")


@dataclass
class Server:
    """An API server as far as a preflight asks it."""

    version: dict[str, str] = field(default_factory=lambda: {"major": "1", "minor": "36+"})
    missing: str = ""
    unreadable: str = ""
    denied: tuple[str, ...] = ()
    pools: tuple[NodePool, ...] = ()
    asked: list[str] = field(default_factory=list)

    def request(self, method: str, path: str, body: Any = None) -> Any:
        if path == "/version":
            return self.version
        if method == "POST":
            given = body["spec"]["resourceAttributes"]
            sub = f"/{given['subresource']}" if given["subresource"] else ""
            text = f"{given['verb']} {given['resource']}{sub}"
            self.asked.append(text)
            return {"status": {"allowed": text not in self.denied}}
        if path.startswith("/openapi/"):
            return {"components": {"schemas": {}}}
        if self.missing and self.missing in path:
            raise AlreadyGone(path)
        if self.unreadable and self.unreadable in path:
            raise Forbidden(path)
        assert path.endswith("?limit=1")
        return {"items": []}

    def list(self, kind: Kind) -> Listing:
        return Listing(self.pools if kind is kinds.NODE_POOL else (), "1")


def amiss(server: Server, settings: Settings = SETTINGS) -> list[Finding]:
    return [one for one in look(server, settings) if one.how != GOOD]


def pool(class_name: str = "default", group: str = "karpenter.k8s.aws") -> NodePool:
    ref = {"group": group, "kind": "EC2NodeClass", "name": class_name}
    return decode(NodePool, {"metadata": {"name": "general"}, "spec": {"template": {"spec": {"nodeClassRef": ref}}}})


def test_a_cluster_without_node_pools_is_only_doubtful() -> None:
    (found,) = amiss(Server())
    assert (found.what, found.how) == ("NodePools", DOUBTFUL)


def test_an_old_api_server() -> None:
    (found, *_) = amiss(Server(version={"major": "1", "minor": "25"}))
    assert (found.how, found.seen) == (WRONG, "Kubernetes 1.25")


@pytest.mark.parametrize(
    "answer",
    [{}, {"major": "", "minor": ""}, {"major": "1"}, {"major": "1", "minor": "+"}, {"major": 1, "minor": 36}, []],
)
def test_an_answer_without_a_version_ends_it(answer: Any) -> None:
    (found,) = amiss(Server(version=answer))
    assert (found.how, "names no major and minor version" in found.seen) == (WRONG, True)


@pytest.mark.parametrize("minor", ["36", "36+", "36-eks-1"])
def test_a_minor_version_may_have_a_suffix(minor: str) -> None:
    assert version_of({"major": "1", "minor": minor}) == "1.36"


def test_one_that_does_not_answer_ends_it() -> None:
    class Silent(Server):
        def request(self, method: str, path: str, body: Any = None) -> Any:
            raise Unavailable("no answer")

    (found,) = amiss(Silent())
    assert (found.what, found.how) == ("API server", WRONG)


def test_a_kind_that_is_not_installed_says_which_chart_brings_it() -> None:
    (found,) = amiss(Server(missing="/ec2nodeclasses"))
    assert "no karpenter.k8s.aws/v1 EC2NodeClass" in found.seen
    assert found.fix == "helm install kerf-crd charts/kerf-crd"


def test_a_right_that_is_missing_is_named() -> None:
    found = amiss(Server(denied=("create pods/eviction", "watch nodes")))
    assert [one.what for one in found if one.how == WRONG] == ["watch nodes", "create pods/eviction"]
    assert all("ClusterRole" in one.fix for one in found if one.how == WRONG)


def test_what_may_not_be_listed_is_named() -> None:
    (found,) = amiss(Server(unreadable="/pods"))
    assert found.seen == "no permission to list pods"


def test_only_what_the_settings_need_is_asked_for() -> None:
    usual, all_ = Server(), Server()
    gates = FeatureGates(node_overlay=True, capacity_buffer=True)
    amiss(usual)
    amiss(all_, Settings("demo", gates=gates, nominate_pods=True))
    more = {"patch nodeoverlays/status", "patch capacitybuffers/status", "patch pods/status"}
    assert more <= {*all_.asked}
    assert not more & {*usual.asked}


def test_a_node_pool_without_its_class() -> None:
    (found,) = amiss(Server(pools=(pool("gone"), pool("any", group="example.com"))))
    assert (found.what, found.how, found.seen) == ("NodePool general", WRONG, "there is no EC2NodeClass gone")
