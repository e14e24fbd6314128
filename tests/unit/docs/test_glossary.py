"""docs/glossary.md is sorted, brief, and has every kind and disruption; the example of docs/concepts.md is valid."""

from __future__ import annotations

import re

import yaml

from kerf_api import crds, lint
from tests.sources import ROOT

TEXT = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", TEXT, re.MULTILINE)[1:]


def test_its_terms_are_sorted_and_each_is_there_once() -> None:
    terms = [term.casefold() for term, _ in ROWS]
    assert terms == sorted({*terms})
    assert len(terms) > 60


def test_a_term_has_one_or_two_sentences_and_a_link() -> None:
    for term, meaning in ROWS:
        own = re.sub(r" See \[[^]]+\]\([^)]+\)\.$", "", meaning)
        assert own.endswith("."), term
        assert len(re.findall(r"\.(?: |$)", own)) <= 2, term
        assert len(own.split()) <= 50, term


def test_every_kind_has_a_term() -> None:
    assert {*crds.kinds()} <= {term for term, _ in ROWS}


def test_the_example_of_the_concepts_is_valid() -> None:
    text = (ROOT / "docs/concepts.md").read_text(encoding="utf-8")
    manifests = [
        one for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) for one in yaml.safe_load_all(block)
    ]
    assert [one["kind"] for one in manifests] == ["NodePool", "EC2NodeClass"]
    found = [problem for one in manifests for problem in lint.validate(one)]
    assert [problem for problem in found if problem.severity != "info"] == []
