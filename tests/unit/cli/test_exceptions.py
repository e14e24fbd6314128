"""What comments in a file except from its findings."""

from __future__ import annotations

import pytest

from kerf.manifests.checking import Wish

from .test_checking import CLAIM, OTHER, report, rules


def with_comment(*replaced: tuple[str, str]) -> str:
    text = CLAIM
    for old, new in replaced:
        assert old in text
        text = text.replace(old, new)
    return text


TYPE = "kerf:ignore KERF-SCHEMA-TYPE the switch is read by a machine"


@pytest.mark.parametrize(
    "text",
    [
        with_comment(("[on]", f"[on]  # {TYPE}")),
        with_comment(("[on]", f"[on]  #{TYPE}")),
        with_comment(("[on]", f"[on]  # {TYPE.replace('KERF-SCHEMA-TYPE', 'KERF-NP-101, kerf-schema-type')}")),
        with_comment(("    values:", f"    # {TYPE}\n    values:")),
        with_comment(("  - key:", f"  # {TYPE}\n  - key:")),
        with_comment(("  requirements:", f"  # {TYPE}\n  # and a remark\n\n  requirements:")),
        with_comment(("spec:", f"# {TYPE}\nspec:")),
        f"# {TYPE}\nspec:\n" + CLAIM.partition("spec:\n")[2] + CLAIM.partition("spec:\n")[0],
        f"# {TYPE}\n---\nspec:\n" + CLAIM.partition("spec:\n")[2] + CLAIM.partition("spec:\n")[0],
        with_comment(("[on]", f"[on]  # {TYPE}")).replace("\n", "\r\n"),
        f"apiVersion: v1\nkind: List\nitems:\n# {TYPE}\n- " + CLAIM.replace("\n", "\n  "),
    ],
)
def test_an_exception_covers_its_line_or_what_follows(text: str) -> None:
    assert rules(text) == []


@pytest.mark.parametrize(
    "text",
    [
        with_comment(("    operator:", f"    # {TYPE}\n    operator:")),
        with_comment(("  name:", f"  # {TYPE}\n  name:")),
        with_comment(("In\n", f"In  # {TYPE}\n")),
        f"# {TYPE}\n{CLAIM}",
        f"{CLAIM}# {TYPE}\n",
        f"{CLAIM}# {TYPE}",
    ],
)
def test_an_exception_from_nothing_is_told(text: str) -> None:
    assert sorted(rules(text)) == ["KERF-FILE-UNUSED", "KERF-SCHEMA-TYPE"]


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        ("kerf:ignore", "the exception names no rule"),
        ("kerf:ignore because", "the exception names no rule"),
        ("kerf:ignore KERF-SCHEMA-TYPE", "the exception from KERF-SCHEMA-TYPE gives no reason"),
        ("kerf:ignore KERF-SCHEMA-TYPE:  ", "the exception from KERF-SCHEMA-TYPE gives no reason"),
        ("kerf:ignore KERF-SCHEMA-TYP a reason", "KERF-SCHEMA-TYP is no rule; did you mean KERF-SCHEMA-TYPE?"),
    ],
)
def test_an_exception_that_cannot_be_heeded(comment: str, words: str) -> None:
    found = report(with_comment(("[on]", f"[on] # {comment}"))).findings
    assert [f.problem.rule for f in found] == ["KERF-SCHEMA-TYPE", "KERF-FILE-IGNORE"]
    assert words in str(found[1].problem)
    assert found[1].start == (10, 18)


@pytest.mark.parametrize(
    "addition",
    [
        f"  annotations:\n    a: |\n      # {TYPE}\n    b: c\n",
        f'  annotations: {{a: "# {TYPE}"}}\n',
        f"  annotations: {{a: 'x # {TYPE}'}}\n",
        f"  annotations: {{a: x#{TYPE}}}\n",
    ],
)
def test_a_text_is_no_comment(addition: str) -> None:
    assert rules(with_comment(("metadata:\n", f"metadata:\n{addition}"))) == ["KERF-SCHEMA-TYPE"]


def test_a_comment_beside_a_block_of_text_is_one() -> None:
    text = f"  annotations:\n    a: | # {TYPE}\n      text\n    # {TYPE}\n    b: c\n"
    found = rules(with_comment(("metadata:\n", f"metadata:\n{text}")))
    assert found.count("KERF-FILE-UNUSED") == 2


def test_exceptions_are_not_called_unused_where_something_could_not_be_read() -> None:
    text = f"# {TYPE}\na: b\n---\nc: d: e\n"
    assert rules(text) == ["KERF-FILE-YAML"]


def test_an_exception_from_a_rule_across_files_may_be_unused_here() -> None:
    assert rules(f"# kerf:ignore KERF-SET-304 the pools are for two clusters\n{OTHER}") == []


def test_what_manifests_say_about_each_other_is_shown_in_each_file() -> None:
    pool = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: NAME}
spec:
  limits: {cpu: 100}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: []
      terminationGracePeriod: 1h
"""
    found = report(pool.replace("NAME", "one"), f"# a line\n{OTHER}---\n{pool.replace('NAME', 'two')}")
    shown = [(f.file, f.start.line) for f in found.findings if f.problem.rule.startswith("KERF-SET-")]
    assert {file for file, _ in shown} == {"1.yaml", "2.yaml"}
    assert len(found.subjects) == 2


POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: general
spec:
  limits: {cpu: 100}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      terminationGracePeriod: 24h
      requirements:
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
"""


def test_placeholders_of_one_system_are_one_finding_and_hide_advice() -> None:
    found = report(POOL.replace("general", "${name}").replace("24h", "${period}").replace("{cpu: 100}", "<limits>"))
    assert [(f.problem.rule, f.problem.severity, *f.start) for f in found.findings] == [
        ("KERF-FILE-TEMPLATE", "error", 4, 9),
        ("KERF-FILE-TEMPLATE", "error", 6, 11),
    ]
    assert "${name} is a placeholder of Flux, envsubst or Terraform" in str(found.findings[0].problem)


def test_a_placeholder_that_a_cluster_would_take_as_text_is_information() -> None:
    other = "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: other}\n"
    wish = Wish(strict=True, left_out=frozenset({"KERF-EC2-222", "KERF-SET-302"}))
    found = report(POOL.replace("name: default", "name: $CLASS"), other, wish=wish)
    assert [(f.problem.rule, f.problem.severity, *f.start) for f in found.findings] == [
        ("KERF-FILE-TEMPLATE", "info", 9, 74)
    ]
    assert not found.failed


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("%{ for zone in zones ~}", "%{ for zone in zones ~} is a directive of Terraform's templates"),
        ("  values: [${ZONE}]", "${ZONE} is a placeholder of Flux, envsubst or Terraform"),
        ("  weight: {{ .Values.weight }}", "{{ begins a template"),
    ],
)
def test_what_is_no_yaml_because_of_a_placeholder_is_named(line: str, words: str) -> None:
    (finding,) = report(f"{CLAIM}{line}\n").findings
    assert (finding.problem.rule, finding.start.line) == ("KERF-FILE-TEMPLATE", 11)
    assert words in finding.problem.message


def test_a_placeholder_elsewhere_is_no_cause_of_broken_yaml() -> None:
    (finding,) = report(CLAIM.replace("general-x7k2p", "x${NAME}") + "  a: b: c\n").findings
    assert finding.problem.rule == "KERF-FILE-YAML"
