"""The work of reading, checking, filling in and converting grows in proportion to the file."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from kerf.cli.gathering.origins import _without_braces
from kerf.cli.rewriting import converting, filling
from kerf.manifests import file_rules
from kerf.manifests.checking import Content, Wish, check
from kerf.manifests.nodes import Unreadable
from kerf_api.conversion import Wish as Conversion
from tests.sources import ROOT

POOL = (ROOT / "manifests/examples/general-purpose.yaml").read_text()
OLD = "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: a}\nspec:\n  providerRef: {name: b}\n"
REPEATED = {
    "banners": ("", f"{'#' * 79}\n", POOL),
    "markers": ("", "---\n", POOL),
    "directives": ("", "%YAML 1.1\n", "---\n" + POOL),
    "exceptions": ("", "# kerf:ignore KERF-NP-201 reason\n", POOL),
    "unknown exceptions": ("", "# kerf:ignore KERF-NP-999 reason\n", POOL),
    "exceptions at entries": ("a:\n", "- a # kerf:ignore KERF-NP-201 reason\n", ""),
    "JSON": ("", '{"a": 1}\n', ""),
    "JSON on one line": ("", '{"a": 1}', ""),
    "lines of one value": ("apiVersion: v1\nkind: ConfigMap\ndata:\n  a: |\n", "    a line of text\n", ""),
    "values of one document": ("apiVersion: v1\nkind: ConfigMap\ndata:\n", "  a{}: b\n", ""),
    "words of one line": ("a: ", "word ", "\n"),
    "a list on one line": ("a: [", "b, ", "]\n"),
    "entries": ("a:\n", "- a\n", ""),
    "aliases": ("- &a x\n", "- *a\n", ""),
    "unclosed brackets": ("", "[", ""),
    "unclosed maps": ("", "{a: ", ""),
    "nested entries": ("", "- ", ""),
    "a key twice": ("", "a: 1\n", ""),
    "templates": ("", "a: {{ x }}\n---\n", ""),
    "comments of old manifests": (OLD, "  # comment\n", ""),
    "NodePools and their classes": (
        "",
        "---\napiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: a{}}\n---\n"
        "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: b{}}\n"
        "spec: {weight: 1, template: {spec: {nodeClassRef: {kind: EC2NodeClass, name: c{}}}}}\n",
        "",
    ),
    "pools of a repository": ("", POOL.replace("name: general", "name: general-{}", 1), ""),
    "placeholders": ("", POOL.replace("name: general", "name: ${NAME_{}}", 1).replace("30", "${DAYS}"), ""),
    "labels of old manifests": (f"{OLD}  labels:\n", "    a{}: b # comment\n", ""),
}


def _checked(data: bytes) -> None:
    check([Content("a.yaml", data)], Wish(), file_rules.known)


def _filled(data: bytes) -> None:
    with suppress(Unreadable):
        filling.filled(data)


def _converted(data: bytes) -> None:
    converting.convert_files([Content("a.yaml", data)], Conversion("", ""))


def _calls(verb: Callable[[bytes], None], data: bytes) -> int:
    """How many functions are called."""
    count = 0

    def called(_: Any, event: str, __: Any) -> None:
        nonlocal count
        count += event.endswith("call")

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        verb(data)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("shape", REPEATED)
@pytest.mark.parametrize("verb", [_checked, _filled, _converted], ids=["validate", "default", "convert"])
def test_a_larger_file_takes_more_work_in_proportion(verb: Callable[[bytes], None], shape: str) -> None:
    begin, part, end = REPEATED[shape]

    def text(times: int) -> bytes:
        return (begin + "".join(part.replace("{}", str(n)) for n in range(times)) + end).encode()

    verb(text(120))  # fills the caches
    once, twice, thrice = (_calls(verb, text(times)) for times in (120, 220, 320))
    assert thrice - twice < 1.3 * (twice - once) + 200


@pytest.mark.long
def test_ten_megabytes_of_pools_take_work_in_proportion() -> None:
    shape = POOL.replace("name: general", "name: general-{}", 1)
    count = 10_000_000 // len(shape)
    pools = [shape.replace("{}", str(number)) for number in range(count)]
    half, whole = (_calls(_checked, "---\n".join(pools[:part]).encode()) for part in (count // 2, count))
    assert whole < 2.2 * half


def test_values_on_one_line_of_json_are_read_in_good_time() -> None:
    began = time.process_time()
    report = check([Content("a.json", b'{"a":1}' * 15_000)], Wish(), file_rules.known)
    assert report.skipped == 15_000
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    ("template", "plain"),
    [
        ("a: {{ b }}\n", "a: x\n"),
        ("{{ if a }}\nb: c\n{{ end }}", "\nb: c\n"),
        ("{{ a\n}}\n  {{ b }} \n", "\n\n   \n"),
        ("{{ a }}{{ b }}\n", "xx\n"),
        ("{{ a }} b\n{{}}}", "x b\nx}"),
        ("a: {{ b", "a: {{ b"),
        ("{{ a\n}} {{ b }}", "x x"),
    ],
)
def test_braces_of_templates_become_yaml_of_as_many_lines(template: str, plain: str) -> None:
    assert _without_braces(template) == plain
    assert _without_braces("{{ " * 1000) == "{{ " * 1000
