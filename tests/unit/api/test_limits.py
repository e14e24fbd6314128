"""Limits of a NodePool on resources that no node has."""

from __future__ import annotations

import pytest

from kerf_api.lint import validate

from .manifests import changed


def hints(*names: str) -> list[str]:
    found = validate(changed("NodePool", "spec.limits", dict.fromkeys(names, "1000")))
    return [f"{problem.path}: {problem.hint}" for problem in found if problem.rule == "KERF-NP-345"]


@pytest.mark.parametrize(
    ("name", "close"),
    [
        ("cpus", "cpu"),
        ("CPU", "cpu"),
        ("cores", "cpu"),
        ("mem", "memory"),
        ("Memory", "memory"),
        ("node", "nodes"),
        ("storage", "ephemeral-storage"),
        ("gpu", "nvidia.com/gpu"),
    ],
)
def test_a_misspelt_resource_has_the_one_that_is_meant(name: str, close: str) -> None:
    assert hints(name) == [f"spec.limits.{name}: did you mean {close}?"]


def test_a_resource_like_no_other_has_the_list() -> None:
    (hint,) = hints("widgets")
    assert "there are cpu, ephemeral-storage, memory, nodes, pods" in hint


def test_resources_that_nodes_may_have_pass() -> None:
    own = ("cpu", "memory", "ephemeral-storage", "nodes", "pods", "hugepages-2Mi")
    assert hints(*own, "nvidia.com/gpu", "vpc.amazonaws.com/pod-eni", "example.com/widget") == []
