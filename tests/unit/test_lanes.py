"""The checks of `make lanes` tell an output of the format from one that a library has printed into."""

from __future__ import annotations

import json
from collections.abc import Callable
from xml.etree import ElementTree

import pytest
import yaml

from tests.lanes.cases import CASES, UNANSWERED, manifests, text, workflow_commands

BANNER = "Running HiGHS 1.12.0\n"
OUTPUTS: dict[Callable[[str], object], str] = {
    json.loads: '{"version": 1}\n',
    ElementTree.fromstring: "<testsuites/>\n",
    workflow_commands: "::error file=x.yaml,line=1::wrong\n1 error\n",
    manifests: "kind: NodePool\n---\nkind: EC2NodeClass\n",
}


@pytest.mark.parametrize("check", OUTPUTS, ids=lambda check: check.__name__)
def test_a_banner_before_the_output_is_found(check: Callable[[str], object]) -> None:
    check(OUTPUTS[check])
    with pytest.raises((ValueError, SyntaxError, yaml.YAMLError)):
        check(BANNER + OUTPUTS[check])


@pytest.mark.parametrize("output", ["", "\n", "Traceback (most recent call last):\n"])
def test_a_text_is_something_and_no_traceback(output: str) -> None:
    text("an answer\n")
    with pytest.raises(ValueError, match="nothing, or a traceback"):
        text(output)


def test_every_case_has_a_name_of_its_own() -> None:
    names = [case.name for case in (*CASES, *UNANSWERED)]
    assert len(names) == len(set(names))
