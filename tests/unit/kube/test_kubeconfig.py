"""Faults of a kubeconfig: each is one line that names the file, and what there is instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kerf.kube.kubeconfig import configured
from kerf.ports import Unavailable

GOOD: dict[str, Any] = {
    "current-context": "prod",
    "clusters": [{"name": "c", "cluster": {"server": "https://localhost:1"}}],
    "users": [{"name": "u", "user": {"token": "t"}}],
    "contexts": [
        {"name": "prod", "context": {"cluster": "c", "user": "u"}},
        {"name": "stage", "context": {"cluster": "c", "user": "u"}},
    ],
}


def problem(path: Path, context: str | None = None) -> str:
    with pytest.raises(Unavailable) as raised:
        configured(str(path), context)
    return str(raised.value)


def written(folder: Path, **changes: Any) -> Path:
    path = folder / "k"
    path.write_text(json.dumps({key: value for key, value in {**GOOD, **changes}.items() if value is not None}))
    return path


def test_a_context_that_is_there_is_taken(tmp_path: Path) -> None:
    assert configured(str(written(tmp_path)), "stage").host == "https://localhost:1"


@pytest.mark.parametrize(
    ("changes", "context", "words"),
    [
        ({}, "other", "there is no context other; contexts: prod, stage"),
        ({}, "stagee", "there is no context stagee; did you mean stage?; contexts: prod, stage"),
        ({"current-context": "gone"}, None, "there is no context gone; contexts: prod, stage"),
        (
            {"current-context": None},
            None,
            "no context is the current one, and --context names none; contexts: prod, st",
        ),
        ({"contexts": []}, "prod", "there is no context prod; contexts: none"),
        ({"users": []}, None, "context prod names user u, and there is no such user"),
    ],
)
def test_a_fault_names_the_contexts(tmp_path: Path, changes: Any, context: str | None, words: str) -> None:
    path = written(tmp_path, **changes)
    assert problem(path, context).startswith(f"kubeconfig {path}: {words}")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert problem(tmp_path / "gone").endswith(f"there is no file {tmp_path / 'gone'}")


def test_a_plugin_that_is_not_there_is_named_and_prints_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin", "interactiveMode": "Never"}
    path = written(tmp_path, users=[{"name": "u", "user": {"exec": plugin}}])
    assert "the credential plugin no-such-plugin returned no credentials: " in problem(path)
    assert capsys.readouterr().err == ""
