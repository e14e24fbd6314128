"""The API server's verdict on manifests of the kinds that users write, and on those that `kerf convert` writes.

Each is sent as the YAML that it is, so that Go's reader takes part.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kerf.manifests import documents
from kerf.manifests.documents import Document
from tests.field import Case, cases
from tests.unit.api.table.explained import EXPLAINED
from tests.unit.conversion.cases import FOLDER, read

from .api_server import ApiServer, with_definitions
from .control_plane import ControlPlane

pytestmark = pytest.mark.cluster

#: Of a placeholder nobody but its own tool can judge; a list is taken apart by kubectl.
JUDGED = [case for case in cases() if case.file.stem != "placeholders" and case.name != "a list of objects"]


@pytest.fixture(scope="module")
def server(own_control_plane: ControlPlane) -> Iterator[ApiServer]:
    with with_definitions(own_control_plane) as server:
        yield server


@pytest.mark.parametrize("case", JUDGED, ids=lambda case: case.name)
def test_the_verdict_is_that_of_the_api_server(server: ApiServer, case: Case) -> None:
    (document,) = documents.read(case.text.encode())
    assert isinstance(document, Document)
    answer = server.judge_text(document.node.value["kind"], case.text)
    errors = {f.problem.rule for f in case.report().findings if f.problem.severity == "error"}
    if not errors or errors - EXPLAINED.keys():
        assert answer.accepted is not case.is_refused, answer.message


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_what_is_converted_is_read_by_go(server: ApiServer, path: Path) -> None:
    case = read(path)
    for document in documents.read(case.result.encode()) if case.result == case.after else ():
        value = document.node.value if isinstance(document, Document) else {}
        if value.get("apiVersion") in ("karpenter.sh/v1", "karpenter.k8s.aws/v1") and case.result.count("\nkind:") == 1:
            answer = server.judge_text(value["kind"], case.result)
            assert "yaml" not in answer.message.lower(), answer.message
