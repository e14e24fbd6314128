"""The whole corpus through the webhook over HTTP: the verdict of `validate`, with the same rules at the same places."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.api.corpus import changes, creations

from .doors import DOORS, differs, reply
from .test_server import Server, served


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("corpus")) as running:
        yield running


@pytest.mark.parametrize("door", DOORS)
def test_the_webhook_says_what_the_linter_says(server: Server, door: str) -> None:
    connection, differing, agreed = server.connect(), [], {True: 0, False: 0}
    for case in (*creations(), *changes()):
        errors = case.errors()
        said = reply(connection, door, case)
        if difference := differs(errors, said):
            differing.append(f"{case.label}: linter {[str(e) for e in errors]}, webhook {difference}")
        else:
            agreed[said["allowed"]] += 1
    print(f"\n{door}: accepted by both {agreed[True]}, refused by both {agreed[False]}, differing {len(differing)}")
    assert differing == []
    assert min(agreed.values()) > 200
