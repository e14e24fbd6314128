"""The image's program, run as the charts run it: as another user, from files that it cannot write to."""

from __future__ import annotations

import json
import re
import signal
import ssl
import time
import urllib.request
from pathlib import Path

import pytest
import yaml

from image.recipe import ROOT
from tests.cluster.processes import free_ports
from tests.unit.webhook.certificates import self_signed

from .images import Container

pytestmark = pytest.mark.timeout(1200)

EXAMPLE = ROOT / "manifests" / "examples" / "general-purpose.yaml"
TEMPLATES = ROOT / "charts" / "kerf" / "templates"


def test_its_help_names_every_verb(container: Container, scratch: Path) -> None:
    code, said = container.run(*container.configuration.command, folder=scratch)
    assert code == 0, said
    for verb in ("run", "webhook", "validate", "why", "demo"):
        assert verb in said


@pytest.mark.parametrize(
    ("verb", "option"), [("run", "--cluster-name"), ("webhook", "--cert-file"), ("settings", "--changed")]
)
def test_verbs_of_the_cluster_start(container: Container, scratch: Path, verb: str, option: str) -> None:
    code, said = container.run(verb, "--help", folder=scratch)
    assert code == 0, said
    assert option in said


def test_a_manifest_is_checked_by_rules_that_are_inside(container: Container, scratch: Path) -> None:
    text = EXAMPLE.read_text()
    (scratch / "good.yaml").write_text(text)
    (scratch / "bad.yaml").write_text(text.replace("consolidateAfter:", "consolidateAfterwards:"))
    code, said = container.run("validate", "good.yaml", folder=scratch)
    assert code == 0, said
    code, said = container.run("validate", "bad.yaml", folder=scratch)
    assert code == 1, said
    assert "consolidateAfterwards" in said
    code, said = container.run("explain", "KERF-NP-201", folder=scratch)
    assert code == 0, said


def test_the_demo_lives_inside(container: Container, scratch: Path) -> None:
    """The whole controller, its worker process, the solver and the catalogue of types, without a cluster."""
    code, said = container.run("demo", "--json", folder=scratch)
    assert code == 0, said
    assert json.loads(said)


def test_the_controller_tells_its_commit(container: Container, scratch: Path) -> None:
    code, said = container.run("run", "--cluster-name", "sample", folder=scratch)
    assert code != 0
    assert json.loads(said.splitlines()[0])["commit"] == "0123456-dirty"


def test_the_webhook_serves_with_the_arguments_of_the_chart(container: Container, scratch: Path) -> None:
    certificate, key = scratch / "tls.crt", scratch / "tls.key"
    for path, pem in zip((certificate, key), self_signed("webhook"), strict=True):
        path.write_bytes(pem)
    (port,) = free_ports(1)
    arguments = _webhook_arguments(port, certificate, key)
    process = container.start(*arguments, folder=scratch)
    try:
        trusted = ssl.create_default_context(cafile=str(certificate))
        assert _answer(f"https://127.0.0.1:{port}/healthz", trusted) == 200
        assert _answer(f"https://127.0.0.1:{port}/readyz", trusted) == 200
    finally:
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=30)
    assert process.returncode == 0, said


def test_nothing_is_written_but_where_it_may_be(container: Container, scratch: Path) -> None:
    before = container.files()
    for arguments in (["--help"], ["validate", str(EXAMPLE)], ["run", "--cluster-name", "sample"]):
        container.run(*arguments, folder=scratch)
    assert container.files() == before
    assert list(scratch.iterdir()) == []


def test_its_user_is_that_of_the_charts(container: Container) -> None:
    template = (TEMPLATES / "_pods.tpl").read_text()
    user, group = (re.search(rf"runAs{kind}: (\d+)", template) for kind in ("User", "Group"))
    assert user is not None
    assert group is not None
    assert container.configuration.user == f"{user[1]}:{group[1]}"
    values = yaml.safe_load((ROOT / "charts" / "kerf" / "values.yaml").read_text())
    ports = {values["controller"]["metrics"]["port"], values["controller"]["healthProbe"]["port"]}
    ports |= {values["webhook"]["port"], values["webhook"]["healthPort"]}
    assert set(container.configuration.ports) == {str(port) for port in ports}


def _webhook_arguments(port: int, certificate: Path, key: Path) -> list[str]:
    """The `args` of the template, with what is this test's in place of what is the pod's."""
    template = (TEMPLATES / "webhook.yaml").read_text()
    found = re.search(r"args:\n((?: +- .*\n)+)", template)
    assert found is not None
    arguments = [line.strip().removeprefix("- ") for line in found[1].splitlines()]
    ours = {
        ":{{ .Values.webhook.port }}": f"127.0.0.1:{port}",
        ":{{ .Values.webhook.healthPort }}": "127.0.0.1:0",
        "{{ .Values.webhook.connectionsPerClient }}": "500",
        "/certs/tls.crt": str(certificate),
        "/certs/tls.key": str(key),
    }
    for theirs, own in ours.items():
        assert any(theirs in argument for argument in arguments)
        arguments = [argument.replace(theirs, own) for argument in arguments]
    return arguments


def _answer(url: str, trusted: ssl.SSLContext) -> int:
    ends = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(url, context=trusted, timeout=5) as answer:
                return int(answer.status)
        except OSError:
            if time.monotonic() > ends:
                raise
            time.sleep(0.1)
