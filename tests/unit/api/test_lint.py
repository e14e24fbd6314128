"""How problems are told: order, places, what changes may not do, and that nothing ever raises."""

from __future__ import annotations

import copy
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf_api import crds, labels
from kerf_api.lint import Problem, path_text, together, validate
from kerf_api.lint.reading.plain import MOST_VALUES, plain

from .manifests import ABSENT, BASES, NODECLAIM, NODEPOOL, changed
from .table.rows import requirement
from .test_defaulting import FIELDS, anything, likely


def rules(problems: list[Problem], severity: str = "error") -> list[str]:
    return [problem.rule for problem in problems if problem.severity == severity]


@pytest.mark.parametrize("kind", crds.kinds())
def test_the_small_manifests_are_perfect(kind: str) -> None:
    assert validate(BASES[kind]) == []


def test_all_problems_come_at_once_errors_first_in_the_order_of_places() -> None:
    manifest = changed(
        "NodePool",
        "spec",
        {
            "weight": 0,
            "disruption": {"budgets": [{"nodes": "x", "reasons": []}, {"nodes": "1", "schedule": "@daily"}]},
            "template": {
                "spec": {"requirements": [{"key": "karpenter.sh/x", "operator": "Exists", "values": ["a"]}] * 11}
            },
        },
    )
    found = validate(manifest)
    assert [p.severity for p in found] == sorted((p.severity for p in found), key=["error", "warning", "info"].index)
    errors = [p.path for p in found if p.severity == "error"]
    assert errors[:3] == [
        "spec.disruption.budgets[0].nodes",
        "spec.disruption.budgets[1]",
        "spec.template.spec.nodeClassRef",
    ]
    keys = [f"spec.template.spec.requirements[{n}].key" for n in range(11)]
    assert [path for path in errors if path.endswith("].key")] == keys
    assert errors[-1] == "spec.weight"
    assert "KERF-NP-206" in rules(found, "warning")


@pytest.mark.parametrize(
    ("kind", "path", "value", "rule"),
    [
        ("NodeOverlay", "spec.requirements[0].operator", "Exists", "KERF-NO-201"),
        ("NodeOverlay", "spec.requirements[0]", requirement(operator="DoesNotExist"), "KERF-NO-201"),
        ("NodeOverlay", "spec.priceAdjustment", ABSENT, "KERF-NO-203"),
        ("NodeOverlay", "spec.capacity", {"x": "-1"}, "KERF-NO-204"),
        ("CapacityBuffer", "spec", {}, "KERF-CB-201"),
        ("CapacityBuffer", "spec", {"percentage": 5}, "KERF-CB-201"),
        ("CapacityBuffer", "spec.scalableRef.apiGroup", "argoproj.io", "KERF-CB-202"),
        ("CapacityBuffer", "spec.scalableRef.kind", "DaemonSet", "KERF-CB-203"),
        ("CapacityBuffer", "spec.percentage", ABSENT, "KERF-CB-205"),
        ("CapacityBuffer", "spec.provisioningStrategy", "", "KERF-CB-206"),
        ("CapacityBuffer", "spec.scalableRef.name", "A", "KERF-CB-207"),
        ("CapacityBuffer", "spec.limits", {"cpu": -1}, "KERF-CB-208"),
        (
            "CapacityBuffer",
            "spec",
            {"podTemplateRef": {"name": "x"}, "replicas": 1, "percentage": 5},
            "KERF-CB-204",
        ),
    ],
)
def test_what_never_works_in_overlays_and_buffers_is_a_warning(kind: str, path: str, value: Any, rule: str) -> None:
    found = validate(changed(kind, path, value))
    assert rules(found) == []
    assert rules(found, "warning") == [rule]


@pytest.mark.parametrize("kind", crds.kinds())
def test_only_names_that_become_labels_are_too_long_for_one(kind: str) -> None:
    found = rules(validate(changed(kind, "metadata.name", "a" * 64)), "warning")
    assert found == (["KERF-META-201"] if kind in ("NodePool", "EC2NodeClass") else [])


@pytest.mark.parametrize("kind", crds.kinds())
@pytest.mark.parametrize("namespace", ["team-a", "Not a namespace!", "", None])
def test_a_namespace_of_what_has_none_is_dropped_and_told(kind: str, namespace: str | None) -> None:
    found = validate(changed(kind, "metadata.namespace", namespace))
    told = kind != "CapacityBuffer" and bool(namespace)
    assert [(p.rule, p.severity) for p in found] == ([("KERF-META-202", "info")] if told else [])


@pytest.mark.parametrize("kind", crds.kinds())
@pytest.mark.parametrize(
    "metadata",
    [
        *({name: None} for name in ("generateName", "namespace", "labels", "annotations", "finalizers", "uid")),
        *({"creationTimestamp": None, "generation": None}, {"labels": {"a": None}, "annotations": {"a": None}}),
        *({"name": None, "generateName": "a-"}, {"name": "", "generateName": "a--"}, {"finalizers": ["a/b"]}),
        *({"labels": {"example.com/A": "", "b": "A.b-c_d"}}, {"annotations": {"Example.COM/A": "any thing, at all"}}),
    ],
)
def test_what_the_api_server_takes_in_metadata(kind: str, metadata: dict[str, Any]) -> None:
    manifest = {**BASES[kind], "metadata": {"name": "default", **metadata}}
    assert validate(manifest) == []


@pytest.mark.parametrize("kind", crds.kinds())
@pytest.mark.parametrize(
    ("metadata", "rule", "path"),
    [
        (None, "KERF-META-101", "metadata.name"),
        ({"name": None}, "KERF-META-101", "metadata.name"),
        ({"name": ""}, "KERF-META-101", "metadata.name"),
        ({"name": None, "generateName": "My_"}, "KERF-META-102", "metadata.generateName"),
        ({"name": None, "generateName": "-"}, "KERF-META-102", "metadata.generateName"),
        ({"labels": {"a b": "c"}}, "KERF-META-103", "metadata.labels[a b]"),
        ({"labels": {"a": "b c"}}, "KERF-META-103", "metadata.labels.a"),
        ({"labels": {"a": "x" * 64}}, "KERF-META-103", "metadata.labels.a"),
        ({"labels": {"Example.com/a": "b"}}, "KERF-META-103", "metadata.labels[Example.com/a]"),
        ({"annotations": {"a b": "c"}}, "KERF-META-103", "metadata.annotations[a b]"),
        ({"labels": {"a": 1}}, "KERF-SCHEMA-TYPE", "metadata.labels.a"),
        ({"finalizers": "x"}, "KERF-SCHEMA-TYPE", "metadata.finalizers"),
        ({"uid": 5}, "KERF-SCHEMA-TYPE", "metadata.uid"),
    ],
)
def test_what_the_api_server_refuses_in_metadata(kind: str, metadata: Any, rule: str, path: str) -> None:
    whole = metadata if metadata is None else {"name": "default", **metadata}
    found = validate({**BASES[kind], "metadata": whole})
    assert [(p.rule, p.path) for p in found if p.severity == "error"] == [(rule, path)]


def test_what_the_controller_itself_writes_is_no_matter() -> None:
    written = {labels.CONSOLIDATION_PAUSE: '{"at": "2026-03-04T12:00:00Z", "lost": 1}'}
    assert validate(changed("NodePool", "metadata.annotations", written)) == []


@pytest.mark.parametrize(
    ("path", "value", "rule"),
    [
        ("R", {"key": "a", "operator": "Exists", "values": ["x"]}, "KERF-NP-201"),
        ("R", {"key": "a", "operator": "NotIn", "values": []}, "KERF-NP-202"),
        ("R", {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "Spot"]}, "KERF-NP-203"),
        ("B", {"nodes": "0", "schedule": "0 0 30 2 *", "duration": "1h"}, "KERF-NP-204"),
        ("B.nodes", "4294967296", "KERF-NP-205"),
        ("B.reasons", [], "KERF-NP-206"),
        ("T.nodeClassRef.kind", "GCENodeClass", "KERF-NP-207"),
        ("spec.template.metadata.annotations", {"a b": "c"}, "KERF-NP-208"),
        ("spec.template.metadata.annotations", {"karpenter.sh/do-not-disrupt": "1h"}, "KERF-NP-209"),
        ("spec.template.metadata.annotations", {"kerf.sh/consolidation-minimum-age": "1h"}, "KERF-NP-210"),
        ("metadata.annotations", {"kerf.sh/consolidation-min-saving": "5%"}, "KERF-NP-210"),
        ("metadata.name", "a" * 64, "KERF-META-201"),
    ],
)
def test_what_silently_misbehaves_is_a_warning(path: str, value: Any, rule: str) -> None:
    found = validate(changed("NodePool", path, value))
    assert rules(found) == []
    assert rules(found, "warning") == [rule]


@pytest.mark.parametrize(
    ("path", "value", "rule"),
    [
        (
            "spec.subnetSelectorTerms",
            [{"id": "subnet-00000001", "tags": {"a": "b"}}, {"id": "subnet-00000002"}],
            "KERF-EC2-201",
        ),
        (
            "spec.securityGroupSelectorTerms",
            [{"id": "sg-00000001", "tags": {"a": "b"}}, {"id": "sg-00000002"}],
            "KERF-EC2-202",
        ),
        ("spec.securityGroupSelectorTerms", [{"name": "x", "tags": {"a": "b"}}, {"id": "sg-00000002"}], "KERF-EC2-203"),
        (
            "spec.capacityReservationSelectorTerms",
            [{"id": "cr-00000001", "tags": {"a": "b"}}, {"id": "cr-00000002"}],
            "KERF-EC2-204",
        ),
        ("spec.amiSelectorTerms", [{"alias": "al2023@latest", "ssmParameter": "/x"}], "KERF-EC2-206"),
    ],
)
def test_ignored_fields_of_a_term_are_a_warning(path: str, value: Any, rule: str) -> None:
    found = validate(changed("EC2NodeClass", path, value))
    assert rules(found) == []
    assert rules(found, "warning") == [rule]


@pytest.mark.parametrize(
    ("kind", "path", "before", "after", "rule"),
    [
        ("NodePool", "T.nodeClassRef.group", "a.example.com", "b.example.com", "KERF-NP-012"),
        ("NodePool", "T.nodeClassRef.kind", "A", "B", "KERF-NP-013"),
        ("NodePool", "T.nodeClassRef.name", "a", "b", None),
        ("NodePool", "spec.replicas", None, 3, "KERF-NP-001"),
        ("NodePool", "spec.replicas", 3, None, "KERF-NP-001"),
        ("NodePool", "spec.replicas", 3, 4, None),
        ("NodeClaim", "spec.terminationGracePeriod", None, "1h", "KERF-NC-001"),
        ("NodeClaim", "spec.expireAfter", None, "720h", None),
        ("NodeClaim", "metadata.labels", {}, {"a": "b"}, None),
        ("EC2NodeClass", "spec.role", "a", "b", None),
        ("NodeOverlay", "spec.weight", 1, 2, None),
        ("CapacityBuffer", "spec.scalableRef.name", "a", "b", None),
    ],
)
def test_rules_about_changes(kind: str, path: str, before: Any, after: Any, rule: str | None) -> None:
    old, new = changed(kind, path, before), changed(kind, path, after)
    assert rules(validate(new, old)) == ([rule] if rule else [])
    assert rules(validate(new)) == []


def test_an_old_fault_becomes_a_warning_and_a_new_one_stays() -> None:
    old = changed("NodePool", "spec.weight", 0)
    new = copy.deepcopy(old)
    new["spec"]["template"]["spec"]["expireAfter"] = "1d"
    found = validate(new, old)
    assert [(p.severity, p.path) for p in found] == [
        ("error", "spec.template.spec.expireAfter"),
        ("warning", "spec.weight"),
    ]
    old["spec"]["weight"] = -1
    assert rules(validate(new, old)) == ["KERF-SCHEMA-PATTERN", "KERF-SCHEMA-BOUND"]


def test_a_structural_fault_hides_only_the_rules_that_read_it() -> None:
    manifest = changed("NodePool", "spec.weight", "x")
    manifest["spec"]["replicas"] = 1
    manifest["spec"]["limits"] = {"cpu": "1"}
    assert rules(validate(manifest)) == ["KERF-NP-002", "KERF-SCHEMA-TYPE"]


@pytest.mark.parametrize("manifest", [{}, [], None, "x", 3, {"kind": 3}, {"kind": "NodePool"}, {"spec": None}])
def test_what_is_no_manifest_is_a_problem(manifest: Any) -> None:
    assert rules(validate(manifest))


def test_what_yaml_can_say_and_json_cannot() -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    manifest = copy.deepcopy(NODEPOOL)
    manifest["spec"]["template"]["metadata"]["labels"] = {1: "a", "day": date(2026, 1, 1), "x": float("nan")}
    manifest["spec"]["deep"] = deep
    found = {problem.path: problem.rule for problem in validate(manifest)}
    assert found["spec.template.metadata.labels[1]"] == "KERF-SCHEMA-KEY"
    assert found["spec.template.metadata.labels.x"] == "KERF-SCHEMA-TYPE"
    assert "KERF-SCHEMA-DEPTH" in found.values()
    assert "spec.template.metadata.labels.day" not in found


def test_aliases_that_name_each_other_are_no_manifest_and_no_hang() -> None:
    bomb: Any = "x"
    for _ in range(40):
        bomb = [bomb, bomb, bomb]
    endless: dict[str, Any] = {}
    endless["one"] = endless["two"] = endless
    for value in (bomb, endless, {"deep": bomb}):
        manifest = changed("NodePool", "spec.template", None) | {"extra": value}
        (found,) = validate(manifest)
        assert (found.rule, found.severity) == ("KERF-SCHEMA-LIMIT", "error")
        assert found.path.startswith("extra")
        assert together([manifest, NODEPOOL]) == [[], []]
        assert rules(validate(NODEPOOL, manifest)) == []


def test_as_many_values_as_are_read_are_read() -> None:
    most = {"a": ["x"] * (MOST_VALUES - 1)}
    assert plain(most) == (most, [])
    assert [problem.rule for problem in plain({"a": [*most["a"], "x"]})[1]] == ["KERF-SCHEMA-LIMIT"]


def test_long_and_nasty_values_neither_hang_nor_flood() -> None:
    for path, value in (
        ("B", {"nodes": "0", "schedule": " " * 20000 + "\n", "duration": "1h"}),
        ("T.expireAfter", "1h" * 100_000 + "x"),
        ("R.key", "a." * 100_000 + "!"),
        ("T.taints[0].key", "a" * 300_000 + "!"),
        ("B.nodes", "9" * 100_000),
        ("spec.limits.cpu", "1" * 100_000 + "x"),
        ("T.expireAfter", "9" * 100_000 + "h"),
        ("spec.limits.cpu", "9" * 100_000),
        ("R", {"key": "a", "operator": "Gt", "values": ["9" * 100_000]}),
    ):
        found = validate(changed("NodePool", path, value))
        assert found
        assert all(len(str(problem)) < 2000 for problem in found)
    for path in ("spec.price", "spec.priceAdjustment"):
        found = validate(changed("NodeOverlay", path, f"+{'1' * 300_000}!"))
        assert rules(found) == ["KERF-SCHEMA-PATTERN"]
        assert all(len(str(problem)) < 2000 for problem in found)


def test_paths_are_written_like_kubernetes_does() -> None:
    assert path_text(("spec", "a", 2, "labels", "example.com/x", "b")) == "spec.a[2].labels[example.com/x].b"


def test_rules_are_the_same_for_equal_manifests_in_another_order() -> None:
    shuffled = {key: NODECLAIM[key] for key in reversed(NODECLAIM)}
    shuffled["spec"] = {key: NODECLAIM["spec"][key] for key in reversed(NODECLAIM["spec"])} | {"expireAfter": "x"}
    straight = {**NODECLAIM, "spec": {**NODECLAIM["spec"], "expireAfter": "x"}}
    assert validate(shuffled) == validate(straight)


fields = {kind: [*paths, "apiVersion", "kind", "metadata", "spec.template"] for kind, paths in FIELDS.items()}
strange = st.sampled_from(sorted(BASES)).flatmap(
    lambda kind: st.builds(changed, st.just(kind), st.sampled_from(fields[kind]), anything | likely)
)


@given(strange, strange)
def test_nothing_raises(manifest: dict[str, Any], old: dict[str, Any]) -> None:
    for problem in validate(manifest, old):
        assert problem.message
        assert problem.path == path_text(problem.steps)
