"""Annotations that Kerf writes itself: in Git a warning, in a template an error, in live objects nothing."""

from __future__ import annotations

import pytest

from kerf_api import labels
from kerf_api.lint import Problem, together, validate
from kerf_api.written_annotations import WRITTEN

from .manifests import BASES, placed

TEMPLATE = "spec.template.metadata.annotations"


def in_git(kind: str, *keys: str) -> list[Problem]:
    manifest = placed(BASES[kind], "metadata.annotations", dict.fromkeys(keys, "x"))
    return [problem for problem in together([manifest])[0] if problem.rule == "KERF-META-203"]


@pytest.mark.parametrize("kind", sorted(WRITTEN))
def test_each_annotation_of_a_kind_is_reported_in_git_and_not_in_a_live_object(kind: str) -> None:
    found = in_git(kind, *WRITTEN[kind], labels.DO_NOT_DISRUPT, labels.ALLOW_DELETION, "example.com/team")
    assert [problem.steps[-1] for problem in found] == sorted(WRITTEN[kind])
    live = placed(BASES[kind], "metadata.annotations", dict.fromkeys(WRITTEN[kind], "x"))
    assert [problem for problem in validate(live) if "META" in problem.rule] == []


@pytest.mark.parametrize("kind", ["NodeOverlay", "CapacityBuffer"])
def test_other_kinds_have_no_such_annotations(kind: str) -> None:
    assert in_git(kind, labels.LAUNCH_REQUEST, labels.NODEPOOL_HASH) == []


def test_an_annotation_of_another_kind_is_the_users() -> None:
    assert in_git("NodePool", labels.LAUNCH_REQUEST, labels.NODECLASS_HASH) == []


def in_template(key: str, value: str, old: dict[str, str] | None = None) -> list[tuple[str, str]]:
    """Rule and severity of each problem of a template with this annotation, in place of one with `old`."""
    new = placed(BASES["NodePool"], TEMPLATE, {**(old or {}), key: value})
    before = None if old is None else placed(BASES["NodePool"], TEMPLATE, old)
    return [(problem.severity, problem.path) for problem in validate(new, before) if problem.rule == "KERF-NP-126"]


@pytest.mark.parametrize("key", sorted(WRITTEN["NodeClaim"]))
def test_a_template_is_given_none(key: str) -> None:
    refused = [("error", f"{TEMPLATE}[{key}]")]
    assert in_template(key, "x") == refused
    assert in_template(key, "x", {}) == refused
    assert in_template(key, "y", {key: "x"}) == refused
    assert in_template(key, "x", {key: "x"}) == [("warning", f"{TEMPLATE}[{key}]")]


def test_annotations_of_pools_and_for_users_may_be_in_a_template() -> None:
    for key in (labels.DO_NOT_DISRUPT, labels.BACK_OFF, "example.com/team"):
        assert in_template(key, "true") == []
