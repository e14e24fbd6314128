"""The whole table through the webhook over HTTP: the verdict of `validate`, with the same rules at the same places."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from api.lint import Problem, validate
from tests.unit.api.manifests import BASES, changed
from tests.unit.api.table import ACCEPTED, REFUSED

from .reviews import review
from .test_server import Server, ask, served

#: How many problems a refusal tells.
TOLD = 10


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("corpus")) as running:
        yield running


def corpus() -> list[tuple[str, str, dict[str, Any]]]:
    """Kind, label and manifest of every value of every row, as JSON can hold it, and of the base manifests."""
    rows = [
        (row.kind, f"{row.kind} {row.path}={value!r:.50}", json.loads(json.dumps(changed(row.kind, row.path, value))))
        for row in (*ACCEPTED, *REFUSED)
        for value in row.values
    ]
    return [*((kind, f"{kind} as it is", manifest) for kind, manifest in BASES.items()), *rows]


def told(errors: list[Problem], message: str) -> bool:
    """Whether a refusal names the rule and the place of every error that there is room for."""
    return all(f"{problem.path}: " in message and f"[{problem.rule}]" in message for problem in errors[:TOLD])


@pytest.mark.parametrize("path", ["/validate", "/mutate"])
def test_the_webhook_says_what_the_linter_says(server: Server, path: str) -> None:
    connection, differing, agreed = server.connect(), [], {True: 0, False: 0}
    for kind, label, manifest in corpus():
        errors = [problem for problem in validate(manifest) if problem.severity == "error"]
        response = ask(connection, path, review(manifest, kind=kind))
        same = response["allowed"] is not bool(errors)
        if same and (not errors or told(errors, response["status"]["message"])):
            agreed[response["allowed"]] += 1
        else:
            differing.append(f"{label}: linter {[str(e) for e in errors]}, webhook {response}")
    print(f"\n{path}: accepted by both {agreed[True]}, refused by both {agreed[False]}, differing {len(differing)}")
    assert differing == []
    assert min(agreed.values()) > 200
