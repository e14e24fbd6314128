"""The real API server takes everything that `kerf convert` makes, as its users give it: by server-side apply.

Every converted case is a dry run with strict validation, first object by object, so that a refusal names its case, and
then as the texts that are printed, by kubectl.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kerf.manifests.documents import Document, read
from kerf_api import crds
from tests.unit.api.corpus import Case as Judged
from tests.unit.conversion.cases import AS_IT_IS, CASES, Case

from .api_server import ApiServer, with_definitions
from .control_plane import ControlPlane

pytestmark = pytest.mark.cluster

CONVERTED = [case for case in CASES if case.after != AS_IT_IS and "error" not in case.problems]


@pytest.fixture(scope="module")
def server(own_control_plane: ControlPlane) -> Iterator[ApiServer]:
    with with_definitions(own_control_plane) as found:
        yield found


def objects(case: Case) -> Iterator[dict[str, Any]]:
    """The objects of a case, those of lists too."""
    for found in read(case.result.encode()):
        assert isinstance(found, Document)
        yield from found.node.value.get("items", [found.node.value])


def test_each_object_is_accepted(server: ApiServer) -> None:
    asked = 0
    refusals = []
    for case in CONVERTED:
        for manifest in objects(case):
            if manifest["kind"] in crds.kinds():
                asked += 1
                answer = server.judge(Judged(manifest["kind"], case.name, manifest))
                if not answer.accepted:
                    refusals.append(f"{case.name}: {answer.message}")
    assert refusals == []
    assert asked >= 60


@pytest.mark.usefixtures("server")
def test_what_is_printed_can_be_applied(own_control_plane: ControlPlane) -> None:
    texts = "---\n".join(case.result for case in CONVERTED if not case.result.startswith("{"))
    applied = own_control_plane.kubectl(
        "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-", input=texts, check=False
    )
    assert applied.stderr == ""
    assert applied.returncode == 0
    assert len(applied.stdout.splitlines()) >= len(CONVERTED)
