"""What an expression in spec.kubelet may be made of, what it comes to, what is said of those that cannot be."""

from __future__ import annotations

import pytest

from kerf_api.kubelet import expressions
from kerf_api.kubelet.expressions import PLAIN, ExpressionError


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("110", 110),
        ("-5", -5),
        ("vcpus * 8 + memory_mib / 1024 - default_enis % 3", 47),
        ("7.9", 7),
        ("-7.9", -7),
        ("double(vcpus) * 1.5", 6),
        ("min(vcpus * 8, 110)", 32),
        ("max(ips_per_eni, 14.5)", 15),
        ("min(vcpus, 2.5) * 2.0", 5),
        ("min(max_pods, max(default_enis, 20)) * 2", 40),
        ("instance_type.startsWith('m5') && !(vcpus > 4) ? 58 : 10", 58),
        ("instance_type in ['c5.large', 'm5.xlarge'] ? 1 : 2", 1),
        ("{'m5.xlarge': 3}[instance_type] + [1, 2][1] + size(instance_type)", 14),
        ("vcpus // a comment\n + 1", 5),
    ],
)
def test_what_it_comes_to_on_a_plain_machine(text: str, found: int) -> None:
    assert expressions.problem(text) is None
    assert expressions.value(text, PLAIN) == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "column 1"),
        ("vcpus *", "cannot be read: column 8: it ends too early"),
        ("vcpus\n+\n*", "line 3, column 1"),
        ("1Gi5", "column 2: extraneous input 'Gi5'"),
        ("9223372036854775808", "column 1: invalid int literal"),
        ("cores * 2", "asks for cores; allowed variables: vcpus, memory_mib"),
        ("log(vcpus)", "may not use log; allowed functions: contains, double"),
        ("instance_type.matches('(a{1000}){1000}') ? 1 : 2", "may not use matches"),
        ("[1, 2].map(vcpus, vcpus)[0]", "may not use map"),
        ("[1].exists(one, one > 0) ? 1 : 2", "may not use exists"),
        ("vcpus * 1.5", "incompatible types"),
        ("instance_type", "is a text, no number"),
        ("vcpus > 3", "is a truth value, no number"),
        ("[vcpus]", "is a list, no number"),
        ("min(1, 2, 3)", "min and max need two numbers"),
        ("max('a', 1)", "min and max need two numbers"),
        ("(" * 200 + "1" + ")" * 200, "nested too deeply"),
        ("1" + " + 1" * 250, "longer than 1000 characters"),
        ("\ud800", "cannot be read"),
    ],
)
def test_what_is_no_expression_on_any_machine(text: str, words: str) -> None:
    found = expressions.problem(text)
    assert found is not None
    assert words in found
    assert len(found) < 400
    with pytest.raises(ExpressionError):
        expressions.value(text, PLAIN)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("vcpus / 0", "division by zero"),
        ("vcpus % (vcpus - 4)", "modulo by zero"),
        ("9223372036854775807 + vcpus", "overflow"),
        ("{'m5.large': 3}[instance_type]", "m5.xlarge"),
        ("1.0 / 0.0", "inf, which is no number of 64 bits"),
        ("0.0 / 0.0", "nan"),
        ("1e300", "64 bits"),
        ("int('x')", "invalid digit"),
        ("vcpus < 5 ? 'a' : 'b'", "is a text"),
    ],
)
def test_what_has_no_value_on_this_machine(text: str, words: str) -> None:
    with pytest.raises(ExpressionError, match=words):
        expressions.value(text, PLAIN)


def test_what_may_have_a_value_on_others_is_no_mistake() -> None:
    assert expressions.problem("100 / (vcpus - 4)") is None
    assert expressions.value("100 / (vcpus - 4)", {**PLAIN, "vcpus": 8}) == 25
    assert expressions.problem("vcpus > 4 ? 'a' : 1") is None
    with pytest.raises(ExpressionError, match="is a text"):
        expressions.value("vcpus > 4 ? 'a' : 1", {**PLAIN, "vcpus": 8})
