"""The chart's ClusterRole gives leave to list and watch exactly what is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from reconciler.model import kinds

TEMPLATE = Path(__file__).resolve().parents[3] / "charts/kerf/templates/clusterrole.yaml"


def rules() -> list[dict[str, Any]]:
    """The controller's rules, those behind conditions included; lines of the template language left out."""
    first, _, _ = TEMPLATE.read_text(encoding="utf-8").partition("---\n")
    plain = "\n".join(line for line in first.splitlines() if "{{" not in line)
    found: list[dict[str, Any]] = YAML(typ="safe").load(plain)["rules"]
    return found


def test_every_kind_that_is_watched_may_be_listed_and_watched_and_no_other() -> None:
    allowed = {
        (group, resource)
        for rule in rules()
        if {"list", "watch"} <= set(rule["verbs"])
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert allowed == {(kind.group, kind.plural) for kind in kinds.KNOWN}


def test_pods_statuses_may_be_written_only_when_pods_are_to_be_told() -> None:
    text = TEMPLATE.read_text(encoding="utf-8")
    _, _, after = text.partition('{{- if include "kerf.on" .Values.settings.nominatePods }}')
    guarded, _, _ = after.partition("{{- end }}")
    assert "resources: [pods/status]\n    verbs: [patch]" in guarded
    assert "pods/status" not in text.replace(guarded, "")
