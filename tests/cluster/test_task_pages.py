"""Every file of docs/tasks is accepted by a real API server with Kerf's CRDs and webhook."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.docs.task_pages import FILES, MANIFESTS, commands

from .control_plane import ControlPlane
from .installation import Installation

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def kerf(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with Installation(control_plane, tmp_path_factory.mktemp("tasks")) as installation:
        for namespace in ("shop", "ml"):
            installation.kubectl("create", "namespace", namespace)
        yield installation


@pytest.mark.parametrize("place", MANIFESTS, ids="/".join)
def test_its_manifests_are_accepted(kerf: Installation, place: tuple[str, str], tmp_path: Path) -> None:
    file = tmp_path / place[1]
    file.write_text(FILES[place])
    answer = kerf.kubectl("apply", "--dry-run=server", "-f", str(file))
    accepted = (
        r" (?:created|configured|unchanged) \(server dry run\)$"  # an earlier test may have left one of this name
    )
    assert len(re.findall(accepted, answer, re.MULTILINE)) == len(MANIFESTS[place])


@pytest.mark.parametrize(
    ("page", "words"),
    [(page, words) for page, words in commands("kubectl") if words[1] == "get" and "prometheusrule" not in words],
    ids=lambda value: value if isinstance(value, str) else value[2],
)
def test_what_it_reads_by_kubectl_is_understood(kerf: Installation, page: str, words: list[str]) -> None:
    """Objects of the reader's are not there; kinds, columns and paths are."""
    answer = kerf.kubectl(*words[1:], check=False)
    errors = [line for line in answer.splitlines() if line.startswith(("error:", "Error"))]
    assert [line for line in errors if "(NotFound)" not in line] == [], page
