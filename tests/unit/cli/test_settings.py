"""`kerf settings`: what counts, and where it comes from."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from kerf.cli.app import app


def told(*arguments: str, **environment: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["settings", *arguments], env=environment)
    return result.exit_code, result.stdout, result.stderr


def test_as_text_every_setting_has_a_line() -> None:
    code, page, _ = told("--batch-idle-duration=300ms", CLUSTER_NAME="mine")
    rows = {line.split()[0]: line.split()[1:] for line in page.splitlines()}
    assert code == 0
    assert rows["CLUSTER_NAME"] == ["environment", "mine"]
    assert rows["BATCH_IDLE_DURATION"] == ["flag", "300ms"]
    assert rows["LOG_LEVEL"] == ["default", "info"]
    assert rows["CLUSTER_ENDPOINT"] == ["default", "(empty)"]


def test_as_json_and_only_what_is_changed() -> None:
    code, page, _ = told("--changed", "-o", "json", "--cluster-name", "mine")
    assert code == 0
    assert json.loads(page) == [
        {"variable": "CLUSTER_NAME", "flag": "--cluster-name", "value": "mine", "source": "flag"}
    ]


@pytest.mark.parametrize(
    ("arguments", "environment", "problems"),
    [
        ((), {}, 1),
        (("--metrics-port=x",), {"LOG_LEVEL": "loud"}, 3),
        (("-o", "yaml"), {"CLUSTER_NAME": "mine"}, 1),
    ],
)
def test_mistakes_are_told_as_the_controller_would(
    arguments: tuple[str, ...], environment: dict[str, str], problems: int
) -> None:
    code, _, told_wrong = told(*arguments, **environment)
    assert code == 2
    assert len(told_wrong.splitlines()) == problems
