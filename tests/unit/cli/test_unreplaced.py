"""Placeholders where any text is a valid value."""

from __future__ import annotations

import pytest

from .test_checking import report

CLASS = """\
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata:
  name: default
  annotations:
    example.com/about: "for <everybody>, see ${{docs}}"
spec:
  role: ROLE
  userData: |
    #!/bin/bash
    echo ${HOME}
  amiSelectorTerms: [{alias: al2023@v20250101}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: VALUE}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: VALUE}}]
  tags: {team: platform}
"""


@pytest.mark.parametrize(
    "text", ["<CLUSTER_NAME>", "<<cluster>>", "CHANGEME", "kerf-node-change-me", "REPLACE_ME", "YOUR_CLUSTER_NAME"]
)
def test_a_value_that_a_person_was_to_fill_in_is_information_once(text: str) -> None:
    found = report(CLASS.replace("ROLE", f'"{text}"').replace("VALUE", f'"{text}"'))
    told = [(f.problem.severity, f.start.line) for f in found.findings if f.problem.rule == "KERF-FILE-TEMPLATE"]
    assert told == [("info", 8)]
    assert not found.failed


@pytest.mark.parametrize("name", ["KerfNodeRole-production", "exchanger", "fillmore", "replacement", "me-change"])
def test_a_value_like_one_is_none(name: str) -> None:
    found = report(CLASS.replace("ROLE", name).replace("VALUE", name))
    assert not [f for f in found.findings if f.problem.rule == "KERF-FILE-TEMPLATE"]


def test_user_data_of_one_line_is_a_program() -> None:
    lines = "  userData: |\n    #!/bin/bash\n    echo ${HOME}\n"
    assert lines in CLASS
    found = report(
        CLASS.replace(lines, '  userData: "#!/bin/mail <root>"\n').replace("ROLE", "node").replace("VALUE", "c")
    )
    assert not [f for f in found.findings if f.problem.rule == "KERF-FILE-TEMPLATE"]


@pytest.mark.parametrize(
    "text", ["${CLUSTER}", "{{ cluster }}", "$(CLUSTER)", "@CLUSTER@", "__CLUSTER__", "{cluster}", "%{ if x }"]
)
def test_what_a_tool_replaces_later_is_not_told(text: str) -> None:
    found = report(CLASS.replace("VALUE", f'"{text}"').replace("ROLE", "node"))
    assert not [f for f in found.findings if f.problem.rule == "KERF-FILE-TEMPLATE"]
