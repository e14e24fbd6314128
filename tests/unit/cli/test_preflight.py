"""What `kerf preflight` prints: its lines, its summary, JSON, and the advice for an API server that does not answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kerf.cli.verbs import preflight
from kerf.runtime.preflight.checks import AFTER, BEFORE, CHECKS
from kerf.runtime.preflight.findings import DOUBTFUL, GOOD, WRONG, Finding, unchecked
from kerf.runtime.preflight.slips import SLIPS
from kerf.runtime.settings.settings import SettingsError
from tests.sources import ROOT

FOUND = [
    (CHECKS["region"], Finding("region", GOOD, "us-west-2", "no fix is needed")),
    (CHECKS["dns"], Finding("cluster DNS", WRONG, "none", "run it")),
    (CHECKS["image"], unchecked("image", "needs list pods")),
    (CHECKS["webhook"], Finding("webhook", DOUBTFUL, "slow", "wait")),
]


def test_the_page_has_a_heading_for_each_phase_and_counts_the_results(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(preflight._printed(iter(FOUND))) == FOUND
    assert capsys.readouterr().out.splitlines() == [
        "Before installation:",
        "  ok    region: us-west-2",
        "  WRONG cluster DNS: none",
        "          run it",
        "After installation:",
        "  -     image: not checked: needs list pods",
        "  ?     webhook: slow",
        "          wait",
    ]
    assert preflight._summary(FOUND) == "1 right, 1 wrong, 1 not checked, 1 doubtful"


def test_a_message_moves_no_cursor_and_makes_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = Finding("image", WRONG, "not pulled: \x1b[2Jno\n  ok    webhook", "pull\r\nit")
    assert len(list(preflight._printed([(CHECKS["image"], hostile)]))) == 1
    assert capsys.readouterr().out.splitlines()[1:] == [
        r"  WRONG image: not pulled: \x1b[2Jno ok webhook",
        "          pull it",
    ]


def test_the_json_has_the_same() -> None:
    found = json.loads(preflight._as_json(FOUND))
    assert (found["right"], found["wrong"], found["not_checked"], found["doubtful"]) == (1, 1, 1, 1)
    assert found["findings"][0] == {
        "check": "region",
        "phase": BEFORE,
        "needs": "list nodes",
        "what": "region",
        "result": "ok",
        "seen": "us-west-2",
        "fix": "",
    }
    assert [row["phase"] for row in found["findings"]] == [BEFORE, BEFORE, AFTER, AFTER]


# --- an API server that does not answer ---------------------------------------------------------------------------
_REFUSED = "GET /version: Connection refused"
_CA = "GET /version: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed"


@pytest.mark.parametrize(
    ("kubeconfig", "context", "environment", "error", "words"),
    [
        ("", "", "", _REFUSED, "name the cluster: --kubeconfig, --context"),
        ("k.yaml", "", "", _REFUSED, "see that the address in kubeconfig k.yaml is the cluster's"),
        ("", "c", "e.yaml", _REFUSED, "see that the address in kubeconfig e.yaml and context c is the cluster's"),
        ("k.yaml", "", "", _CA, "correct certificate-authority-data in kubeconfig k.yaml"),
        ("k.yaml", "", "", "GET /version: 401 Unauthorized", "give valid credentials"),
        ("", "", "", "GET /version: 401 Unauthorized", "give valid credentials"),
        ("k.yaml", "", "", "GET /version: 500 etcd", "try again: the API server is overloaded"),
        (
            "k.yaml",
            "",
            "",
            "GET /version: 400",
            "see that the address in kubeconfig k.yaml is the cluster's, and begins",
        ),
        ("k.yaml", "c", "", "kubeconfig k.yaml: there is no context c", "correct kubeconfig k.yaml and context c, or"),
        ("", "", "", "kubeconfig: there is no file", "name the cluster"),
    ],
)
def test_the_fix_is_that_of_the_error(
    kubeconfig: str, context: str, environment: str, error: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", environment)
    assert preflight._unreachable(kubeconfig, context, error).startswith(words)


# --- values -------------------------------------------------------------------------------------------------------
def test_values_of_several_files_are_joined_as_helm_does(tmp_path: Path) -> None:
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    one.write_text("settings: {clusterName: a, interruptionQueue: q}\ndnsPolicy: Default\n")
    two.write_text("settings: {clusterName: b}\n")
    found = preflight._merged([str(one), str(two)])
    assert found == {"settings": {"clusterName": "b", "interruptionQueue": "q"}, "dnsPolicy": "Default"}


@pytest.mark.parametrize("text", ["- a\n", "a: [", None])
def test_values_that_cannot_be_read_name_their_file(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "own.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(SettingsError, match=f"--values {file}: "):
        preflight._merged([str(file)])


# --- the table ----------------------------------------------------------------------------------------------------
def test_every_slip_has_a_line_and_a_fix_of_its_own() -> None:
    assert len({one.slip for one in SLIPS}) == len(SLIPS)
    assert all(one.line and one.fix and one.check.needs for one in SLIPS)


def test_the_page_of_slips_is_linked_from_the_guide() -> None:
    assert "reference/preflight.md" in (ROOT / "docs/getting-started.md").read_text(encoding="utf-8")
