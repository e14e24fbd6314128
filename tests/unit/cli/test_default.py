"""`kerf default` writes what the cluster would, where it belongs, and touches nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kerf.cli.rewriting.filling import filled
from kerf.cli.verbs import default
from kerf.manifests.documents import Document, read
from kerf_api.defaulting import default as defaulted
from tests.sources import ROOT

EXAMPLES = sorted((ROOT / "manifests" / "examples").glob("*.yaml"))

POOL = """\
# head
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: x}  # c
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: x}
      expireAfter:   # mine
      requirements:
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
  # about disruption
  disruption:
    budgets:
    - nodes:
    - {schedule: "@daily", duration: 8h}
    # another one
# trailing
---
a: "keep"   # as it is
"""
FILLED = """\
# head
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: x}  # c
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: x}
      expireAfter: 720h  # default   # mine
      requirements:
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
  # about disruption
  disruption:
    budgets:
    - nodes: 10%  # default
    - {
        nodes: 10%,  # default
        schedule: "@daily", duration: 8h}
    consolidateAfter: 0s  # default
    consolidationPolicy: WhenEmptyOrUnderutilized  # default
    # another one
# trailing
---
a: "keep"   # as it is
"""
CLASS = """\
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: x}
spec:
  role: x
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{id: subnet-1}]
  securityGroupSelectorTerms: [{id: sg-1}]
"""
OPTIONS = """\
  metadataOptions: {
    httpEndpoint: enabled,  # default
    httpProtocolIPv6: disabled,  # default
    httpPutResponseHopLimit: 1,  # default
    httpTokens: optional}
"""


def values(text: str) -> list[Any]:
    found = list(read(text.encode()))
    return [part.node.value for part in found if isinstance(part, Document)]


def test_every_default_is_marked_and_the_rest_is_kept_to_the_letter() -> None:
    assert filled(POOL.encode()) == FILLED


def test_carriage_returns_stay() -> None:
    assert filled(POOL.replace("\n", "\r\n").encode()) == FILLED.replace("\n", "\r\n")


def test_braces() -> None:
    assert filled((CLASS + "  metadataOptions: {httpTokens: optional}\n").encode()) == CLASS + OPTIONS


def test_empty_braces() -> None:
    found = filled((CLASS + "  metadataOptions: {}\n").encode())
    assert values(found) == [defaulted(values(CLASS + "  metadataOptions: {}\n")[0])]
    assert found.count("# default") == 4


def test_a_default_that_is_a_list_and_a_file_without_a_last_newline() -> None:
    pool = POOL.partition("  # about")[0].rstrip("\n")
    assert filled(pool.encode()).endswith(
        """\
  disruption:  # default
    consolidateAfter: 0s
    budgets:
    - nodes: 10%
    consolidationPolicy: WhenEmptyOrUnderutilized"""
    )


@pytest.mark.parametrize(
    "block", ["|\n    a\n    b\n\n", "|+\n    a\n\n\n", ">-\n    a\n", '"a\n    b"\n', "a\n   b\n"]
)
def test_what_spans_lines_stays_whole(block: str) -> None:
    for text in (CLASS + f"  userData: {block}", CLASS + f"  userData: {block}  # a comment\n  tags: {{a: b}}\n"):
        (before,) = values(text)
        assert values(filled(text.encode())) == [defaulted(before)]


@pytest.mark.parametrize("options", ["{httpTokens: null}", "{httpTokens: }", "{httpTokens: ~, httpEndpoint: enabled}"])
def test_nulls_in_braces(options: str) -> None:
    text = CLASS + f"  metadataOptions: {options}\n"
    assert values(filled(text.encode())) == [defaulted(values(text)[0])]


@pytest.mark.parametrize(
    ("budgets", "marks"),
    [
        ("    - &b {schedule: '@weekly', duration: 1h}\n    - *b\n", 2),
        ("    - &b\n      schedule: '@weekly'\n      duration: 1h\n    - *b\n", 2),
        ("    - &b\n      schedule: '@weekly'\n      duration: 1h\n    - <<: *b\n      duration: 2h\n", 3),
        ("    - &b {schedule: '@weekly', duration: 1h, nodes: '1'}\n    - <<: *b\n", 1),
    ],
)
def test_aliases_and_merges(budgets: str, marks: int) -> None:
    text = POOL.replace("    - nodes:\n", budgets)
    found = filled(text.encode())
    assert values(found) == [defaulted(value) for value in values(text)]
    assert sum("nodes: 10%" in line and "# default" in line for line in found.splitlines()) == marks


def test_an_empty_field_takes_a_whole_map() -> None:
    found = filled((POOL.partition("  # about")[0] + "  disruption:\n").encode())
    assert found.endswith(
        "  disruption: {consolidateAfter: 0s, budgets: [{nodes: 10%}], "
        "consolidationPolicy: WhenEmptyOrUnderutilized}  # default\n"
    )


def test_a_list_of_objects() -> None:
    items = "- " + POOL.partition("---")[0].replace("# head\n", "").replace("\n", "\n  ").strip() + "\n"
    text = f"kind: List\nitems:\n{items}- kind: Secret\n"
    assert values(filled(text.encode())) == [
        {"kind": "List", "items": [defaulted(values(POOL)[0]), {"kind": "Secret"}]}
    ]


def test_json_becomes_yaml() -> None:
    text = (
        '{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "spec": {"disruption": {"budgets": [{"nodes": "5"}]}}}'
    )
    assert filled(text.encode()) == (
        "apiVersion: karpenter.sh/v1\nkind: NodePool\nspec:\n  disruption:\n    budgets:\n    - nodes: '5'\n"
        "    consolidateAfter: 0s  # default\n    consolidationPolicy: WhenEmptyOrUnderutilized  # default\n"
    )


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples(path: Path) -> None:
    text = filled(path.read_bytes())
    assert values(text) == [defaulted(value) for value in values(path.read_text())]
    assert filled(text.encode()) == text
    kept = [line for line in path.read_text().splitlines() if line.lstrip().startswith("#")]
    assert [line for line in text.splitlines() if line in kept] == kept


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.yaml").write_text(POOL)
    assert default.main([str(tmp_path / "a.yaml")]) == 0
    assert capsys.readouterr() == (FILLED, "")
    (tmp_path / "a.yaml").write_text("a: b\n---\nc: d: e\n")
    assert default.main([str(tmp_path / "a.yaml")]) == 2
    assert capsys.readouterr() == (
        "",
        f"{tmp_path}/a.yaml:3:5: error: this is no YAML: a second colon makes no sense here; "
        "put the value in quotes, or indent it under its key\n",
    )
    assert default.main([str(tmp_path / "none.yaml")]) == 2
    assert capsys.readouterr().err == f"kerf default: {tmp_path}/none.yaml: No such file or directory\n"
