"""The table of AWS's rules refuses each wrong call by the right rule, and accepts the valid ones."""

from __future__ import annotations

import ast
import re
from datetime import date
from pathlib import Path
from typing import Any, Final

import pytest
from botocore.validate import ParamValidator

from tests.aws_rules import RULES, check, rules_for
from tests.aws_rules.model import NAME, pattern, service_model
from tests.aws_rules.rule import READ
from tests.sources import FOLDERS

from .valid import CALLS, with_value
from .wrong import AND, OUT_OF_MODEL, WRONG

TABLE: Final = Path(__file__).resolve().parents[2] / "aws_rules"


def wrong(rule: str) -> tuple[str, str, dict[str, Any]]:
    name, path, value = WRONG[rule]
    service, operation, parameters = with_value(name, path, value)
    if rule in AND:
        more, also = AND[rule]
        *above, last = more.split(".")
        inner: Any = parameters
        for part in above:
            inner = inner[int(part)] if part.isdigit() else inner[part]
        inner[last] = also
    return service, operation, parameters


def passes_botocore(service: str, operation: str, parameters: dict[str, Any]) -> bool:
    shape = service_model(service).operation_model(operation).input_shape
    return not ParamValidator().validate(parameters, shape).has_errors()


@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_valid_call_passes(name: str) -> None:
    assert [str(one) for one in check(*CALLS[name])] == []


@pytest.mark.parametrize("rule", sorted(WRONG))
def test_a_wrong_call_is_refused_by_its_rule(rule: str) -> None:
    problems = check(*wrong(rule))
    assert rule in {one.rule for one in problems}, [str(one) for one in problems]
    assert all(one.code and one.text for one in problems)


def test_each_rule_of_the_documentation_has_a_wrong_call() -> None:
    assert sorted(WRONG) == [one.name for one in RULES]
    assert len(RULES) >= 40


def test_botocore_accepts_the_wrong_calls() -> None:
    accepted = [rule for rule in WRONG if passes_botocore(*wrong(rule))]
    assert len(accepted) == len(WRONG)


@pytest.mark.parametrize("name", sorted(OUT_OF_MODEL))
def test_a_call_outside_the_service_model_is_refused(name: str) -> None:
    call, path, value = OUT_OF_MODEL[name]
    if call in CALLS:
        service, operation, parameters = with_value(call, path, value)
        parameters = {key: one for key, one in parameters.items() if one is not None}
    else:
        service, operation, parameters = "ec2", call, {path: value}
    assert {one.rule for one in check(service, operation, parameters)} == {NAME}


def test_botocore_itself_misses_most_of_the_service_model() -> None:
    calls = (OUT_OF_MODEL[name] for name in OUT_OF_MODEL if OUT_OF_MODEL[name][0] in CALLS)
    accepted = [call for call in calls if passes_botocore(*with_value(*call))]
    assert len(accepted) >= 8


def test_new_instance_types_pass() -> None:
    assert check("ec2", "DescribeInstanceTypes", {"InstanceTypes": ["x99.metal"]}) == []


def test_each_rule_names_its_page_and_applies_to_an_operation_that_exists() -> None:
    date.fromisoformat(READ)
    for one in RULES:
        assert one.text.endswith("."), one.name
        assert one.address.startswith("https://"), one.name
        for key in one.operations:
            service, _, operation = key.partition(":")
            assert operation in service_model(service).operation_names, one.name
            assert one in rules_for(service, operation)


def test_every_pattern_of_the_models_is_understood() -> None:
    found: set[str] = set()

    def walk(shape: Any, above: frozenset[str]) -> None:
        if shape.name in above:
            return
        found.update(text for text in (shape.metadata.get("pattern"),) if text)
        inner = shape.members.values() if shape.type_name == "structure" else ()
        for one in (shape.member,) if shape.type_name == "list" else inner:
            walk(one, above | {shape.name})

    for service, operation, _ in CALLS.values():
        walk(service_model(service).operation_model(operation).input_shape, frozenset())
    assert found
    assert all(isinstance(pattern(text), re.Pattern) for text in found)


def test_the_table_imports_nothing_of_kerf() -> None:
    for path in TABLE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            assert not any(name.split(".")[0] in FOLDERS for name in names), path.name
