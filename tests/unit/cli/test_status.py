"""`kerf status` of a controller over HTTP: hostile texts, many troubles, other programs, other versions; exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from kerf.cli.app import app
from kerf.cli.operating import status_page

AT = "2026-01-01T12:00:00Z"
WORKING = {
    "at": AT,
    "pace": {
        "looked_seconds_ago": 1.0,
        "next_look_in_seconds": 1.0,
        "news_waiting": 0,
        "median_turn_seconds": 0.01,
        "longest_turn_seconds": 0.1,
    },
    "counts": {"node_claims": 1, "nodes": 1, "instances": 1, "pending_pods": 0, "under_way": 0},
    "under_way": [],
    "sources": [],
    "refused": {},
    "back_offs": [],
    "out_of_stock": [],
}
REPLICA = {
    "identity": "kerf-1",
    "version": "1",
    "commit": "",
    "log_level": "info",
    "leading": True,
    "lease": "",
    "leader": "",
}


def trouble(number: int = 0, text: str = "EvictPod fails: no", kind: str = "pod/d") -> dict[str, Any]:
    fields = {"code": "ActionFails", "object": f"{kind}/{number}", "text": text, "fix": "correct it"}
    return {**fields, "since": "2026-01-01T11:59:00Z", "times": 2}


@contextmanager
def answering(code: int, body: str) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(code)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def status(body: Any, code: int = 200, *arguments: str) -> Result:
    with answering(code, body if isinstance(body, str) else json.dumps(body)) as url:
        return CliRunner().invoke(app, ["status", "--url", url, *arguments])


def found(*problems: Any) -> dict[str, Any]:
    return {"problems": problems, "replica": REPLICA, "working": WORKING}


@pytest.mark.parametrize(("known", "least"), [({"at_least": True}, "at least "), ({"at_least": False}, ""), ({}, "")])
def test_a_problem_that_may_be_older_says_so(known: dict[str, bool], least: str) -> None:
    """A controller of an earlier version does not say."""
    result = status(found({**trouble(), **known}))
    assert f"[since {least}2026-01-01T11:59:00Z (1m0s), 2 attempts]" in result.stdout


def test_a_message_moves_no_cursor_and_makes_no_line() -> None:
    result = status(found(trouble(text="AWS says \x1b[2J\x07no\n! pod/d/9: forged\r\nall is well")))
    assert result.exit_code == 1
    first, fix, *_ = result.stdout.splitlines()
    assert first == (
        r"! pod/d/0: AWS says \x1b[2J\x07no ! pod/d/9: forged all is well "
        "[since 2026-01-01T11:59:00Z (1m0s), 2 attempts]"
    )
    assert fix == "    fix: correct it"
    assert "\x1b" not in result.stdout


def test_json_keeps_the_message() -> None:
    text = "a\x1b[2J\nb" + "c" * 5000
    result = status(found(trouble(text=text)), 200, "-o", "json")
    assert json.loads(result.stdout)["problems"][0]["text"] == text


def test_a_very_long_message_is_cut() -> None:
    lines = status(found(trouble(text="x" * 5000))).stdout.splitlines()
    assert len(lines[0]) < 900
    assert "… (kerf status -o json has the whole text)" in lines[0]


def test_a_thousand_troubles_hide_no_other_one() -> None:
    many = [trouble(number, kind="nodeclaim") for number in range(1000)]
    lines = status(found(*many, trouble(kind="ec2nodeclass"))).stdout.splitlines()
    assert len(lines) < 40
    assert any(line.startswith("! ec2nodeclass/0: ") for line in lines)
    assert "! 990 more of nodeclaim: ActionFails; kerf status -o json has all of them" in lines


def test_ten_alike_are_all_printed() -> None:
    lines = list(status_page.troubles([trouble(number) for number in range(10)], AT))
    assert len(lines) == 20


@pytest.mark.parametrize(
    "body",
    [
        "<!doctype html><p>hello</p>",
        "[]",
        "{}",
        json.dumps(found("a text, as of an earlier version")),
        json.dumps({**found(), "working": {**WORKING, "pace": {}}}),
    ],
)
def test_an_answer_of_another_form_is_named_as_that(body: str) -> None:
    result = status(body)
    assert result.exit_code == 2
    assert "another version of Kerf, or another program, listens there" in result.stderr
    assert "kubectl exec -n NAMESPACE deploy/NAME -- kerf status" in result.stderr


def test_the_page_of_another_program_is_not_printed() -> None:
    result = status("<!DOCTYPE HTML><html>not found</html>", 404)
    assert result.exit_code == 2
    assert "HTTP Error 404: Not Found: no controller of Kerf listens there" in result.stderr
    assert "html" not in result.stderr


@pytest.mark.parametrize("named", [("--kubeconfig", "/nowhere"), ("--context", "other")])
def test_who_names_a_cluster_hears_of_no_other_one(named: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    with answering(200, json.dumps(found())) as url:
        monkeypatch.setenv("DEBUG_PORT", url.rpartition(":")[2])
        assert "all is well" in CliRunner().invoke(app, ["status"]).stdout
        assert "all is well" in CliRunner().invoke(app, ["status", "--url", url, *named]).stdout
        result = CliRunner().invoke(app, ["status", *named])
    assert result.exit_code == 2
    assert "names the cluster, so no debug port was asked" in result.stderr
    assert result.stdout == ""


# --- nodes that start -----------------------------------------------------------------------------------------------
def starting(seconds: float, nodes: int = 1, longest: float | None = 70.0) -> dict[str, Any]:
    usual = None if longest is None else 45.0
    return {
        "nodes": nodes,
        "oldest": "general-1",
        "seconds": seconds,
        "usual_seconds": usual,
        "longest_seconds": longest,
    }


@pytest.mark.parametrize(
    ("row", "first", "line"),
    [
        (starting(40), "all is well", "1 node, NodeClaim general-1 since 40s; usual 45s, at most 1m10s"),
        (starting(140), "all is well", "1 node, NodeClaim general-1 since 2m20s; usual 45s, at most 1m10s"),
        (
            starting(240, 2),
            "no problem yet, but a node has been starting for longer than any earlier one took",
            "2 nodes, the oldest of NodeClaim general-1 since 4m0s; usual 45s, at most 1m10s",
        ),
        (
            starting(121, longest=None),
            "no problem yet, but a node has been starting for longer than 2 minutes",
            "1 node, NodeClaim general-1 since 2m1s; no earlier start is known",
        ),
        (starting(5, longest=None), "all is well", "1 node, NodeClaim general-1 since 5s; no earlier start is known"),
    ],
)
def test_all_is_well_only_while_nodes_start_as_fast_as_earlier_ones(row: Any, first: str, line: str) -> None:
    seen = json.loads(json.dumps(found()))
    seen["working"]["counts"]["starting"] = row
    result = status(seen)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == first
    assert f"starting  {line}" in result.stdout.splitlines()


# --- spot -------------------------------------------------------------------------------------------------------
def test_reclaimed_spot_instances_are_information_and_no_problem() -> None:
    """An earlier version reports none."""
    seen = json.loads(json.dumps(found()))
    assert "spot  " not in status(seen).stdout
    seen["working"]["counts"]["reclaimed"] = {"general": 20, "web": 1}
    result = status(seen)
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "all is well")
    line = "spot      21 instances reclaimed by EC2 in the last hour: NodePool general 20, NodePool web 1"
    assert line in result.stdout.splitlines()
