"""The real API server takes every example of the pages on NodePools, EC2NodeClasses and NodeClaims, as a dry run."""

from __future__ import annotations

import pytest

from tests.unit.api.corpus import Case
from tests.unit.docs import field_pages as pages

from .api_server import with_definitions
from .control_plane import ControlPlane

pytestmark = pytest.mark.cluster


def test_every_example_of_a_page_on_fields_is_accepted(own_control_plane: ControlPlane) -> None:
    examples = [one for kind in pages.PAGES for one in pages.examples(kind)]
    with with_definitions(own_control_plane) as server:
        answers = [server.judge(Case(one["kind"], one["metadata"]["name"], one)) for one in examples]
    assert len(answers) > 25
    assert [answer.message for answer in answers if not answer.accepted] == []
