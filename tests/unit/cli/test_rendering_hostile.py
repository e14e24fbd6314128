"""Kustomizations and charts of a stranger: nothing is fetched, nothing is read elsewhere, and everything ends."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from kerf.cli.gathering import rendering_tools
from kerf.cli.gathering.rendering_tools import Failed, Runner
from kerf.cli.verbs import validate
from tests.gitops.repositories import write

from .test_rendering import BASE, chart, kustomized, tools
from .test_rendering import repo as repo
from .test_since import POOL, WRONG

KUBECTL = shutil.which("kubectl") or shutil.which("kustomize") or ""
Capture = pytest.CaptureFixture[str]

FETCHING = {
    "a resource": "resources: [http://host.invalid/meta-data]\n",
    "a repository": "resources: [github.com/example/repository//base?ref=main]\n",
    "a repository by SSH": "resources: ['git@host.invalid:x/y.git']\n",
    "a base": "bases: ['https://host.invalid/x']\n",
    "a component": "components: ['ssh://git@host.invalid/x']\n",
    "a patch": "patches: [{path: 'http://host.invalid/x'}]\n",
    "a schema": "openapi: {path: 'http://host.invalid/x'}\n",
    "a configuration": "configurations: ['http://host.invalid/x']\n",
    "a file of a ConfigMap": "configMapGenerator: [{name: x, files: ['x=http://host.invalid/x']}]\n",
    "a replacement": "replacements: [{path: 'http://host.invalid/x'}]\n",
    "a generator": "generators: [generator.yaml]\n",
    "a transformer": "transformers: ['path: http://host.invalid/x']\n",
}


@pytest.mark.parametrize("kind", FETCHING)
def test_a_kustomization_that_fetches_is_not_built(repo: Path, capsys: Capture, kind: str) -> None:
    log = tools(repo, "kustomize")
    write(repo, {"base/kustomization.yaml": FETCHING[kind], "base/generator.yaml": "path: http://host.invalid/x\n"})
    write(repo, {"prod/kustomization.yaml": "resources: [../base]\n", "prod/.built": POOL})
    assert validate.main([".", "--render", "always"]) == 2
    out = capsys.readouterr().out
    assert "which kustomize fetches from the network; add --fetch to allow it, or copy it here" in out
    assert log.read_text() == ""
    validate.main([".", "--fetch"])
    assert "prod" in log.read_text()


def test_addresses_that_are_data_are_no_reason(repo: Path, capsys: Capture) -> None:
    log = tools(repo, "kustomize")
    kustomized(repo, {}, prod=POOL)
    more = "commonAnnotations: {link: 'https://example.com'}\npatches:\n- patch: |-\n    - op: add\n      value: http://x\n"
    write(repo, {"base/kustomization.yaml": BASE + more})
    assert validate.main(["."]) == 0
    assert "prod" in log.read_text()


def test_a_base_or_a_file_elsewhere_is_refused(repo: Path, capsys: Capture) -> None:
    tools(repo, "kustomize")
    write(repo.parent, {"away/kustomization.yaml": BASE, "away/pool.yaml": POOL})
    write(repo, {"a/kustomization.yaml": "resources: [../../away]\n"})
    (repo / "b").mkdir()
    (repo / "b/kustomization.yaml").symlink_to(repo.parent / "away/kustomization.yaml")
    (repo / "c").mkdir()
    os.mkfifo(repo / "c/kustomization.yaml")
    assert validate.main([".", "--render", "always"]) == 2
    out = capsys.readouterr().out
    assert f"leads out of {repo}; run the command in a folder that contains both" in out
    assert f"kustomization.yaml is a link out of {repo}" in out
    assert "c/kustomization.yaml:1:1: error: cannot be read: this is a named pipe (FIFO)" in out


@pytest.mark.parametrize("kind", ["link", "folder", "pipe", "reference", "schema", "relative"])
def test_a_chart_that_reads_elsewhere_is_not_rendered(repo: Path, capsys: Capture, kind: str) -> None:
    log = tools(repo, "helm")
    chart(repo, POOL)
    schemas = {
        "reference": '{"properties": {"a": {"$ref": "http://127.0.0.1/x"}}}',
        "schema": '{"$schema": "http://127.0.0.1/x"}',
        "relative": '{"$id": "http://127.0.0.1/x", "allOf": [{"$ref": "y"}]}',
    }
    if kind in schemas:
        write(repo, {"c/charts/d/values.schema.json": schemas[kind]})
    elif kind == "pipe":
        os.mkfifo(repo / "c/templates/x.yaml")
    else:
        (repo / "c/templates/x").symlink_to(repo.parent / "bin" / ("helm" if kind == "link" else ""))
    assert validate.main([".", "--render", "always"]) == 2
    words = {
        "link": "is a link out of the chart",
        "folder": "is a link out of the chart",
        "pipe": "a named pipe (FIFO)",
    }
    assert words.get(kind, "which Helm may fetch from the network; add --fetch to allow it") in capsys.readouterr().out
    assert log.read_text() == ""


def test_a_template_names_no_file_out_of_its_chart(repo: Path, capsys: Capture) -> None:
    tools(repo, "helm")
    chart(repo, POOL)
    write(repo, {"secret.yaml": POOL, "c/.built": f"# Source: c/../secret.yaml\n{POOL.replace('24h', '1d')}"})
    assert validate.main(["c"]) == 1
    assert "c/Chart.yaml:1:1: error" in capsys.readouterr().out


def test_a_tool_gets_no_secret_and_has_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    out = Runner(fetch=False).run(["/bin/sh", "-c", "env; ls -A ~"]).decode()
    assert "secret" not in out
    assert "HTTPS_PROXY=http://127.0.0.1:1" in out
    assert "GIT_ALLOW_PROTOCOL=\n" in out
    assert "secret" in Runner(fetch=True).run(["/bin/sh", "-c", "env"]).decode()
    monkeypatch.setattr(rendering_tools, "LARGEST", 1000)
    with pytest.raises(Failed, match="sh printed more than 1000 bytes"):
        Runner(fetch=False).run(["/bin/sh", "-c", "while :; do echo x; done"])
    monkeypatch.setattr(rendering_tools, "MEMORY", 1 << 27)
    with pytest.raises(Failed):
        Runner(fetch=False).run(["/bin/sh", "-c", "a=x; while :; do a=$a$a; done"])
    monkeypatch.setattr(rendering_tools, "SECONDS", -1)
    with pytest.raises(Failed, match="in all; give fewer folders"):
        Runner(fetch=False).run(["/bin/sh"])


class _Page(BaseHTTPRequestHandler):
    asked: list[str] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(WRONG.encode())

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    _Page.asked.clear()
    with HTTPServer(("127.0.0.1", 0), _Page) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()
        thread.join()


@pytest.mark.skipif(not KUBECTL, reason="kubectl and kustomize are not installed")
def test_the_real_tool_fetches_only_when_that_is_allowed(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, server: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"kustomization.yaml": f"resources: ['{server}/x.yaml']\n"})
    assert validate.main([".", "--render", "always"]) == 2
    assert _Page.asked == []
    assert validate.main([".", "--render", "always", "--fetch"]) == 1
    assert _Page.asked == ["/x.yaml"]
    assert "kustomization.yaml:1:1: error: NodePool general" in capsys.readouterr().out
    # Also what Kerf does not see is not fetched: a program without the network cannot reach even this machine.
    if rendering_tools._alone():
        write(tmp_path, {"kustomization.yaml": f"resources: ['{server}/y.yaml']\n"})
        command = [KUBECTL, "kustomize"] if KUBECTL.endswith("kubectl") else [KUBECTL, "build"]
        with pytest.raises(Failed):
            Runner(fetch=False).run([*command, str(tmp_path)])
        assert _Page.asked == ["/x.yaml"]
    write(tmp_path, {"kustomization.yaml": "resources: [pool.yaml]\n", "pool.yaml": WRONG})
    assert validate.main([".", "--render", "always"]) == 1
    assert "pool.yaml:10:" in capsys.readouterr().out
