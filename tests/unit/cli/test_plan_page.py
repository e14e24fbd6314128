"""The page of `kerf plan`: nothing on it is markup of the cluster's, its progress, and what approves a change."""

from __future__ import annotations

import html
import io
import json
from dataclasses import replace
from datetime import timedelta

import pytest

from kerf.cli.answering import answers, plan_page, plan_progress
from kerf.planning.approvals import Approval
from kerf.planning.changes import Change
from kerf.planning.forecast import forecast
from kerf.planning.lives import Progress
from tests.unit.snapshots.worlds import busy


@pytest.mark.parametrize(
    "text", ["<script>", "a|b", "`x`", "@team", "[a](http://b)", "*bold*", "# head", "a\nb", "<!--", "#1"]
)
def test_nothing_from_the_cluster_is_markup(text: str) -> None:
    escaped = plan_page.escaped(text)
    assert not {"<", ">", "\n", "@"} & {*escaped}
    assert all(escaped[i - 1] == "\\" for i, mark in enumerate(escaped) if mark in "|`[]*")
    seen = html.unescape(escaped)
    assert "@team" not in seen, "mentions are looked for in the text that a reader sees"
    assert "#1" not in seen


@pytest.mark.parametrize("text", ["see https://example.com/x", "www.example.com", "&lt;b&gt;"])
def test_nothing_from_the_cluster_is_a_link_or_an_entity(text: str) -> None:
    escaped = plan_page.escaped(text)
    assert "://" not in escaped
    assert "www." not in escaped
    assert html.unescape(escaped.replace("\\", "")) == text


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_one_line_that_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal = _Terminal()
    with plan_progress.shown(terminal) as show:
        show(Progress(timedelta(seconds=90), 5, 3))
        show(Progress(timedelta(seconds=91), 5, 3))
    lines = terminal.getvalue().split("\r")
    assert lines[1] == "\x1b[Kkerf plan: simulated 1m30s; disruption started: 5, nodes deleted: 3"
    assert lines[2:] == ["\x1b[K"]


def test_without_a_terminal_there_is_no_progress() -> None:
    stream = io.StringIO()
    with plan_progress.shown(stream) as show:
        show(Progress(timedelta(seconds=90), 5, 3))
    assert stream.getvalue() == ""


def test_the_page_names_the_annotation_that_approves_the_change() -> None:
    found = forecast(busy(), Change())
    digest = "0123456789abcdef0123"
    rows = (Approval("a", digest), Approval("b", digest, approved=True), Approval("c", unknown="no images"))
    text = plan_page.page(replace(found, approvals=rows))
    assert f"approve with        kerf.sh/approved-plan: {digest} (annotation of NodePool a)\n" in text
    assert f"approved            NodePool b: plan {digest}\n" in text
    assert "approval            NodePool c: the digest is not known: no images\n" in text
    shown = plan_page.markdown(replace(found, approvals=rows[:1]))
    assert f"| approve with | kerf.sh/approved-plan: {digest} \\(annotation of NodePool a\\) |" in shown
    listed = json.loads(answers.as_json(replace(found, approvals=rows[:1]), busy().snapshot.now))["approvals"]
    assert listed == [{"nodepool": "a", "digest": digest, "approved": False, "unknown": ""}]
