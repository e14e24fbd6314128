"""The real adapter on a real API server, for what the sandbox has nothing of: rights, overload, pages, kinds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kerf.kube.client import KubeClient
from kerf.model import kinds
from kerf.model.kinds import Kind, Ref
from kerf.ports import Expired, Forbidden, Kube, Lease, Throttled, Unavailable
from tests.cluster.control_plane import ControlPlane

from .kube_clusters import RealCluster
from .kube_objects import claim, claim_ref

pytestmark = pytest.mark.cluster
NOT_SERVED = Kind("NodePool", "karpenter.sh/v1", "neverpools", kinds.NODE_POOL.type, True)
COLLECTION = kinds.NODE_CLAIM.path()
# Why these have no twin.
RIGHTS = "permissions and credentials (the sandbox lets everybody do everything; tests raise Forbidden)"
OVERLOAD = "API Priority and Fairness (the sandbox is never busy; tests raise Throttled)"
PAGES = "lists in pages (the sandbox answers in one piece)"
SERVED = "kinds that are not served (the sandbox serves all of its own)"


@pytest.fixture(scope="module")
def admin(real_cluster: RealCluster, served: ControlPlane) -> KubeClient:
    return KubeClient.from_kubeconfig(str(served.kubeconfig))


@pytest.fixture(scope="module")
def nobody(served: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> KubeClient:
    """A service account without any right."""
    served.kubectl("create", "serviceaccount", "nobody", "--namespace", "default")
    path = tmp_path_factory.mktemp("nobody") / "kubeconfig"
    return KubeClient.from_kubeconfig(str(served.service_account_kubeconfig("default", "nobody", path)))


# --- rights -----------------------------------------------------------------------------------------------------
@pytest.mark.only_real(RIGHTS)
@pytest.mark.parametrize(
    "request_of",
    [
        lambda kube: kube.list(kinds.POD),
        lambda kube: kube.watch(kinds.POD, "1"),
        lambda kube: kube.get(claim_ref("any")),
        lambda kube: kube.create(kinds.NODE_CLAIM, claim("any")),
        lambda kube: kube.patch(claim_ref("any"), {"metadata": {"labels": {"a": "b"}}}),
        lambda kube: kube.patch(claim_ref("any"), {"status": {}}, subresource="status"),
        lambda kube: kube.delete(claim_ref("any")),
        lambda kube: kube.evict(Ref("Pod", "default", "any")),
        lambda kube: kube.emit(claim_ref("any"), "", "Normal", "Tested", "a test was here"),
        lambda kube: kube.get_lease("default", "any"),
        lambda kube: kube.put_lease("default", "any", Lease("one")),
    ],
    ids=["list", "watch", "get", "create", "patch", "status", "delete", "evict", "emit", "get_lease", "put_lease"],
)
def test_what_one_may_not_do_is_forbidden_and_never_nothing(
    nobody: KubeClient, request_of: Callable[[Kube], object]
) -> None:
    with pytest.raises(Forbidden):
        request_of(nobody)


@pytest.mark.only_real(RIGHTS)
def test_credentials_that_nobody_knows_are_forbidden(served: ControlPlane, tmp_path: Path) -> None:
    path = served.service_account_kubeconfig("default", "default", tmp_path / "kubeconfig")
    told = json.loads(path.read_text())
    told["users"][0]["user"]["token"] = "not.a.token"
    path.write_text(json.dumps(told))
    with pytest.raises(Forbidden):
        KubeClient.from_kubeconfig(str(path)).list(kinds.POD)


# --- overload ---------------------------------------------------------------------------------------------------
@pytest.fixture
def jail(served: ControlPlane) -> Iterator[None]:
    """A priority level without a seat, for the account `nobody` alone."""
    no_seat = {"nominalConcurrencyShares": 0, "borrowingLimitPercent": 0, "limitResponse": {"type": "Reject"}}
    level = {"type": "Limited", "limited": no_seat}
    account = {"kind": "ServiceAccount", "serviceAccount": {"name": "nobody", "namespace": "default"}}
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
    flow = {
        "priorityLevelConfiguration": {"name": "jail"},
        "matchingPrecedence": 2,
        "rules": [{"subjects": [account], "resourceRules": [everything]}],
    }
    for kind, spec in (("PriorityLevelConfiguration", level), ("FlowSchema", flow)):
        one = {"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": kind, "metadata": {"name": "jail"}}
        served.kubectl("apply", "-f", "-", input=json.dumps({**one, "spec": spec}))
    yield
    served.kubectl("delete", "flowschema/jail", "prioritylevelconfiguration/jail")


@pytest.mark.only_real(OVERLOAD)
def test_too_many_requests_are_throttled_and_say_for_how_long(
    real_cluster: RealCluster, nobody: KubeClient, jail: None
) -> None:
    asked: list[float] = []

    def throttled(_: int) -> bool:
        try:
            nobody.list(kinds.POD)
        except Throttled as error:
            asked.append(error.retry_after_seconds)
        except Forbidden:  # it was let in: one request at a time is, and all are until the level is in force
            return False
        return True

    with ThreadPoolExecutor(16) as together:
        real_cluster.eventually(lambda: any(together.map(throttled, range(64))))
    assert asked[0] >= 1.0


# --- pages ------------------------------------------------------------------------------------------------------
def page(admin: KubeClient, group: str, token: str = "") -> tuple[list[str], str]:
    """The names on a page of one, and the token of the next."""
    more = f"&continue={token}" if token else ""
    answer: dict[str, Any] = admin.request("GET", f"{COLLECTION}?limit=1&labelSelector=set={group}{more}")
    return [one["metadata"]["name"] for one in answer["items"]], answer["metadata"].get("continue", "")


def three(admin: KubeClient, group: str) -> list[str]:
    names = [f"{group}-{number}" for number in range(3)]
    for one in names:
        admin.create(kinds.NODE_CLAIM, claim(one, labels={"set": group}))
    return names


@pytest.mark.only_real(PAGES)
def test_what_changes_between_two_pages_is_not_in_the_list(admin: KubeClient, name: str) -> None:
    names = three(admin, name)
    first, token = page(admin, name)
    admin.delete(claim_ref(names[2]))
    admin.create(kinds.NODE_CLAIM, claim(f"{name}-1a", labels={"set": name}))
    rest: list[str] = []
    while token:
        found, token = page(admin, name, token)
        rest += found
    assert first + rest == names


@pytest.mark.only_real(PAGES)
def test_next_page_of_a_version_that_is_forgotten_has_expired(
    admin: KubeClient, served: ControlPlane, real_cluster: RealCluster, name: str
) -> None:
    three(admin, name)
    _, token = page(admin, name)
    admin.patch(claim_ref(f"{name}-0"), {"metadata": {"labels": {"a": "1"}}})
    served.forget_history()
    served.restart_apiserver()  # until then its own memory answers

    def expired() -> bool:
        try:
            page(admin, name, token)
        except Throttled:  # it is still reading
            return False
        except Expired:
            return True
        return False

    real_cluster.eventually(expired)
    assert len(admin.list(kinds.NODE_CLAIM, label_selector=f"set={name}").items) == 3


# --- kinds ------------------------------------------------------------------------------------------------------
@pytest.mark.only_real(SERVED)
def test_kind_that_is_not_served_is_unavailable_and_never_empty(admin: KubeClient) -> None:
    with pytest.raises(Unavailable):
        admin.list(NOT_SERVED)
    with pytest.raises(Unavailable):
        admin.watch(NOT_SERVED, "1")
