"""The page in a cluster: a real API server reviews tokens and permissions, and gunicorn serves with TLS."""

from __future__ import annotations

import http.client
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kerf.sockets import listening
from tests.guides import files
from tests.sources import ROOT, python_path

from .api_server import with_definitions
from .certificates import CertificateAuthority, KeyPair
from .charts import Helm
from .control_plane import ControlPlane

pytestmark = pytest.mark.cluster

#: A part of the names in the namespace that sam may not see.
SECRET: Final = "zebra"
WAIT_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Page:
    """The served page: its port, the CA of its certificate, and client certificates."""

    port: int
    health_port: int
    ca: Path
    proxy: KeyPair
    other_name: KeyPair
    other_ca: KeyPair

    def get(
        self, path: str = "/", client: KeyPair | None = None, method: str = "GET", **headers: str
    ) -> tuple[int, str]:
        """Status and text of an answer over TLS."""
        context = ssl.create_default_context(cafile=str(self.ca))
        if client is not None:
            context.load_cert_chain(client.certificate, client.key)
        connection = http.client.HTTPSConnection("localhost", self.port, context=context, timeout=30)
        try:
            connection.request(method, path, headers={name.replace("_", "-"): text for name, text in headers.items()})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()


def _objects() -> str:
    container = {"name": "c", "image": "example.com/a:1", "resources": {"requests": {"cpu": "900"}}}
    rows: list[Any] = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": one}} for one in ("shop", SECRET)]
    for space in ("shop", SECRET):
        meta = {"name": f"{space}-web", "namespace": space}
        rows.append({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container]}})
    return yaml.safe_dump_all(rows)


def _free_port() -> int:
    with listening("127.0.0.1", 0) as socket:
        return int(socket.getsockname()[1])


@pytest.fixture(scope="module")
def cluster(own_control_plane: ControlPlane, helm: Helm) -> Iterator[ControlPlane]:
    """With two namespaces, the page's own account and role, and three people."""
    with with_definitions(own_control_plane):
        kubectl = own_control_plane.kubectl
        kubectl("create", "namespace", "kerf")
        kubectl("apply", "-f", "-", input=_objects())
        objects = helm.template(values={"ui": {"enabled": True}})
        own = [one for (kind, name), one in objects.items() if name == "kerf-ui" and kind != "Deployment"]
        kubectl("apply", "-f", "-", input=yaml.safe_dump_all(own))
        kubectl(
            "apply", "-f", "-", input=files((ROOT / "docs/permissions.md").read_text(encoding="utf-8"))["page.yaml"]
        )
        kubectl("create", "clusterrole", "pods", "--verb=list", "--resource=pods")
        for name in ("ann", "sam", "stu"):
            kubectl("create", "serviceaccount", name, "--namespace=kerf")
        for name in ("ann", "sam"):
            kubectl(
                "create",
                "clusterrolebinding",
                f"look-{name}",
                "--clusterrole=kerf-page",
                f"--serviceaccount=kerf:{name}",
            )
        kubectl("create", "clusterrolebinding", "look-pia", "--clusterrole=kerf-page", "--user=pia")
        kubectl("create", "clusterrolebinding", "pods-ann", "--clusterrole=pods", "--serviceaccount=kerf:ann")
        kubectl(
            "create", "rolebinding", "pods-sam", "--clusterrole=pods", "--serviceaccount=kerf:sam", "--namespace=shop"
        )
        yield own_control_plane


@pytest.fixture(scope="module")
def page(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folders = [tmp_path_factory.mktemp(name) for name in ("own", "proxies", "others")]
    own, proxies, others = (CertificateAuthority(folder) for folder in folders)
    pair, port, health_port = own.server("page"), _free_port(), _free_port()
    account = cluster.service_account_kubeconfig("kerf", "kerf-ui", folders[0] / "kubeconfig")
    arguments = {
        "--bind": f"127.0.0.1:{port}",
        "--health-bind": f"127.0.0.1:{health_port}",
        "--cert-file": str(pair.certificate),
        "--key-file": str(pair.key),
        "--proxy-ca-file": str(proxies.certificate),
        "--proxy-name": "front-proxy",
        "--refresh-seconds": "2",
        "--kubeconfig": str(account),
    }
    command = [sys.executable, "-m", "kerf.cli.main", "ui-server", *(word for row in arguments.items() for word in row)]
    environment = {**os.environ, "PYTHONPATH": python_path(), "CLUSTER_NAME": "test"}
    process = subprocess.Popen(command, cwd=ROOT, env=environment)
    found = Page(
        port,
        health_port,
        own.certificate,
        proxies.client("front-proxy"),
        proxies.client("other"),
        others.client("front-proxy"),
    )
    try:
        _wait(found, token(cluster, "ann"))
        yield found
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0


def _wait(page: Page, bearer: Mapping[str, Any]) -> None:
    until = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < until:
        try:
            if page.get(**bearer)[0] == 200:
                return
        except OSError:
            pass
        time.sleep(0.3)
    raise AssertionError("the page does not answer")


def token(cluster: ControlPlane, name: str, audience: str = "kerf-ui") -> dict[str, Any]:
    """The header of a ServiceAccount with a token for this audience."""
    done = cluster.kubectl("create", "token", name, "--namespace=kerf", f"--audience={audience}")
    return {"Authorization": f"Bearer {done.stdout.strip()}"}


def test_two_people_see_what_each_may_list(cluster: ControlPlane, page: Page) -> None:
    every, some = page.get("/pending", **token(cluster, "ann")), page.get("/pending", **token(cluster, "sam"))
    assert (every[0], some[0]) == (200, 200)
    assert f"{SECRET}/{SECRET}-web" in every[1]
    assert "shop/shop-web" in some[1]
    for path in ("/", "/pending", "/next", "/cost"):
        assert SECRET not in page.get(path, **token(cluster, "sam"))[1]
    assert page.get(f"/pods/{SECRET}/{SECRET}-web", **token(cluster, "ann"))[0] == 200
    assert page.get(f"/pods/{SECRET}/{SECRET}-web", **token(cluster, "sam"))[0] == 404


def test_refusals(cluster: ControlPlane, page: Page) -> None:
    ann = token(cluster, "ann")
    assert page.get("/")[0] == 401
    assert page.get("/", Authorization="Bearer nonsense")[0] == 401
    assert page.get("/", **token(cluster, "ann", "vault"))[0] == 401
    assert page.get("/", **token(cluster, "stu"))[0] == 403
    assert page.get("/", Host="evil.example", **ann)[0] == 403
    assert page.get("/", Origin="https://evil.example", **ann)[0] == 403
    assert [page.get("/", method=method, **ann)[0] for method in ("POST", "PUT", "DELETE", "OPTIONS")] == [405] * 4
    assert page.get("/", SCRIPT_NAME="/a", X_Forwarded_Proto="http", **ann)[0] == 200


def test_a_proxy_is_believed_over_mutual_tls_only(page: Page) -> None:
    assert page.get("/", client=page.proxy, X_Remote_User="pia")[0] == 200
    assert page.get("/", client=page.proxy, X_Remote_User="stu")[0] == 403
    assert page.get("/", client=page.proxy, X_Remote_User="stu", X_Remote_Group="system:masters")[0] == 401
    assert page.get("/", X_Remote_User="pia")[0] == 401
    assert page.get("/", client=page.other_name, X_Remote_User="pia")[0] == 401
    with pytest.raises((ssl.SSLError, ConnectionError)):
        page.get("/", client=page.other_ca, X_Remote_User="pia")


def test_probes_have_a_port_of_their_own_that_shows_nothing(page: Page) -> None:
    answers = {}
    for path in ("/healthz", "/readyz", "/", "/pending"):
        connection = http.client.HTTPConnection("127.0.0.1", page.health_port, timeout=10)
        connection.request("GET", path)
        answers[path] = connection.getresponse().status
        connection.close()
    assert answers == {"/healthz": 200, "/readyz": 200, "/": 404, "/pending": 404}


def test_the_account_of_the_page_reads_no_secret_and_writes_nothing(cluster: ControlPlane) -> None:
    account = "--as=system:serviceaccount:kerf:kerf-ui"

    def may(*words: str) -> str:
        return cluster.kubectl("auth", "can-i", *words, account, check=False).stdout.strip()

    assert may("list", "pods", "--all-namespaces") == "yes"
    for verb, kind in (
        ("get", "secrets"),
        ("list", "secrets"),
        ("patch", "nodes"),
        ("delete", "pods"),
        ("create", "pods"),
    ):
        assert may(verb, kind, "--all-namespaces") == "no", (verb, kind)


def test_while_the_api_server_is_down_nothing_is_shown(cluster: ControlPlane, page: Page) -> None:
    """A token that was not asked about before: there is no kept answer."""
    unseen = token(cluster, "ann")
    with cluster.down("kube-apiserver"):
        status, text = page.get("/", **unseen)
    assert (status, SECRET in text) == (503, False)
