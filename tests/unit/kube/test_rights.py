"""The chart's roles give leave for what the controller's code can ask for, and for nothing else."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from kerf.kube.client import KubeClient
from kerf.model import kinds
from tests.cluster.grants import Grant, of_rules
from tests.unit.kube.asked import DNS, EVERYWHERE, OWN, NotUnderstood, Source, asked, port_calls, sources, written

TEMPLATES = Path(__file__).resolve().parents[3] / "charts/kerf/templates"
TEMPLATE = TEMPLATES / "clusterrole.yaml"


def roles(path: Path) -> list[dict[str, Any]]:
    """The roles of a template, rules behind conditions included; what the template fills in is called `filled`."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.strip().startswith("{{")]
    text = re.sub(r'"?\{\{.*?\}\}"?', "filled", "\n".join(lines))
    found = YAML(typ="safe").load_all(text)
    return [one for one in found if one and one["kind"] in ("Role", "ClusterRole")]


def given() -> set[Grant]:
    """What the roles give, whoever asks for what; names are left out."""
    (everywhere,), (own, dns) = roles(TEMPLATE), roles(TEMPLATES / "role.yaml")
    assert dns["metadata"]["namespace"] == DNS
    parts = ((everywhere, EVERYWHERE), (own, OWN), (dns, DNS))
    return {replace(grant, name="") for role, where in parts for grant in of_rules(role["rules"], where)}


def test_what_the_code_can_ask_for_is_given_and_nothing_else() -> None:
    needed, found = asked(sources()), given()
    assert sorted(map(str, needed - found)) == [], "asked for in the code, and not given by the chart"
    assert sorted(map(str, found - needed)) == [], "given by the chart, and nowhere asked for in the code"


def documented() -> list[Grant]:
    """The rows of the table in docs/permissions.md."""
    text = (TEMPLATES.parents[2] / "docs/permissions.md").read_text(encoding="utf-8")
    _, _, table = text.partition("| group | resources | verbs | where | why |\n|---|---|---|---|---|\n")
    found: list[Grant] = []
    for line in table.partition("\n\n")[0].splitlines():
        group, resources, verbs, where, why = (cell.strip() for cell in line.strip("|").split(" | "))
        assert why
        rule = {"apiGroups": ["" if group == "core" else group]}
        rule |= {"resources": resources.split(", "), "verbs": verbs.split(", ")}
        found += of_rules([rule], {"everywhere": EVERYWHERE, "own namespace": OWN, DNS: DNS}[where.partition(", ")[0]])
    return found


def test_the_docs_have_every_rule_once() -> None:
    rows = documented()
    assert len(rows) == len(set(rows))
    assert sorted(map(str, given() - set(rows))) == [], "given by the chart, and not in the docs"
    assert sorted(map(str, set(rows) - given())) == [], "in the docs, and not given by the chart"


def test_what_can_be_created_under_any_name_has_no_names_in_its_rule() -> None:
    """Such a rule would give nothing: the API server does not know the name yet."""
    for role in (*roles(TEMPLATE), *roles(TEMPLATES / "role.yaml")):
        for rule in role["rules"]:
            assert "resourceNames" not in rule or not {"create", "list", "watch"} & set(rule["verbs"])


def test_secrets_leases_and_webhook_configurations_are_given_by_name_alone() -> None:
    for role in (*roles(TEMPLATE), *roles(TEMPLATES / "role.yaml")):
        for rule in role["rules"]:
            if {"secrets", "leases", "services"} & {*rule["resources"]} and {"get", "update", "patch"} & {
                *rule["verbs"]
            }:
                assert rule.get("resourceNames"), rule
            if rule["apiGroups"] == ["admissionregistration.k8s.io"]:
                assert rule.get("resourceNames"), rule


def test_every_kind_that_is_watched_may_be_listed_and_watched_and_no_other() -> None:
    (role,) = roles(TEMPLATE)
    for verb in ("list", "watch"):
        allowed = {(one.group, one.resource) for one in of_rules(role["rules"]) if one.verb == verb}
        assert allowed == {(kind.group, kind.plural) for kind in kinds.KNOWN}


def test_pods_statuses_may_be_written_only_when_pods_are_to_be_told() -> None:
    text = TEMPLATE.read_text(encoding="utf-8")
    _, _, after = text.partition('{{- if include "kerf.on" .Values.settings.nominatePods }}')
    guarded, _, _ = after.partition("{{- end }}")
    assert "resources: [pods/status]\n    verbs: [patch]" in guarded
    assert "pods/status" not in text.replace(guarded, "")


# --- the reading of the source ------------------------------------------------------------------------------------
def read(**modules: str) -> Source:
    return Source({f"lifecycle/{name}.py": ast.parse(text) for name, text in modules.items()})


HELPER = """
def deletion(value: Any, reason):
    return DeleteObject(reason=reason, ref=kinds.ref(value))
"""


def test_a_write_is_found_through_helpers() -> None:
    caller = "from kerf.lifecycle.helper import deletion as gone\ndef step(node: Node): return gone(node, 'why')"
    source = read(caller=caller, helper=HELPER)
    assert {(action, kind.plural) for action, kind, _ in written(source)} == {("DeleteObject", "nodes")}


def test_a_status_is_another_resource_than_its_object() -> None:
    text = "def step(pod: Pod): return PatchObject(ref=kinds.ref(pod), subresource='status')"
    assert written(read(step=text)) == {("PatchObject", kinds.POD, "status")}


def test_a_name_is_a_noun() -> None:
    loop = "def steps(found): return [PatchObject(ref=kinds.ref(one.pool)) for one in found]"
    field = "class State:\n    pool: NodePool | None"
    assert written(read(loop=loop, field=field)) == {("PatchObject", kinds.NODE_POOL, "")}


def test_what_cannot_be_understood_is_an_error() -> None:
    with pytest.raises(NotUnderstood, match="of which kind is thing"):
        written(read(step="def step(): return [DeleteObject(ref=kinds.ref(thing)) for thing in things]"))
    with pytest.raises(NotUnderstood, match="say kinds"):
        written(read(step="def step(ref): return DeleteObject(ref=ref)"))


def test_a_method_that_nobody_has_described_is_an_error() -> None:
    with pytest.raises(NotUnderstood, match="say in asked"):
        asked(read(step="def step(self): self._kube.scale('deployment', 3)"))


def test_a_request_that_nobody_has_described_is_an_error() -> None:
    with pytest.raises(NotUnderstood, match="say in asked"):
        asked(read(step="def step(kube): kube.request('DELETE', '/api/v1/nodes')"))


def test_every_method_that_the_controller_calls_is_one_of_the_clients() -> None:
    called = {call.func.attr for _, _, call in port_calls(sources()) if isinstance(call.func, ast.Attribute)}
    assert called <= {*dir(KubeClient)}
    assert {"list", "watch", "get", "create", "patch", "delete", "evict", "emit", "request", "get_lease"} <= called
