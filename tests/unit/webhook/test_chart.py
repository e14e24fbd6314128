"""The chart's webhook configurations ask about every kind that the webhook can judge, in its version and scope."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from kerf_api import chart_annotations, crds
from kerf_webhook import verdict

CHART = Path(__file__).resolve().parents[3] / "charts/kerf"
TEMPLATE = CHART / "templates/webhook.yaml"


def rules() -> list[dict[str, Any]]:
    """The rules of the template, which both configurations share and which hold no template language."""
    _, _, rest = TEMPLATE.read_text().partition("    rules:\n")
    found: list[dict[str, Any]] = YAML(typ="safe").load(rest.partition("    # ")[0])
    return found


def test_the_rules_name_every_kind_in_its_version_and_scope() -> None:
    named = {
        (f"{resource}.{group}", version, rule["scope"])
        for rule in rules()
        for group in rule["apiGroups"]
        for version in rule["apiVersions"]
        for resource in rule["resources"]
    }
    assert named == {
        (name, crds.api_version(kind).partition("/")[2], "Namespaced" if crds.is_namespaced(kind) else "Cluster")
        for name, kind in verdict.resources().items()
    }


def test_only_writes_of_objects_are_asked_about() -> None:
    assert all(rule["operations"] == ["CREATE", "UPDATE"] for rule in rules())
    assert not any("/" in resource for rule in rules() for resource in rule["resources"])


@pytest.mark.parametrize("name", chart_annotations.LISTS)
def test_the_lists_for_the_match_conditions_are_up_to_date(name: str) -> None:
    text = (CHART / f"files/{name}.yaml").read_text()
    assert text == chart_annotations.rendered(name), "run make manifests"
    assert YAML(typ="safe").load(text) == list(chart_annotations.LISTS[name])
