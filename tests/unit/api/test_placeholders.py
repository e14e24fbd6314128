"""A placeholder gets no advice that would break the file: only whose it is, and how to replace it first."""

from __future__ import annotations

from typing import Any

import pytest

from kerf_api import labels
from kerf_api.lint import Problem, together, validate
from kerf_api.lint.reading import placeholders

from .manifests import changed
from .table.rows import requirement


@pytest.mark.parametrize(
    ("text", "placeholder", "kind"),
    [
        ("${ZONE}", "${ZONE}", "a placeholder of Flux, envsubst or Terraform"),
        ("node-$${ENV}", "${ENV}", "a placeholder of Flux, envsubst or Terraform"),
        ("${ZONE:=eu-west-1a}", "${ZONE:=eu-west-1a}", "a placeholder of Flux or envsubst"),
        ("${ZONE:-eu-west-1a}", "${ZONE:-eu-west-1a}", "a placeholder of Flux or envsubst"),
        ("${var.zone}", "${var.zone}", "an expression of Terraform"),
        ('x-${join(",", local.z)}', '${join(",", local.z)}', "an expression of Terraform"),
        ("%{ for zone in zones ~}", "%{ for zone in zones ~}", "a directive of Terraform's templates"),
        ("{{ .Values.zone }}", "{{ .Values.zone }}", "a template of Helm or its kind"),
        ("$CLUSTER_NAME", "$CLUSTER_NAME", "a placeholder of envsubst"),
        ("pool-$cluster_name", "$cluster_name", "a placeholder of envsubst"),
        ("${A:-${B}}-x", "${A:-${B}}", "a placeholder of Flux or envsubst"),
        ("${prod ? 1000 : 10}", "${prod ? 1000 : 10}", "an expression of Terraform"),
        ("${AWS::StackName}-pool", "${AWS::StackName}", "a placeholder of CloudFormation or the CDK"),
        ("${Token[TOKEN.12]}", "${Token[TOKEN.12]}", "a placeholder of CloudFormation or the CDK"),
        ("${{ github.ref }}", "${{ github.ref }}", "an expression of GitHub Actions or its kind"),
        ("{% if x %}", "{% if x %}", "a template of Jinja, ERB or their kind"),
        ("{# pools #}", "{# pools #}", "a template of Jinja, ERB or their kind"),
        ("<%= pool %>", "<%= pool %>", "a template of Jinja, ERB or their kind"),
        ("ref+awsssm://pool", "ref+awsssm://pool", "a reference of vals"),
        ("@@POOL@@", "@@POOL@@", "a placeholder of sed, CMake or their kind"),
        ("@POOL@", "@POOL@", "a placeholder of sed, CMake or their kind"),
        ("x-__POOL__", "__POOL__", "a placeholder of sed, CMake or their kind"),
        ("%POOL%", "%POOL%", "a placeholder of sed, CMake or their kind"),
        ("#{Pool}", "#{Pool}", "a placeholder of sed, CMake or their kind"),
        ("$(CLUSTER)", "$(CLUSTER)", "a placeholder of kustomize vars or make"),
        ("<<AZ>>", "<<AZ>>", "a placeholder to be filled in by hand"),
        ("<your zone>", "<your zone>", "a placeholder to be filled in by hand"),
        ("al2023@{version}", "{version}", "a placeholder of a script"),
    ],
)
def test_each_system_is_known(text: str, placeholder: str, kind: str) -> None:
    found = placeholders.find(text)
    assert found is not None
    assert (found.text, found.kind) == (placeholder, kind)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "us-east-1a",
        "a < b",
        "$5",
        "$",
        "{}",
        "a@b.c",
        "al2023@latest",
        "__a",
        "50% OF 100%",
        '{"a": 1}',
        "100%",
        "[a]",
        "#!/bin/sh\necho ${ZONE}",
        "a" * 600,
    ],
)
def test_other_texts_have_none(text: str) -> None:
    assert placeholders.find(text) is None


def test_of_a_script_only_the_braces_of_a_template_count() -> None:
    found = placeholders.find("#!/bin/sh\necho ${ZONE} {{ .Values.zone }}\n")
    assert found is not None
    assert found.text == "{{"


def told(path: str, value: Any) -> list[Problem]:
    return [problem for problem in validate(changed("NodePool", path, value)) if problem.rule != "KERF-NP-341"]


@pytest.mark.parametrize(
    "value",
    [
        "${NAME}",
        "<<AZ>>",
        "$NAME",
        "$name",
        "@NAME@",
        "__NAME__",
        "%NAME%",
        "<%= name %>",
        "${var.name}",
        "{{ .Values.name }}",
    ],
)
@pytest.mark.parametrize("path", ["metadata.name", "spec.weight", "T.terminationGracePeriod", "T.nodeClassRef.kind"])
def test_no_advice_is_given_on_the_text_of_a_placeholder(path: str, value: str) -> None:
    for problem in told(path, value):
        assert value in problem.hint
        assert "did you mean" not in problem.hint
        assert "quotes" not in problem.hint


def test_a_key_may_be_one_too() -> None:
    (problem,) = told("metadata.labels", {"${KEY}": "value"})
    assert '"${KEY}" is a placeholder of Flux, envsubst or Terraform' in problem.hint


def test_instance_types_are_not_guessed_from_one() -> None:
    (problem,) = told("T.requirements", [requirement(labels.INSTANCE_TYPE, values=("m7i.large", "${TYPE}"))])
    assert problem.hint.startswith('"${TYPE}" is a placeholder')


def test_nor_are_names_of_other_objects() -> None:
    pool, other = changed("NodePool", "T.nodeClassRef.name", "${CLASS}"), changed("EC2NodeClass", "metadata.name", "b")
    assert [p.hint for p in together([pool, other])[0] if p.rule == "KERF-SET-301"] == [
        '"${CLASS}" is a placeholder of Flux, envsubst or Terraform; substitute it first: '
        "flux envsubst < FILE | kerf validate -"
    ]


@pytest.mark.parametrize("role", ["${ROLE}", "KarpenterNodeRole-<name>", "$(ROLE)", "{{ .Values.role }}"])
def test_a_role_with_one_is_not_judged(role: str) -> None:
    found = validate(changed("EC2NodeClass", "spec.role", role))
    assert not [problem for problem in found if problem.rule == "KERF-EC2-115"]
