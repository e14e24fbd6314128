"""Which documents are ours, where their problems are shown, and what comments in a file except."""

from __future__ import annotations

import pytest

from kerf.manifests import file_rules
from kerf.manifests.checking import Content, Report, Wish, check
from kerf.manifests.ours import is_ours

CLAIM = """\
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata:
  name: general-x7k2p
spec:
  nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
  requirements:
  - key: example.com/switch
    operator: In
    values: [on]
"""
OTHER = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"


def known() -> frozenset[str]:
    return file_rules.known()


def report(*texts: str, wish: Wish | None = None) -> Report:
    contents = [Content(f"{number}.yaml", text.encode()) for number, text in enumerate(texts, 1)]
    return check(contents, wish or Wish(), known)


def told(text: str) -> list[tuple[str, int, int]]:
    """Rule, line and column of each finding."""
    return [(f.problem.rule, *f.start) for f in report(text).findings]


def rules(text: str) -> list[str]:
    return [rule for rule, _, _ in told(text)]


@pytest.mark.parametrize(
    ("version", "kind", "ours"),
    [
        ("karpenter.sh/v1", "NodePool", True),
        ("karpenter.sh/v1alpha5", "Provisioner", True),
        ("karpenter.k8s.aws/v1", "EC2NodeClass", True),
        ("karpenter.k8s.aws/v1", "Ec2NodeClass", True),
        ("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", True),
        ("autoscaling.x-k8s.io/v1", "ProvisioningRequest", False),
        ("karpentr.sh/v1", "NodePool", True),
        ("v1", "NodePool", True),
        (None, "NodePool", True),
        ("hypershift.openshift.io/v1beta1", "NodePool", False),
        ("apps.openyurt.io/v1beta1", "NodePool", False),
        ("karpenter.azure.com/v1beta1", "AKSNodeClass", False),
        ("v1", "ConfigMap", False),
        (None, None, False),
        (5, ["x"], False),
    ],
)
def test_which_objects_are_ours(version: object, kind: object, ours: bool) -> None:
    assert is_ours(version, kind) is ours


def test_other_kinds_are_counted_and_left_alone() -> None:
    found = report(f"{OTHER}---\n{CLAIM}---\n- a\n---\nplain text\n---\na: 1\n", OTHER)
    assert (found.files, len(found.subjects), found.skipped) == (2, 1, 5)


@pytest.mark.parametrize(
    ("text", "rule", "words"),
    [
        (
            "[{apiVersion: karpenter.sh/v1, kind: NodePool}]",
            "KERF-SCHEMA-TYPE",
            "a list of manifests is no manifest",
        ),
        ('// a pool\n{"apiVersion":"karpenter.sh/v1"}\n', "KERF-SCHEMA-TYPE", "is a text and no manifest"),
        (
            "kind: List\nitems: [{apiVersion: karpenter.sh/v1, kind: X}]",
            "KERF-SCHEMA-VERSION",
            "of the List is missing",
        ),
        (
            "apiVersion: a/v1\nkind: List\nitems: [{apiVersion: karpenter.sh/v1, kind: X}]",
            "KERF-SCHEMA-VERSION",
            '"a/v1"',
        ),
    ],
)
def test_manifests_where_no_cluster_looks_for_them(text: str, rule: str, words: str) -> None:
    found = [f.problem for f in report(text).findings if f.problem.rule == rule and words in f.problem.message]
    assert [problem.severity for problem in found] == ["error"]


@pytest.mark.parametrize(
    "text",
    [
        "- op: replace\n  path: /spec/limits/cpu\n  value: karpenter.sh",
        "[{target: {kind: NodePool}}]",
        "karpenter.sh is a group",
        "kind: List\nitems: [{apiVersion: v1, kind: ConfigMap}]",
        "kind: PodList\nitems: []",
    ],
)
def test_other_lists_and_texts_are_left_alone(text: str) -> None:
    assert report(text).findings == ()


@pytest.mark.parametrize(
    ("before", "place", "words"),
    [
        ("%YAML 1.2\n---\n", (1, 1), "refuses a directive"),
        ("# a\n%TAG ! tag:example.com,2000:\n---\n", (2, 1), "refuses a directive"),
        ("--- &a\n", (1, 5), "refuses a document that begins in the line of its ---"),
        ("a: 1\n--- !pool\n", (2, 5), "refuses a document that begins in the line of its ---"),
    ],
)
def test_beginnings_of_documents_that_kubectl_refuses(before: str, place: tuple[int, int], words: str) -> None:
    (found,) = report(before + CLAIM.replace("[on]", '["on"]')).findings
    assert (found.problem.rule, found.problem.severity, found.start) == ("KERF-FILE-YAML", "error", place)
    assert words in found.problem.message


@pytest.mark.parametrize(
    "before", ["---\n", "--- # a pool\n", "---  \r\n", "a: 1\n---\n\ufeff", "a: 1\r\n---\r\n\ufeff"]
)
def test_beginnings_of_documents_that_kubectl_takes(before: str) -> None:
    assert report(before + CLAIM.replace("[on]", '["on"]')).findings == ()


@pytest.mark.parametrize("begin", ["{% if x %}", "{# pools #}", "<% if x %>"])
def test_a_template_of_jinja_is_no_mistake_of_yaml(begin: str) -> None:
    (found,) = report(f"{begin}\n{CLAIM}\n  - ]").findings
    assert (found.problem.rule, found.start) == ("KERF-FILE-TEMPLATE", (1, 1))


def test_items_of_a_list_are_manifests() -> None:
    texts = CLAIM, OTHER, CLAIM.replace("x7k2p", "b3c4d")
    items = "".join("- " + text.replace("\n", "\n  ").strip() + "\n" for text in texts)
    found = report(f"apiVersion: v1\nkind: List\nitems:\n{items}")
    assert [(s.name, s.line) for s in found.subjects] == [
        ("NodeClaim general-x7k2p", 4),
        ("NodeClaim general-b3c4d", 17),
    ]
    assert found.skipped == 1
    assert [(f.problem.path, f.start.line) for f in found.findings] == [
        ("spec.requirements[0].values[0]", 13),
        ("spec.requirements[0].values[0]", 26),
    ]


def test_items_of_lists_within_a_list_are_manifests_too() -> None:
    inner = "kind: NodeClaimList\nitems:\n- " + CLAIM.replace("\n", "\n  ").strip() + "\n"
    found = report("kind: List\nitems:\n- " + inner.replace("\n", "\n  ").strip() + "\n- kind: Secret\n")
    assert [(s.name, s.line) for s in found.subjects] == [("NodeClaim general-x7k2p", 5)]
    assert [f.problem.path for f in found.findings] == ["spec.requirements[0].values[0]"]
    assert found.skipped == 1


def test_two_objects_of_one_name_are_shown_at_both_places() -> None:
    found = report(CLAIM.replace("[on]", "[a]"), f"{OTHER}---\n{CLAIM.replace('[on]', '[a]')}")
    assert [(f.file, f.start.line, f.problem.rule) for f in found.findings] == [
        ("1.yaml", 4, "KERF-SET-308"),
        ("2.yaml", 8, "KERF-SET-308"),
    ]


def test_an_unquoted_word_is_told_as_it_is_written() -> None:
    (found,) = report(CLAIM).findings
    assert found.start == (10, 14)
    assert found.end == (10, 16)
    assert str(found.problem) == (
        "spec.requirements[0].values[0]: true is a boolean, a text is needed (unquoted, on is read as true); "
        'put it in quotes: "on" [KERF-SCHEMA-TYPE]'
    )


@pytest.mark.parametrize(("word", "value"), [("010", "8"), ("1_0", "10"), ("1.0", "1"), ("no", "false")])
def test_an_unquoted_number_is_told_as_it_is_written(word: str, value: str) -> None:
    (found,) = report(CLAIM.replace("[on]", f"[{word}]")).findings
    assert f'(unquoted, {word} is read as {value}); put it in quotes: "{word}"' in str(found.problem)


def test_a_better_hint_than_quotes_stays() -> None:
    (found,) = report(CLAIM.replace("values: [on]", "values: [a]") + "  expireAfter: 0o12\n").findings
    assert found.problem.hint == 'put it in quotes: "10s"'


def test_a_missing_field_is_shown_at_the_nearest_parent() -> None:
    text = CLAIM.replace("[on]", "[a]").replace(", name: default", "")
    assert told(text) == [("KERF-SCHEMA-REQUIRED", 6, 3)]
    assert told("apiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata: {name: a}\n") == [
        ("KERF-SCHEMA-REQUIRED", 1, 1)
    ]


def test_an_unknown_field_is_shown_at_its_key() -> None:
    assert told(CLAIM.replace("[on]", "[a]").replace("operator:", "operater:"))[-1] == ("KERF-SCHEMA-UNKNOWN", 9, 5)


def test_a_key_twice_is_an_error_of_ours_alone() -> None:
    assert told(CLAIM.replace("[on]", "[a]").replace("  name:", "  name: x\n  name:")) == [("KERF-FILE-TWICE", 5, 3)]
    assert told(OTHER + "kind: Secret\n") == []


@pytest.mark.parametrize("word", [".inf", ".nan"])
def test_what_json_cannot_hold_is_not_told_as_null(word: str) -> None:
    messages = [f.problem.message for f in report(CLAIM.replace("[on]", f"[{word}]")).findings]
    assert any("cannot be represented in JSON" in message for message in messages)
    assert not any("read as null" in message for message in messages)


def test_an_unquoted_key_is_a_warning() -> None:
    assert told(CLAIM.replace("[on]", "[a]").replace("  name:", "  labels: {on: x}\n  name:")) == [
        ("KERF-FILE-KEY", 4, 12)
    ]


def test_a_template_in_a_value_hides_what_follows_from_it() -> None:
    text = CLAIM.replace("general-x7k2p", '"{{ .Values.name }}"').replace("[on]", '["{{ .Values.zone }} ,"]')
    found = report(text)
    assert [(f.problem.rule, *f.start) for f in found.findings] == [("KERF-FILE-TEMPLATE", 4, 9)]
    assert found.unreadable


def test_a_chart_s_template_is_told_once() -> None:
    text = "{{- if .Values.a }}\na: 1\n---\n{{- end }}\nb: c: d\n---\ne: {{ x }}\n"
    found = report(f"{text}# apiVersion: karpenter.sh/v1\n")
    assert [(f.problem.rule, f.start.line) for f in found.findings] == [("KERF-FILE-TEMPLATE", 1)]
    other = report(text)
    assert other.findings == ()
    assert other.skipped == 1


def test_a_file_that_cannot_be_opened_is_told() -> None:
    found = check([Content("a.yaml", b"", "Permission denied")], Wish(), known)
    assert [str(f.problem) for f in found.findings] == ["cannot be read: Permission denied [KERF-FILE-READ]"]
    assert found.unreadable


def test_what_fails_a_run() -> None:
    warning = CLAIM.replace("[on]", "[a]").replace("  name:", "  labels: {on: x}\n  name:")
    assert not report(warning).failed
    assert report(warning, wish=Wish(strict=True)).failed
    assert report(CLAIM).failed
    assert not report(CLAIM, wish=Wish(frozenset({"KERF-SCHEMA-TYPE"}))).failed
    assert not report(CLAIM, wish=Wish(frozenset({"KERF-SCHEMA-TYPE"}), strict=True)).findings
