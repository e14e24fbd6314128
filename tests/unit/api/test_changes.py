"""Which objects are the same before and after a change, and what the difference means for nodes."""

from __future__ import annotations

from typing import Any

import pytest

from kerf_api.lint.differences.changes import Changes, Located, changes

from .manifests import ABSENT, EC2NODECLASS, NODEPOOL, placed

OTHER_CLASS = placed(placed(EC2NODECLASS, "metadata.name", "other"), "spec.role", "another")
EXPIRE = "spec.template.spec.expireAfter"
BUDGETS = "spec.disruption.budgets"
REQUIREMENTS = "spec.template.spec.requirements"
FREEZE = {"nodes": "0", "schedule": "0 9 * * *", "duration": "8h"}


def told(before: list[dict[str, Any]], after: list[dict[str, Any]], *, now: str = "a.yaml") -> Changes:
    return changes([Located("a.yaml", made) for made in before], [Located(now, made) for made in after])


def changed(path: str, old: Any, new: Any) -> list[str]:
    """What is told of a NodePool of which one place changes."""
    (found,) = told([placed(NODEPOOL, path, old)], [placed(NODEPOOL, path, new)]).found
    return [f"{problem.path}: {problem.message} {problem.rule[-3:]}" for problem in found]


def rules(path: str, old: Any, new: Any) -> list[str]:
    return [row[-3:] for row in changed(path, old, new)]


def test_what_is_written_otherwise_and_means_the_same_is_no_change_for_nodes() -> None:
    assert rules(EXPIRE, ABSENT, "720h") == []
    assert rules(EXPIRE, "48h", "2880m") == []
    assert rules("spec.limits", {"cpu": "1000"}, {"cpu": "1k"}) == []
    assert rules(BUDGETS, ABSENT, [{"nodes": "10%"}]) == []
    assert rules(f"{REQUIREMENTS}[0].values", ["a", "b"], ["b", "a"]) == []


@pytest.mark.parametrize(
    ("path", "old", "new", "message"),
    [
        (EXPIRE, "Never", "24h", "nodes live for 24h instead of Never"),
        ("spec.limits", ABSENT, {"cpu": "10"}, "the limit of cpu is now 10 (it was none)"),
        ("spec.limits.nodes", "100", "99", "the limit of nodes is now 99 (it was 100)"),
        (BUDGETS, [{"nodes": "10%"}], [{"nodes": "100%"}], "all nodes of the NodePool may be disrupted for it at once"),
        (
            BUDGETS,
            [{"nodes": "10%"}, FREEZE],
            [{"nodes": "10%"}],
            "the hours without disruption for it are removed",
        ),
        (BUDGETS, [{"nodes": "0"}], [FREEZE], "for Drifted and Empty and Underutilized: until now no node was ever"),
        ("spec.disruption.consolidateAfter", "Never", "1m", "consolidation moves pods from now on"),
        (f"{REQUIREMENTS}[0].values", ["a", "b"], ["b"], "example.com/team: no longer a; nodes that are no longer"),
        (REQUIREMENTS, [], [{"key": "zone", "operator": "In", "values": ["a"]}], "zone: only a from now on"),
        (
            f"{REQUIREMENTS}[0]",
            {"key": "topology.kubernetes.io/zone", "operator": "Exists"},
            {"key": "topology.kubernetes.io/zone", "operator": "NotIn", "values": ["us-east-1e"]},
            "topology.kubernetes.io/zone: no longer us-east-1e",
        ),
        (
            f"{REQUIREMENTS}[0]",
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m7i.large", "m7i.xlarge"]},
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m7i.large", "m6i.large"]},
            "1 of the 2 instance types that it had are lost: m7i.xlarge",
        ),
    ],
)
def test_what_a_change_of_a_pool_means(path: str, old: Any, new: Any, message: str) -> None:
    assert [row for row in changed(path, old, new) if message in row]


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (EXPIRE, "24h", "Never"),
        ("spec.limits", {"cpu": "10"}, ABSENT),
        (BUDGETS, [{"nodes": "10%"}], [{"nodes": "20%"}]),
        (BUDGETS, [{"nodes": "10%"}], [{"nodes": "10%"}, FREEZE]),
        (BUDGETS, [{"nodes": "10%"}], [{"nodes": "wrong"}]),
        ("spec.disruption.consolidationPolicy", "WhenEmptyOrUnderutilized", "WhenEmpty"),
        (f"{REQUIREMENTS}[0].values", ["a"], ["a", "b"]),
        (f"{REQUIREMENTS}[0]", {"key": "x", "operator": "In", "values": ["a"]}, {"key": "x", "operator": "Exists"}),
        ("spec.replicas", 3, 5),
    ],
)
def test_what_gives_more_room_is_not_told(path: str, old: Any, new: Any) -> None:
    assert set(rules(path, old, new)) <= {"303"}


def test_the_fields_that_replace_all_nodes_are_named() -> None:
    after = placed(placed(NODEPOOL, EXPIRE, "1000h"), "spec.template.metadata.labels[example.com/a]", "b")
    problem, *others = told([NODEPOOL], [after]).found[0]
    assert others == []
    assert (problem.rule, problem.path) == ("KERF-DIFF-303", "spec.template.metadata.labels")
    assert "spec.template.metadata.labels and spec.template.spec.expireAfter replaces all nodes" in problem.message


def test_a_change_that_is_refused_replaces_no_node() -> None:
    assert rules("spec.template.spec.nodeClassRef.kind", "EC2NodeClass", "KWOKNodeClass") == []


def test_a_class_tells_whose_nodes_are_replaced() -> None:
    (found, _) = told([EC2NODECLASS, NODEPOOL], [placed(EC2NODECLASS, "spec.userData", "x"), NODEPOOL]).found
    assert [problem.path for problem in found] == ["spec.userData"]
    assert "replaces all nodes of NodePool default" in found[0].message


def test_other_images_are_told_and_another_family_is_another_hash() -> None:
    for alias, rule in (("al2023@v20250519", "KERF-DIFF-324"), ("bottlerocket@latest", "KERF-DIFF-323")):
        after = placed(EC2NODECLASS, "spec.amiSelectorTerms[0].alias", alias)
        assert [problem.rule for problem in told([EC2NODECLASS], [after]).found[0]] == [rule]


def test_a_renamed_pool_is_told_once_and_at_its_new_name() -> None:
    after = placed(placed(NODEPOOL, "metadata.name", "new"), "spec.limits.nodes", "50")
    made = told([NODEPOOL], [after], now="b.yaml")
    assert [(problem.rule, problem.path) for problem in made.found[0]] == [("KERF-DIFF-301", "metadata.name")]
    assert made.removed == ((),)


def test_another_pool_in_the_place_of_one_is_no_renaming() -> None:
    after = placed(placed(NODEPOOL, "metadata.name", "new"), "spec", {"replicas": 3})
    made = told([NODEPOOL], [after])
    assert made.found == ((),)
    assert [problem.rule for problem in made.removed[0]] == ["KERF-DIFF-302"]


def test_of_several_the_most_alike_is_the_renamed_one() -> None:
    small = placed(NODEPOOL, "spec.limits.nodes", "1")
    before = [placed(NODEPOOL, "metadata.name", "a"), placed(small, "metadata.name", "b")]
    after = [placed(small, "metadata.name", "c"), placed(NODEPOOL, "metadata.name", "d")]
    assert [found[0].message.split(":")[0] for found in told(before, after).found] == [
        "this renames NodePool b",
        "this renames NodePool a",
    ]


def test_a_removed_class_names_the_pools_that_are_left_without_it() -> None:
    (problem,) = told([EC2NODECLASS, NODEPOOL], [NODEPOOL]).removed[0]
    assert "but NodePool default still names it" in problem.message
    assert told([OTHER_CLASS, NODEPOOL], [NODEPOOL]).removed[0][0].message == "EC2NodeClass other is removed"


def test_a_renamed_class_names_the_pools_that_still_name_the_old_one() -> None:
    after = placed(EC2NODECLASS, "metadata.name", "other")
    (problem,) = told([EC2NODECLASS, NODEPOOL], [after, NODEPOOL]).found[0]
    assert (problem.rule, problem.hint) == ("KERF-DIFF-321", "NodePool default still names default")


def test_objects_are_matched_by_name_wherever_they_stand_and_in_their_own_file_first() -> None:
    dear = placed(NODEPOOL, "spec.limits.nodes", "1000")
    made = told([NODEPOOL], [NODEPOOL], now="b.yaml")
    assert (made.pairs, made.same, made.removed) == ({0: 0}, frozenset({0}), ((),))
    made = changes(
        [Located("one/pool.yaml", NODEPOOL), Located("two/pool.yaml", dear)], [Located("two/pool.yaml", dear)]
    )
    assert (made.pairs, made.same) == ({0: 1}, frozenset({0}))
    assert [problem.rule for problem in made.removed[0]] == ["KERF-DIFF-302"]


@pytest.mark.parametrize("wild", [{}, {"kind": "NodePool"}, {"apiVersion": 5, "kind": [], "metadata": "x", "spec": 3}])
def test_what_is_no_object_is_passed_over(wild: dict[str, Any]) -> None:
    assert told([wild], [NODEPOOL]).found == ((),)
    assert told([NODEPOOL], [wild]).found == ((),)
    spoilt = [placed(NODEPOOL, path, wild) for path in ("spec", "spec.template", EXPIRE, BUDGETS, "spec.limits")]
    for pool in spoilt:
        told([NODEPOOL], [pool])
        told([pool], [NODEPOOL])
