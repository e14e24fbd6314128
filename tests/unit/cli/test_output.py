"""Standard output has nothing but what the format says, whatever a library prints to its descriptor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from xml.etree import ElementTree

import pytest
import yaml

from kerf.cli.app import verbs
from tests.sources import ROOT, python_path

BANNER = "a banner of a library"
#: A library that prints whenever one of these is imported, as C libraries do.
PLANTED = f"""\
import os, sys
def printing(event, arguments):
    if event == "import" and arguments[0] in ("yaml", "msgspec", "numpy", "typer", "highspy", "jsonschema"):
        os.write(1, b"{BANNER}\\n")
sys.addaudithook(printing)
"""
EXAMPLE = "manifests/examples/general-purpose.yaml"
SCENARIO = "manifests/simulate/gpu-scarcity.yaml"
SNAPSHOT = "tests/unit/snapshots/versions/1.snapshot"
RECORD = "tests/unit/records/versions/1.record"
OLD = "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: a}\nspec: {}\n"


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("planted")
    (folder / "sitecustomize.py").write_text(PLANTED)
    (folder / "old.yaml").write_text(OLD)
    return folder


def kerf(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command with the library; no cluster, no account, and no controller are there."""
    return subprocess.run(
        [sys.executable, "-m", "kerf.cli.main", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{folder}{os.pathsep}{python_path()}", "HOME": str(folder)}
        | {"AWS_REGION": "eu-west-1", "AWS_EC2_METADATA_DISABLED": "true"},
    )


def text(_: str) -> None:
    """Anything."""


Parsed = Callable[[str], object]
#: By verb: its words, and how each of its formats is read.
CALLS: dict[str, list[tuple[list[str], Parsed]]] = {
    "plan": [
        (["--snapshot", SNAPSHOT, "--horizon", "1m", "-o", "json"], json.loads),
        (["--snapshot", SNAPSHOT, "--horizon", "1m", "-o", "markdown"], text),
    ],
    "validate": [
        *((["--format", form, EXAMPLE], json.loads) for form in ("json", "sarif", "gitlab")),
        (["--format", "junit", EXAMPLE], ElementTree.fromstring),
        *((["--format", form, EXAMPLE], text) for form in ("text", "github")),
        (["--write", "json=/dev/stdout", EXAMPLE], lambda printed: json.loads(printed.rpartition("}")[0] + "}")),
    ],
    "replay": [([RECORD], text), ([RECORD, "--list"], text)],
    "simulate": [([SCENARIO, "-o", "json"], json.loads), ([SCENARIO], text), (["--schema"], json.loads)],
    "explain": [(["KERF-NP-301"], text)],
    "default": [([EXAMPLE], lambda printed: list(yaml.safe_load_all(printed)))],
    "convert": [(["OLD"], lambda printed: list(yaml.safe_load_all(printed)))],
    "schema": [(["NodePool"], json.loads)],
    "settings": [(["-o", "json", "--cluster-name", "a"], json.loads), (["--cluster-name", "a"], text)],
    "why": [
        *(
            (["pod", "a/b", "-f", EXAMPLE, "-o", form], parsed)
            for form, parsed in (("json", json.loads), ("text", text))
        ),
        *(([kind, "a", "-f", EXAMPLE, "-o", "json"], json.loads) for kind in ("nodepool", "nodeclaim", "node")),
    ],
    "catalogue": [(["--names"], text)],
    "migrate": [(["check", "-f", EXAMPLE, "-o", "json"], json.loads), (["check", "-f", EXAMPLE], text)],
    "demo": [(["--json"], json.loads)],
}
#: Machine formats of verbs that ask a cluster: their words, and the exit code with an empty one.
WITH_CLUSTER = {
    "events": (["-o", "json"], 0),
    "status": (["-o", "json", "--url", "http://127.0.0.1:9"], 1),
    "preflight": (["-o", "json", "--cluster-name", "a"], 1),
}
#: Verbs that need a cluster, a controller, or time of their own: nothing of a format is printed without it.
NEEDY = {
    "status": ["-o", "json"],
    "debug": ["threads"],
    "top": ["--snapshot", "/nowhere/file"],
    "ui": ["--snapshot", "/nowhere/file"],
    "ui-server": ["--bind", "0.0.0.0:8445"],
    "events": ["-o", "json"],
    "release": [],
    "webhook": ["--bind"],
    "run": ["--bogus"],
}
#: Their output is no text, and has tests of its own.
ELSEWHERE = {"snapshot", "bundle"}


def test_every_verb_is_tried() -> None:
    assert {*CALLS, *NEEDY, *WITH_CLUSTER, *ELSEWHERE} == {*verbs()}


class _Empty(BaseHTTPRequestHandler):
    """An API server with no objects, which allows everything."""

    def do_GET(self) -> None:
        version = {"major": "1", "minor": "33", "gitVersion": "v1.33.0"}
        self._answer(version if self.path.startswith("/version") else {"metadata": {}, "items": []})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer({"status": {"allowed": True}})

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def _answer(self, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture(scope="module")
def kubeconfig(planted: Path) -> Iterator[Path]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Empty) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        cluster = {"server": f"http://127.0.0.1:{server.server_address[1]}"}
        file = planted / "kubeconfig.yaml"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "a", "cluster": cluster}],
            "users": [{"name": "a", "user": {}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "current-context": "a",
        }
        file.write_text(yaml.safe_dump(config))
        yield file
        server.shutdown()


@pytest.mark.parametrize("verb", WITH_CLUSTER)
def test_json_about_a_cluster_has_nothing_but_itself(planted: Path, kubeconfig: Path, verb: str) -> None:
    words, code = WITH_CLUSTER[verb]
    done = kerf(planted, verb, *words, "--kubeconfig", str(kubeconfig))
    assert done.returncode == code, done.stderr
    assert BANNER in done.stderr
    assert isinstance(json.loads(done.stdout), dict)


@pytest.mark.parametrize(
    ("verb", "words", "parsed"),
    [
        pytest.param(verb, *call, marks=[pytest.mark.long] if verb == "demo" else [])
        for verb, calls in CALLS.items()
        for call in calls
    ],
)
def test_a_format_has_nothing_but_itself(planted: Path, verb: str, words: list[str], parsed: Parsed) -> None:
    done = kerf(planted, verb, *(str(planted / "old.yaml") if word == "OLD" else word for word in words))
    assert BANNER in done.stderr, done.stderr
    assert BANNER not in done.stdout
    assert done.stdout
    parsed(done.stdout)


@pytest.mark.parametrize("verb", NEEDY)
def test_a_verb_that_fails_prints_nothing_to_standard_output(planted: Path, verb: str) -> None:
    done = kerf(planted, verb, *NEEDY[verb])
    assert done.returncode in (1, 2)
    assert done.stdout == ""
    assert done.stderr


@pytest.mark.parametrize("verb", verbs())
def test_the_help_and_the_version_are_alike_in_all_verbs(planted: Path, verb: str) -> None:
    short = kerf(planted, verb, "-h")
    assert (short.returncode, BANNER in short.stdout) == (0, False)
    version = kerf(planted, verb, "--version")
    assert (version.returncode, version.stdout[:5]) == (0, "kerf ")


@pytest.mark.parametrize("verb", ["why", "debug", "migrate"])
def test_a_verb_that_needs_a_word_ends_with_2_and_its_help(planted: Path, verb: str) -> None:
    done = kerf(planted, verb)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"kerf {verb} " in done.stderr


@pytest.mark.parametrize("locale", [{"PYTHONIOENCODING": "ascii"}, {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}])
def test_a_pipe_gets_utf_8_whatever_the_locale(tmp_path: Path, locale: dict[str, str]) -> None:
    (tmp_path / "a.yaml").write_text("# Größe 中\n" + OLD, encoding="utf-8")
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": python_path(), "LC_ALL": "C", **locale}
    command = [sys.executable, "-m", "kerf.cli.main", "convert", str(tmp_path / "a.yaml")]
    done = subprocess.run(command, capture_output=True, check=False, cwd=ROOT, env=env)
    assert "# Größe 中\n" in done.stdout.decode("utf-8")
    assert b"Traceback" not in done.stderr


def test_lines_of_libraries_go_where_the_process_wants_them() -> None:
    program = (
        "import os, sys, time; from kerf.cli import output; output.keep()\n"
        "print('own', flush=True); os.write(1, b'early\\n')\n"
        "output.forward(lambda line: (print(f'<{line}>'), sys.stdout.flush(), os._exit(0)) if line == 'b' else None)\n"
        "os.write(1, b'a\\n\\nb\\n'); time.sleep(30)"
    )
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": python_path()}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=env)
    assert (done.stdout, done.stderr) == ("own\n<b>\n", "early\n")
