"""What all verbs have in common: the version, the help, completion, and words for who misspells something."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from kerf.cli.app import verbs
from kerf.cli.terminal import VERBS
from tests.sources import python_path


def kerf(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kerf.cli.main", *arguments]
    own = {**os.environ, "PYTHONPATH": python_path(), "COLUMNS": "100", **environment}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=own)


def test_the_version_is_that_of_the_distribution() -> None:
    done = kerf("--version")
    assert (done.returncode, done.stdout) == (0, f"kerf {version('kerf')}\n")


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_the_help_says_of_each_verb_what_it_is_for(flag: str) -> None:
    done = kerf(flag)
    rows = {line.split()[0]: line.split(maxsplit=1)[1:] for line in done.stdout.splitlines() if line.startswith("  ")}
    assert done.returncode == 0
    assert [verb for verb in verbs() if not rows.get(verb)] == []
    assert "..." not in done.stdout.partition("Verbs:")[2]


@pytest.mark.parametrize("verb", verbs())
def test_each_verb_has_a_help(verb: str) -> None:
    done = kerf(verb, "-h")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"kerf {verb}" in done.stdout


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize(
    "words",
    [
        ("why", "pod"),
        ("why", "node", "a"),
        ("events", "node"),
        ("events", "node", "a"),
        ("debug", "threads"),
        ("debug", "log-level", "info"),
        ("migrate", "check"),
    ],
)
def test_the_help_comes_after_other_words_too(words: tuple[str, ...], flag: str) -> None:
    done = kerf(*words, flag)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"kerf {words[0]} ")


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("validte", "x.yaml"), "there is no verb 'validte'; did you mean validate?"),
        (("Status",), "there is no verb 'Status'; did you mean status?"),
        (("validate", "--strickt", "x.yaml"), "--strickt; did you mean --strict?"),
        (("convert", "--inplace", "x.yaml"), "--inplace; did you mean --in-place?"),
        (("catalogue", "--regoin", "eu-west-1"), "--region"),
        (("run", "--batch-idel-duration", "3s"), "there is no such flag; did you mean --batch-idle-duration?"),
        (("settings", "--cluster-nmae=x"), "there is no such flag; did you mean --cluster-name?"),
        (("preflight", "--cluster-nmae", "x"), "there is no such flag; did you mean --cluster-name?"),
        (("status", "--contxt", "x"), "makes no sense here; did you mean --context?"),
        (("why", "pdo", "x"), "'pdo' is neither pod, node, nodeclaim nor nodepool; did you mean pod?"),
        (("debug", "thread"), "nor profile; did you mean threads?"),
    ],
)
def test_who_misspells_is_told_what_was_meant(arguments: tuple[str, ...], meant: str) -> None:
    done = kerf(*arguments)
    assert done.returncode == 2
    assert meant in done.stderr
    assert done.stdout == ""


def test_texts_know_all_verbs() -> None:
    assert sorted(VERBS) == sorted(verbs())


def test_a_word_that_looks_like_nothing_gets_no_hint() -> None:
    done = kerf("xyzzy")
    assert (done.returncode, "did you mean" in done.stderr) == (2, False)
    assert "there is no verb 'xyzzy'" in done.stderr


def _in_a_shell(line: str) -> subprocess.CompletedProcess[str]:
    own = {**os.environ, "PYTHONPATH": python_path(), "kerf": f"{sys.executable} -m kerf.cli.main"}
    command = ["bash", "-o", "pipefail", "-c", line]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=own)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("words", ["schema NodePool", "--version"])
def test_an_output_that_has_no_place_is_told_in_one_line(words: str) -> None:
    done = _in_a_shell(f"$kerf {words} > /dev/full")
    assert (done.returncode, done.stderr) == (2, "kerf: the output cannot be written: No space left on device\n")


@pytest.mark.parametrize("words", ["schema NodePool", "--version", "validate -h"])
def test_who_closes_the_output_wants_none(words: str) -> None:
    done = _in_a_shell(f"$kerf {words} >&-")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_has_seen_enough_is_no_failure() -> None:
    done = _in_a_shell("$kerf schema NodePool | head -c 1; exit ${PIPESTATUS[0]}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "{", "")


@pytest.mark.parametrize("number", [1, 200])
def test_a_reader_that_has_seen_enough_changes_no_verdict(number: int, tmp_path: Path) -> None:
    """The output of many objects is longer than a buffer: then the write fails, and not the flush at the end."""
    wrong = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: a}\nspec: {weight: 1000}\n"
    (tmp_path / "pools.yaml").write_text("---\n".join([wrong] * number))
    line = f"$kerf validate --write json={tmp_path}/report.json {tmp_path}/pools.yaml | true; exit ${{PIPESTATUS[0]}}"
    done = _in_a_shell(line)
    assert (done.returncode, done.stderr) == (1, "")
    assert (tmp_path / "report.json").exists()


@pytest.mark.parametrize(("word", "verb"), [("va", "validate"), ("pre", "preflight"), ("sch", "schema")])
def test_shells_complete_verbs(word: str, verb: str) -> None:
    done = kerf("validate", _KERF_COMPLETE="complete_bash", COMP_WORDS=f"kerf {word}", COMP_CWORD="1")
    assert done.stdout.split() == [verb]
